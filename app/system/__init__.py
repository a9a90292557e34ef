"""The machine we run on: folders, locks, keys, logs."""

"""The operating system: folders, locks, keys, logs, processes and manual pages."""

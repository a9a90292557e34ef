"""Data safety: backups, recovery at start, restoring, maintenance."""

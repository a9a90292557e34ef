"""Deletion for good: forgetting conversations, redaction of quotes, tombstones."""

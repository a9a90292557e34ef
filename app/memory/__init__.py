"""Remembering: search over everything, the indexes kept in step, what goes into a prompt."""

"""Extractive summaries: the most central sentences of a text, and the one that says how it ended."""

"""Extractive summaries, titles and tags: the most central sentences and phrases of a text."""

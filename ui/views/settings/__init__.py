"""The settings dialog, its pages, and the worker dashboard."""

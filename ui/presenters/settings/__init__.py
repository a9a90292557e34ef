"""Presenters of the settings dialog and the worker dashboard."""

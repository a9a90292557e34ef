"""Dialogs opened from the window, except the settings, and questions before something is done."""

"""Presenters, one for each screen: call `app` and tell the view what to show."""

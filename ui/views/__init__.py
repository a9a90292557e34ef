"""Screens, put together from widgets and models: plain values in, signals out, no services."""

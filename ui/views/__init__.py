"""Screens built from widgets and models: plain values in, signals out, no services."""

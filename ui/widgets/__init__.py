"""Widgets: they take plain values and emit signals, and use no services."""

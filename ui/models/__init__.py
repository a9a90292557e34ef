"""Item models: rows for lists. They hold values and know nothing of where those come from."""

"""Records beside conversations: their values, one module for each aggregate."""

"""Topics: conversations grouped by their vectors, named by their words, and followed over time."""

"""Presenters of what is remembered: facts, core memory, topics, documents, and forgetting."""

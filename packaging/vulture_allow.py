"""What vulture takes for unused and is not: each name with who uses it.

Names that Qt calls and fixtures that pytest calls are in pyproject.toml.
"""

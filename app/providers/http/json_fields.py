"""Tolerant access to decoded JSON: a value of an unexpected type counts as missing. Never raises."""

import json
from collections.abc import Mapping
from typing import Any

NOTHING: Mapping[str, Any] = {}


def json_object(text: str) -> Mapping[str, Any]:
    """Return the object that a JSON text holds, an empty one for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING
    return found if isinstance(found, dict) else NOTHING


def member(value: object, *path: str) -> Any:
    """Return the value at `path` inside nested objects, None when any step is missing."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text_at(value: object, *path: str) -> str:
    """Return the text at `path`, "" when there is none."""
    found = member(value, *path)
    return found if isinstance(found, str) else ""


def mapping_at(value: object, *path: str) -> Mapping[str, Any]:
    """Return the object at `path`, an empty one when there is none."""
    found = member(value, *path)
    return found if isinstance(found, Mapping) else NOTHING


def list_at(value: object, *path: str) -> list[Any]:
    """Return the list at `path`, an empty one when there is none."""
    found = member(value, *path)
    return found if isinstance(found, list) else []


def count_at(value: object, *path: str) -> int | None:
    """Return the whole number at `path` if it is one and not negative, else None."""
    found = member(value, *path)
    return found if type(found) is int and found >= 0 else None

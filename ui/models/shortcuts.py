"""Keyboard shortcuts that the user changed: their stored form, and what they conflict with."""

import json
from collections.abc import Mapping, Sequence

Shortcuts = Mapping[str, Sequence[str]]  # of actions, by name; portable text such as "Ctrl+K"


def parse_shortcuts(text: str) -> dict[str, tuple[str, ...]]:
    """Return the stored changes; text that is no such table gives none."""
    try:
        stored = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(stored, dict):
        return {}
    return {
        name: tuple(str(key) for key in keys)
        for name, keys in stored.items()
        if isinstance(keys, list)
    }


def format_shortcuts(changed: Shortcuts) -> str:
    """Return changes as text for the setting `shortcuts`."""
    return json.dumps({name: list(keys) for name, keys in sorted(changed.items())})


def with_shortcut(changed: Shortcuts, current: Shortcuts, name: str, key: str) -> Shortcuts:
    """Return the changes after giving an action one key ("" for none), taken from any other."""
    others = {
        other: tuple(each for each in keys if each != key)
        for other, keys in current.items()
        if key in keys and other != name
    }
    return {**changed, **others, name: (key,) if key else ()}


def owner_of(current: Shortcuts, key: str, *, but: str) -> str:
    """Return the name of another action that has a key, "" for none."""
    return next((name for name, keys in current.items() if name != but and key in keys), "")

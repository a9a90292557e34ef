"""The window's stored state: geometry, what was open, and the settings that the first frame needs."""

import json
from pathlib import Path

FIRST_SETTINGS = ("theme", "text_size", "reduced_motion", "language")


def stored_settings(file: Path) -> dict[str, object]:
    """Return the settings that the first frame needs, as they were last time; blocking."""
    try:
        return dict(json.loads(file.read_text(encoding="utf-8"))["settings"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def note_setting(file: Path, key: str, value: object) -> None:
    """Have the first frame of the next window know a setting that was set without one; blocking."""
    if key not in FIRST_SETTINGS:
        return
    try:
        stored = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        stored = {}
    store_state(file, json.dumps(stored | {"settings": stored_settings(file) | {key: value}}))


def store_state(file: Path, state: str) -> None:
    """Store a window's state atomically; blocking. On an error the last state stays."""
    coming = file.with_suffix(".new")
    try:
        coming.write_text(state, encoding="utf-8")
        coming.replace(file)
    except OSError as error:
        import logging  # the first frame is shown without it

        logging.getLogger(__name__).warning("the window's state could not be stored: %s", error)

"""Settings as the window calls them: by their labels, where commands and the command line name keys."""

import re

from app.domain.settings_schema import SETTINGS

_KEY = re.compile(rf"\b(?:{'|'.join(key for key in SETTINGS if '_' in key)})\b")


def labelled(words: str) -> str:
    """Return words with the label of each setting that they name by its key."""
    return _KEY.sub(lambda key: f"\u201c{SETTINGS[key[0]].label}\u201d", words)

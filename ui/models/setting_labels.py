"""Labels of settings in texts of the services, which name settings by key."""

import re

from app.domain.settings_schema import SETTINGS
from app.domain.translation import tr

_KEY = re.compile(rf"\b(?:{'|'.join(key for key in SETTINGS if '_' in key)})\b")


def with_setting_labels(text: str) -> str:
    """Return text with the label of each setting that it names by its key."""
    return _KEY.sub(lambda key: f"\u201c{tr(SETTINGS[key[0]].label)}\u201d", text)

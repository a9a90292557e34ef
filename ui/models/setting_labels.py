"""Labels of settings in texts of the services, which name settings by key."""

import re

from app.domain.settings_schema import SETTINGS
from app.domain.translation import format_percent, quoted, tr

_KEYS = "|".join(key for key in SETTINGS if "_" in key)
_NAMED = re.compile(rf"\b({_KEYS})\b(?:( \w+ )([01](?:[.,]\d+)?)(?![.,]?\d))?")


def with_setting_labels(text: str) -> str:
    """Return text with the label of each setting that it names by its key, and relevances in percent."""
    return _NAMED.sub(_labelled, text)


def _labelled(found: re.Match[str]) -> str:
    key, between, value = found.groups()
    setting = SETTINGS[key]
    label = quoted(tr(setting.label))
    if value is None:
        return label
    if setting.kind is float and setting.maximum == 1:
        value = format_percent(float(value.replace(",", ".")))
    return f"{label}{between}{value}"

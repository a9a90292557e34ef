"""Text cleaned while it streams: `app.domain.text.clean`, which may not be cut in two.

Servers split text anywhere: between the halves of a surrogate pair, or inside an emoji flag made
of tag characters. Such a beginning is held back until the rest has come.
"""

import re

from app.domain.text import clean

_UNFINISHED = re.compile("([\ud800-\udbff]|\U0001f3f4?[\U000e0001-\U000e007f]+|\U0001f3f4)\\Z")
_HELD_CHARS = 64


class StreamCleaner:
    """Cleans one channel of a reply, piece by piece; `feed` all, then `flush` once."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown now, clean; maybe nothing yet."""
        text = self._held + piece
        self._held = ""
        match = _UNFINISHED.search(text[-_HELD_CHARS:])
        if match and match.end() - match.start() < _HELD_CHARS:
            self._held = match[0]
            text = text[: len(text) - len(match[0])]
        return clean(text)

    def flush(self) -> str:
        """Return what was held back, clean."""
        held, self._held = self._held, ""
        return clean(held)

"""Segment breaks: the exchanges after which `/new` starts a new segment.

A break is stored in the setting `clean_slates`, so it survives a restart before the next message
and applies to every branch that continues from that exchange.
"""

import json
import threading

from app.domain.ids import ExchangeId
from app.storage.tables.settings import Settings

SEGMENT_BREAKS_KEY = "clean_slates"
_MAX_BREAKS = 1_000  # older ones are followed by messages, which store their segment


class SegmentBreaks:
    """The stored breaks. Reading does not block; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()

    def is_after(self, exchange_id: ExchangeId) -> bool:
        """Return whether the next message after an exchange starts a new segment."""
        return exchange_id in self._stored()

    def begin_after(self, exchange_id: ExchangeId) -> None:
        """Start a new segment after an exchange. Blocking; raises StorageError."""
        with self._lock:
            others = [each for each in self._stored() if each != exchange_id]
            kept = [*others, exchange_id][-_MAX_BREAKS:]
            self._settings.set(SEGMENT_BREAKS_KEY, json.dumps(kept))

    def _stored(self) -> list[int]:
        """Return exchange ids, newest last; none when the setting is damaged."""
        try:
            stored = json.loads(self._settings.text(SEGMENT_BREAKS_KEY))
        except ValueError:
            stored = None
        listed = stored if isinstance(stored, list) else []
        return [each for each in listed if isinstance(each, int)]

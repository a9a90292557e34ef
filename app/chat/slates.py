"""Clean slates: after which exchanges the user has asked for one, and what of a path is sent then.

A wish is kept in the setting `clean_slates` until the next message and beyond, so that it survives
the end of the program and holds on whatever branch goes on from there.
"""

import json
import threading
from collections.abc import Callable, Sequence

from app.domain.conversations import Exchange, Message
from app.domain.ids import ExchangeId
from app.storage.settings import Settings

KEY = "clean_slates"
_MOST = 1_000  # the oldest have long since been followed by a message


class CleanSlates:
    """After which exchanges a new segment begins. Reading never blocks; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()

    def is_after(self, exchange_id: ExchangeId) -> bool:
        """Return whether what follows an exchange begins a new segment."""
        return exchange_id in self._kept()

    def begin_after(self, exchange_id: ExchangeId) -> None:
        """Have the next message after an exchange begin a new segment. Blocking; StorageError."""
        with self._lock:
            kept = [each for each in self._kept() if each != exchange_id]
            self._settings.set(KEY, json.dumps([*kept, exchange_id][-_MOST:]))

    def _kept(self) -> list[int]:
        """Return exchange ids, the newest wish last; what is no such list is none."""
        try:
            kept = json.loads(self._settings.text(KEY))
        except ValueError:
            return []
        return [each for each in kept if isinstance(each, int)] if isinstance(kept, list) else []


def in_segment(
    messages: Sequence[Message], exchange: Exchange, path: Callable[[], Sequence[Exchange]]
) -> tuple[Message, ...]:
    """Return those of `messages` that belong to the segment of `exchange`, in their order.

    `path` gives the exchanges up to `exchange`; it is not asked where there is but one segment.
    Messages of no exchange, such as one not stored yet, stay.
    """
    if not exchange.segment_number:
        return tuple(messages)
    earlier = {
        message_id
        for each in path()
        if each.segment_number != exchange.segment_number
        for message_id in each.message_ids
    }
    return tuple(message for message in messages if message.id not in earlier)

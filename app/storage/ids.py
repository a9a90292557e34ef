"""Ids are counters in memory: allocated before anything is written, so that the journal holds them."""

import threading
from collections.abc import Sequence

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId


class IdAllocator:
    """Gives the next id of each kind; thread-safe. An id that is not used leaves a hole."""

    def __init__(self, conversation: int, exchange: int, message: int, passage: int) -> None:
        self._lock = threading.Lock()
        self._last = {
            "conversation": conversation,
            "exchange": exchange,
            "message": message,
            "passage": passage,
        }

    def conversation(self) -> ConversationId:
        """Return a new conversation's id."""
        return ConversationId(self._take("conversation", 1)[0])

    def exchange(self) -> ExchangeId:
        """Return a new exchange's id."""
        return ExchangeId(self._take("exchange", 1)[0])

    def message(self) -> MessageId:
        """Return a new message's id."""
        return MessageId(self._take("message", 1)[0])

    def messages(self, count: int) -> Sequence[MessageId]:
        """Return `count` ids, ascending."""
        return [MessageId(each) for each in self._take("message", count)]

    def passage(self) -> PassageId:
        """Return a new passage's id."""
        return PassageId(self._take("passage", 1)[0])

    def pass_over(self, message: int) -> None:
        """Never give out message ids up to and including `message`: the journal has used it."""
        with self._lock:
            self._last["message"] = max(self._last["message"], message)

    def _take(self, kind: str, count: int) -> range:
        with self._lock:
            first = self._last[kind] + 1
            self._last[kind] += count
        return range(first, first + count)

"""Ids and times of records: counters in memory, so that the journal contains ids before anything is written."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import overload

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId


class IdAllocator:
    """Allocates the next id of each kind; thread-safe. An unused id leaves a gap."""

    def __init__(self, *highest: int) -> None:
        """`highest` are the last ids given to conversations, exchanges, messages, passages."""
        self._lock = threading.Lock()
        kinds = ("conversation", "exchange", "message", "passage")
        self._last = dict(zip(kinds, highest, strict=True))

    def conversation(self) -> ConversationId:
        return ConversationId(self._take("conversation", 1)[0])

    def exchange(self) -> ExchangeId:
        return ExchangeId(self._take("exchange", 1)[0])

    def message(self) -> MessageId:
        return MessageId(self._take("message", 1)[0])

    def messages(self, count: int) -> Sequence[MessageId]:
        """Return `count` ids, ascending."""
        return [MessageId(each) for each in self._take("message", count)]

    def passage(self) -> PassageId:
        return PassageId(self._take("passage", 1)[0])

    def pass_over(self, message: int) -> None:
        """Skip message ids up to and including `message`, which the journal has used."""
        with self._lock:
            self._last["message"] = max(self._last["message"], message)

    def _take(self, kind: str, count: int) -> range:
        with self._lock:
            first = self._last[kind] + 1
            self._last[kind] += count
        return range(first, first + count)


def now() -> datetime:
    """Return the present, UTC, to the microsecond."""
    return datetime.now(UTC)


@overload
def to_db(moment: datetime) -> datetime: ...
@overload
def to_db(moment: None) -> None: ...
def to_db(moment: datetime | None) -> datetime | None:
    """Return an aware time as the database keeps it."""
    if moment is not None and moment.tzinfo is not UTC:  # converting takes 1.5 us
        moment = moment.astimezone(UTC)
    return None if moment is None else moment.replace(tzinfo=None)


@overload
def from_db(moment: datetime) -> datetime: ...
@overload
def from_db(moment: None) -> None: ...
def from_db(moment: datetime | None) -> datetime | None:
    """Return a time of the database as an aware one."""
    return None if moment is None else moment.replace(tzinfo=UTC)

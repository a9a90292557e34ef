"""Makes durable what streams in, twice a second: after a kill it is put together from there."""

import asyncio
import logging
from collections.abc import Callable

from app.domain.changes import ReplyGrew
from app.domain.chat import TextDelta, ThinkingDelta
from app.domain.conversations import Exchange
from app.domain.errors import StorageError
from app.domain.ids import MessageId
from app.storage.store import Store
from app.storage.times import now

_log = logging.getLogger(__name__)
_EVERY_S = 0.5

_Part = tuple[MessageId, TextDelta | ThinkingDelta]


class ReplyJournal:
    """Keeps the words of a running reply that no transaction holds yet.

    It belongs to the exchange thread.
    """

    def __init__(self, store: Store, exchange: Exchange, is_stored: Callable[[MessageId], bool]):
        """Keep words of `exchange` until `is_stored` says that their message is."""
        self._store = store
        self._exchange = exchange
        self._is_stored = is_stored
        self._waiting: list[_Part] = []

    def add(self, message_id: MessageId, said: TextDelta | ThinkingDelta) -> None:
        """Take in words of a message."""
        self._waiting.append((message_id, said))

    async def keep(self) -> None:
        """Write what waits twice a second, also while the stream stalls; until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            parts = [part for part in self._waiting if not self._is_stored(part[0])]
            self._waiting = []
            if not parts:
                continue
            grown = [self._grown(*part) for part in _joined(parts)]
            try:
                await asyncio.wrap_future(self._store.journal_only(*grown))
            except StorageError as error:
                _log.warning("a running reply cannot be kept at present: %s", error)
                self._waiting = parts + self._waiting

    def _grown(self, message_id: MessageId, said: TextDelta | ThinkingDelta) -> ReplyGrew:
        kind = "text" if isinstance(said, TextDelta) else "thinking"
        return ReplyGrew(
            self._exchange.id, message_id, kind, said.text, now(), self._exchange.model or ""
        )


def _joined(parts: list[_Part]) -> list[_Part]:
    """Return neighbours of one message and kind as one."""
    joined: list[_Part] = []
    for message_id, said in parts:
        if joined and joined[-1][0] == message_id and type(joined[-1][1]) is type(said):
            joined[-1] = (message_id, type(said)(joined[-1][1].text + said.text))
        else:
            joined.append((message_id, said))
    return joined

"""Journal of a running reply, from which its text is restored after a kill."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from app.domain.changes import TEXT_WAS_THINKING, ReplyGrew
from app.domain.chat import TextDelta, TextWasThinking, ThinkingDelta
from app.domain.errors import StorageError
from app.domain.ids import ExchangeId, MessageId
from app.storage.engine.store import Store
from app.storage.engine.times import now

_log = logging.getLogger(__name__)
_INTERVAL_S = 0.5
_KINDS: Mapping[type, str] = {
    TextDelta: "text",
    ThinkingDelta: "thinking",
    TextWasThinking: TEXT_WAS_THINKING,
}


class ReplyJournal:
    """Text that is not journaled yet, and its writing. Lives on the exchange thread."""

    def __init__(self, store: Store, exchange_id: ExchangeId, model: str) -> None:
        self._store = store
        self._exchange_id = exchange_id
        self._model = model
        self._waiting: list[ReplyGrew] = []

    def grow(
        self, message_id: MessageId, delta: TextDelta | ThinkingDelta | TextWasThinking
    ) -> None:
        """Queue text, joined to the last of the same message and kind."""
        kind = _KINDS[type(delta)]
        text = "" if isinstance(delta, TextWasThinking) else delta.text
        last = self._waiting[-1] if self._waiting else None
        if last is not None and (last.message_id, last.kind) == (message_id, kind):
            self._waiting[-1] = replace(last, text=last.text + text)
        else:
            self._waiting.append(
                ReplyGrew(self._exchange_id, message_id, kind, text, now(), self._model)
            )

    async def run(self, stored_ids: Callable[[], Collection[MessageId]]) -> None:
        """Write queued text twice a second, also while the stream stalls; until cancelled.

        Left out is the text of messages that are stored as a whole.
        """
        while True:
            await asyncio.sleep(_INTERVAL_S)
            stored = stored_ids()
            parts = [part for part in self._waiting if part.message_id not in stored]
            self._waiting = []
            if not parts:
                continue
            try:
                await asyncio.wrap_future(self._store.journal_only(*parts))
            except StorageError as error:
                _log.warning("a running reply cannot be journaled at present: %s", error)
                self._waiting = parts + self._waiting

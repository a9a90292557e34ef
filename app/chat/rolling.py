"""The rolling summary: what no longer fits well is summarised after a turn, never while one is sent.

Once what is sent fills most of the window, its older part is summarised, down to half: rarely, and
much at once, so that the provider's prompt cache keeps its prefix. The messages stay as they are;
`SummaryPut` of the kind "context" says up to which exchange they are summed up. Until a summary is
there the window simply shrinks.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.chat.looking_up import CONTEXT
from app.domain.changes import SummaryPut
from app.domain.conversations import Exchange, Message, Role
from app.domain.errors import KnownError, NotFound
from app.domain.events import Changed
from app.domain.ids import ExchangeId
from app.domain.recalls import KeptPrompt, PlanPartKind
from app.domain.turn_text import content_hash, turn_text
from app.memory.window import weight_tokens
from app.providers.extractive import MODEL, Turn, summarise_conversation
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges, path_to
from app.storage.prompts import Prompts
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.storage.times import now
from app.workers.summariser import Digest, Summariser

_log = logging.getLogger(__name__)
_FULL_SHARE, _LEFT_SHARE = 0.85, 0.5
_EXTRACTIVE_PARTS = 6  # each of two or three sentences: together about what the budget holds
_WINDOW = (PlanPartKind.WINDOW, PlanPartKind.QUESTION)
_STOP_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """The exchanges of a segment, oldest first, what each weighs in tokens, and how many messages."""

    exchanges: tuple[Exchange, ...]
    weights: tuple[int, ...]

    def covered_after(self, covered: int, window_tokens: int, min_messages: int) -> int:
        """Return how many exchanges should be summarised, when `covered` are; the same for no change.

        Once the others fill 85 % of the window, as many as leave half of it; the last
        `min_messages` messages are never among them.
        """
        left = sum(self.weights[covered:])
        if left <= window_tokens * _FULL_SHARE:
            return covered
        chosen = covered
        messages = sum(len(each.message_ids) for each in self.exchanges[covered:])
        while left > window_tokens * _LEFT_SHARE and chosen < len(self.exchanges):
            messages -= len(self.exchanges[chosen].message_ids)
            if messages < min_messages:
                break
            left -= self.weights[chosen]
            chosen += 1
        return chosen


class RollingSummaries:
    """Waits for turns to end and sums up where it is time, in a thread of its own.

    `summariser` is asked where a model is chosen for background work; without it, and where that
    fails, sentences of the conversation itself are taken. Private conversations are left alone.
    """

    def __init__(
        self, store: Store, settings: Settings, summariser: Summariser | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._summariser = summariser
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)
        self._summaries = Summaries(store)
        self._ended: queue.SimpleQueue[ExchangeId | None] = queue.SimpleQueue()
        self._awaited: set[ExchangeId] = set()
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Follow the store from now on."""
        self._thread = threading.Thread(target=self._serve, name="rolling summaries", daemon=True)
        self._thread.start()
        self._unsubscribe = self._store.subscribe(self._on_changed)

    def stop(self) -> None:
        """Finish what is begun, at most 3 s; the rest is found at the next turn. Blocking."""
        self._unsubscribe()
        self._is_stopping.set()
        self._ended.put(None)
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)

    def await_end(self, exchange_id: ExchangeId) -> None:
        """Look at an exchange once it has ended; of others, such as imported ones, nothing is said."""
        self._awaited.add(exchange_id)

    def sum_up(self, exchange_id: ExchangeId) -> bool:
        """Sum up what the conversation has too much of after an exchange; return whether it did.

        Blocking. Raises KnownError when nothing can be stored.
        """
        prompt = self._prompts.of(exchange_id)
        if prompt is None or self._conversations.get(prompt.conversation_id).private:
            return False
        last = self._exchanges.get(exchange_id)
        path = path_to(last, self._exchanges.of(last.conversation_id))
        segment = tuple(each for each in path if each.segment_number == last.segment_number)
        said = self._exchanges.messages(each for turn in segment for each in turn.message_ids)
        turns = [[said[each] for each in turn.message_ids if each in said] for turn in segment]
        stretch = Stretch(segment, tuple(sum(map(weight_tokens, turn)) for turn in turns))
        covered = self._covered(segment)
        wanted = stretch.covered_after(
            covered, window_tokens(prompt), self._settings.number("context_sliding_window")
        )
        if wanted <= covered:
            return False
        self._put(segment[wanted - 1], [_turn(messages) for messages in turns[:wanted]])
        return True

    def _covered(self, segment: Sequence[Exchange]) -> int:
        known = self._summaries.latest(CONTEXT, (each.id for each in segment))
        return max((place + 1 for place, each in enumerate(segment) if each.id in known), default=0)

    def _put(self, last: Exchange, turns: Sequence[Turn]) -> None:
        digest = self._digest(last, turns)
        if not digest.summary:
            return
        words = "\n".join(f"{turn.asked}\n{turn.answered}" for turn in turns)
        self._store.save(
            SummaryPut(
                CONTEXT, last.id, last.conversation_id, digest.summary, digest.model,
                content_hash(words), now(),
            ),
            *digest.spent,
        )  # fmt: skip

    def _digest(self, last: Exchange, turns: Sequence[Turn]) -> Digest:
        if self._summariser is not None and self._summariser.is_paid:
            try:
                return self._summariser.conversation(
                    last.conversation_id, turns, self._is_stopping.is_set
                )
            except KnownError as error:
                _log.info("a rolling summary is made without a model: %s", error)
        return Digest(extract(turns), model=MODEL)

    # -- the thread

    def _serve(self) -> None:
        while (exchange_id := self._ended.get()) is not None:
            with suppress(NotFound):  # forgotten since
                try:
                    self.sum_up(exchange_id)
                except KnownError as error:
                    _log.warning("a rolling summary could not be made: %s", error)
                except Exception:  # noqa: BLE001 - the edge of a thread: the next turn tries again
                    _log.exception("a rolling summary failed in a way we did not foresee")

    def _on_changed(self, changed: Changed) -> None:
        for exchange_id in self._awaited & changed.turns_completed:
            self._awaited.discard(exchange_id)
            self._ended.put(exchange_id)


def window_tokens(prompt: KeptPrompt) -> int:
    """Return what of a prompt's limit was the window's: all that nothing else took."""
    around = sum(part.tokens for part in prompt.parts if part.kind not in _WINDOW)
    return max(0, prompt.limit_tokens - around)


def extract(turns: Sequence[Turn]) -> str:
    """Return telling sentences of a conversation in order, from its beginning, middle and end."""
    size = max(1, -(-len(turns) // _EXTRACTIVE_PARTS))
    parts = (turns[place : place + size] for place in range(0, len(turns), size))
    return "\n".join(summary for part in parts if (summary := summarise_conversation(part)))


def _turn(messages: Sequence[Message]) -> Turn:
    words = turn_text(
        (message.role, message.blocks)
        for message in messages
        if message.role in (Role.USER, Role.ASSISTANT)
    )
    return Turn(words.user, words.assistant)

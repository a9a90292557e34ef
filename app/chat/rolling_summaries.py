"""Rolling summaries: the older part of a segment that outgrows the context window is condensed.

This happens after a turn, never while a message is sent. Once the segment fills most of the window,
its older part is summarized down to half: rarely and much at once, so that the provider's prompt
cache keeps its prefix. Messages stay as they are; a `SummaryPut` of the kind "context" names the
last exchange that it covers. Until it exists, the window shrinks.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from app.chat.context_fetcher import CONTEXT
from app.domain.changes import ChangeSet, SummaryPut
from app.domain.conversations import Exchange, Message, Role
from app.domain.errors import KnownError, NotFound
from app.domain.ids import ExchangeId
from app.domain.recall import PlanPartKind, StoredPrompt
from app.domain.turn_text import content_hash, turn_text
from app.language.extractive.summaries import MODEL, TurnMarkdown, summarize_conversation
from app.memory.context_window import message_tokens
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, path_to
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.workers.jobs.summarizers import GeneratedSummary, Summarizer

_log = logging.getLogger(__name__)
_FULL_SHARE, _LEFT_SHARE = 0.85, 0.5
_EXTRACTIVE_PARTS = 6  # of two or three sentences each, which fill the budget
_WINDOW = (PlanPartKind.WINDOW, PlanPartKind.QUESTION)
_STOP_TIMEOUT_S = 3.0


def covered_after(
    turns: Sequence[tuple[int, int]], covered: int, window_tokens: int, min_messages: int
) -> int:
    """Return how many turns the summary should cover, when it covers `covered` now.

    `turns` are (messages, estimated tokens), oldest first. If the others fill 85 % of the window, as
    many as leave half of it; the last `min_messages` messages are never covered.
    """
    left = sum(tokens for _, tokens in turns[covered:])
    if left <= window_tokens * _FULL_SHARE:
        return covered
    chosen = covered
    messages = sum(count for count, _ in turns[covered:])
    while left > window_tokens * _LEFT_SHARE and chosen < len(turns):
        count, tokens = turns[chosen]
        messages -= count
        if messages < min_messages:
            break
        left -= tokens
        chosen += 1
    return chosen


class RollingSummaries:
    """Condenses segments after their turns, in a thread of its own.

    The summarizer is used where a model is chosen for background work; without it, and where it
    fails, sentences are extracted. Private conversations are skipped.
    """

    def __init__(
        self, store: Store, settings: Settings, summarizer: Summarizer | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._summarizer = summarizer
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)
        self._summaries = Summaries(store)
        self._ended: queue.SimpleQueue[ExchangeId | None] = queue.SimpleQueue()
        self._expected: set[ExchangeId] = set()
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._serve, name="rolling summaries", daemon=True)
        self._thread.start()
        self._unsubscribe = self._store.subscribe(self._on_changed)

    def stop(self) -> None:
        """Stop after the current summary, at most 3 s; the next turn continues. Blocking."""
        self._unsubscribe()
        self._is_stopping.set()
        self._ended.put(None)
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)

    def expect(self, exchange_id: ExchangeId) -> None:
        """Check an exchange when it ends; others, such as imported ones, are not checked."""
        self._expected.add(exchange_id)

    def condense(self, exchange_id: ExchangeId) -> bool:
        """Condense the segment of an exchange if it is too long; return whether it was.

        Blocking. Raises KnownError when the summary cannot be stored.
        """
        prompt = self._prompts.of(exchange_id)
        if prompt is None or self._conversations.get(prompt.conversation_id).private:
            return False
        last = self._exchanges.get(exchange_id)
        path = path_to(last, self._exchanges.of(last.conversation_id))
        segment = tuple(each for each in path if each.segment_number == last.segment_number)
        messages = self._exchanges.messages(each for turn in segment for each in turn.message_ids)
        turns = [
            [messages[each] for each in turn.message_ids if each in messages] for turn in segment
        ]
        known = self._summaries.latest(CONTEXT, (each.id for each in segment))
        covered = max((i + 1 for i, each in enumerate(segment) if each.id in known), default=0)
        sizes = [(len(turn), sum(map(message_tokens, turn))) for turn in turns]
        wanted = covered_after(
            sizes, covered, window_tokens(prompt), self._settings.number("context_sliding_window")
        )
        if wanted <= covered:
            return False
        self._put(segment[wanted - 1], [_turn(each) for each in turns[:wanted]])
        return True

    def _put(self, last: Exchange, turns: Sequence[TurnMarkdown]) -> None:
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

    def _digest(self, last: Exchange, turns: Sequence[TurnMarkdown]) -> GeneratedSummary:
        if self._summarizer is not None and self._summarizer.is_paid:
            try:
                return self._summarizer.conversation(
                    last.conversation_id, turns, self._is_stopping.is_set
                )
            except KnownError as error:
                _log.info("a rolling summary is extracted without a model: %s", error)
        return GeneratedSummary(extract(turns), model=MODEL)

    # -- the thread

    def _serve(self) -> None:
        while (exchange_id := self._ended.get()) is not None:
            with suppress(NotFound):  # the exchange was deleted meanwhile
                try:
                    self.condense(exchange_id)
                except KnownError as error:
                    _log.warning("a rolling summary could not be made: %s", error)
                except Exception:  # noqa: BLE001 - the edge of a thread: the next turn tries again
                    _log.exception("a rolling summary failed unexpectedly")

    def _on_changed(self, changed: ChangeSet) -> None:
        for exchange_id in self._expected & changed.turns_completed:
            self._expected.discard(exchange_id)
            self._ended.put(exchange_id)


def window_tokens(prompt: StoredPrompt) -> int:
    """Return the tokens of a prompt's limit that were left for the window."""
    around = sum(part.tokens for part in prompt.parts if part.kind not in _WINDOW)
    return max(0, prompt.limit_tokens - around)


def extract(turns: Sequence[TurnMarkdown]) -> str:
    """Return central sentences from each part of a conversation, in order."""
    size = max(1, -(-len(turns) // _EXTRACTIVE_PARTS))
    parts = (turns[place : place + size] for place in range(0, len(turns), size))
    return "\n".join(summary for part in parts if (summary := summarize_conversation(part)))


def _turn(messages: Sequence[Message]) -> TurnMarkdown:
    words = turn_text(
        (message.role, message.blocks)
        for message in messages
        if message.role in (Role.USER, Role.ASSISTANT)
    )
    return TurnMarkdown(words.user, words.assistant)

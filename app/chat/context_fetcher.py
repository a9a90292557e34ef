"""Context fetcher: loads what a prompt needs from memory, within time limits.

Words are searched first, which is fast, then words and meaning. Sending waits for meaning a second
at most, longer for the first question while the embedder is loaded; then what words found decides,
however busy the machine is. A notice names what is missing.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.chat.planner import ExchangePlan
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId
from app.domain.recall import RecallSettings, RetrievalResult, RetrievedFact, SegmentContext
from app.domain.translation import tr_noop
from app.memory.core_memory import CoreMemoryService
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges

_log = logging.getLogger(__name__)
_WORDS_ONLY = tr_noop("Recall used words only: meaning took too long")
_MAX_THREADS = 4  # fetches that hang; until one ends, nothing more is recalled

# The function is polled during the search: whether it must return what it has. The flag is whether
# meaning is searched too.
Retrieve = Callable[
    [str, ConversationId, SegmentContext, RecallSettings, Callable[[], bool], bool], RetrievalResult
]


@dataclass(frozen=True, slots=True)
class RecallLimits:
    """The longest waits after Enter, in seconds.

    `meaning_s` is for search by meaning, `loading_s` for the first question while the embedder is
    loaded, `words_s` for search by words, which only a hanging search exceeds.
    """

    meaning_s: float = 1.0
    loading_s: float = 3.0
    words_s: float = 10.0


@dataclass(slots=True)
class FetchedContext:
    """What was found in time; it grows while the fetch runs.

    Attributes:
        turn_numbers: Of the exchanges that the found facts come from.
        notice: What is missing and why, one problem a line; "" for nothing.
    """

    core_memory: str = ""
    turn_numbers: dict[ExchangeId, int] = field(default_factory=dict)
    found: RetrievalResult = field(default_factory=RetrievalResult)
    notice: str = ""

    def add_notice(self, text: str) -> None:
        self.notice = f"{self.notice}\n{text}".strip()


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What to recall for a message of a segment."""

    text: str
    settings: RecallSettings
    segment: SegmentContext


# Given the context without recall, it returns what to recall; None for nothing.
QueryFor = Callable[[FetchedContext], RecallQuery | None]


class ContextFetcher:
    """Fetches context in threads of its own. Thread-safe."""

    def __init__(
        self,
        store: Store,
        core_memory: CoreMemoryService,
        retrieve: Retrieve | None = None,
        limits: RecallLimits | None = None,
        wait_for_meaning: Callable[[float], bool] = lambda _: True,
    ) -> None:
        """Without `retrieve` nothing is recalled.

        `wait_for_meaning` waits some seconds until meaning can be searched, or it is known that it
        cannot, and returns whether that is so.
        """
        self._core_memory = core_memory
        self._retrieve = retrieve
        self._limits = limits or RecallLimits()
        self._wait_for_meaning = wait_for_meaning
        self._has_waited = False
        self._exchanges = Exchanges(store)
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    @property
    def core_memory(self) -> str:
        """The core memory as it was last read; never blocks."""
        return self._core_memory.last_known

    def fetch(self, plan: ExchangePlan, query_for: QueryFor) -> FetchedContext:
        """Return the context of a plan within the time limits; never raises. Blocking."""
        started, limits = time.monotonic(), self._limits
        limit_s = limits.meaning_s if self._is_settled() else limits.loading_s
        fetched, steps = FetchedContext(self._core_memory.last_known), _Steps(started + limit_s)
        thread = threading.Thread(
            target=self._run, args=(fetched, steps, plan, query_for), name="recall", daemon=True
        )
        with self._lock:
            self._threads = {each for each in self._threads if each.is_alive()}
            if len(self._threads) >= _MAX_THREADS:
                fetched.add_notice(tr_noop("Recall is still busy with earlier questions"))
                return fetched
            self._threads.add(thread)
            thread.start()
        if steps.done.wait(limit_s):
            return fetched
        has_words = steps.words.wait(max(0.0, started + limits.words_s - time.monotonic()))
        with self._lock:
            in_time = replace(fetched)  # the thread goes on
        if not has_words:
            in_time.add_notice(
                tr_noop(
                    f"Recall took longer than {limits.words_s:g} s, so this answer does without some of it"
                )
            )
        elif _WORDS_ONLY not in in_time.notice:
            in_time.add_notice(_WORDS_ONLY)
        return in_time

    def _is_settled(self) -> bool:
        """Return whether this question need not wait for the embedder: only the first does."""
        is_first, self._has_waited = not self._has_waited, True
        return not is_first or self._wait_for_meaning(0.0)

    def close(self) -> None:
        """Wait for running fetches, at most a second each. Blocking."""
        for thread in tuple(self._threads):
            thread.join(1.0)

    # -- in a thread of its own

    def _run(
        self, fetched: FetchedContext, steps: "_Steps", plan: ExchangePlan, query_for: QueryFor
    ) -> None:
        def read_core_memory() -> None:
            fetched.core_memory = self._core_memory.text()

        tasks: Sequence[tuple[str, Callable[[], None]]] = (
            ("Core memory", read_core_memory),
            ("Recall", lambda: self._recall(fetched, steps, plan, query_for)),
        )
        for name, step in tasks:
            try:
                step()
            except KnownError as error:
                fetched.add_notice(tr_noop(f"{name} could not be read: {error}"))
            except Exception as error:  # noqa: BLE001 - the chat goes on without it
                _log.exception("%s failed unexpectedly", name)
                fetched.add_notice(tr_noop(f"{name} could not be read: {type(error).__name__}"))
        steps.words.set()
        steps.done.set()

    def _recall(
        self, fetched: FetchedContext, steps: "_Steps", plan: ExchangePlan, query_for: QueryFor
    ) -> None:
        query = query_for(fetched)
        if self._retrieve is None or query is None:
            return
        asked = query.text, plan.conversation.id, query.segment, query.settings
        words_until = time.monotonic() + self._limits.words_s
        self._take(fetched, self._retrieve(*asked, lambda: time.monotonic() > words_until, False))
        steps.words.set()
        self._wait_for_meaning(max(0.0, steps.late_at - time.monotonic()))
        found = self._retrieve(*asked, steps.is_late, True)
        if not steps.is_late():  # else it may be incomplete
            self._take(fetched, found)
            fetched.add_notice(found.notice)
        else:
            fetched.add_notice(_WORDS_ONLY)

    def _take(self, fetched: FetchedContext, found: RetrievalResult) -> None:
        """Make a result that of the context, with the turn numbers of its facts."""
        every = (*found.facts, *found.asked_facts)
        sources = {fact.exchange_id for fact in every if fact.exchange_id is not None}
        exchanges = self._exchanges.by_ids(sources) if sources else {}
        hidden = self._exchanges.not_shown(sources)

        def placed(facts: Iterable[RetrievedFact]) -> tuple[RetrievedFact, ...]:
            return tuple(replace(each, is_shown=each.exchange_id not in hidden) for each in facts)

        with self._lock:
            fetched.turn_numbers = {each: exchanges[each].turn_number for each in exchanges}
            fetched.found = replace(
                found, facts=placed(found.facts), asked_facts=placed(found.asked_facts)
            )


@dataclass(frozen=True, slots=True)
class _Steps:
    """The progress of a fetch: search by words, and all; after `late_at` nothing waits."""

    late_at: float
    words: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def is_late(self) -> bool:
        """Return whether nothing waits any more."""
        return time.monotonic() > self.late_at

"""The context fetcher: it loads what a prompt needs from memory, within half a second.

Sending never waits longer, whatever is slow, missing or broken: what was found in time is used, and
a notice names what was not.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.chat.planner import ExchangePlan
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId
from app.domain.recall import RecallSettings, RetrievalResult, SegmentContext
from app.memory.core_memory import CoreMemoryService
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges

_log = logging.getLogger(__name__)
LIMIT_S = 0.5
_SEARCH_SHARE = 0.8  # of the time; after it a search must return what it has
_MAX_THREADS = 4  # fetches that hang; until one ends, nothing more is recalled

# The last argument is polled during the search: whether it must return what it has.
Retrieve = Callable[
    [str, ConversationId, SegmentContext, RecallSettings, Callable[[], bool]], RetrievalResult
]


@dataclass(slots=True)
class FetchedContext:
    """What was found in time; it grows while the fetch runs.

    Attributes:
        turn_numbers: Of the exchanges that the found facts come from.
        notice: What is missing and why, as sentences without the last period; "" for nothing.
    """

    core_memory: str = ""
    turn_numbers: dict[ExchangeId, int] = field(default_factory=dict)
    found: RetrievalResult = field(default_factory=RetrievalResult)
    notice: str = ""

    def add_notice(self, text: str) -> None:
        """Add a sentence to the notice."""
        text = text.rstrip(".")
        self.notice = f"{self.notice}. {text}" if self.notice and text else self.notice or text


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
        limit_s: float | None = None,
    ) -> None:
        """Without `retrieve` nothing is recalled; `limit_s` is half a second by default."""
        self._core_memory = core_memory
        self._retrieve = retrieve
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._exchanges = Exchanges(store)
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    @property
    def core_memory(self) -> str:
        """The core memory as it was last read; never blocks."""
        return self._core_memory.last_known

    def fetch(self, plan: ExchangePlan, query_for: QueryFor) -> FetchedContext:
        """Return the context of a plan within the time limit; never raises. Blocking."""
        late_at = time.monotonic() + self._limit_s * _SEARCH_SHARE
        fetched, done = FetchedContext(self._core_memory.last_known), threading.Event()
        thread = threading.Thread(
            target=self._run, args=(fetched, done, late_at, plan, query_for), name="recall",
            daemon=True,
        )  # fmt: skip
        with self._lock:
            self._threads = {each for each in self._threads if each.is_alive()}
            if len(self._threads) >= _MAX_THREADS:
                fetched.add_notice("Recall is still busy with earlier questions")
                return fetched
            self._threads.add(thread)
            thread.start()
        if done.wait(self._limit_s):
            return fetched
        with self._lock:
            in_time = replace(fetched)  # the thread goes on
        in_time.add_notice(
            f"Recall took longer than {self._limit_s:g} s, so this answer does without some of it"
        )
        return in_time

    def close(self) -> None:
        """Wait for running fetches, at most a second each. Blocking."""
        for thread in tuple(self._threads):
            thread.join(1.0)

    # -- in a thread of its own

    def _run(
        self, fetched: FetchedContext, done: threading.Event, late_at: float, plan: ExchangePlan,
        query_for: QueryFor,
    ) -> None:  # fmt: skip
        def read_core_memory() -> None:
            fetched.core_memory = self._core_memory.text()

        steps: Sequence[tuple[str, Callable[[], None]]] = (
            ("Core memory", read_core_memory),
            ("Recall", lambda: self._recall(fetched, late_at, plan, query_for)),
        )
        for name, step in steps:
            try:
                step()
            except KnownError as error:
                fetched.add_notice(f"{name} could not be read: {error}")
            except Exception as error:  # noqa: BLE001 - the chat goes on without it
                _log.exception("%s failed unexpectedly", name)
                fetched.add_notice(f"{name} failed: {type(error).__name__}")
        done.set()

    def _recall(
        self, fetched: FetchedContext, late_at: float, plan: ExchangePlan, query_for: QueryFor
    ) -> None:
        query = query_for(fetched)
        if self._retrieve is None or query is None:
            return
        found = self._retrieve(
            query.text, plan.conversation.id, query.segment, query.settings,
            lambda: time.monotonic() > late_at,
        )  # fmt: skip
        fetched.add_notice(found.notice)
        sources = {fact.exchange_id for fact in found.facts if fact.exchange_id is not None}
        exchanges = self._exchanges.by_ids(sources) if sources else {}
        hidden = self._exchanges.not_shown(sources)
        facts = tuple(replace(f, is_shown=f.exchange_id not in hidden) for f in found.facts)
        with self._lock:
            fetched.turn_numbers = {each: exchanges[each].turn_number for each in exchanges}
            fetched.found = replace(found, facts=facts)

"""What is looked up while a message is prepared, in half a second at most; then it goes without.

Sending never waits longer, whatever is slow, missing or broken; what was found by then counts, and
what was not is said in words.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.chat.plans import Plan
from app.domain.conversations import Exchange
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.retrieved import RecallOptions, Retrieved, Segment
from app.memory.context_plan import Covered
from app.memory.core_memory import CoreMemoryService
from app.storage.exchanges import Exchanges, path_to
from app.storage.prompts import Prompts
from app.storage.store import Store
from app.storage.summaries import Summaries

_log = logging.getLogger(__name__)
LIMIT_S = 0.5
_SHARE_TO_SEARCH = 0.8  # of the time; then a search is asked to come back with what it has
_MOST_AT_ONCE = 4  # look-ups that hang; a machine so busy recalls nothing more until they end
CONTEXT = "context"

# The last asks between its parts whether it is time to come back with what there is.
Retrieve = Callable[[str, ConversationId, Segment, RecallOptions, Callable[[], bool]], Retrieved]


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in time. `notice` says in words what was not, "" when nothing is missing.

    `segment` are the exchanges of the path since the last `/new`, the one that runs last;
    `window_before` and `limit_before` tell where the window of the prompt before began.
    """

    core_memory: str = ""
    segment: tuple[Exchange, ...] = ()
    summary: Covered | None = None
    window_before: MessageId | None = None
    limit_before: int = 0
    turn_numbers: dict[ExchangeId, int] = field(default_factory=dict)
    found: Retrieved = field(default_factory=Retrieved)
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be recalled for a message; `held` are the messages sent anyway."""

    text: str
    options: RecallOptions
    held: frozenset[MessageId]


# Told what is known of the conversation, it says what to recall, if anything.
AskWhat = Callable[[Looked], Question | None]


class LookUps:
    """Looks things up in threads of its own. Thread-safe."""

    def __init__(
        self,
        store: Store,
        core_memory: CoreMemoryService,
        retrieve: Retrieve | None = None,
        limit_s: float | None = None,
    ) -> None:
        """Without `retrieve` nothing is recalled; without `limit_s` half a second is waited."""
        self._core_memory = core_memory
        self._retrieve = retrieve
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)
        self._summaries = Summaries(store)
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def __call__(self, plan: Plan, ask_what: AskWhat) -> Looked:
        """Return what is known for a message within the time there is; never raises. Blocking."""
        ends_at = time.monotonic() + self._limit_s * _SHARE_TO_SEARCH
        looking = _Looking(Looked(core_memory=self._core_memory.last_known), ends_at)
        thread = threading.Thread(
            target=self._look, args=(looking, plan, ask_what), name="recall", daemon=True
        )
        with self._lock:
            self._threads = {each for each in self._threads if each.is_alive()}
            if len(self._threads) >= _MOST_AT_ONCE:
                return replace(looking.so_far, notice="Recall is still busy with earlier questions")
            self._threads.add(thread)
            thread.start()
        in_time = looking.done.wait(self._limit_s)
        looked = looking.so_far
        if in_time:
            return looked
        late = (
            f"Recall took longer than {self._limit_s:g} s, so this answer goes without some of it"
        )
        return replace(looked, notice=_joined(looked.notice, late))

    def close(self) -> None:
        """Wait for look-ups that are under way, at most a second each. Blocking."""
        for thread in tuple(self._threads):
            thread.join(1.0)

    # -- in a thread of its own

    def _look(self, looking: "_Looking", plan: Plan, ask_what: AskWhat) -> None:
        steps: Sequence[tuple[str, Callable[[], None]]] = (
            ("Core memory", lambda: looking.put(core_memory=self._core_memory.text())),
            ("The conversation's path", lambda: looking.put(segment=self._segment(plan))),
            ("The conversation's summary", lambda: self._look_for_window(looking, plan)),
            ("Recall", lambda: self._recall(looking, plan, ask_what)),
        )
        try:
            for what, step in steps:
                try:
                    step()
                except KnownError as error:
                    looking.note(f"{what} could not be read: {error}")
                except Exception as error:  # noqa: BLE001 - the chat goes on, whatever is broken here
                    _log.exception("%s failed in a way we did not foresee", what)
                    looking.note(f"{what} failed: {type(error).__name__}")
        finally:
            looking.done.set()

    def _segment(self, plan: Plan) -> tuple[Exchange, ...]:
        path = path_to(plan.exchange, self._exchanges.of(plan.conversation.id))
        number = plan.exchange.segment_number
        return tuple(each for each in path if each.segment_number == number)

    def _look_for_window(self, looking: "_Looking", plan: Plan) -> None:
        before = [each.id for each in looking.so_far.segment]
        window_before, limit_before = self._prompts.last_window(before)
        looking.put(
            window_before=window_before,
            limit_before=limit_before,
            summary=self._summary(plan, looking.so_far.segment),
        )

    def _summary(self, plan: Plan, segment: Sequence[Exchange]) -> Covered | None:
        """Return the one that reaches furthest; else, of a first segment, the conversation's."""
        own = {each.id: each for each in segment[:-1] if each.message_ids}
        found = self._summaries.latest(CONTEXT, own)
        for each in reversed(own.values()):
            if (summary := found.get(each.id)) is not None:
                return Covered(summary.text, each.message_ids[-1])
        if plan.exchange.segment_number:
            return None
        whole = self._summaries.latest("conversation", [plan.conversation.id])
        summary = whole.get(plan.conversation.id)
        return None if summary is None else Covered(summary.text)

    def _recall(self, looking: "_Looking", plan: Plan, ask_what: AskWhat) -> None:
        asked = ask_what(looking.so_far)
        if self._retrieve is None or asked is None:
            return
        before = frozenset(each.id for each in looking.so_far.segment[:-1])
        segment = Segment(before, asked.held)
        found = self._retrieve(
            asked.text, plan.conversation.id, segment, asked.options, looking.is_late
        )
        looking.note(found.notice)
        sources = {fact.exchange_id for fact in found.facts if fact.exchange_id is not None}
        numbers = self._exchanges.by_ids(sources) if sources else {}
        beside = self._exchanges.not_shown(sources)
        facts = tuple(replace(f, is_shown=f.exchange_id not in beside) for f in found.facts)
        looking.put(
            found=replace(found, facts=facts),
            turn_numbers={each: exchange.turn_number for each, exchange in numbers.items()},
        )


class _Looking:
    """A look-up under way; what it has found so far may be taken at any time."""

    def __init__(self, so_far: Looked, ends_at: float) -> None:
        self.so_far = so_far
        self.done = threading.Event()
        self._ends_at = ends_at

    def is_late(self) -> bool:
        """Return whether it is time to come back with what there is."""
        return time.monotonic() > self._ends_at

    def put(self, **found: object) -> None:
        self.so_far = replace(self.so_far, **found)  # type: ignore[arg-type]

    def note(self, words: str) -> None:
        self.put(notice=_joined(self.so_far.notice, words))


def _joined(*notices: str) -> str:
    return ". ".join(notice.rstrip(".") for notice in notices if notice)

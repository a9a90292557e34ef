"""The interface between a worker loop and its job, their clock, and how background work yields to the user."""

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.ports import Embedder
from app.domain.workers import UsageTotals, WorkerName
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.work.queue import Tally
from app.storage.work.summary_work import SummaryWork

if TYPE_CHECKING:
    from app.workers.jobs import JobParts

Item = TypeVar("Item")
Result = TypeVar("Result")
IsCancelled = Callable[[], bool]
CONVERSATIONS = frozenset(("turns_ended", "conversations", "providers"))
ActiveEmbedder = Callable[[], Embedder]  # raises KnownError while there is none


class Blocked(KnownError):
    """The worker cannot go on until the user has acted or an outage has ended.

    Attributes:
        retry_after_s: The time until the next probe; None means not before the worker is woken.
        ends_drain: Whether `work --until-idle` ends instead of waiting for the next probe.
    """

    def __init__(
        self,
        title: str,
        hint: str = "",
        *,
        retry_after_s: float | None = None,
        ends_drain: bool = False,
        log_text: str = "",
    ) -> None:
        super().__init__(title, hint, log_text=log_text)
        self.retry_after_s = retry_after_s
        self.ends_drain = ends_drain


@dataclass(frozen=True, slots=True)
class Pace:
    """The batch sizes of a job.

    `together` items are made by one call. Results are saved after `save_items` or `save_s`,
    whichever comes first; with 1, which paid work uses, each is stored before the next request. An
    item that failed more than `retries` times is abandoned; one whose answer is too long, at once.
    """

    together: int = 1
    save_items: int = 100
    save_s: float = 0.5
    retries: int = 6


PAID = Pace(save_items=1)


@dataclass(frozen=True, slots=True)
class Saved:
    """The number of results that were stored and skipped, and their cost."""

    completed: int
    skipped: int = 0
    spent: UsageTotals = field(default_factory=UsageTotals)


class Job(Generic[Item, Result]):
    """The work of one worker; called on its thread, except where it says otherwise.

    Attributes:
        name: The worker's name.
        wakes_on: Fields of a `ChangeSet`, and keys of settings, whose change may cause work.
        poll_s: The idle time between two polls, where `poll_interval_s` does not calculate it.
        falls_back: Whether it goes on without a model whose answers are unusable.
    """

    name: WorkerName
    wakes_on: frozenset[str] = CONVERSATIONS
    poll_s = 60.0
    falls_back = False

    def __init__(self, parts: "JobParts") -> None:
        """Take what the job needs of the parts."""

    @property
    def pace(self) -> Pace:
        return Pace()

    def find(self, at: datetime) -> Sequence[Item]:
        """Return the next items to work on, the most urgent first; () if there are none.

        Abandoned items and those to be retried after `at` (UTC) are left out.
        """
        raise NotImplementedError

    def item_id(self, item: Any) -> int:
        """Return the item's id in the table of attempts."""
        return int(item.id)

    def content(self, item: Any) -> Hashable:  # noqa: ARG002
        """Return what the paid result of an item is made from; None where it costs nothing.

        An item that is still found with the same content after three results is abandoned.
        """
        return None

    def describe(self, item: Item) -> str:
        """Return a short description for the dashboard."""
        raise NotImplementedError

    def make(self, items: Sequence[Item], is_cancelled: IsCancelled) -> Result:
        """Return the work done for items (as many as `pace.together`), without saving it.

        Raises `Cancelled` soon after `is_cancelled`, `Blocked` or an outage that `retries` knows, and
        anything else for a failure of the items.
        """
        raise NotImplementedError

    def save(self, results: Sequence[Result]) -> Saved:
        """Store the results and that their items are done, in one commit; raise StorageError."""
        raise NotImplementedError

    def tally(self) -> Tally:
        """Return the counts of all items in the database."""
        raise NotImplementedError

    def poll_interval_s(self) -> float:
        """Return the idle time between two polls."""
        return self.poll_s

    def note(self, changed: ChangeSet) -> None:
        """Take note of a change before the worker wakes; on the writer thread, never waits."""

    def retry_model(self) -> None:
        """Ask a model again that was given up; for any thread, never waits."""

    @property
    def limitation(self) -> str:
        """What the user should know while all goes well, such as that a model was given up."""
        return ""


class PrefetchingJob(Job[Item, Result]):
    """A job that takes its items from a prefetched list.

    Attributes:
        prefetched: The items or ids that are left, the most urgent first.
        is_outdated: Whether the list is fetched again although it is not empty.
    """

    prefetched: Sequence[Any] = ()
    is_outdated = False

    def refetch(self, fetch: Callable[[], Sequence[Any]]) -> None:
        """Fetch the list if it is outdated or empty."""
        if self.is_outdated or not self.prefetched:
            self.is_outdated = False
            self.prefetched = fetch()

    def take(self, count: int) -> Sequence[Any]:
        """Remove and return the first of the list."""
        taken, self.prefetched = self.prefetched[:count], self.prefetched[count:]
        return taken

    def note(self, changed: ChangeSet) -> None:
        """Have the list fetched again after an exchange, and after a change of a setting."""
        if changed.turns_ended or changed.settings & self.wakes_on:
            self.is_outdated = True


class Clock:
    """Wall-clock time and monotonic time, those of the system."""

    def now(self) -> datetime:
        """Return the present, UTC."""
        return now()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Block until `event` is set, at most `timeout_s`; return whether it is."""
        return event.wait(timeout_s)


class OpenConversation:
    """The open conversation, which workers skip until it is quiet; none on the command line.

    Attributes:
        id: Set by the window, from any thread.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._work = SummaryWork(store)
        self._settings = settings
        self.id: ConversationId | None = None

    def skipped(self, at: datetime) -> ConversationId | None:
        """Return the open conversation, unless it was quiet for `summarizer_quiet_minutes`; blocking."""
        opened = self.id
        if opened is None:
            return None
        quiet = timedelta(minutes=self._settings.number("summarizer_quiet_minutes"))
        since = self._work.quiet_since(opened)
        return None if since is not None and since + quiet <= at else opened


_ACTIVE_FOR_S = 0.3  # after a key or a scroll, usually until the next one
_PAUSE_S = 0.1
_PING_EVERY_S = 0.005
_LATE_S = 0.003


class UiPriority:
    """Pauses background work while the user is active or the window is late. Thread-safe.

    All threads share one interpreter: with four workers a page of 30 ms took 150. Work goes on
    between two pauses, so that constant typing does not stop it.

    Attributes:
        ping_gui: Called on any thread, returns at once: has the window call `gui_ready` as soon as
            possible. None without a window.
    """

    def __init__(self, clock: Clock) -> None:
        self.ping_gui: Callable[[], None] | None = None
        self._clock = clock
        self._until = float("-inf")
        self._pinged_at = float("-inf")
        self._answered = threading.Event()
        self._answered.set()
        self._window_thread = 0

    def user_active(self) -> None:
        """Record that the user did something; never waits."""
        self._until = self._clock.monotonic() + _ACTIVE_FOR_S

    def throttle(self, stop: threading.Event) -> None:
        """Pause for 0.1 s while the user is active, unless `stop` is set; then `yield_if_late`."""
        if self._clock.monotonic() < self._until:
            self._clock.wait(stop, _PAUSE_S)
        self.yield_if_late()

    def gui_ready(self) -> None:
        """Record that the window has answered a ping; on its thread, never waits."""
        self._window_thread = threading.get_ident()
        self._answered.set()

    def yield_if_late(self) -> None:
        """Pause while the window is late to answer a ping, for 0.1 s per ping at most.

        Never pauses the window's own thread. It takes 0.2 microseconds, 10 with a ping: call it
        after each millisecond of work.
        """
        if self.ping_gui is None or threading.get_ident() == self._window_thread:
            return
        now = self._clock.monotonic()
        late_s = now - self._pinged_at - _LATE_S
        if self._answered.is_set():
            if now - self._pinged_at > _PING_EVERY_S:
                self._answered.clear()
                self._pinged_at = now
                self.ping_gui()
        elif 0.0 < late_s < _PAUSE_S:
            self._clock.wait(self._answered, _PAUSE_S - late_s)

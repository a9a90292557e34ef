"""A worker's numbers: what the database says, what this session did, how fast it goes."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.domain.workers import Ledger, WorkerName, WorkerState, WorkerStatus
from app.storage.tally import Tally
from app.workers.clock import Clock
from app.workers.job import Saved

_WINDOW_S = 60.0
_LEAST_SAVES = 2
_LEAST_S = 1.0
_ASK_AGAIN_FACTOR = 20  # counting may take a twentieth of a worker's time


@dataclass(slots=True)
class Counts:
    """This session's counts, and what the status says beside them."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    session: Ledger = field(default_factory=Ledger)
    all_time: Ledger = field(default_factory=Ledger)
    current_item: str = ""
    last_error: str = ""
    blocked_by: str = ""
    next_look_at: datetime | None = None


class Progress:
    """Counts what a worker does. Used by one thread at a time.

    Between two queries the tally is carried on by what was saved and what failed, so that it is
    true as long as nobody else writes, and exact at every change of state.
    """

    def __init__(
        self,
        ask: Callable[[], Tally],
        clock: Clock,
        all_time: Callable[[], Ledger] = Ledger,
        spent_since: Callable[[datetime], Ledger] | None = None,
    ) -> None:
        self._ask = ask
        self._all_time = all_time
        self._spent_since = spent_since
        self._built_at = clock.now()
        self._clock = clock
        self._asked_at = float("-inf")
        self._took_s = 0.0
        self._saves: deque[tuple[float, int]] = deque()
        self._running_since: float | None = None
        self.counts = Counts()
        self.tally = Tally(0, 0)

    def ask(self) -> None:
        """Bring the tally up to date from the database."""
        started = self._clock.monotonic()
        self.tally = self._ask()
        self._asked_at = self._clock.monotonic()
        self._took_s = self._asked_at - started

    def ask_sometimes(self) -> None:
        """Bring it up to date, unless that was done a moment ago."""
        if self._clock.monotonic() - self._asked_at > self._took_s * _ASK_AGAIN_FACTOR:
            self.ask()

    def read_spend(self) -> None:
        """Bring what was spent up to date from the record; raise StorageError."""
        self.counts.all_time = self._all_time()
        if self._spent_since is not None:
            self.counts.session = self._spent_since(self._built_at)

    @property
    def runs(self) -> bool:
        """Whether work is under way: a rate is only about the time it was."""
        return self._running_since is not None

    def begin(self) -> None:
        """Note that work begins."""
        self._running_since = self._clock.monotonic()
        self._saves.clear()

    def end(self) -> None:
        """Note that work has ended."""
        self._running_since = None

    def saved(self, saved: Saved) -> None:
        """Note results that are stored."""
        counts = self.counts
        counts.completed += saved.completed
        counts.skipped += saved.skipped
        counts.session = plus(counts.session, saved.spent)
        counts.all_time = plus(counts.all_time, saved.spent)
        self._saves.append((self._clock.monotonic(), saved.completed + saved.skipped))
        done = min(self.tally.total, self.tally.done + saved.completed)
        self.tally = replace(self.tally, done=done)
        if saved.skipped:
            self.ask()  # what was skipped may be done or may be gone
        else:
            self.ask_sometimes()

    def failed(self, *, for_good: bool) -> None:
        """Note an item that failed; `for_good` when it is set aside."""
        self.counts.failed += for_good
        self.ask()

    def rate_per_minute(self) -> float | None:
        """Return items a minute over the last minute of work, None until that says something."""
        if self._running_since is None:
            return None
        present = self._clock.monotonic()
        while self._saves and self._saves[0][0] < present - _WINDOW_S:
            self._saves.popleft()
        elapsed = present - max(self._running_since, present - _WINDOW_S)
        if len(self._saves) < _LEAST_SAVES or elapsed < _LEAST_S:
            return None
        return sum(count for _, count in self._saves) / elapsed * 60

    def status(self, name: WorkerName, *, enabled: bool, state: WorkerState) -> WorkerStatus:
        """Return all of it as the user sees it."""
        rate, tally, counts = self.rate_per_minute(), self.tally, self.counts
        left = max(0, tally.total - tally.done - tally.set_aside)
        return WorkerStatus(
            name=name,
            enabled=enabled,
            state=state,
            current_item=counts.current_item,
            done=tally.done,
            total=tally.total,
            completed=counts.completed,
            failed=counts.failed,
            skipped=counts.skipped,
            waiting_retry=tally.waiting_retry,
            session=counts.session,
            all_time=counts.all_time,
            rate_per_minute=rate,
            remaining_s=left / rate * 60 if rate else None,
            last_error=counts.last_error,
            blocked_by=counts.blocked_by,
            next_attempt_at=counts.next_look_at or tally.next_attempt_at,
            set_aside=tally.set_aside,
            next_retry_at=tally.next_attempt_at,
        )


def plus(first: Ledger, second: Ledger) -> Ledger:
    """Return both together; an unknown price makes the sum unknown."""
    cost = (
        None
        if first.cost_usd is None or second.cost_usd is None
        else first.cost_usd + second.cost_usd
    )
    estimated_usd = first.estimated_usd + second.estimated_usd
    return Ledger(first.tokens + second.tokens, cost, estimated_usd)

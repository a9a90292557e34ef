"""A worker's progress: counts of the database and of this session, spending, and the rate."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from app.domain.changes import SpendAdded
from app.domain.workers import UsageTotals, WorkerName, WorkerState, WorkerStatus
from app.storage.work.queue import Tally
from app.workers.job_interface import Clock, Saved

_WINDOW_S = 60.0
_MIN_SAVES = 2
_MIN_S = 1.0
_QUERY_FACTOR = 20  # queries may take a twentieth of a worker's time


@dataclass(slots=True)
class Counts:
    """The counts of this session, and other fields of the status."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    session: UsageTotals = field(default_factory=UsageTotals)
    all_time: UsageTotals = field(default_factory=UsageTotals)
    current_item: str = ""
    last_error: str = ""
    blocked_by: str = ""
    next_look_at: datetime | None = None


class Progress:
    """Counts a worker's results. Used by one thread at a time.

    Between two queries the tally is updated by what was saved and what failed; it is exact at every
    change of state.
    """

    def __init__(
        self,
        ask: Callable[[], Tally],
        clock: Clock,
        totals: Callable[[datetime | None], UsageTotals] | None = None,
    ) -> None:
        self._ask = ask
        self._totals = totals
        self._built_at = clock.now()
        self._clock = clock
        self._asked_at = float("-inf")
        self._took_s = 0.0
        # When each save of the last minute ended and its items; the first is where the minute begins.
        self._saves: deque[tuple[float, int]] = deque()
        self.counts = Counts()
        self.tally = Tally(0, 0)

    def ask(self) -> None:
        started = self._clock.monotonic()
        self.tally = self._ask()
        self._asked_at = self._clock.monotonic()
        self._took_s = self._asked_at - started

    def read_spend(self) -> None:
        """Query the spending; raise StorageError."""
        if self._totals is not None:
            all_time = self._totals(None)
            session = self._totals(self._built_at) if all_time != UsageTotals() else all_time
            self.counts.all_time, self.counts.session = all_time, session

    @property
    def runs(self) -> bool:
        """Whether the worker is working: the rate covers this time only."""
        return bool(self._saves)

    def begin(self) -> None:
        """Record the start of work."""
        self._saves = deque([(self._clock.monotonic(), 0)])

    def end(self) -> None:
        self._saves.clear()

    def saved(self, saved: Saved) -> None:
        """Record stored results."""
        counts = self.counts
        counts.completed += saved.completed
        counts.skipped += saved.skipped
        counts.session = plus(counts.session, saved.spent)
        counts.all_time = plus(counts.all_time, saved.spent)
        if self.runs:
            self._saves.append((self._clock.monotonic(), saved.completed + saved.skipped))
        done = min(self.tally.total, self.tally.done + saved.completed)
        self.tally = replace(self.tally, done=done)
        is_old = self._clock.monotonic() - self._asked_at > self._took_s * _QUERY_FACTOR
        if saved.skipped or is_old:  # skipped items may be done or deleted
            self.ask()

    def failed(self, *, is_abandoned: bool) -> None:
        """Record a failed item; `is_abandoned` if it will not be retried automatically."""
        self.counts.failed += is_abandoned
        self.ask()

    def rate_per_minute(self) -> float | None:
        """Return items per minute over the last minute of work; None until that is meaningful.

        From one save to another: a batch that began before the minute counts with all of its time, and
        the one under way not yet.
        """
        while len(self._saves) > _MIN_SAVES + 1 and self._saves[1][0] < self._saved_at - _WINDOW_S:
            self._saves.popleft()
        elapsed = self._saved_at - self._saves[0][0] if self._saves else 0.0
        if len(self._saves) <= _MIN_SAVES or elapsed < _MIN_S:
            return None
        return sum(count for _, count in islice(self._saves, 1, None)) / elapsed * 60

    @property
    def _saved_at(self) -> float:
        return self._saves[-1][0]

    def status(self, name: WorkerName, *, enabled: bool, state: WorkerState) -> WorkerStatus:
        rate, tally, counts = self.rate_per_minute(), self.tally, self.counts
        left = max(0, tally.total - tally.done - tally.abandoned)
        remaining_s = None
        if rate:  # less what the batch under way has taken of its time
            batch_s = (self._saved_at - self._saves[0][0]) / (len(self._saves) - 1)
            waited_s = min(self._clock.monotonic() - self._saved_at, batch_s)
            remaining_s = max(left / rate * 60 - waited_s, 0.0)
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
            remaining_s=remaining_s,
            last_error=counts.last_error,
            blocked_by=counts.blocked_by,
            next_attempt_at=counts.next_look_at or tally.next_attempt_at,
            abandoned=tally.abandoned,
            in_part=tally.in_part,
            next_retry_at=tally.next_attempt_at,
        )


def plus(first: UsageTotals, second: UsageTotals) -> UsageTotals:
    """Return the sum; an unknown price makes it unknown."""
    is_known = first.cost_usd is not None and second.cost_usd is not None
    cost = (first.cost_usd or 0.0) + (second.cost_usd or 0.0) if is_known else None
    estimated_usd = first.estimated_usd + second.estimated_usd
    return UsageTotals(first.tokens + second.tokens, cost, estimated_usd)


def total_usage(spent: Sequence[SpendAdded]) -> UsageTotals:
    """Return the usage of requests together; an unknown price makes the sum unknown."""
    totals = UsageTotals()
    for each in spent:
        estimated_usd = (each.cost_usd or 0.0) if each.is_estimated else 0.0
        tokens = each.input_tokens + each.output_tokens
        totals = plus(totals, UsageTotals(tokens, each.cost_usd, estimated_usd))
    return totals

"""A worker's job without conversations, a clock that jumps, plain threads as a host, waiting."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from app.domain.changes import SettingPut
from app.domain.errors import Cancelled
from app.domain.workers import UsageTotals, WorkerName
from app.storage.engine.stamps import from_db, to_db
from app.storage.engine.store import Store
from app.storage.work.queue import Tally
from app.workers.board import WorkerBoard
from app.workers.job_interface import Clock, IsCancelled, Job, Pace, Saved

_REALLY_S = 0.002
_BESIDE_WORK_S = 0.02


def until(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Return once `condition` holds; fail after `timeout_s`."""
    glance = threading.Event()
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        glance.wait(0.002)


@contextmanager
def hosted(board: WorkerBoard) -> Iterator[list[threading.Thread]]:
    """Start a board for a block, each worker in a plain thread; yield the threads."""
    threads: list[threading.Thread] = []

    def host(loop: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=loop))
        threads[-1].start()

    board.start(host)
    try:
        yield threads
    finally:
        assert board.stop(60) == ()
        for thread in threads:
            thread.join(60)


def count_rows(store: Store, table: str, condition: str = "true") -> int:
    """Return how many rows of a table meet a condition in SQL."""
    statement = f"SELECT count(*) FROM {table} WHERE {condition}"
    rows = store.read(lambda cursor: cursor.execute(statement).fetchone())
    return int(rows[0]) if rows else 0


class JumpingClock(Clock):
    """Waiting takes no time but moves the clock; `pass_s` moves it too.

    While another thread works, it takes a little: those without work would look for it again and again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = datetime.now(UTC)
        self._passed_s = 0.0
        self._working: set[threading.Thread] = set()

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self._passed_s)

    def monotonic(self) -> float:
        if threading.current_thread() is not threading.main_thread():
            with self._lock:
                self._working.add(threading.current_thread())
        return self._passed_s

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        with self._lock:
            self._working.discard(threading.current_thread())
            others_work = any(each.is_alive() for each in self._working)
        if not event.wait(_BESIDE_WORK_S if others_work else _REALLY_S):
            self.pass_s(timeout_s)
        return event.is_set()

    def pass_s(self, seconds: float) -> None:
        with self._lock:
            self._passed_s += seconds


class ListJob(Job[int, tuple[int, ...]]):
    """Work on numbers, done when they are in `saved`.

    Attributes:
        items: All there is to do, the most urgent first.
        poison: Items that fail, with what they raise.
        before_make: Called first by every `make`.
        refusals: What the next saves raise, in order.
    """

    name = WorkerName.EXCHANGE_SUMMARIZER
    wakes_on = frozenset(("turns_ended",))

    def __init__(self, store: Store, items: Sequence[int], pace: Pace | None = None) -> None:
        self._store = store
        self._pace = pace or Pace()
        self.items = list(items)
        self.saved: list[int] = []
        self.made: list[tuple[int, ...]] = []
        self.poison: dict[int, Exception] = {}
        self.refusals: list[Exception] = []
        self.finding: Exception | None = None
        self.before_make: Callable[[Sequence[int], IsCancelled], None] = lambda _, __: None
        self.poll_s = 30.0

    @property
    def pace(self) -> Pace:
        return self._pace

    def find(self, at: datetime) -> Sequence[int]:
        if self.finding is not None:
            raise self.finding
        held = self._attempts("next_at IS NULL OR next_at > ?", to_db(at))
        return [each for each in self.items if each not in self.saved and each not in held][:100]

    def item_id(self, item: int) -> int:
        return item

    def describe(self, item: int) -> str:
        return f"number {item}"

    def make(self, items: Sequence[int], is_cancelled: IsCancelled) -> tuple[int, ...]:
        self.before_make(items, is_cancelled)
        self.made.append(tuple(items))
        for item in items:
            if item in self.poison:
                raise self.poison[item]
        return tuple(items)

    def save(self, results: Sequence[tuple[int, ...]]) -> Saved:
        if self.refusals:
            raise self.refusals.pop(0)
        done = [each for result in results for each in result]
        self._store.save(SettingPut(f"saved_{done[0]}", "true"))
        self.saved += done
        return Saved(len(done), 0, UsageTotals(len(done), 0.5 * len(done)))

    def tally(self) -> Tally:
        done = len(set(self.saved))
        waiting = self._attempts("next_at IS NOT NULL")
        aside = self._attempts("next_at IS NULL")
        times = [moment for moment in waiting.values() if moment is not None]
        next_at = from_db(min(times)) if times else None
        return Tally(done, len(self.items), len(waiting), len(aside), next_at)

    def poll_interval_s(self) -> float:
        return self.poll_s

    def _attempts(self, condition: str, *values: object) -> dict[int, datetime | None]:
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT item_id, next_at FROM attempt WHERE worker = ? AND ({condition})",
                [self.name, *values],
            ).fetchall()
        )
        return {item: next_at for item, next_at in rows if item not in self.saved}


def blocks_until_cancelled(_: Sequence[int], is_cancelled: IsCancelled) -> None:
    """Be in the middle of an item until the worker is stopped."""
    until(is_cancelled)
    raise Cancelled("The worker was stopped")

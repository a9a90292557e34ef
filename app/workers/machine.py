"""The state machine that every worker is: stopped -> running <-> idle -> stopped, and blocked.

What a worker does is its `Job`; which thread it runs in is its host's choice (`board`).
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Generic

from app.domain.errors import Cancelled, StorageError
from app.domain.events import Changed
from app.domain.workers import Ledger, WorkerName, WorkerState, WorkerStatus
from app.storage.attempts import Attempts
from app.system.logs import trace_of
from app.workers.background_model import MODEL_KEYS, UnusableAnswer
from app.workers.clock import Clock, SystemClock
from app.workers.failures import Failures
from app.workers.job import Blocked, Item, Job, Result
from app.workers.patience import Patience
from app.workers.progress import Progress
from app.workers.resting import Probes, Rest
from app.workers.verdicts import (
    Jitter,
    block_of,
    full_jitter,
    public_words,
    screen_words,
)

_NOTHING = Changed()
StatusListener = Callable[[WorkerStatus], None]
_log = logging.getLogger(__name__)
_PUBLISH_EVERY_S = 0.1
_LOOK_AT_STOP_EVERY_S = 1.0  # for a host that sets `stop` without waking the worker


class Worker(Generic[Item, Result]):
    """One worker. `run` is called by its host's thread, everything else by any thread.

    Attributes:
        on_status: Told every change of state and, in between, at most ten times a second; on the
            worker's thread, so it must return at once.
        give_way: Called on the worker's thread between two pieces of work, with what stops it; it
            may rest.
    """

    def __init__(
        self,
        job: Job[Item, Result],
        attempts: Attempts,
        is_enabled: Callable[[], bool] = lambda: True,
        all_time: Callable[[], Ledger] = Ledger,
        clock: Clock | None = None,
        jitter: Jitter = full_jitter,
        spent_since: Callable[[datetime], Ledger] | None = None,
    ) -> None:
        self._job = job
        self._is_enabled = is_enabled
        self._clock = clock or SystemClock()
        self._failures = Failures(job.name, attempts, self._clock, jitter)
        self._probes = Probes(jitter)
        self._progress = Progress(job.tally, self._clock, all_time, spent_since)
        self._state = WorkerState.STOPPED
        self._hosted = threading.Lock()
        self._woken = threading.Event()
        self._stop = threading.Event()
        self._unsaved: list[tuple[Sequence[Item], Result]] = []
        self._saved_at = 0.0
        self._patience = Patience()
        self._is_spend_old = False
        self._settled = 0  # items that came to an end of some kind, for telling progress from none
        self._drained = False
        self._knows_past = False
        self._published_at = float("-inf")
        self._status = self._made_status()
        self.on_status: StatusListener = lambda _: None
        self.give_way: Callable[[threading.Event], None] = lambda _: None

    @property
    def name(self) -> WorkerName:
        """The worker's name."""
        return self._job.name

    @property
    def is_drained(self) -> bool:
        """Whether it rests or has ended, with nothing left that it would do by itself soon."""
        return self._drained and not self._woken.is_set()

    def status(self) -> WorkerStatus:
        """Return the newest status; never waits. A stopped worker's is as of its last `refresh`.

        Whether it is on is as the setting says now, also while its thread has not followed yet.
        """
        return replace(self._status, enabled=self._is_enabled())

    def is_stopping(self) -> bool:
        """Return whether its host wants it to end; never waits."""
        return self._stop.is_set()

    def wake(self) -> None:
        """Make it look for work at once, also when it is blocked; never waits."""
        self._woken.set()

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether a write may have made work for it."""
        if changed.spend:
            self._is_spend_old = True
        if replace(changed, spend=False) == _NOTHING:
            return False  # such as its own note on a request: one that failed must not wake it
        if changed.settings & MODEL_KEYS or changed.providers:
            self._patience.renew()
            self._failures.outdate()  # what one model failed at another may do
        return self._job.wakes_for(changed)

    def waiting_words(self, count: int) -> str:
        """Return in words that `count` items wait for it."""
        return self._job.waiting_words(count)

    def refresh(self) -> WorkerStatus:
        """Return the status, its numbers asked anew if the worker does not run; blocking."""
        if self._hosted.acquire(blocking=False):
            try:
                self._read_spend()
                self._progress.ask()
                self._publish()
            finally:
                self._hosted.release()
        return self.status()

    def retry_set_aside(self, item_ids: Collection[int] | None = None) -> None:
        """Try again at once what failed, as if it never had: some items, or all; blocking."""
        self._failures.forgive(item_ids)
        self._patience.renew()
        self.wake()

    def run_now(self) -> None:
        """Look for work at once, and try at once what waits for its next try; blocking."""
        self._failures.hasten()
        self._patience.renew()
        self.wake()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then return within 3 s; `wake` makes that at once.

        Never raises: a failure is shown as the last error, logged, and tried again later.
        """
        with self._hosted:
            self._stop = stop
            if stop.is_set():
                return
            self._drained = False
            self._patience.renew()
            self._enter(WorkerState.RUNNING)
            while not stop.is_set():
                if self._woken.is_set():
                    self._drained = False
                    self._woken.clear()
                if (rest := self._work()) is not None:
                    self._wait(rest)
            self._end()

    # -- working

    def _work(self) -> Rest | None:
        """Do what there is to do, one batch at most; None when there may be more at once."""
        try:
            self._save()
            self._patience.check()
            items = self._job.find(self._clock.now())
            if items and self._batch(items):
                self._probes.came_through()
                return None
            self._progress.ask()
        except Cancelled:
            return None
        except Blocked as block:
            return self._blocked(block)
        except Exception as error:  # noqa: BLE001 - the worker's edge: the program must go on
            found = block_of(error, self._failures.in_a_row)
            return self._broken(error) if found is None else self._blocked(found)
        self._probes.came_through()
        is_drained = not self._progress.tally.waiting_retry
        return Rest(WorkerState.IDLE, self._idle_s(), is_drained)

    def _batch(self, items: Sequence[Item]) -> bool:
        """Work on items; return whether anything came of any of them."""
        if not self._progress.runs:
            self._begin()
        else:
            self._failures.read_if_old()
        self._drained = False
        before = self._settled
        self._saved_at = self._clock.monotonic()
        for some in self._patience.groups(items, self._job.item_id, self._job.pace.together):
            self.give_way(self._stop)
            if self._stop.is_set():
                break
            self._make(some)
            if self._save_is_due():
                self._save()
        self._save()
        return self._settled > before

    def _begin(self) -> None:
        self._progress.ask()
        self._progress.begin()
        self._enter(WorkerState.RUNNING)
        if not self._knows_past:
            self._read_spend()
            self._knows_past = True
        tally = self._progress.tally
        if self._failures.are_known or tally.waiting_retry or tally.set_aside:
            self._failures.read()

    def _make(self, items: Sequence[Item]) -> None:
        """Make some items; when that fails, in halves, so that one bad item stands alone."""
        is_first = not self._progress.counts.current_item
        self._progress.counts.current_item = self._job.describe(items[0])
        self._publish_sometimes(at_once=is_first)  # it may be a long one
        try:
            result = self._job.make(items, self._is_cancelled)
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - an item must not hold back the others
            self._on_failure(items, error)
        else:
            self._failures.in_a_row = 0
            self._patience.came_through()
            self._unsaved.append((items, result))

    def _is_cancelled(self) -> bool:
        """Whether to stop; a job asks all the time, so meanwhile what was paid for is told."""
        if self._is_spend_old:
            self._publish_sometimes()
        self.give_way(self._stop)
        return self._stop.is_set()

    def _on_failure(self, items: Sequence[Item], error: Exception) -> None:
        if (block := block_of(error, self._failures.in_a_row)) is not None:
            raise block from error
        if self._stop.is_set():
            raise Cancelled("The worker was stopped") from error
        if isinstance(error, UnusableAnswer):
            for item in items:  # each try was paid for, so halves are not tried at once
                self._note_failure(item, error)
            self._patience.lose([self._job.item_id(item) for item in items], error)
        elif len(items) > 1:
            middle = len(items) // 2
            self._make(items[:middle])
            self._make(items[middle:])
        else:
            self._note_failure(items[0], error)

    def _note_failure(self, item: Item, error: Exception) -> None:
        item_id = self._job.item_id(item)
        for_good = self._failures.add(item_id, error, self._job.pace.retries)
        self._settled += 1
        self._progress.counts.last_error = screen_words(error)
        self._progress.failed(for_good=for_good)
        self._publish_sometimes()

    # -- saving

    def _save_is_due(self) -> bool:
        pace = self._job.pace
        count = sum(len(items) for items, _ in self._unsaved)
        late = self._clock.monotonic() - self._saved_at >= pace.save_s
        return count >= pace.save_items or (late and count > 0)

    def _save(self) -> None:
        """Store what was made; what the world keeps from being stored is stored the next time."""
        self._saved_at = self._clock.monotonic()
        if not self._unsaved:
            return
        try:
            saved = self._job.save([result for _, result in self._unsaved])
        except Exception as error:  # noqa: BLE001 - an item must not hold back the others
            self._on_unsaved(error)
            return
        ids = [self._job.item_id(item) for items, _ in self._unsaved for item in items]
        self._unsaved = []
        self._failures.settle(ids)
        self._settled += len(ids)
        self._progress.saved(saved)
        self._publish_sometimes()

    def _on_unsaved(self, error: Exception) -> None:
        if (block := block_of(error, 0)) is not None:
            raise block from error
        made, self._unsaved = self._unsaved, []
        if len(made) > 1:
            for each in made:
                self._unsaved.append(each)
                self._save()
        else:
            for item in made[0][0]:
                self._note_failure(item, error)

    # -- resting

    def _idle_s(self) -> float:
        wait_s = self._job.poll_interval_s()
        if (next_at := self._progress.tally.next_attempt_at) is not None:
            wait_s = min(wait_s, (next_at - self._clock.now()).total_seconds())
        return max(0.0, wait_s)

    def _blocked(self, block: Blocked) -> Rest:
        words = screen_words(block)
        if self._progress.counts.last_error != words:
            _log.warning("%s is blocked: %s", self.name, public_words(block))
        self._progress.counts.blocked_by = words
        self._progress.counts.last_error = words
        return self._probes.blocked(block, self._settled)

    def _broken(self, error: Exception) -> Rest:
        _log.error("%s failed: %s", self.name, trace_of(error))
        self._progress.counts.last_error = screen_words(error)
        return self._probes.broken(self._settled)

    def _wait(self, rest: Rest) -> None:
        """Rest until woken, stopped, or the time has passed."""
        present = self._clock.monotonic()
        deadline = float("inf") if rest.wait_s is None else present + rest.wait_s
        self._progress.end()
        self._read_spend()
        self._progress.counts.current_item = ""
        self._progress.counts.next_look_at = (
            None if rest.wait_s is None else self._clock.now() + timedelta(seconds=rest.wait_s)
        )
        self._enter(rest.state)
        self._drained = rest.is_drained
        while not self._stop.is_set() and (left := deadline - self._clock.monotonic()) > 0:
            if self._clock.wait(self._woken, min(left, _LOOK_AT_STOP_EVERY_S)):
                break
        self._progress.counts.blocked_by = ""
        self._progress.counts.next_look_at = None

    def _end(self) -> None:
        """Store what was finished before the stop, if that can be done; then be stopped."""
        try:
            self._save()
            self._read_spend()
            self._progress.ask()
        except Exception as error:  # noqa: BLE001 - what is lost here is found again by query
            _log.warning("%s stopped with results unsaved: %s", self.name, trace_of(error))
        self._unsaved = []
        self._progress.end()
        self._progress.counts.current_item = ""
        self._drained = True
        self._enter(WorkerState.STOPPED)

    # -- telling

    def _read_spend(self) -> None:
        """Take what was spent from the record: an item that failed may have been paid for too."""
        self._is_spend_old = False
        try:
            self._progress.read_spend()
        except StorageError as error:
            _log.warning("%s: what was spent could not be read: %s", self.name, error)

    def _enter(self, state: WorkerState) -> None:
        if state is not self._state:
            self._state = state
            self._publish()
        elif self._made_status() != self._status:
            self._publish()

    def _publish_sometimes(self, *, at_once: bool = False) -> None:
        if at_once or self._clock.monotonic() - self._published_at >= _PUBLISH_EVERY_S:
            if self._is_spend_old:
                self._read_spend()
            self._publish()

    def _publish(self) -> None:
        self._published_at = self._clock.monotonic()
        self._status = self._made_status()
        try:
            self.on_status(self._status)
        except Exception:  # noqa: BLE001 - who looks on must not stop the work
            _log.exception("a listener to %s failed", self.name)

    def _made_status(self) -> WorkerStatus:
        return self._progress.status(self.name, enabled=self._is_enabled(), state=self._state)

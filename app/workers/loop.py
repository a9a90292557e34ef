"""The worker loop: stopped -> running <-> idle -> stopped, and blocked.

The work itself is a `Job`; the thread is chosen by the host (`board`).
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Generic

from app.domain.change_set import ChangeSet
from app.domain.errors import Cancelled, StorageError
from app.domain.workers import UsageTotals, WorkerName, WorkerState, WorkerStatus
from app.storage.tables.attempts import Attempts
from app.storage.work.queue import FACTS, SUMMARIES
from app.system.logs import format_traceback
from app.workers.background_model import MODEL_KEYS, AnswerTooLong, UnusableAnswer
from app.workers.job_interface import Blocked, Clock, Item, Job, Result
from app.workers.progress import Progress
from app.workers.retries import (
    Backoff,
    CircuitBreaker,
    Failures,
    IdleWait,
    Jitter,
    classify,
    full_jitter,
    public_message,
    screen_message,
)

StatusListener = Callable[[WorkerStatus], None]
_log = logging.getLogger(__name__)
_PUBLISH_EVERY_S = 0.1
_MOST_RESULTS = 3  # of an item that does not change: each may have been paid for
_BEGIN_AGAIN = MODEL_KEYS.union((SUMMARIES.key, FACTS.key))
_LOOK_AT_STOP_EVERY_S = 1.0  # for a host that sets `stop` without waking the worker


class WorkerLoop(Generic[Item, Result]):
    """One worker. `run` is for the host's thread, everything else for any thread.

    Attributes:
        on_status: Called at every change of state and otherwise at most ten times a second, on the
            worker's thread; must return at once.
        throttle: Called on the worker's thread between two pieces of work, with the event that
            stops the worker; may wait.
    """

    def __init__(
        self,
        job: Job[Item, Result],
        attempts: Attempts,
        is_enabled: Callable[[], bool] = lambda: True,
        totals: Callable[[datetime | None], UsageTotals] | None = None,
        clock: Clock | None = None,
        jitter: Jitter = full_jitter,
    ) -> None:
        self._job = job
        self._attempts = attempts
        self._is_enabled = is_enabled
        self._clock = clock or Clock()
        self._failures = Failures(job.name, attempts, self._clock, jitter)
        self._backoff = Backoff(jitter)
        self._progress = Progress(job.tally, self._clock, totals)
        self._state = WorkerState.STOPPED
        self._hosted = threading.Lock()
        self._woken = threading.Event()
        self._stop = threading.Event()
        self._unsaved: list[tuple[Sequence[Item], Result]] = []
        self._saved_at = 0.0
        self._breaker = CircuitBreaker()
        self._made: Counter[tuple[int, int]] = Counter()  # saved results by item and content
        self._is_spend_old = False
        self._settled = 0  # items that are done or failed, to detect progress
        self._drained = False
        self._knows_past = False
        self._published_at = float("-inf")
        self._status = self._made_status()
        self.on_status: StatusListener = lambda _: None
        self.throttle: Callable[[threading.Event], None] = lambda _: None

    @property
    def name(self) -> WorkerName:
        return self._job.name

    @property
    def is_drained(self) -> bool:
        """Whether its status says that it waits or has ended, without work that it would soon do."""
        is_published = self._status.state is not WorkerState.RUNNING
        return self._drained and is_published and not self._woken.is_set()

    def status(self) -> WorkerStatus:
        """Return the newest status; never waits. The counts of a stopped worker are as of `refresh`.

        `enabled` is the present setting, even if the thread has not followed it yet.
        """
        return replace(self._status, enabled=self._is_enabled())

    def is_stopping(self) -> bool:
        """Return whether the host is stopping it; never waits."""
        return self._stop.is_set()

    def wake(self) -> None:
        """Make it look for work at once, also when it is blocked; never waits."""
        self._woken.set()

    def follow(self, changed: ChangeSet) -> None:
        """Look for work if a write may have made some; on the writer thread, never waits."""
        if changed.spend:
            self._is_spend_old = True
        if changed.settings & _BEGIN_AGAIN or changed.providers:
            self._retry_model()  # another one may succeed
        self._job.note(changed)
        if changed.topics & self._job.wakes_on:
            self.wake()

    def refresh(self) -> WorkerStatus:
        """Return the status, with new counts if the worker does not run; blocking."""
        if self._hosted.acquire(blocking=False):
            try:
                self._read_spend()
                self._progress.ask()
                self._publish()
            finally:
                self._hosted.release()
        return self.status()

    def retry_failed(self, item_ids: Collection[int] | None = None) -> None:
        """Retry failed items now, some or all (None), as if they had not failed; blocking."""
        if item_ids is None:
            self._attempts.clear_failures()
        else:
            self._attempts.settle(item_ids)
        self._retry_model()
        self.wake()

    def run_now(self) -> None:
        """Look for work now, and retry now what waits for its next try; blocking."""
        self._attempts.retry_now(self._clock.now())
        self._retry_model()
        self.wake()

    def _retry_model(self) -> None:
        self._breaker.reset()
        self._made.clear()
        self._job.retry_model()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then return within 3 s; `wake` makes that at once.

        Never raises: a failure is shown as the last error, logged, and retried later.
        """
        while not self._hosted.acquire(timeout=_LOOK_AT_STOP_EVERY_S):
            if stop.is_set():
                return  # before it began, while another run goes on
        try:
            if stop.is_set():
                return
            self._stop = stop
            self._drained = False
            self._retry_model()
            self._enter(WorkerState.RUNNING)
            while not stop.is_set():
                if self._woken.is_set():
                    self._drained = False
                    self._woken.clear()
                if (rest := self._work()) is not None:
                    self._wait(rest)
            self._end()
        finally:
            self._hosted.release()

    # -- working

    def _work(self) -> IdleWait | None:
        """Work on one batch at most; return None if there may be more work now."""
        try:
            self._save()
            self._breaker.check()
            items = self._job.find(self._clock.now())
            if items and self._batch(items):
                self._backoff.record_success()
                return None
            self._progress.ask()
        except Cancelled:
            return None
        except Blocked as block:
            return self._blocked(block)
        except Exception as error:  # noqa: BLE001 - the edge of the worker: the program must go on
            found = classify(error, self._failures.in_a_row)
            if found is not None:
                return self._blocked(found)
            _log.error("%s failed: %s", self.name, format_traceback(error))
            self._progress.counts.last_error = screen_message(error)
            return self._backoff.broken(self._settled)
        self._backoff.record_success()
        tally, wait_s = self._progress.tally, self._job.poll_interval_s()
        if not tally.waiting_retry and not tally.abandoned:
            self._progress.counts.last_error = self._job.limitation  # the failures are cured
        if tally.next_attempt_at is not None:
            wait_s = min(wait_s, (tally.next_attempt_at - self._clock.now()).total_seconds())
        return IdleWait(WorkerState.IDLE, max(0.0, wait_s), not tally.waiting_retry)

    def _batch(self, items: Sequence[Item]) -> bool:
        """Work on items; return whether any is done or has failed."""
        if not self._progress.runs:
            self._begin()
        self._drained = False
        before, self._saved_at = self._settled, self._clock.monotonic()
        items = [each for each in items if not self._is_in_vain(each)]
        for some in self._breaker.batches(items, self._job.item_id, self._job.pace.together):
            self.throttle(self._stop)
            if self._stop.is_set():
                break
            self._make(some)
            count = sum(len(made) for made, _ in self._unsaved)
            is_late = self._clock.monotonic() - self._saved_at >= self._job.pace.save_s
            if count >= self._job.pace.save_items or (is_late and count):
                self._save()
        self._save()
        return self._settled > before

    def _is_in_vain(self, item: Item) -> bool:
        """Abandon an item that is found as before although its result was stored; return whether."""
        if is_in_vain := self._made[self._content_of(item)] >= _MOST_RESULTS:
            error = UnusableAnswer(f"Its last {_MOST_RESULTS} results could not be kept")
            self._record_failure(item, error, is_final=True)
        return is_in_vain

    def _content_of(self, item: Item) -> tuple[int, int]:
        return self._job.item_id(item), hash(self._job.content(item))

    def _begin(self) -> None:
        self._progress.ask()
        self._progress.begin()
        self._enter(WorkerState.RUNNING)
        if not self._knows_past:
            self._read_spend()
            self._knows_past = True

    def _make(self, items: Sequence[Item]) -> None:
        """Make some items; after a failure in halves, until the bad item is alone."""
        is_first = not self._progress.counts.current_item
        self._progress.counts.current_item = self._job.describe(items[0])
        self._publish_sometimes(at_once=is_first)  # it may take long
        try:
            result = self._job.make(items, self._is_cancelled)
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - an item must not hold back the others
            self._on_failure(items, error)
        else:
            self._failures.in_a_row = 0
            self._breaker.record_success()
            self._unsaved.append((items, result))

    def _is_cancelled(self) -> bool:
        """Whether to stop; called often, so new spending is published here too."""
        if self._is_spend_old:
            self._publish_sometimes()
        self.throttle(self._stop)
        return self._stop.is_set()

    def _on_failure(self, items: Sequence[Item], error: Exception) -> None:
        if (block := classify(error, self._failures.in_a_row)) is not None:
            raise block from error
        if self._stop.is_set():
            raise Cancelled("The worker was stopped") from error
        if isinstance(error, UnusableAnswer):
            is_final = len(items) == 1 and isinstance(error, AnswerTooLong)
            for item in items:  # each try costs, so no halves now
                self._record_failure(item, error, is_final=is_final)
            if not self._job.falls_back:
                self._breaker.record_failure([self._job.item_id(item) for item in items], error)
        elif len(items) > 1:
            middle = len(items) // 2
            self._make(items[:middle])
            self._make(items[middle:])
        else:
            self._record_failure(items[0], error)

    def _record_failure(self, item: Item, error: Exception, *, is_final: bool = False) -> None:
        retries = 0 if is_final else self._job.pace.retries
        is_abandoned = self._failures.add(self._job.item_id(item), error, retries)
        self._settled += 1
        self._progress.counts.last_error = screen_message(error)
        self._progress.failed(is_abandoned=is_abandoned)
        self._publish_sometimes()

    # -- saving

    def _save(self) -> None:
        """Store results; those that an outage keeps from being stored are stored the next time."""
        self._saved_at = self._clock.monotonic()
        if not self._unsaved:
            return
        try:
            saved = self._job.save([result for _, result in self._unsaved])
        except Exception as error:  # noqa: BLE001 - an item must not hold back the others
            self._on_unsaved(error)
            return
        done = [item for items, _ in self._unsaved for item in items]
        self._made.update(self._content_of(e) for e in done if self._job.content(e) is not None)
        self._unsaved = []
        self._failures.settle([self._job.item_id(item) for item in done])
        self._settled += len(done)
        self._progress.saved(saved)
        self._publish_sometimes()

    def _on_unsaved(self, error: Exception) -> None:
        if (block := classify(error, 0)) is not None:
            raise block from error
        made, self._unsaved = self._unsaved, []
        if len(made) > 1:
            for each in made:
                self._unsaved.append(each)
                self._save()
        else:
            for item in made[0][0]:
                self._record_failure(item, error)

    # -- waiting

    def _blocked(self, block: Blocked) -> IdleWait:
        text = screen_message(block)
        if self._progress.counts.last_error != text:
            _log.warning("%s is blocked: %s", self.name, public_message(block))
        self._progress.counts.blocked_by = text
        self._progress.counts.last_error = text
        return self._backoff.blocked(block, self._settled)

    def _wait(self, rest: IdleWait) -> None:
        """Wait until woken, stopped, or the time has passed."""
        present = self._clock.monotonic()
        deadline = float("inf") if rest.wait_s is None else present + rest.wait_s
        self._progress.end()
        if self._is_spend_old:
            self._read_spend()
        self._progress.counts.current_item = ""
        self._progress.counts.next_look_at = (
            None if rest.wait_s is None else self._clock.now() + timedelta(seconds=rest.wait_s)
        )
        self._drained = rest.is_drained  # first: who is told of the state looks whether it is
        self._enter(rest.state)
        while not self._stop.is_set() and (left := deadline - self._clock.monotonic()) > 0:
            if self._clock.wait(self._woken, min(left, _LOOK_AT_STOP_EVERY_S)):
                break
        self._progress.counts.blocked_by = ""
        self._progress.counts.next_look_at = None

    def _end(self) -> None:
        """Store finished results if possible, then enter the stopped state."""
        try:
            self._save()
            self._read_spend()
            if self._state is not WorkerState.IDLE:  # then it has just asked
                self._progress.ask()
        except Exception as error:  # noqa: BLE001 - lost results are found again by query
            _log.warning("%s stopped with results unsaved: %s", self.name, format_traceback(error))
        self._unsaved = []
        self._progress.end()
        self._progress.counts.current_item = ""
        self._drained = True
        self._enter(WorkerState.STOPPED)

    # -- status

    def _read_spend(self) -> None:
        """Read the recorded spending, which includes failed items."""
        self._is_spend_old = False
        try:
            self._progress.read_spend()
        except StorageError as error:
            _log.warning("%s: spending could not be read: %s", self.name, error)

    def _enter(self, state: WorkerState) -> None:
        is_other, self._state = state is not self._state, state
        if is_other or self._made_status() != self._status:
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
        except Exception:  # noqa: BLE001 - a listener must not stop the work
            _log.exception("a listener to %s failed", self.name)

    def _made_status(self) -> WorkerStatus:
        return self._progress.status(self.name, enabled=self._is_enabled(), state=self._state)

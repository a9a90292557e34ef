"""Failures of a worker: error classification, backoff, circuit breaker and retries of items."""

import logging
import random
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from app.domain.errors import (
    ConnectionLost,
    ConsentMissing,
    EmbedderUnavailable,
    KeyMissing,
    KeyRejected,
    KnownError,
    ModelNotFound,
    PaymentRequired,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerOverloaded,
    StorageError,
    TimedOut,
    Unreachable,
)
from app.domain.workers import WorkerName, WorkerState
from app.storage.tables.attempts import Attempts
from app.system.logs import format_traceback
from app.workers.job_interface import Blocked, Clock, Item

Jitter = Callable[[float], float]

_MAX_ITEM_WAIT_S = 32.0
_MAX_OUTAGE_WAIT_S = 60.0  # at most one probe a minute
_MAX_DOUBLINGS = 10
_USER_MUST_ACT = (
    ConsentMissing, KeyMissing, KeyRejected, PermissionRefused, PaymentRequired, ModelNotFound,
    QuotaExhausted,
)  # fmt: skip
_OUTAGE = (RateLimited, ServerOverloaded, Unreachable, EmbedderUnavailable, StorageError)
_MAYBE_OUTAGE = (TimedOut, ConnectionLost)


def full_jitter(limit_s: float) -> float:
    """Return a random wait up to `limit_s`, so that retries spread (AWS, "Backoff and Jitter")."""
    return random.uniform(0, limit_s)  # noqa: S311 - no secret depends on it


def classify(error: Exception, failures_in_a_row: int) -> Blocked | None:
    """Return why the whole worker must wait after `error`, or None when one item is to blame.

    `failures_in_a_row` counts items that failed with no success between: after three, a broken
    connection blocks the worker.
    """
    if isinstance(error, Blocked) or not isinstance(error, KnownError):
        return error if isinstance(error, Blocked) else None
    must_act = isinstance(error, _USER_MUST_ACT)
    is_outage = isinstance(error, _OUTAGE) or (
        isinstance(error, _MAYBE_OUTAGE) and failures_in_a_row >= 2
    )
    if not must_act and not is_outage:
        return None
    wait_s = None if must_act else _server_wait_s(error)
    return Blocked(error.title, error.hint, retry_after_s=wait_s, log_text=error.log_text)


def _server_wait_s(error: Exception) -> float:
    """Return the wait that a server asks for, 0 for none."""
    return (error.retry_after_s or 0.0) if isinstance(error, ProviderError) else 0.0


def item_retry_delay(tries: int, error: Exception, jitter: Jitter) -> timedelta:
    """Return the delay after the `tries`-th failure of an item.

    Full jitter below 1, 2, 4, 8, 16, 32 s; never less than the server asks for.
    """
    wait_s = jitter(min(_MAX_ITEM_WAIT_S, 2.0 ** (tries - 1)))
    return timedelta(seconds=max(wait_s, _server_wait_s(error)))


def blocked_wait_s(blocks_in_a_row: int, block: Blocked, jitter: Jitter) -> float | None:
    """Return the wait before the next probe; None until the user has acted."""
    if block.retry_after_s is None:
        return None
    doublings = min(blocks_in_a_row - 1, _MAX_DOUBLINGS)  # an outage of 17 hours overflows a float
    limit_s = min(_MAX_OUTAGE_WAIT_S, 2.0**doublings)
    return max(limit_s / 2 + jitter(limit_s / 2), block.retry_after_s)


def public_message(error: Exception) -> str:
    """Return an error as text without quotations: a bug's message may contain a conversation's text."""
    if isinstance(error, KnownError):
        return error.log_text
    return f"An internal error ({type(error).__name__}); the log has the details."


def screen_message(error: Exception) -> str:
    """Return an error as text for the screen, with the server's own message."""
    return error.display_text if isinstance(error, KnownError) else public_message(error)


_MAX_DRAIN_PROBES = 7  # failed probes in a row after which a drain ends
_MAX_DRAIN_WAIT_S = 600.0  # the longest wait of a drain for the next probe


@dataclass(frozen=True, slots=True)
class IdleWait:
    """The wait of a worker loop: its state and duration (None: until woken).

    `is_drained` means that the worker has no work left that it could do without help.
    """

    state: WorkerState
    wait_s: float | None
    is_drained: bool


class Backoff:
    """Counts consecutive failed probes for work: each wait is longer than the last."""

    def __init__(self, jitter: Jitter) -> None:
        self._jitter = jitter
        self._in_a_row = 0
        self._settled = 0

    def record_success(self) -> None:
        """Record a probe that did not fail."""
        self._in_a_row = 0

    def blocked(self, block: Blocked, settled: int) -> IdleWait:
        """Return the wait after a probe that was blocked; `settled` as in `broken`."""
        self._count(settled)
        wait_s = blocked_wait_s(self._in_a_row, block, self._jitter)
        ends = block.ends_drain or wait_s is None or wait_s > _MAX_DRAIN_WAIT_S
        return IdleWait(WorkerState.BLOCKED, wait_s, ends or self._gives_up)

    def broken(self, settled: int) -> IdleWait:
        """Return the wait after a probe that met a bug.

        `settled` counts the items that are done or have failed so far; progress between two probes
        resets the count.
        """
        self._count(settled)
        wait_s = blocked_wait_s(self._in_a_row, Blocked("", retry_after_s=0.0), self._jitter)
        return IdleWait(WorkerState.IDLE, wait_s, self._gives_up)

    @property
    def _gives_up(self) -> bool:
        return self._in_a_row >= _MAX_DRAIN_PROBES

    def _count(self, settled: int) -> None:
        if settled > self._settled:
            self._in_a_row = 0
        self._settled = settled
        self._in_a_row += 1


_MAX_FAILURES = 3


class CircuitBreaker:
    """Stops requests to a model after three unusable answers in a row: each of them was paid for.

    `reset` is for any thread, the rest for the worker's thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed: set[tuple[int, ...]] = set()  # in a row; retries of one item count once
        self._block: Blocked | None = None
        self._alone: set[int] = set()  # requested alone: one of them failed its group

    def batches(
        self, items: Sequence[Item], item_id: Callable[[Item], int], size: int
    ) -> Iterator[Sequence[Item]]:
        """Yield items in order, `size` per call; items of a failed call alone."""
        group: list[Item] = []
        for item in items:
            is_alone = item_id(item) in self._alone
            if group and (is_alone or len(group) == size):
                yield group
                group = []
            if is_alone:
                yield [item]
            else:
                group.append(item)
        if group:
            yield group

    def check(self) -> None:
        """Raise Blocked while the breaker is open."""
        if (block := self._block) is not None:
            raise block

    def record_success(self) -> None:
        self._failed = set()

    def record_failure(self, item_ids: Sequence[int], error: KnownError) -> None:
        """Record an unusable answer for some items.

        Raises Blocked if it is the third in a row. Retries of one item count once: it is abandoned
        in the end, without blocking the others.
        """
        self._alone.update(item_ids)
        with self._lock:
            self._failed.add(tuple(item_ids))
            if len(self._failed) < _MAX_FAILURES:
                return
            self._failed = set()
            self._block = Blocked(
                f"{_MAX_FAILURES} answers in a row could not be used. The last error: {error.title}",
                "Choose another model in Settings, Background work, or with 'commonplace config "
                "set background_model PROVIDER:MODEL'. Run now retries this model.",
            )
        self.check()

    def reset(self) -> None:
        """Close the breaker: another model was chosen, settings changed, or the user retries."""
        with self._lock:
            self._failed = set()
            self._block = None
            self._alone = set()


_log = logging.getLogger(__name__)


class Failures:
    """The failed items of one worker.

    Attributes:
        in_a_row: The number of items that failed without a success between.
    """

    def __init__(
        self, worker: WorkerName, attempts: Attempts, clock: Clock, jitter: Jitter
    ) -> None:
        self._worker = worker
        self._attempts = attempts
        self._clock = clock
        self._jitter = jitter
        self._may_exist = True
        self.in_a_row = 0

    def add(self, item_id: int, error: Exception, retries: int) -> bool:
        """Store a failure; return whether the item is abandoned now."""
        tries = self._attempts.tries().get(item_id, 0) + 1
        is_abandoned = tries > retries
        delay = item_retry_delay(tries, error, self._jitter)
        next_at = None if is_abandoned else self._clock.now() + delay
        _log.warning(
            "%s: item %d failed, try %d: %s", self._worker, item_id, tries, format_traceback(error)
        )
        self._attempts.failed(item_id, tries, next_at, public_message(error))
        self._may_exist = True
        self.in_a_row += 1
        return is_abandoned

    def settle(self, item_ids: Collection[int]) -> None:
        """Forget the failures of items that succeeded. Raises StorageError."""
        if self._may_exist:
            known = self._attempts.tries()
            self._may_exist = bool(known)
            if succeeded := known.keys() & set(item_ids):
                self._attempts.settle(succeeded)

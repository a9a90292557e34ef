"""What becomes of an item that failed: counted, tried again later, or set aside."""

import logging
from collections.abc import Collection

from app.domain.workers import WorkerName
from app.storage.attempts import Attempts
from app.system.logs import trace_of
from app.workers.clock import Clock
from app.workers.verdicts import Jitter, item_wait, public_words

_log = logging.getLogger(__name__)


class Failures:
    """The failures of one worker. `forgive` and `hasten` are for any thread, all else for its own.

    Attributes:
        in_a_row: How many items failed with no success between.
    """

    def __init__(
        self, worker: WorkerName, attempts: Attempts, clock: Clock, jitter: Jitter
    ) -> None:
        self._worker = worker
        self._attempts = attempts
        self._clock = clock
        self._jitter = jitter
        self._tries: dict[int, int] = {}
        self._is_old = False
        self.in_a_row = 0

    @property
    def are_known(self) -> bool:
        """Whether any item has failed and not come through since."""
        return bool(self._tries)

    def read(self) -> None:
        """Take what is known of earlier tries from the record. Raises StorageError."""
        self._is_old = False
        self._tries = dict(self._attempts.tries())

    def read_if_old(self) -> None:
        """Take it from the record if something was forgiven since. Raises StorageError."""
        if self._is_old:
            self.read()

    def outdate(self) -> None:
        """Note that the record may know better; never waits."""
        self._is_old = True

    def add(self, item_id: int, error: Exception, retries: int) -> bool:
        """Note a failure; return whether it was one too many, so that the item is set aside."""
        tries = self._tries.get(item_id, 0) + 1
        for_good = tries > retries
        next_at = None if for_good else self._clock.now() + item_wait(tries, error, self._jitter)
        _log.warning(
            "%s: item %d failed, try %d: %s", self._worker, item_id, tries, trace_of(error)
        )
        self._attempts.failed(item_id, tries, next_at, public_words(error))
        self._tries[item_id] = tries
        self.in_a_row += 1
        return for_good

    def settle(self, item_ids: Collection[int]) -> None:
        """Note items that came through, some of them after all. Raises StorageError."""
        if came_through := [each for each in item_ids if self._tries.pop(each, None)]:
            self._attempts.settle(came_through)

    def forgive(self, item_ids: Collection[int] | None = None) -> None:
        """Let some items, or all, be tried as if they had never failed; blocking."""
        if item_ids is None:
            self._attempts.forgive()
        else:
            self._attempts.settle(item_ids)
        self.outdate()

    def hasten(self) -> None:
        """Let what waits for its next try have it now; blocking."""
        self._attempts.hasten(self._clock.now())

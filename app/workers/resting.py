"""How long a worker rests between two looks for work, and when a drain no longer waits for it."""

from dataclasses import dataclass

from app.domain.workers import WorkerState
from app.workers.job import Blocked
from app.workers.verdicts import Jitter, world_wait_s

_PROBES_OF_A_DRAIN = 7  # failed probes in a row after which a drain no longer waits for the world
_WAIT_OF_A_DRAIN_S = 600.0  # and what it waits at most for the next one


@dataclass(frozen=True, slots=True)
class Rest:
    """How the machine waits: in which state, how long (None: until woken).

    `is_drained` when the worker has nothing left that it could do by itself.
    """

    state: WorkerState
    wait_s: float | None
    is_drained: bool


class Probes:
    """Counts the looks for work that came to nothing in a row: each waits longer than the last."""

    def __init__(self, jitter: Jitter) -> None:
        self._jitter = jitter
        self._in_a_row = 0
        self._settled = 0

    def came_through(self) -> None:
        """Note one that found the world as it should be."""
        self._in_a_row = 0

    def blocked(self, block: Blocked, settled: int) -> Rest:
        """Return the rest after a look that was blocked; `settled` as in `broken`."""
        self._count(settled)
        wait_s = world_wait_s(self._in_a_row, block, self._jitter)
        is_long = wait_s is None or wait_s > _WAIT_OF_A_DRAIN_S
        return Rest(WorkerState.BLOCKED, wait_s, is_long or self._gives_up)

    def broken(self, settled: int) -> Rest:
        """Return the rest after a look that met a bug.

        `settled` counts the items that came to an end of some kind so far: one of them between two
        looks begins a new row.
        """
        self._count(settled)
        wait_s = world_wait_s(self._in_a_row, Blocked("", retry_after_s=0.0), self._jitter)
        return Rest(WorkerState.IDLE, wait_s, self._gives_up)

    @property
    def _gives_up(self) -> bool:
        return self._in_a_row >= _PROBES_OF_A_DRAIN

    def _count(self, settled: int) -> None:
        if settled > self._settled:
            self._in_a_row = 0
        self._settled = settled
        self._in_a_row += 1

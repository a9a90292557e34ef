"""What one worker does, as the machine sees it: find, make, save. The machine is `machine`.

A job holds no state of its own work: what is missing is found in the database, what was made is
saved in one commit with the fact that it is done. So a crash loses nothing but the item at hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.workers import Ledger, WorkerName
from app.storage.tally import Tally

Item = TypeVar("Item")
Result = TypeVar("Result")
IsCancelled = Callable[[], bool]


class Blocked(KnownError):
    """The worker as a whole cannot go on until the user or the world has changed something.

    Attributes:
        retry_after_s: Look again after so long; None means not before the worker is woken.
    """

    def __init__(
        self,
        title: str,
        hint: str = "",
        *,
        retry_after_s: float | None = None,
        own_words: str = "",
    ) -> None:
        super().__init__(title, hint, own_words=own_words)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Pace:
    """How a job wants to be driven.

    `together` items are made by one call; results are saved after `save_items` or `save_s`,
    whichever comes first (1 for work that is paid for: what is finished is stored before the next
    request starts). An item that has failed more than `retries` times is set aside.
    """

    together: int = 1
    save_items: int = 100
    save_s: float = 0.5
    retries: int = 6


PAID = Pace(save_items=1)


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of results: stored, or found to need nothing; and what they cost."""

    completed: int
    skipped: int = 0
    spent: Ledger = field(default_factory=Ledger)


class Job(Protocol[Item, Result]):
    """The work of one worker; called on its thread, except where it says otherwise."""

    @property
    def name(self) -> WorkerName:
        """The worker's name."""
        ...

    @property
    def pace(self) -> Pace:
        """How it wants to be driven."""
        ...

    def find(self, at: datetime) -> Sequence[Item]:
        """Return the next items that lack their work, the most urgent first; () when none does.

        Left out is what was set aside, and what is to be tried again after `at` (UTC).
        """
        ...

    def item_id(self, item: Item) -> int:
        """Return the item's number in the table of attempts."""
        ...

    def describe(self, item: Item) -> str:
        """Return a few words for the dashboard."""
        ...

    def make(self, items: Sequence[Item], is_cancelled: IsCancelled) -> Result:
        """Return the work done for items (as many as `pace.together`), without saving it.

        Raises `Cancelled` soon after `is_cancelled`, `Blocked` or what `verdicts` knows when it is
        not the items' fault, anything else when it is.
        """
        ...

    def save(self, results: Sequence[Result]) -> Saved:
        """Store results and that their items are done, in one commit; raise StorageError."""
        ...

    def tally(self) -> Tally:
        """Return what the database says about all the items there are."""
        ...

    def poll_interval_s(self) -> float:
        """Return how long to idle before looking again unasked."""
        ...

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether a write may have made work; called on the writer thread, so at once."""
        ...

    def waiting_words(self, count: int) -> str:
        """Return "27 exchanges wait for summaries", for warnings."""
        ...

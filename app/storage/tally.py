"""How much work waits for a worker, and the form in which it is found."""

from dataclasses import dataclass
from datetime import datetime

Found = tuple[int, str]  # an item's id and the stamp of what it is made of now


@dataclass(frozen=True, slots=True)
class Tally:
    """How a kind of work stands. `total` counts all that should be done, `done` what is.

    Of the rest, some wait for a retry, the earliest at `next_attempt_at` (UTC), and some were set
    aside after failing too often.
    """

    done: int
    total: int
    waiting_retry: int = 0
    set_aside: int = 0
    next_attempt_at: datetime | None = None

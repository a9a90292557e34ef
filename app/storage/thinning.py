"""Which backups stay: all of a day, seven daily, four weekly, within a size, never fewer than two."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

KEEP_ALWAYS = 2
SIZE_CAP_BYTES = 4 << 30
_KEEP_ALL_FOR = timedelta(days=1)
_DAILY = 7
_WEEKLY = 4


class Dated(Protocol):
    """A file with the time (UTC) it was made."""

    @property
    def path(self) -> Path:
        """Where it lies."""
        ...

    @property
    def made_at(self) -> datetime:
        """When it was made."""
        ...


def to_keep(backups: Sequence[Dated], sizes: Iterable[int], cap_bytes: int) -> set[Path]:
    """Return which of `backups` (newest first) stay, given their sizes in bytes.

    All of the last day, the newest of each of seven days and four weeks before; the oldest go
    when the cap is passed; never fewer than two stay.
    """
    kept = _by_age(backups)
    kept += [backup for backup in backups if backup not in kept][: max(0, KEEP_ALWAYS - len(kept))]
    size_of = dict(zip((backup.path for backup in backups), sizes, strict=True))
    while len(kept) > KEEP_ALWAYS and sum(size_of[each.path] for each in kept) > cap_bytes:
        kept.pop()
    return {backup.path for backup in kept}


def _by_age(backups: Sequence[Dated]) -> list[Dated]:
    kept: list[Dated] = []
    days: set[object] = set()
    weeks: set[object] = set()
    for backup in backups:
        age = backups[0].made_at - backup.made_at
        day, week = backup.made_at.date(), backup.made_at.isocalendar()[:2]
        fresh = age <= _KEEP_ALL_FOR
        daily = age <= timedelta(days=_DAILY) and day not in days
        weekly = age <= timedelta(weeks=_WEEKLY) and week not in weeks
        if fresh or daily or weekly:
            kept.append(backup)
            days.add(day)
            weeks.add(week)
    return kept

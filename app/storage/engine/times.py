"""Conversion of times between Python (aware, UTC) and DuckDB (naive, UTC)."""

from datetime import UTC, datetime
from typing import overload


def now() -> datetime:
    """Return the present, UTC, to the microsecond."""
    return datetime.now(UTC)


@overload
def to_db(moment: datetime) -> datetime: ...
@overload
def to_db(moment: None) -> None: ...
def to_db(moment: datetime | None) -> datetime | None:
    """Return an aware time as the database keeps it."""
    if moment is not None and moment.tzinfo is not UTC:  # converting takes 1.5 us
        moment = moment.astimezone(UTC)
    return None if moment is None else moment.replace(tzinfo=None)


@overload
def from_db(moment: datetime) -> datetime: ...
@overload
def from_db(moment: None) -> None: ...
def from_db(moment: datetime | None) -> datetime | None:
    """Return a time of the database as an aware one."""
    return None if moment is None else moment.replace(tzinfo=UTC)

"""Dates as index terms: those of a message, those written in a text, and those near the dates that a question names.

The term of a month cannot occur in a text (an equals sign is never part of a term), so "Mai 2023",
"May 2023" and "mayo de 2023" all match what was written then.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from types import MappingProxyType

from app.language.date_phrases import named_dates
from app.language.date_words import MONTHS, numeric_dates

_NUMBERS = MappingProxyType(
    {name: number for number, names in enumerate(MONTHS, start=1) for name in names}
)
_NEAR_DAYS = 8
_MOST_DAYS = 32  # a longer range is found by its months
_SAME_MONTH = 0.4
_NEXT_MONTH = 0.3


def date_terms(when: datetime) -> str:
    """Return the terms of the local date: day, month and year, separate and combined."""
    with suppress(ValueError, OverflowError, OSError):  # far from now, the system may know no zone
        when = when.astimezone()
    return f"{when.day} month={when.month} {when.year} {_month(when)} {when.date().isoformat()}"


def written_date_terms(word: str) -> Iterator[str]:
    """Yield the terms of a date that is written in digits, as in 14.03.26: of its month and year, and its day."""
    for first, last in numeric_dates(word):
        yield from (f"month={first.month}", str(first.year), _month(first))
        if first == last:
            yield first.isoformat()


def month_term(word: str) -> str | None:
    """Return the term of the month that a case-folded word names; None for any other word."""
    number = _NUMBERS.get(word)
    return f"month={number}" if number else None


def near_dates(text: str, today: date) -> Mapping[str, float]:
    """Return the terms of the days or months that `text` names, and of those near them.

    Each has its nearness (0-1): all days of a range are named, and an event is often mentioned in
    the weeks after it. `today` is the day that "last week" is relative to.
    """
    near: dict[str, float] = {}
    for named in named_dates(text, today):
        if isinstance(named, int):
            terms = iter(((f"month={named}", 1.0), (f"month={named % 12 + 1}", _NEXT_MONTH)))
        else:
            terms = _around(*named)
        for term, nearness in terms:
            near[term] = max(nearness, near.get(term, 0.0))
    return near


def _around(first: date, last: date) -> Iterator[tuple[str, float]]:
    """Yield the terms of a range of days and of those near it, each with its nearness."""
    after = last + timedelta(days=1)
    by_month = first.day == after.day == 1 or (last - first).days >= _MOST_DAYS
    month = first.replace(day=1)
    while month <= last:
        yield _month(month), 1.0 if by_month else _SAME_MONTH
        month = (month + timedelta(days=_MOST_DAYS)).replace(day=1)
    yield _month(month), _NEXT_MONTH
    if not by_month:
        for distance in range(-_NEAR_DAYS + 1, (last - first).days + _NEAR_DAYS):
            beyond = max(-distance, distance - (last - first).days, 0)
            nearness = 1 - (1 - _SAME_MONTH) * beyond / _NEAR_DAYS
            yield (first + timedelta(days=distance)).isoformat(), nearness


def _month(day: date) -> str:
    return f"{day.year:04}-{day.month:02}"

"""Dates as index terms, and the months that a query names.

The term of a month cannot occur in a text (an equals sign is never part of a term), so "Mai 2023",
"May 2023" and "mayo de 2023" all match what was written then.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from types import MappingProxyType

from app.language.word_lists import read_words

_MONTHS = MappingProxyType(
    {
        name: number
        for number, names in enumerate(read_words("months").values(), start=1)
        for name in names
    }
)

_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_OTHER_WORDS = frozenset({"may", "march", "mars", "mart"})
_IN = frozenset(
    ["in", "on", "by", "since", "until", "during", "before", "after", "of", "from", "early", "late"]
)
_OF = frozenset({"of", "de"})
_MOST_CHARS = 2_000
_MOST_DAYS = 31
_NEAR_DAYS = 8
_SAME_MONTH = 0.4
_NEXT_MONTH = 0.3


def date_terms(when: datetime) -> str:
    """Return the terms of a date: day, month and year, separate and combined."""
    month = f"{when.year:04}-{when.month:02}"
    return f"{when.day} month={when.month} {when.year} {month} {month}-{when.day:02}"


def month_term(word: str) -> str | None:
    """Return the term of the month that a case-folded word names; None for any other word."""
    number = _MONTHS.get(word)
    return f"month={number}" if number else None


def near_dates(text: str) -> Mapping[str, float]:
    """Return the terms of the days or months that `text` names, and of those near them.

    Each has its nearness (0-1): an event is often mentioned in the weeks after it. A month is
    recognized by its name; a name that is also another word counts next to a number or a preposition
    only.
    """
    near: dict[str, float] = {}
    for year, month, day in _named(text):
        for term, nearness in _around(year, month, day):
            near[term] = max(nearness, near.get(term, 0.0))
    return near


def _named(text: str) -> Iterator[tuple[int | None, int, int | None]]:
    """Yield (year, month, day) of the dates that a text names; one year applies to all without one."""
    words = [each.casefold() for each in _WORD.findall(text[:_MOST_CHARS])]
    years = [int(each) for each in words if _YEAR.fullmatch(each)]
    for at, word in enumerate(words):
        if (month := _MONTHS.get(word)) is None:
            continue
        before, after = words[max(0, at - 2) : at], words[at + 1 : at + 3]
        year = next((int(each) for each in after if _YEAR.fullmatch(each)), None)
        day = _day(after[:1]) or _day(before[-1:])
        if day is None and before[-1:] and before[-1] in _OF:
            day = _day(before[:1])
        is_told = day or year or (before and before[-1] in _IN)
        if is_told or word not in _OTHER_WORDS:
            yield year or next(iter(years), None), month, day


def _day(words: Sequence[str]) -> int | None:
    found = _DAY.fullmatch(words[0]) if words else None
    return int(found[1]) if found and 1 <= int(found[1]) <= _MOST_DAYS else None


def _around(year: int | None, month: int, day: int | None) -> Iterator[tuple[str, float]]:
    """Yield the terms of a date and of those near it, each with its nearness."""
    following = month % 12 + 1
    if year is None:
        yield from ((f"month={month}", 1.0), (f"month={following}", _NEXT_MONTH))
        return
    yield f"{year:04}-{month:02}", 1.0 if day is None else _SAME_MONTH
    yield f"{year + (following == 1):04}-{following:02}", _NEXT_MONTH
    if day is not None:
        first = date(year, month, 1) + timedelta(days=day - 1)
        for distance in range(-_NEAR_DAYS + 1, _NEAR_DAYS):
            nearness = 1 - (1 - _SAME_MONTH) * abs(distance) / _NEAR_DAYS
            yield (first + timedelta(days=distance)).isoformat(), nearness

"""Dates that a question names, as ranges of days; whether a text tells or asks for a time.

The grammar is of symbols (`date_words`), the same for all languages. Precision comes before recall:
a name that is also another word, a weekday or a year counts only with a preposition, a number or
the like; fractions, versions and plain numbers never do. What lies ahead, and today, is not looked
for in the past.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from app.language.date_words import Symbol, may_tell_time, read_symbols, words_with_symbols
from app.language.languages import word_sets

Days = tuple[date, date]

_MOST_CHARS: Final = 2_000
_SINCE: Final = word_sets("talk")["since"]
_OTHER_TIMES: Final = word_sets("talk")["other times"]
_YEARS: Final = 10  # back, in which a day without a year is looked for
_MONTHS: Final = 12
_WEEK: Final = 7
_FIRST_MONTHS: Final = (3, 6, 9, 12)  # of the seasons, as in the north
_OFFSETS: Final = {"l": -1, "p": -1, "t": 0}
_UNIT_DAYS: Final = {"d": 1, "w": 7, "m": 30.44, "y": 365.25}

_LAST_YEAR: Final = "(?:[io]*(?:[ltf]y|y[lpf]|r))"
_WHICH_YEAR: Final = f"(?:[io]*Yy?|{_LAST_YEAR})"
_ONE_WEEK: Final = "(?:[ltf]w|w[lpf]|q)"
_DATE: Final = re.compile(
    rf"""(?P<digits>I)
       | (?P<day>(?:[ltfio]?[WZ][io]?)? (?:{_WHICH_YEAR}M(?:[DO]d?|cd)
            | [DO]+[Me]{_WHICH_YEAR}? | [Me][DO](?![dwmyhk]){_WHICH_YEAR}? | M(?:[DO]d|cd)
            | [DO][vs]Y | [vs][DO]Y | Ov | vO | (?:[io]|[io]?[WZ][io]?)(?:[DO]v|v[DO]) | ^[DO]v$ | ^v[DO]$))
       | (?P<weekday>{_ONE_WEEK}[io]?[WZ] | [WZ]{_ONE_WEEK} | [ltfE][WZV] | [WZV][lpf] | [io]W | Z)
       | (?P<ago>b[DNc]+[dwmy] | [DNc]+[dwmy][aB] | [wmy]B)
       | (?P<span>l[DNc]+[dwmy] | [DNc]+l[dwmy])
       | (?P<season>{_WHICH_YEAR}S | S{_WHICH_YEAR} | [ltf]S | S[lpf] | [ltf]F | FY)
       | (?P<month>{_WHICH_YEAR}[io]?M | [Me]{_WHICH_YEAR} | v(?:i*Yy?|r) | [ltf]M | M[lpf] | M)
       | (?P<unit>[ltf][wmyk] | [wmyk][lpf] | [qnr])
       | (?P<relative>g)
       | (?P<year>iy?Y)""",
    re.VERBOSE,
)
_RELATIVE: Final = re.compile("[gqnr]|[ltf][dwmyk]|[dwmyk][lp]|[dwmy][aB]|b[DNc]")
_TIME: Final = re.compile("[ICRBgqnrWZMeO]|[ltf][dwmyhkS]|[dwmyhkS][lpf]|[DNc][dwmyhk]")


def tells_time(text: str) -> bool:
    """Whether a text names a date, a time of day or a length of time."""
    if not may_tell_time(text):
        return False
    letters = _letters(read_symbols(text))
    return (_TIME.search(letters) or _DATE.search(letters)) is not None


def asks_for_time(text: str) -> bool:
    """Whether a question asks when or how long."""
    return any(each.letter == "A" for each in read_symbols(text[:_MOST_CHARS]))


def named_dates(text: str, today: date) -> Iterator[Days | int]:
    """Yield the first and last day of each date that a text names, or a month (1-12) of any year.

    A year that the text names applies to all its dates without one.
    """
    symbols = read_symbols(text[:_MOST_CHARS])
    years = [each.number for each in symbols if each.letter == "Y"]
    for match in _DATE.finditer(_letters(symbols)):
        found = symbols[match.start() : match.end()]
        if any(
            each.letter in "fE" or (each.letter in "gqnr" and each.number > 0) for each in found
        ):
            continue  # what lies ahead, or returns
        with suppress(ValueError, OverflowError):  # "3000 years ago"
            yield from _days(match.lastgroup or "", found, years[:1], today)


def asked_days(text: str, today: date) -> Days | None:
    """Return the days that a text asks about: from the first to the last that it names, or since it.

    A month is its last one. "Last" and "recently" without a date are all days until today. None for
    days before or after others, for 5/3, which is in March or in May, and for what has not begun.
    """
    read = [each for each in words_with_symbols(text[:_MOST_CHARS]) if each[1].letter]
    words = {word for word, symbol in read if symbol.letter in "iox"}
    if words & _OTHER_TIMES or any(len(symbol.ranges) > 1 for _, symbol in read):
        return None
    days = [
        each if not isinstance(each, int) else _months(today.year - (each > today.month), each, 1)
        for each in named_dates(text, today)
    ]
    letters = {(symbol.letter, symbol.number) for _, symbol in read}
    if ("g", 0) in letters:
        days.append(_one(today))
    if sum(symbol.letter in "WZ" for _, symbol in read) > len(days):
        return None  # "on Monday and Wednesday" names only Monday
    begun = {
        (first.month, first.day): (first, last) for first, last in sorted(days) if first <= today
    }
    if begun:  # of a day without a year the last one
        last = today if words & _SINCE else max(last for _, last in begun.values())
        return min(first for first, _ in begun.values()), last
    return (date.min, today) if any(letter in "lpR" for letter, _ in letters) else None


def is_relative(text: str) -> bool:
    """Whether a text names a day, week, month or year by its distance from now, as "yesterday" does."""
    letters = _letters(read_symbols(text[:_MOST_CHARS]))
    return _RELATIVE.search(letters) is not None


def _letters(symbols: list[Symbol]) -> str:
    return "".join(each.letter for each in symbols)


def _days(kind: str, found: list[Symbol], years: list[int], today: date) -> Iterator[Days | int]:
    """Yield the days of one date; `years` has at most one."""
    values = {each.letter: each.number for each in found}
    if kind == "digits":
        yield from found[0].ranges
    elif kind == "relative":
        if values["g"] < 0:
            yield _one(today + timedelta(days=values["g"]))
    elif kind == "weekday":
        yield _one(_weekday(values, today))
    elif kind == "unit":
        yield _unit(values, today)
    elif kind == "year":
        yield _whole_year(values["Y"])
    elif kind in ("ago", "span"):
        yield _back(kind, found, today)
    else:
        year = _year(values, today)
        if year is None:
            year = next(iter(years), None)
        yield from _in_year(kind, found, year, today)


def _in_year(kind: str, found: list[Symbol], year: int | None, today: date) -> Iterator[Days | int]:
    values = {each.letter: each.number for each in found}
    month = next((each.number for each in found if each.letter in "Mves"), 0)
    if kind == "season":
        yield _season(values, year, today)
    elif kind == "day":
        day = next(each.number for each in reversed(found) if each.letter in "DOc")
        for each in [year] if year else range(today.year - _YEARS + 1, today.year + 1):
            yield _one(date(each, month, 1) + timedelta(days=day - 1))  # 31 June is 1 July
    elif year is not None:
        yield _months(year, month, 1)
    elif _OFFSETS.keys() & values:
        is_last = "t" not in values
        yield _months(today.year - (is_last and month >= today.month), month, 1)
    else:
        yield month


def _year(values: Mapping[str, int], today: date) -> int | None:
    """Return the year of a date, by its number or relative to this one."""
    if "Y" in values:
        return values["Y"]
    if "y" in values:
        return today.year + _offset(values)
    return today.year + values["r"] if "r" in values else None


def _offset(values: Mapping[str, int]) -> int:
    return next((number for letter, number in _OFFSETS.items() if letter in values), 0)


def _weekday(values: Mapping[str, int], today: date) -> date:
    """Return the last such day, or the one in a week relative to this one."""
    day = next(values[each] for each in "WZV" if each in values)
    week = today - timedelta(days=today.weekday())
    if "t" in values or "w" in values or "q" in values or ("l" in values and "Z" in values):
        weeks = values.get("q", _offset(values))  # in Chinese, "last Tuesday" is that of last week
        return week + timedelta(days=_WEEK * weeks + day)
    if "l" in values or "p" in values:
        return today - timedelta(days=(today.weekday() - day - 1) % _WEEK + 1)
    return today - timedelta(days=(today.weekday() - day) % _WEEK)


def _unit(values: Mapping[str, int], today: date) -> Days:
    """Return a week, weekend, month or year relative to this one."""
    if "m" in values or "n" in values:
        return _months(today.year, today.month + values.get("n", _offset(values)), 1)
    if "y" in values or "r" in values:
        return _whole_year(today.year + values.get("r", _offset(values)))
    weeks = values.get("q", _offset(values))
    first = today + timedelta(days=_WEEK * weeks - today.weekday())
    return first + timedelta(days=5 if "k" in values else 0), first + timedelta(days=6)


def _back(kind: str, found: list[Symbol], today: date) -> Days:
    """Return the days of "two weeks ago", give or take half a week, or of "the last two weeks"."""
    number = next((each.number for each in reversed(found) if each.letter in "DNc"), 1)
    unit = next(_UNIT_DAYS[each.letter] for each in found if each.letter in _UNIT_DAYS)
    day = today - timedelta(days=round(number * unit))
    half = timedelta(days=int(unit) // 2)
    return (day, today) if kind == "span" else (day - half, min(today, day + half))


def _season(values: Mapping[str, int], year: int | None, today: date) -> Days:
    """Return a season of a year, else the one that ended last, or this year's."""
    first = _FIRST_MONTHS[values.get("S", values.get("F", 0))]
    if year is not None:
        return _months(year, first, 3)
    if "t" in values:
        return _months(today.year - (today.month < first - 9), first, 3)
    return next(
        days for back in range(3) if (days := _months(today.year - back, first, 3))[1] < today
    )


def _months(year: int, month: int, count: int) -> Days:
    """Return the days of `count` months; `month` may lie outside the year."""
    index = year * _MONTHS + month - 1
    first, after = (divmod(each, _MONTHS) for each in (index, index + count))
    return date(first[0], first[1] + 1, 1), date(after[0], after[1] + 1, 1) - timedelta(days=1)


def _whole_year(year: int) -> Days:
    return _months(year, 1, _MONTHS)


def _one(day: date) -> Days:
    return day, day

"""Relative dates ("last Friday") as calendar dates. English."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "couple": 2,
}  # fmt: skip
_DAY = "|".join(_DAYS)
_MONTH = "|".join(_MONTHS)
_COUNT = r"(\d{1,3}|a couple(?: of)?|" + "|".join(_NUMBERS) + ")"
_LEAD = r"(?:(?:on|in|during|from|since) )?"
_Words = Callable[[re.Match[str], datetime], str | None]


def resolve_relative_dates(text: str, at: datetime, *, ahead: bool | None = False) -> str:
    """Return `text` with full dates instead of relative ones, as seen from `at` (UTC).

    `ahead` says whether it is about the future, so that "in March" is the next one; None for unknown,
    which keeps months as they are.
    """
    for pattern, words in _PHRASES:
        text = pattern.sub(partial(_in_full, words, at), text)
    text = _TWICE.sub(r"\1 ", text)
    return _MONTH_ALONE.sub(lambda match: _month_alone(match, at, ahead=ahead), text)


def _in_full(words: _Words, at: datetime, match: re.Match[str]) -> str:
    try:
        return words(match, at) or match[0]
    except OverflowError:  # before the first day of the calendar, or after its last
        return match[0]


def mentions_date(text: str) -> bool:
    """Return whether a text mentions a date or a relative date."""
    return bool(_ANY.search(text))


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _weekday(match: re.Match[str], at: datetime) -> str | None:
    word, name = match[1].lower().strip(), match[2]
    number = _DAYS.index(name.lower())
    if word in {"last", "past"}:
        back = (at.weekday() - number - 1) % 7 + 1
        return f"on {_day(at - timedelta(days=back))}"
    ahead = (number - at.weekday() - 1) % 7 + 1
    if word == "next" and ahead <= 6 - at.weekday():
        ahead += 7
    return f"on {_day(at + timedelta(days=ahead))}"


def _shifted(days: int) -> _Words:
    return lambda _, at: f"on {_day(at + timedelta(days=days))}"


def _weeks(match: re.Match[str], at: datetime, weekday: int) -> str:
    """Return a weekday (0: Monday) of the week that a phrase means."""
    return _day(at + timedelta(days=weekday - at.weekday(), weeks=_step(match[1])))


def _step(word: str) -> int:
    return {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}.get(word.lower(), 0)


def _month_of(at: datetime, step: int) -> str:
    number = at.year * 12 + at.month - 1 + step
    return f"{_MONTHS[number % 12].capitalize()} {number // 12}"


def _ago(match: re.Match[str], at: datetime) -> str | None:
    word = match[1].lower().removesuffix(" of").removeprefix("a ") if match[1] != "a" else "a"
    count = int(word) if word.isdigit() else _NUMBERS.get(word)
    if count is None:
        return None
    unit = match[2].lower()
    if unit == "day":
        return f"on {_day(at - timedelta(days=count))}"
    if unit == "week":
        return f"around {_day(at - timedelta(weeks=count))}"
    if unit == "month":
        return f"in {_month_of(at, -count)}" if at.year * 12 > count else None
    return f"in {at.year - count}" if at.year > count else None


def _month_alone(match: re.Match[str], at: datetime, *, ahead: bool | None) -> str:
    """Add the nearest fitting year to a month without one."""
    number = _MONTHS.index(match[2].lower()) + 1
    if ahead is None and number != at.month:
        return match[0]
    year = at.year
    if ahead and number < at.month:
        year += 1
    elif not ahead and number > at.month:
        year -= 1
    return f"{match[0]} {year}"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PHRASES: Sequence[tuple[re.Pattern[str], _Words]] = (
    (_compiled(rf"\b{_LEAD}(?:the )?(last|past|this past|next|this coming|this) ({_DAY})\b"), _weekday),
    (_compiled(r"\bthe day before yesterday\b"), _shifted(-2)),
    (_compiled(r"\bthe day after tomorrow\b"), _shifted(2)),
    (_compiled(r"\b(?:yesterday|last night)\b"), _shifted(-1)),
    (_compiled(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b"), _shifted(0)),
    (_compiled(r"\btomorrow\b"), _shifted(1)),
    (_compiled(rf"\b{_LEAD}(last|next|this) week\b(?! before)"), lambda m, at: f"in the week of {_weeks(m, at, 0)}"),
    (_compiled(rf"\b{_LEAD}(?:this )?(last|past|next|this|coming) weekend\b"), lambda m, at: f"on the weekend of {_weeks(m, at, 5)}"),
    (_compiled(rf"\b{_LEAD}(last|next|this) month\b"), lambda m, at: f"in {_month_of(at, _step(m[1]))}"),
    (_compiled(rf"\b{_LEAD}(last|next|this) year\b"), lambda m, at: f"in {at.year + _step(m[1])}"),
    (_compiled(rf"\b(?:like |about |around )?{_COUNT} (day|week|month|year)s? (?:ago|back)\b"), _ago),
)  # fmt: skip
_MONTH_ALONE = re.compile(
    rf"\b(in|since|until|by|early|late|mid|during|for) ({_MONTH})\b(?!,? \d)", re.IGNORECASE
)
_TWICE = re.compile(r"\b(for|from|until|till|by|since|after|before|of) (?:in|on) ", re.IGNORECASE)
_ANY = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|past|coming) (?:night|week|weekend|"
    rf"month|year|{_DAY})|ago|(?:19|20)\d\d|(?:in|on|since|until|by|for) (?:{_MONTH})"
    rf"|(?:{_MONTH}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec) \d|\d{{1,2}}(?:st|nd|rd|th)?"
    rf" (?:of )?(?:{_MONTH}))\b",
    re.IGNORECASE,
)

"""Words of dates in ten languages, and texts as the symbols of such words.

A symbol is a letter with a number, so that the grammars of dates (`date_phrases`) are regular
expressions over letters and know no language. `resources/language/calendar.txt` is made from the
language data of dateparser; `dates.txt` adds what that lacks.

    M month     v month, or another word     e short month, or a name     s short month, or another word
    W weekday   Z weekday that needs no preposition    V weekday, or another word
    S season    F season, or another word
    Y year, 1950 to 2099     D 1 to 31     O ordinal     N larger number     c number in words
    I date in digits     C time of day
    h d w m y k an hour, day, week, month, year, weekend
    g q n r     a day, week, month, year relative to now: -1 is yesterday
    l t f E     last, this, next, every     p last, after its noun only
    b a B       "ago" before a length, after one, or after a unit alone
    i o         in, on      A a question for a time      R recently      x any other word
"""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from functools import cache
from typing import Final, NamedTuple

from app.language.languages import read_words

_CALENDAR: Final = read_words("calendar")
_ADDED: Final = read_words("dates")
_MONTHS: Final = tuple(_CALENDAR)[:12]
_WEEKDAYS: Final = tuple(_CALENDAR)[12:19]
_SEASONS: Final = ("spring", "summer", "autumn", "winter")
_SHORT: Final = frozenset(_ADDED["short months that are no other words"])
_NAMES: Final = frozenset(_ADDED["months that are names"])
_DOTTED: Final = frozenset(_ADDED["before a day and month with full stops"])
_LEADS_DATE: Final = _DOTTED.union(_ADDED["on"], _ADDED["since"], _ADDED["before a date in digits"])
_OTHERS: Final = (
    ("joining", ""), ("on", "o"), ("in", "i"), ("since", "i"), ("this", "t"), ("next", "f"), ("every", "E"), ("last", "l"),
    ("last, after its noun", "p"), ("before a length of time", "b"),
    ("after a length of time", "a"), ("after a length of time, or one of it", "B"),
    ("hour", "h"), ("day", "d"), ("week", "w"), ("month", "m"),
    ("year", "y"), ("weekend", "k"), ("recently", "R"), ("asks for a time", "A"), ("no date", "x"),
)  # fmt: skip
_WHEN: Final = re.compile(r"(in )?(\d) (day|week|month|year)(?: ago)?")
_RELATIVE: Final = {"day": "g", "week": "q", "month": "n", "year": "r"}
_MOST_DAYS: Final = 31
_YEARS: Final = range(1950, 2100)
_MOST_NUMBER: Final = 10
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th", "er", "re", "º", "ª", "e", "го", "ого"})

_UNSPACED: Final = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_SHAPE: Final = r"\d{4}([-/.])\d\d?\2\d\d?|\d{4}-\d\d|\d\d?([-/.])\d\d?\3\d{4}|\d\d([./])\d\d\4\d\d"
# ISO 8601: a time may follow, to a file's name its ending. 2024.1.3 may be a version;
# 20.10.12 hardly ever is one in what people write.
_WRITTEN: Final = re.compile(
    r"(\d{4}([-/])\d\d?\2\d\d?|\d{4}\.\d\d\.\d\d|\d{4}-\d\d|\d\d?([-/.])\d\d?\3\d{4}|\d\d\.\d\d\.\d\d)"
    r"(?:[Tt]\d\d:.*|\.[a-z]{2,5})?",
    re.IGNORECASE,
)
# Docker has 19.03.12 and 20.10.24; hardly a version is 01.02.24 or 20.03.24.
_MAYBE_VERSION: Final = re.compile(r"0\d\.\d\d\.0\d|[1-3]\d\.(?:1\d\.\d\d|0\d\.[01]\d)")
_ATOM: Final = re.compile(
    rf"""(?=\d)(?:  # most atoms are words, for which none of these is tried
        (?P<shape>(?<![\w./-])(?:{_SHAPE})(?![A-Za-z\d_/-]|[.,]\d))
        | (?P<clock>(?<![\w.:/])(?:\d\d?(?::\d\d)?\ ?[ap]m\b|(?:[01]?\d|2[0-3]):[0-5]\d(?![\w:])))
        | (?P<dotted>(?<![\w.])\d\d?\.\ ?\d\d?\.(?!\d))
        | (?P<year>(?:19|20)\d\d)年 | (?P<month>\d\d?)月)
      | (?P<other>[^\W\d{_UNSPACED}]++\d\w*|\d+(?:[.,:/]\d+)+|\d+_\w*)
      | (?P<number>\d+) | (?P<unspaced>[{_UNSPACED}]+) | (?P<word>[^\W\d_{_UNSPACED}]+)
      | (?P<mark>[^\w\s,'’´`-])""",
    re.VERBOSE,
)
_IS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_TENS: Final = re.compile("([一二三四五六七八九])?十([一二三四五六七八九])?(?=[日号號])")
_NUMERALS: Final = "〇一二三四五六七八九"
_BETWEEN_WORDS: Final = {
    code: "0" if chr(code).isdigit() else " " for code in range(128) if not chr(code).isalpha()
}
_TELLING_DIGITS: Final = re.compile(  # a date, a time of day, an ordinal, a year
    r"\d[-/.]\d+[-/.]\d|\d{4}-\d|\d(?::\d|\ ?[ap]m|st|nd|rd|th|er?|re)|(?:19|20)\d\d", re.IGNORECASE
)
_NOT_TELLING: Final = "xoilftEpbacA"  # nor are these without another, or a number


class Symbol(NamedTuple):
    """A word of a date: its letter and its number; a date in digits has the ranges it may mean."""

    letter: str
    number: int = 0
    ranges: tuple[tuple[date, date], ...] = ()


_OTHER_WORD: Final = Symbol("x")


def _names(title: str) -> tuple[str, ...]:
    """Return names longest first, so that a pattern of alternatives finds whole ones."""
    found = {*_CALENDAR.get(title, ()), *_ADDED.get(title, ())}
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


MONTHS: Final = tuple(_names(each) for each in _MONTHS)  # January to December
WEEKDAYS: Final = tuple(_names(each) for each in _WEEKDAYS)  # Monday to Sunday
# By month that is also another word: the words before it that make it a month.
_LEADS: Final = {
    name: frozenset(words)
    for title, words in _ADDED.items()
    if set(title.split()) <= {name for names in MONTHS for name in names} and title not in _MONTHS
    for name in title.split()
}


def numeric_dates(word: str) -> Iterator[tuple[date, date]]:
    """Yield the first and last day of each date that a word in digits may mean, none of another word.

    Names of files have them between underscores.
    """
    for part in word.split("_"):
        if (match := _WRITTEN.fullmatch(part)) is not None:
            yield from _ranges(match[1])


def may_tell_time(text: str) -> bool:
    """Return False when a text names no time for sure, which takes a tenth of reading its symbols.

    That is a text in ASCII without the longest word of any phrase that can do, and without digits that do alone.
    """
    if not text.isascii():
        return True
    words = text.casefold().translate(_BETWEEN_WORDS)
    has_digits = "0" in words and _TELLING_DIGITS.search(text) is not None
    return has_digits or not _telling_words().isdisjoint(words.split())


def read_symbols(text: str) -> list[Symbol]:
    """Return the symbols of a text, without articles and the like."""
    return [each for _, each in words_with_symbols(text) if each.letter]


def words_beside_dates(text: str) -> list[str]:
    """Return the words of a text, case folded, that belong to no date, in order.

    Neighboring characters of a script without spaces are one word.
    """
    words: list[str] = []
    is_run = False
    for word, symbol in words_with_symbols(text):
        is_other, was_run = symbol.letter == _OTHER_WORD.letter, is_run
        is_run = is_other and _IS_UNSPACED.match(word) is not None
        if is_run and was_run:
            words[-1] += word
        elif is_other and any(map(str.isalnum, word)):
            words.append(word)
    return words


def words_with_symbols(text: str) -> Iterator[tuple[str, Symbol]]:
    """Yield the symbols of a text, each with the first word it was read from."""
    _, longest = _vocabulary()
    atoms = list(_ATOM.finditer(unicodedata.normalize("NFKC", text).casefold()))
    at = 0
    while at < len(atoms):
        if atoms[at].lastgroup == "word" and atoms[at][0] not in longest:  # most words
            yield atoms[at][0], _OTHER_WORD
            at += 1
            continue
        if atoms[at].lastgroup == "unspaced":
            yield from _unspaced(atoms[at][0])
            at += 1
            continue
        count, few = _symbols_at(atoms, at)
        yield from ((atoms[at][0], each) for each in few)
        at += count


def _symbols_at(atoms: list[re.Match[str]], at: int) -> tuple[int, list[Symbol]]:
    """Return how many atoms are read from `at`, which is not unspaced, and their symbols."""
    atom, kind = atoms[at], atoms[at].lastgroup or ""
    text = atom[kind]
    if kind == "word":
        return _word(atoms, at)
    if kind == "number":
        return _number(atoms, at)
    if kind == "shape":
        before = [each[0] for each in atoms[max(at - 2, 0) : at] if each[0] != ":"]
        is_date = not _MAYBE_VERSION.fullmatch(text) or (before and before[-1] in _LEADS_DATE)
        ranges = tuple(_ranges(text)) if is_date else ()
        return 1, [Symbol("I", 0, ranges) if ranges else _OTHER_WORD]
    if kind == "dotted" and at and atoms[at - 1][0] in _DOTTED:
        day, month = (int(each) for each in text.rstrip(".").split("."))
        return 1, [Symbol("D", day), Symbol("M", month)] if month <= len(_MONTHS) else [_OTHER_WORD]
    if kind == "year":
        return 1, [Symbol("i"), Symbol("Y", int(text))]
    if kind == "month" and 1 <= int(text) <= len(_MONTHS):
        return 1, [Symbol("M", int(text))]
    if kind == "mark" and text == "." and at and atoms[at - 1].lastgroup in ("number", "word"):
        ends_number = atoms[at - 1].lastgroup == "number" or atoms[at - 1][0] in _SHORT
        return 1, [] if ends_number else [_OTHER_WORD]
    return 1, [Symbol("C") if kind == "clock" else _OTHER_WORD]


def _word(atoms: list[re.Match[str]], at: int) -> tuple[int, list[Symbol]]:
    """Read the longest phrase that begins with a word."""
    symbols, longest = _vocabulary()
    words = [atoms[at][0]]
    for each in atoms[at + 1 : at + longest.get(words[0], 1)]:
        if each.lastgroup != "word":
            break
        words.append(each[0])
    for count in range(len(words), 0, -1):
        if (symbol := symbols.get(" ".join(words[:count]))) is not None:
            break
    else:
        return 1, [_OTHER_WORD]
    leads = _LEADS.get(words[0])
    if symbol.letter == "M" and leads is not None and (not at or atoms[at - 1][0] not in leads):
        symbol = Symbol("e" if words[0] in _NAMES else "v", symbol.number)
    return count, [symbol]


def _number(atoms: list[re.Match[str]], at: int) -> tuple[int, list[Symbol]]:
    """Read a number; one that is joined to a word is an ordinal or no number."""
    number = int(atoms[at][0][:9])
    after = atoms[at + 1] if at + 1 < len(atoms) else None
    if after is not None and after.lastgroup == "word" and after.start() == atoms[at].end():
        is_ordinal = after[0] in _ORDINALS and 1 <= number <= _MOST_DAYS
        return 2, [Symbol("O", number) if is_ordinal else _OTHER_WORD]
    letter = "D" if 1 <= number <= _MOST_DAYS else "Y" if number in _YEARS else "N"
    return 1, [Symbol(letter, number)]


def _unspaced(run: str) -> Iterator[tuple[str, Symbol]]:
    """Yield the words and symbols of characters without spaces between words, the longest words first."""
    symbols, longest = _vocabulary()
    at = 0
    while at < len(run):
        if run[at] not in longest:  # most characters
            yield run[at], _OTHER_WORD
            at += 1
            continue
        if (tens := _TENS.match(run, at)) is not None:
            first, last = tens[1] or "一", tens[2] or "〇"
            yield tens[0], Symbol("D", 10 * _NUMERALS.index(first) + _NUMERALS.index(last))
            at = tens.end()
            continue
        for count in range(min(longest[run[at]], len(run) - at), 0, -1):
            if (symbol := symbols.get(run[at : at + count])) is not None:
                break
        else:
            symbol = _OTHER_WORD
        yield run[at : at + count], symbol
        at += count


def _ranges(shape: str) -> Iterator[tuple[date, date]]:
    """Yield what a date in digits may mean: 5/3/2024 is in March or in May."""
    first, second, *third = (int(each) for each in re.split("[-/.]", shape))
    if not third:
        readings = {(first, second, 1)}
    elif first > _MOST_DAYS:
        readings = {(first, second, third[0])}
    else:
        year = third[0] + (2000 if third[0] < 100 else 0)
        readings = {(year, second, first)}
        if "." not in shape:
            readings.add((year, first, second))
    for year, month, number in sorted(readings):
        with suppress(ValueError):
            if year in _YEARS:
                day = date(year, month, number)
                after = (day + timedelta(days=_MOST_DAYS)).replace(day=1)
                yield day, day if third else after - timedelta(days=1)


@cache
def _telling_words() -> frozenset[str]:
    phrases = _vocabulary()[0].items()
    telling = (phrase.split() for phrase, symbol in phrases if symbol.letter not in _NOT_TELLING)
    return frozenset(max(words, key=len) for words in telling if words)


@cache
def _vocabulary() -> tuple[dict[str, Symbol], dict[str, int]]:
    """Return the symbols of phrases, and how long a phrase with a first word (or character) may be.

    The first meaning of a word counts.
    """
    symbols: dict[str, Symbol] = {}
    longest: dict[str, int] = {}
    rows = [("no date", "x", 0)]
    rows += [(title, "M", number) for number, title in enumerate(_MONTHS, 1)]
    rows += [(title, "W", number) for number, title in enumerate(_WEEKDAYS)]
    rows += [(str(number), "c", number) for number in range(1, _MOST_NUMBER + 1)]
    rows += [(title, letter, 0) for title, letter in _OTHERS]
    rows += [(title, "S", number) for number, title in enumerate(_SEASONS)]
    rows += [(f"short {title}", "s", number) for number, title in enumerate(_MONTHS, 1)]
    rows += [(f"short {title}", "F", number) for number, title in enumerate(_SEASONS)]
    rows += [(f"short {title}", "V", number) for number, title in enumerate(_WEEKDAYS)]
    for title in {**_CALENDAR, **_ADDED}:
        if (relative := _WHEN.fullmatch(title)) is not None:
            number = int(relative[2]) * (1 if relative[1] else -1)
            rows.append((title, _RELATIVE[relative[3]], number))
    for title, letter, number in rows:
        for name in _names(title):
            atoms = [each[0] for each in _ATOM.finditer(name.replace("_", " ").casefold())]
            is_unspaced = bool(_IS_UNSPACED.match(name))
            key, first = ("".join(atoms), name[0]) if is_unspaced else (" ".join(atoms), atoms[0])
            if is_unspaced and letter == "q" and symbols.get(key[:-1], _OTHER_WORD).letter in "ltf":
                continue  # 上周二 is a Tuesday of last week, 上 + 周二
            symbols.setdefault(key, Symbol(_letter_of(letter, name), number))
            longest[first] = max(longest.get(first, 1), len(key) if is_unspaced else len(atoms))
    return symbols, longest


def _letter_of(letter: str, name: str) -> str:
    if letter == "s" and name in _SHORT:
        return "e"
    return "Z" if letter == "W" and _IS_UNSPACED.match(name) else letter

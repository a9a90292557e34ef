"""Texts for people: translation, and the formats of numbers, dates and amounts of money.

`tr` and `trn` return a text in the process's language. It is chosen once, before modules with texts are
imported, since their constants are translated as they are made. What other programs read stays English:
the command line, JSON, logs, exports and what is sent to models do not use these functions, or use them
within `in_english`. A table is `resources/translations/LANGUAGE.json`: the English text and its
translation, or for counted texts the singular and the list of forms. `LANGUAGE-errors.json` has the texts
of errors, which are raised in English with their values filled in, `{}` in the table.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "translations"
ENGLISH = "en"
_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # as gettext reads them
_NO_LANGUAGE = ("c", "posix")
LANGUAGES = {"en": "English", "de": "Deutsch"}  # each by its own name
_MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "de": [
        "Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.",
        "Dez.",
    ],
}  # fmt: skip
_LONG_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar M\u00e4rz April Mai Juni Juli August September Oktober November Dezember",
}
_WEEKDAYS = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
}
_QUOTES = "'", "\N{LEFT DOUBLE QUOTATION MARK}"
_QUOTED = re.compile(r"(?<!\w)'(.+?)'(?!\w)")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+")
_BROAD_CHARS = 14  # of a template that begins with a value
_chosen = [ENGLISH]
_forced: ContextVar[bool] = ContextVar("english", default=False)
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_CENT_USD = 0.01
_TAG = re.compile(r"latest|v?\d[^:]*")  # of a model of Ollama: llama3:8b


def choose_language(wanted: str) -> str:
    """Choose the language of the process; return it. "system" is the user's, English if unknown."""
    if wanted == "system":
        wanted = system_language()
    _chosen[0] = wanted if wanted in LANGUAGES else ENGLISH
    return _chosen[0]


def system_language() -> str:
    """Return the language of the user's system, such as "zh"; English if it names none."""
    named = (os.environ.get(name) for name in _VARIABLES)
    code = next(filter(None, named), ENGLISH).split(".")[0].casefold()
    return ENGLISH if code in _NO_LANGUAGE else code[:2]


def language() -> str:
    """Return the language in force, such as "de"."""
    return ENGLISH if _forced.get() else _chosen[0]


@contextmanager
def in_english() -> Iterator[None]:
    """Have texts in English in this context: those of commands that other programs may read."""
    before = _forced.set(True)
    try:
        yield
    finally:
        _forced.reset(before)


def tr(text: str) -> str:
    """Return a text in the language in force, in English if it has no translation."""
    if (current := language()) == ENGLISH:
        return text
    found = _table(current).get(text)
    return found if isinstance(found, str) else text


def trn(one: str, many: str, count: int) -> str:
    """Return the form of a text for a count, with `{count}` filled in."""
    current, form = language(), one if count == 1 else many
    if current != ENGLISH and isinstance(found := _table(current).get(one), list):
        form = found[count != 1]
    return form.format(count=format_number(count))


def tr_noop(text: str) -> str:
    """Return a part of an error as it is; it is translated when the error is shown."""
    return text


def translate_filled(text: str) -> str:
    """Return the text of an error or problem in the language in force, by the template it was made from.

    Its values are translated too if they are such texts, unless they are names in quotation marks or
    the translation wants one verbatim, as `{:verbatim}`. Sentences without a common template are
    translated one by one; one without any stays as it is. English has typographic quotation marks,
    except where other programs may read it.
    """
    if language() != ENGLISH:
        return _translated(text, is_value=False)
    return text if _forced.get() else _QUOTED.sub("\u201c\\1\u201d", text)


def _translated(text: str, *, is_value: bool) -> str:
    current = language()
    for table in (f"{current}-errors", current):
        if isinstance(found := _table(table).get(text), str):
            return found
    for each in _templates(current):
        if not (is_value and each.is_broad) and (match := each.pattern.fullmatch(text)):
            values = zip(each.kinds, match.groups(), strict=True)
            return each.form.format(*(kind(value) for kind, value in values))
    first, dot, rest = text.partition(". ")
    if not dot:
        return text
    return f"{_translated(first, is_value=is_value)}. {_translated(rest, is_value=is_value)}"


class _Value(str):
    """A value of a template; formatting translates it, and the separators of a number."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        if spec == "verbatim":
            return str(self)
        if _NUMBER.fullmatch(self):
            return self.translate(_GERMAN_SEPARATORS)
        return _translated(str(self), is_value=True)


def format_number(value: float, decimals: int = 0) -> str:
    """Return a number with the separators of the language in force."""
    text = f"{value:,.{decimals}f}"
    return text if language() == ENGLISH else text.translate(_GERMAN_SEPARATORS)


def month_name(month: int, *, long: bool = False) -> str:
    """Return the name of a month (1 to 12), usually abbreviated."""
    names = _LONG_MONTHS[language()].split() if long else _MONTHS[language()]
    return names[month - 1]


def weekday_name(weekday: int) -> str:
    """Return the name of a day of the week; Monday is 0."""
    return _WEEKDAYS[language()].split()[weekday]


_GERMAN_SEPARATORS = str.maketrans({",": ".", ".": ","})


@cache
def _table(name: str) -> dict[str, str | list[str]]:
    """Return a language's table, read once."""
    found: dict[str, str | list[str]] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return found


class _Template(NamedTuple):
    """A text of errors as a pattern, and its translation; a broad one matches other texts by chance.

    `kinds` are the types of its values: `str` for a name in quotation marks, which is not translated.
    """

    pattern: re.Pattern[str]
    kinds: tuple[type[str], ...]
    form: str
    is_broad: bool


@cache
def _templates(name: str) -> list[_Template]:
    """Return the texts of errors, the most literal ones first."""
    found = _table(f"{name}-errors")
    ordered = sorted(found, key=_literal_chars, reverse=True)
    return [
        _Template(
            re.compile("(.*?)".join(map(re.escape, text.split("{}"))), re.DOTALL),
            tuple(str if before.endswith(_QUOTES) else _Value for before in text.split("{}")[:-1]),
            str(found[text]),
            text.startswith("{}") and _literal_chars(text) < _BROAD_CHARS,
        )
        for text in ordered
        if "{}" in text
    ]


def _literal_chars(text: str) -> int:
    return len(text.replace("{}", ""))


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, which forms its plural with an s: "1 turn", "2 turns"."""
    return f"{format_number(count)} {noun if count == 1 else f'{noun}s'}"


def format_turn(turn_number: int) -> str:
    """Return what the window calls a turn: counted from 1; links and commands count from 0."""
    return tr("turn {number}").format(number=format_number(turn_number + 1))


def quoted(text: str) -> str:
    """Return a name or a text in the quotation marks of the language."""
    return tr("\u201c{title}\u201d").format(title=text)


def format_percent(share: float) -> str:
    """Return a share (0-1) in percent; only 1.0 gives "100%", only 0.0 gives "0%"."""
    percent = round(share * 100)
    if 0 < share < 1:
        percent = max(1, min(percent, 99))
    return f"{percent}%" if language() == ENGLISH else f"{percent}\u00a0%"


def model_label(model: str) -> str:
    """Return what PROVIDER:MODEL is called: without the provider; a file without its folder.

    Imported models have no provider, and may have a colon of their own.
    """
    provider, _, name = model.partition(":")
    if model.endswith(":"):
        return provider.capitalize()
    if not name or _TAG.fullmatch(name):
        return model
    return name if name[:1] != "/" and name[1:3] != ":\\" else re.split(r"[/\\]", name)[-1]


def format_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{format_number(seconds / 3600, 1)} h"


def format_milliseconds(duration_ms: int) -> str:
    """Return a short duration, such as "820 ms", "4.2 s" or "3 min 5 s"."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    if duration_ms < 60_000:
        return f"{format_number(duration_ms / 1000, 1)} s"
    return f"{duration_ms // 60_000} min {duration_ms % 60_000 // 1000} s"


def format_day(at: datetime) -> str:
    """Return the local day of a moment, such as "3 May 2026"."""
    local = at.astimezone()
    dot = "" if language() == ENGLISH else "."
    return f"{local.day}{dot} {month_name(local.month)} {local.year}"


def format_month(at: datetime) -> str:
    """Return the local month of a moment, such as "May 2026"."""
    local = at.astimezone()
    return f"{month_name(local.month, long=True)} {local.year}"


def long_day(day: date) -> str:
    """Return a day with its weekday, such as "Sunday, 3 May 2026"."""
    name, month = weekday_name(day.weekday()), month_name(day.month, long=True)
    dot = "" if language() == ENGLISH else "."
    return f"{name}, {day.day}{dot} {month} {day.year}"


def format_moment(at: datetime) -> str:
    """Return the local day and time of a moment, such as "3 May 2026, 14:05"."""
    return f"{format_day(at)}, {at.astimezone():%H:%M}"


def local_moment(at: datetime) -> str:
    """Return a local time for a model, such as "Sunday, 2026-05-03 14:05 (UTC+02:00)"."""
    local = at.astimezone()
    offset = f"{local:%z}"
    return f"{local_day(at)} {local:%H:%M} (UTC{offset[:3]}:{offset[3:5]})"


def local_day(at: datetime) -> str:
    """Return a local day for a model, such as "Sunday, 2026-05-03"."""
    return f"{at.astimezone():%A, %Y-%m-%d}"


def format_size(size_bytes: int) -> str:
    """Return a size in bytes, KB, MB or GB (binary)."""
    if size_bytes < _KIB:
        return f"{size_bytes} B"
    if size_bytes < _MIB:
        return f"{size_bytes / _KIB:.0f} KB"
    if size_bytes < _GIB:
        return f"{format_number(size_bytes / _MIB, 1)} MB"
    return f"{format_number(size_bytes / _GIB, 2)} GB"


def format_at_most(usd: float) -> str:
    """Return an upper bound of an amount; more than nothing is never "$0.00"."""
    if usd >= _CENT_USD or not usd:
        return money(usd)
    return tr("under {amount}").format(amount=money(_CENT_USD))


def format_time(minutes: float) -> str:
    """Return an estimated time, such as "about 3 minutes"."""
    if minutes < 1.5:
        return tr("a minute or less")
    if minutes < 120:
        return tr("about {minutes} minutes").format(minutes=format_number(minutes))
    return tr("about {hours} hours").format(hours=format_number(minutes / 60))


def format_price(cost_usd: float | None) -> str:
    """Return an estimated price, such as "for about $0.10"; None is unknown."""
    if cost_usd is None:
        return tr("at an unknown price")
    about = tr("for about {amount}").format(amount=money(max(cost_usd, _CENT_USD)))
    return about if cost_usd else tr("at no cost")


def format_estimate(minutes: float, cost_usd: float | None) -> str:
    """Return a time and a price, such as "about 3 minutes, for about $0.10"."""
    return f"{format_time(minutes)}, {format_price(cost_usd)}"


def money(usd: float, decimals: int = 2) -> str:
    """Return an amount, such as "$0.10" or "0,10 $"."""
    amount = format_number(usd, decimals)
    return f"${amount}" if language() == ENGLISH else f"{amount}\u00a0$"


def day_start(at: datetime) -> datetime:
    """Return the local midnight before `at`."""
    local = at.astimezone()
    return datetime(local.year, local.month, local.day).astimezone()


def month_start(at: datetime) -> datetime:
    """Return the first local midnight of the month of `at`."""
    local = at.astimezone()
    return datetime(local.year, local.month, 1).astimezone()


def next_day(at: datetime) -> datetime:
    """Return the local midnight after `at`."""
    later = at.astimezone().replace(tzinfo=None) + timedelta(days=1)
    return datetime(later.year, later.month, later.day).astimezone()


def next_month(at: datetime) -> datetime:
    """Return the first local midnight of the month after that of `at`."""
    local = at.astimezone()
    year, month = divmod(local.year * 12 + local.month, 12)
    return datetime(year, month + 1, 1).astimezone()

"""Translation of texts for people: one language per process, English texts as keys of a table.

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
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+")
_BROAD_CHARS = 14  # of a template that begins with a value
_chosen = [ENGLISH]
_forced: ContextVar[bool] = ContextVar("english", default=False)


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
    translated one by one; one without any stays as it is.
    """
    return _translated(text, is_value=False)


def _translated(text: str, *, is_value: bool) -> str:
    if (current := language()) == ENGLISH:
        return text
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

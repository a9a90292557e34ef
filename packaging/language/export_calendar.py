# /// script
# requires-python = ">=3.11"
# dependencies = ["dateparser==1.5.0"]
# ///
"""Export of resources/language/calendar.txt from the language data of dateparser, which is CLDR's and more.

    uv run packaging/language/export_calendar.py

or the same in any virtual environment with dateparser. The same version gives the same file. What it
holds: names of months and weekdays, their abbreviations, units of time, and the words for a day, week,
month or year relative to today ("1 day ago": yesterday). Phrases are joined by underscores.
"""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja")
MONTHS_ONLY = ("sv", "da", "nb", "pl", "ro", "tr")
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNITS = ("day", "week", "month", "year", "hour")
RELATIVE = re.compile(r"(in )?(\d) (day|week|month|year)( ago)?")
# Forms of Polish names that are other words elsewhere, or names of people.
NOT_MONTHS = {"maja", "maju", "marca", "marcu", "lis", "luty", "lutym"}
OUTPUT = Path(__file__).resolve().parents[2] / "resources/language/calendar.txt"
HEAD = """\
# Words of dates in ten languages, and months in six more: made by packaging/language/export_calendar.py
# from the language data of dateparser (BSD-3-Clause), which holds that of CLDR (Unicode-3.0).
"""


def main() -> None:
    """Write the file."""
    data = {each: _data(each) for each in (*LANGUAGES, *MONTHS_ONLY)}
    paragraphs: dict[str, list[str]] = {}
    shortened: dict[str, list[str]] = {}
    for month in MONTHS:
        names = {each: _words(info[month]) for each, info in data.items()}
        paragraphs[month] = [name for few in names.values() for name in _full(few)]
        shortened[f"short {month}"] = [
            name for each in LANGUAGES for name in names[each] if name not in _full(names[each])
        ]
    for day in WEEKDAYS:
        paragraphs[day] = [name for each in LANGUAGES for name in _full(_words(data[each][day]))]
    paragraphs |= shortened
    for unit in UNITS:
        named = (name for each in LANGUAGES for name in _words(data[each].get(unit, ())))
        paragraphs[unit] = [name for name in named if len(name) > 2 or not name.isascii()]
    for each in LANGUAGES:
        for when, phrases in data[each]["relative-type"].items():
            if RELATIVE.fullmatch(when):
                paragraphs.setdefault(when, []).extend(_words(phrases))
    OUTPUT.write_text("".join(_lines(paragraphs)), encoding="utf-8")


def _data(language: str) -> dict[str, Any]:
    info: dict[str, Any] = import_module(f"dateparser.data.date_translation_data.{language}").info
    return info


def _words(names: Iterable[str]) -> list[str]:
    """Return names in lower case, without those in parentheses or with digits, as tokens."""
    lower = (name.casefold().replace(" ", "_") for name in names)
    return [name for name in lower if name[0] != "(" and not re.search(r"\d", name)]


def _full(names: list[str]) -> list[str]:
    """Return the names that do not abbreviate another of them, and are no other word."""
    return [
        name
        for name in names
        if name not in NOT_MONTHS
        and (len(name) > 3 or max(map(len, names)) <= 3)
        and not any(name != other[:-1] and _abbreviates(name, other) for other in names)
    ]


def _abbreviates(name: str, other: str) -> bool:
    return len(other) > len(name) and other.startswith(name)


def _lines(paragraphs: dict[str, list[str]]) -> Iterator[str]:
    yield HEAD
    for title, names in paragraphs.items():
        if names:
            yield f"\n{title}:\n{' '.join(dict.fromkeys(names))}\n"


if __name__ == "__main__":
    main()

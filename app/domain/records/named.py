"""Records that the user names: presets, projects and routines."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Protocol, TypeVar

from app.domain.text import clean
from app.domain.translation import tr_noop

MAX_NAME_CHARS = 60
MAX_INSTRUCTIONS_CHARS = 100_000

N = TypeVar("N", bound="Named")


class Named(Protocol):
    """A record that the user names."""

    @property
    def uid(self) -> str: ...
    @property
    def name(self) -> str: ...


def one_line_name(name: str) -> str:
    """Return a name as it is stored: clean, in one line, without double spaces."""
    return " ".join(clean(name).split())


def named_problem(record: Named) -> str:
    """Return why a record cannot have its uid or name as a phrase that follows "it", "" if it can."""
    if not record.uid or len(record.uid) > MAX_NAME_CHARS:
        return "has no valid uid"
    if not 0 < len(record.name) <= MAX_NAME_CHARS or record.name != one_line_name(record.name):
        return f"needs a name of 1 to {MAX_NAME_CHARS} characters"
    return ""


def find_named(name: str, records: Iterable[N], other_than: str = "") -> N | None:
    """Return the first record with this name (any case) or uid; the one with uid `other_than` does not count."""
    wanted = one_line_name(name).casefold()
    found = (each for each in records if wanted in (each.name.casefold(), each.uid))
    return next((each for each in found if each.uid != other_than), None)


def names_hint(name: str, records: Iterable[Named], if_none: str = "") -> str:
    """Return a hint with the names that are like `name`, else all."""
    names = [each.name for each in records]
    if near := get_close_matches(name, names, n=2, cutoff=0.5):
        return tr_noop(f"Did you mean {' or '.join(near)}?")
    return tr_noop(f"There are {', '.join(names)}.") if names else if_none


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name like `name` that is not taken, with a number behind it."""
    used = {each.casefold() for each in taken}
    number = 1
    candidate = name
    while candidate.casefold() in used:
        number += 1
        ending = f" ({number})"
        candidate = name[: MAX_NAME_CHARS - len(ending)].rstrip() + ending
    return candidate

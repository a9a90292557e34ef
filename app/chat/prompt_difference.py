"""How one prompt differs from another, part by part and line by line. Pure."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.chat.sent import SentPart, SentPrompt
from app.domain.recalls import PlanPartKind

_CONTEXT_LINES = 1
_MOST_LINES = 6_000  # of both together: beyond it, comparing takes seconds


class PartState(StrEnum):
    """What became of a part since the prompt before."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "new"
    GONE = "gone"


class LineMark(StrEnum):
    """What became of a line; `SKIPPED` stands for lines that are the same."""

    SAME = " "
    ADDED = "+"
    GONE = "-"
    SKIPPED = "\N{MIDLINE HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part of either prompt; `lines` are (mark, words), none where the part is the same."""

    kind: PlanPartKind
    state: PartState
    lines: tuple[tuple[LineMark, str], ...] = ()


def difference(before: SentPrompt, now: SentPrompt) -> tuple[PartDifference, ...]:
    """Return what differs, in the order of a prompt's parts."""
    old = {part.kind: part for part in before.parts}
    new = {part.kind: part for part in now.parts}
    return tuple(
        _part(kind, old.get(kind), new.get(kind))
        for kind in PlanPartKind
        if kind in old or kind in new
    )


def _part(kind: PlanPartKind, old: SentPart | None, new: SentPart | None) -> PartDifference:
    if old is None and new is not None:
        return PartDifference(kind, PartState.ADDED, _all(LineMark.ADDED, new.text))
    if new is None and old is not None:
        return PartDifference(kind, PartState.GONE, _all(LineMark.GONE, old.text))
    assert old is not None
    assert new is not None
    if old.text == new.text:
        return PartDifference(kind, PartState.SAME)
    return PartDifference(kind, PartState.CHANGED, tuple(_compared(old.text, new.text)))


def _compared(old: str, new: str) -> Iterator[tuple[LineMark, str]]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MOST_LINES:
        yield from _all(LineMark.GONE, old)
        yield from _all(LineMark.ADDED, new)
        return
    compared = difflib.unified_diff(before, after, lineterm="", n=_CONTEXT_LINES)
    for number, line in enumerate(compared):
        if number < 2:  # the names of two files
            continue
        if line.startswith("@@"):
            yield LineMark.SKIPPED, ""
        else:
            yield LineMark(line[0]), line[1:]


def _all(mark: LineMark, text: str) -> tuple[tuple[LineMark, str], ...]:
    return tuple((mark, line) for line in text.splitlines())

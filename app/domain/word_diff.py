"""What differs between two wordings, word by word, for showing it."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, auto

_WORDS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")  # spaces of their own would match everywhere
_MOST_WORDS = 1_500  # difflib takes 5 ms for two texts of so many, 150 of five words repeated


class Change(Enum):
    """What became of some words."""

    KEPT = auto()
    ADDED = auto()
    REMOVED = auto()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring words with the same fate."""

    text: str
    change: Change


def word_diff(before: str, after: str) -> tuple[Stretch, ...]:
    """Return both wordings as one text: what was removed stands before what was added for it.

    Very long texts are not compared: the one stands whole before the other.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > _MOST_WORDS:
        return _stretches((before, Change.REMOVED), (after, Change.ADDED))
    found: list[tuple[str, Change]] = []
    for fate, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if fate == "equal":
            found.append(("".join(old[i1:i2]), Change.KEPT))
        else:
            found += [("".join(old[i1:i2]), Change.REMOVED), ("".join(new[j1:j2]), Change.ADDED)]
    return _stretches(*found)


def _stretches(*found: tuple[str, Change]) -> tuple[Stretch, ...]:
    return tuple(Stretch(text, change) for text, change in found if text)

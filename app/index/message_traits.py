"""Traits of a message that the ranking weighs: length, share of questions, times, who wrote it.

They are stored in the text index. Only the trait of times depends on languages (`date_words`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.conversations import Role
from app.domain.passages import PassagePart
from app.domain.wording import count_words, question_share
from app.language.date_phrases import tells_time

Column = npt.NDArray[np.float64]

CONTEXT_WORDS = 150
NEAR = 3  # neighbors on either side at most
_MAX_WORDS = 4_095
_TELLING_WORDS = 60  # in a longer message the ranking ignores times
_SAMPLE_CHARS = 6_000  # beyond this only the length counts

_LABEL = re.compile(r"([^\W\d_][^\n:：]{0,39}?)(?:: |：\s?)(?=\S)")
_LABEL_WORDS = 3
_LABEL_CHARS = 12  # of a label without spaces in it


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a message.

    `asking` is the share (0-1) of its words in questions. `own_side` marks a message with the role
    of the user. `label` is what a colon separates from the text, case folded, else empty: a
    speaker's name where people talk, but also "Note".
    """

    words: int
    asking: float = 0.0
    tells_time: bool = False
    own_side: bool = False
    label: str = ""

    def packed(self) -> int:
        """Return all but the label as one integer."""
        flags = self.tells_time | self.own_side << 1
        return flags | round(self.asking * 100) << 2 | self.words << 9

    @staticmethod
    def table(values: npt.NDArray[np.int64]) -> "TraitsTable":
        """Return the columns of many packed values."""
        return TraitsTable(
            words=(values >> 9).astype(float),
            asking=(values >> 2 & 127) / 100,
            tells_time=(values & 1).astype(float),
            own_side=(values >> 1 & 1).astype(float),
        )


@dataclass(frozen=True, slots=True)
class TraitsTable:
    """Traits of n messages as columns, (n,); flags are 0 or 1."""

    words: Column
    asking: Column
    tells_time: Column
    own_side: Column


def message_traits(part: PassagePart) -> Traits:
    """Return the traits of a message."""
    text = part.text[:_SAMPLE_CHARS]
    label = _label(text)
    said = text[label.end() :] if label else text
    words = count_words(said)
    return Traits(
        words=min(words, _MAX_WORDS),
        asking=question_share(said),
        tells_time=words <= _TELLING_WORDS and tells_time(said),
        own_side=part.role is Role.USER,
        label=label[1].casefold() if label else "",
    )


def _label(text: str) -> re.Match[str] | None:
    """Return the match of a label that may be a speaker's name."""
    label = _LABEL.match(text)
    if label is None:
        return None
    words = label[1].split()
    is_name = len(words) <= _LABEL_WORDS and (len(words) > 1 or len(words[0]) <= _LABEL_CHARS)
    return label if is_name else None


def context_range(words: Sequence[int], at: int) -> range:
    """Return the range of messages that are the context of the one at `at`, itself included.

    `words` are the lengths of all messages. Whole neighbors are added in turn before and after, up
    to CONTEXT_WORDS in total and NEAR on either side.
    """
    first, last, total = at, at, words[at]
    for _ in range(NEAR):
        if first > 0 and total + words[first - 1] <= CONTEXT_WORDS and at - first < NEAR:
            first -= 1
            total += words[first]
        if last + 1 < len(words) and total + words[last + 1] <= CONTEXT_WORDS:
            last += 1
            total += words[last]
    return range(first, last + 1)

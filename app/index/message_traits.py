"""Traits of a message that the ranking weighs: length, share of questions, times, instructions.

They are stored in the text index. The patterns of instructions and preferences are English; the others know
no language, or those of `date_words`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.conversations import Role
from app.domain.passages import PassagePart
from app.language.date_phrases import tells_time

Column = npt.NDArray[np.float64]

CONTEXT_WORDS = 150
NEAR = 3  # neighbors on either side at most
_MAX_WORDS = 4_095
_TELLING_WORDS = 60  # in a longer message the ranking ignores times
_SAMPLE_CHARS = 6_000  # beyond this only the length counts

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_LABEL = re.compile(r"([A-Z][\w'’-]{1,20}(?: [A-Z][\w'’-]{1,20})?): (?=\S)")
_INSTRUCTION = re.compile(
    r"""(?:^|[.!?\n]\s{0,8})(?:please\s{1,8})?(?:always|never|from\ now\ on|in\ (?:the\ )?future
          |going\ forward|whenever|every\ time|each\ time|remember\ (?:to|that)|keep\ in\ mind)\b
        | \b(?:whenever|every\ time|each\ time|when|if)\ i\ (?:ask|request|mention|want\ you)\b
        | \b(?:you\ should|i(?:['’]d|\ would)?\ (?:like|want|need)\ you\ to)\ (?:always|never)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"""\bi(?:['’]d|\ would)?\ (?:(?:really|much|always|usually|generally|also)\ )?(?:prefer|love|enjoy
          |hate|dislike|favou?r|rather|avoid) | \bmy\ (?:\w+\ )?(?:favou?rite|preference)
        | \bi(?:['’]ve|\ have)?\ (?:chosen|chose|decided)\b | \bi\ (?:do\ not|don['’]t)\ like\b""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a message.

    `asking` is the share (0-1) of its words in questions. `instructs` marks a standing instruction
    ("Always ..."), `prefers` a stated preference or choice. `own_side` marks what the user wrote to an
    assistant, as opposed to one of several people whose name precedes the text (`speaker`, case folded,
    else empty).
    """

    words: int
    asking: float = 0.0
    tells_time: bool = False
    instructs: bool = False
    prefers: bool = False
    own_side: bool = False
    speaker: str = ""

    def packed(self) -> int:
        """Return all but the speaker as one integer."""
        flags = self.tells_time | self.instructs << 1 | self.own_side << 2 | self.prefers << 3
        return flags | round(self.asking * 100) << 4 | self.words << 11

    @staticmethod
    def table(values: npt.NDArray[np.int64]) -> "TraitsTable":
        """Return the columns of many packed values."""
        return TraitsTable(
            words=(values >> 11).astype(float),
            asking=(values >> 4 & 127) / 100,
            tells_time=(values & 1).astype(float),
            instructs=(values >> 1 & 1).astype(float),
            own_side=(values >> 2 & 1).astype(float),
            prefers=(values >> 3 & 1).astype(float),
        )


@dataclass(frozen=True, slots=True)
class TraitsTable:
    """Traits of n messages as columns, (n,); flags are 0 or 1."""

    words: Column
    asking: Column
    tells_time: Column
    instructs: Column
    own_side: Column
    prefers: Column


def message_traits(part: PassagePart) -> Traits:
    """Return the traits of a message."""
    text = part.text[:_SAMPLE_CHARS]
    label = _LABEL.match(text)
    said = text[label.end() :] if label else text
    words = count_words(said)
    own_side = part.role is Role.USER and label is None
    return Traits(
        words=min(words, _MAX_WORDS),
        asking=question_share(said),
        tells_time=words <= _TELLING_WORDS and tells_time(said),
        instructs=own_side and _INSTRUCTION.search(said) is not None,
        prefers=own_side and _PREFERENCE.search(said) is not None,
        own_side=own_side,
        speaker=label[1].casefold() if label else "",
    )


def question_share(said: str) -> float:
    """Return the share (0-1) of the words in sentences that end with a question mark."""
    if "?" not in said and "？" not in said:
        return 0.0
    counted = [(count_words(each[0]), each[0]) for each in _SENTENCE.finditer(said)]
    words = sum(count for count, _ in counted)
    asked = sum(count for count, each in counted if each.rstrip().endswith(("?", "？")))
    return asked / words if words else 0.0


def count_words(text: str) -> int:
    """Return the number of words; in unspaced scripts two characters count as a word."""
    if text.isascii():
        return len(_WORD.findall(text))
    count = 0
    for match in _WORD.finditer(text):
        word = match[0]
        count += 1 if word.isascii() or word[0] < "\u2e80" else max(1, len(word) // 2)
    return count


def context_range(words: Sequence[int], at: int) -> range:
    """Return the range of messages that are the context of the one at `at`, itself included.

    `words` are the lengths of all messages. Whole neighbors are added in turn before and after, up to
    CONTEXT_WORDS in total and NEAR on either side.
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

"""Traits of a message that the ranking weighs: length, share of questions, times, who wrote it.

They are stored in the text index. Only the trait of times depends on languages (`date_words`).

Small talk is short, and none of its words names a subject: all are function words of one language, courtesies or
words that many messages contain. "Tom" is a function word in Swedish. A non-answer is a turn in which the user only
asks, and the reply asks too, or says in a few words that it does not know, without a number or name that the
question lacks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from app.domain.conversations import Role
from app.domain.passages import PassagePart
from app.domain.text import count_words, question_share
from app.language.analyzer import surface_words_of
from app.language.date_phrases import tells_time
from app.language.languages import ALL_STOP_WORDS, STOP_WORDS, read_phrases, word_sets

_SHORT_WORDS = 8
_VERY_SHORT_WORDS = 3
_COMMON_SHARE = 0.02  # a word in more of the messages identifies nothing
_MANY_MESSAGES = 500  # too few messages say nothing about common words


_WORDS = word_sets("requests")
_PHRASES = read_phrases("phrases")
COURTESIES = _WORDS["courtesies"]
_UNSPACED = _WORDS["unspaced courtesies"]
_HOW_ARE_YOU = _PHRASES["how are you"]
_SIGNS = " \t\r\n.,!?…~。、！？，．’'\"-–—:;)("
_QUESTION_SHARE = 0.75  # of the words, for a text that only asks
_MAX_ANSWER_WORDS = 60  # in an answer that only says there is none
_SMALL_TALK_CHARS = 1_200
_NO_ANSWER = _PHRASES["non-answers"]
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?…\n])[\s\"“„«(*_>-]*$")
_KNOWN_WORDS = ALL_STOP_WORDS | {"i'm", "i've", "i'd"}


def is_small_talk(text: str, frequencies: Mapping[str, int], messages: int) -> bool:
    """Return whether `text` names nothing that could be recalled.

    `frequencies` gives for each content word of it the number of messages, of all `messages`, with
    the word.
    """
    bare = text.strip(_SIGNS).casefold()
    if bare in _UNSPACED:
        return True
    rest = _HOW_ARE_YOU.sub(" ", bare)
    words = [word for word in surface_words_of(rest) if any(map(str.isalnum, word))]
    if not words:
        return True
    if len(words) > _SHORT_WORDS:
        return False
    if any(known.issuperset(words) for known in _uninformative_words()):
        return True
    is_question = text.rstrip().endswith(("?", "？"))
    if len(words) > _VERY_SHORT_WORDS or is_question or messages < _MANY_MESSAGES:
        return False
    common = _COMMON_SHARE * messages
    return bool(frequencies) and all(count > common for count in frequencies.values())


def is_non_answer(user: str, reply: str, question: str = "") -> bool:
    """Return whether a turn of a user message and a reply states nothing.

    `question` is the current question: a message of the same words counts as a question.
    """
    if question_share(user) < _QUESTION_SHARE and not _words(user) <= _words(question):
        return False
    if not reply.strip() or question_share(reply) >= _QUESTION_SHARE:
        return True
    if len(reply) > _SMALL_TALK_CHARS or len(_WORD.findall(reply)) > _MAX_ANSWER_WORDS:
        return False
    return _NO_ANSWER.search(reply) is not None and not _names_anything(reply, user)


@cache
def _uninformative_words() -> tuple[frozenset[str], ...]:
    """Return courtesies and function words of each language, as `surface_words_of` splits them."""
    return tuple(
        frozenset(surface_words_of(" ".join(COURTESIES | words).casefold()))
        for words in STOP_WORDS.values()
    )


def _names_anything(reply: str, user: str) -> bool:
    """Return whether a reply has a number, or a name in a sentence, that the user's text lacks."""
    known = _words(user) | _KNOWN_WORDS
    return any(
        found[0].casefold() not in known
        for found in _WORD.finditer(reply)
        if found[0][0].isdigit()
        or (found[0][0].isupper() and not _SENTENCE_START.search(reply[: found.start()]))
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(surface_words_of(text[:_SMALL_TALK_CHARS].casefold()))


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

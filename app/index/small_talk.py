"""Small talk and non-answers: messages that name nothing to recall, and turns that state nothing.

Small talk is short, and none of its words names a subject: all are function words of one language,
courtesies or words that many messages contain. "Tom" is a function word in Swedish. A non-answer is a turn in which the user only asks,
and the reply asks too, or says in a few words that it does not know, without a number or name that
the question lacks.
"""

import re
from collections.abc import Mapping
from functools import cache

from app.domain.wording import question_share
from app.language.analyzer import surface_words_of
from app.language.word_lists import ALL_STOP_WORDS, STOP_WORDS, read_phrases, word_sets

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
_SAMPLE_CHARS = 1_200
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
    if len(reply) > _SAMPLE_CHARS or len(_WORD.findall(reply)) > _MAX_ANSWER_WORDS:
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
    return frozenset(surface_words_of(text[:_SAMPLE_CHARS].casefold()))

"""Questions that name what they ask for, and nothing to search for: days, or all that is known of the user.

"What did we discuss yesterday?" and "What did I do yesterday?" ask for the conversations of a day, "What do
you know about me?" for all facts. All other words must be function words or words of talking, of one
language: "dog" is a function word in Danish.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from app.domain.text import is_question
from app.index.question import without_answer_format, without_opening
from app.language.date_phrases import Days, asked_days, is_relative
from app.language.date_words import words_beside_dates
from app.language.languages import STOP_WORDS, UNSPACED_STOP_WORDS, read_phrases, word_sets
from app.language.sentences import unspaced_runs

_MOST_CHARS = 300  # a longer message says more
_TALK = word_sets("talk")
_OTHER_PEOPLE = _TALK["other people"]
_PHRASES = read_phrases("phrases")
_ABOUT_USER = _PHRASES["about the user"]
_LEFT_OFF = _PHRASES["where we left off"]
_DONE = _PHRASES["what we did"]
_SO_FAR = _PHRASES["about the conversation"]


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of a language, or characters of those without spaces."""

    talk: frozenset[str]
    asking: frozenset[str]
    beside: frozenset[str]


def days_asked_about(text: str, today: date, before: str = "") -> Days | None:
    """Return the first and last day whose conversations a question asks for, else None.

    A question for the last conversation asks about all days, and so does "Where did we leave off?"
    at the beginning of one. After such a message (`before`) "And last week?" is one too.
    """
    asked = without_answer_format(text.strip())
    if len(asked) > _MOST_CHARS:
        return None
    if not before and (found := _LEFT_OFF.search(asked)) and _names_nothing(_around(asked, found)):
        return date.min, today
    bare = without_opening(asked)
    if not is_question(asked) and bare == asked:
        return None
    words, done = words_beside_dates(bare), _DONE.search(bare)
    if done and _OTHER_PEOPLE.isdisjoint(words) and _names_nothing(_around(bare, done)):
        return asked_days(bare, today)
    follows = bool(before) and _names_nothing(bare) and days_asked_about(before, today) is not None
    return asked_days(bare, today) if follows or _is_about_talk(words) else None


def days_searched_for(words: str, today: date) -> Days | None:
    """Return the days that a search is for: a question about them, or just "yesterday".

    A date that is not relative to today may stand in the text that is wanted.
    """
    if is_relative(words) and not words_beside_dates(words):
        return asked_days(words, today)
    return days_asked_about(words, today)


def asks_about_user(text: str) -> bool:
    """Return whether a question asks for all that is known about the user, and for nothing else."""
    asked = without_answer_format(text.strip())
    if len(asked) > _MOST_CHARS or (found := _ABOUT_USER.search(asked)) is None:
        return False
    return _names_nothing(_SO_FAR.sub(" ", _around(asked, found)))


def _around(text: str, found: re.Match[str]) -> str:
    return f"{text[: found.start()]} {text[found.end() :]}"


def _names_nothing(text: str) -> bool:
    words = words_beside_dates(text)
    return any(_are_among(words, STOP_WORDS[name] | own.beside) for name, own in _languages())


def _is_about_talk(words: Sequence[str]) -> bool:
    """Return whether words ask about talking and name nothing else, all in one language."""
    is_of_others = any(word in _OTHER_PEOPLE for word in words)
    for name, own in _languages():
        about = own.talk if is_of_others else own.talk | own.asking
        if _are_among(words, STOP_WORDS[name] | about | own.beside) and any(
            word in about for word in words
        ):
            return True
    characters = "".join(words)
    own = _words_of("unspaced")
    is_of_others = any(each in characters for each in _OTHER_PEOPLE if unspaced_runs(each))
    about = own.talk if is_of_others else own.talk | own.asking
    return (
        all(map(unspaced_runs, words))
        and any(each in characters for each in about)
        and not _without(characters, UNSPACED_STOP_WORDS | about | own.beside)
    )


def _are_among(words: Sequence[str], known: frozenset[str]) -> bool:
    """Return whether all words are known; of a script without spaces, whether nothing else is left."""
    return all(
        not _without(word, UNSPACED_STOP_WORDS) if unspaced_runs(word) else word in known
        for word in words
    )


def _without(run: str, known: frozenset[str]) -> str:
    """Return what is left of characters without known words, the longest first, and kana endings."""
    longest_first = sorted(known, key=len, reverse=True)
    return re.sub("|".join(["[\u3041-\u309f]", *map(re.escape, longest_first)]), "", run)


def _languages() -> Iterator[tuple[str, _Words]]:
    names = (title.removesuffix(" talk") for title in _TALK if title.endswith(" talk"))
    return ((each, _words_of(each)) for each in names if each != "unspaced")


@cache
def _words_of(language: str) -> _Words:
    return _Words(*(_TALK[f"{language} {kind}"] for kind in ("talk", "asking", "beside")))

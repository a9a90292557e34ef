"""Word lists of resources/language: stop words and function words."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

_FOLDER = Path(__file__).resolve().parents[2] / "resources/language"


def read_words(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the words of each paragraph of a file, by its title; comments are left out."""
    return {title: tuple(words.split()) for title, words in _paragraphs(name)}


def read_phrases(name: str) -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for any line of each paragraph of a file, by its title."""
    return {
        title: re.compile("|".join(lines.strip().splitlines()), re.IGNORECASE)
        for title, lines in _paragraphs(name)
    }


def read_lines(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of each paragraph of a file, by its title."""
    return {title: tuple(lines.strip().splitlines()) for title, lines in _paragraphs(name)}


def _paragraphs(name: str) -> Iterator[tuple[str, str]]:
    for each in (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n\n"):
        if not each.startswith("#"):
            title, _, text = each.partition(":\n")
            yield title, text


def word_sets(name: str) -> Mapping[str, frozenset[str]]:
    """Return `read_words` as sets."""
    return MappingProxyType({title: frozenset(words) for title, words in read_words(name).items()})


# By language: omitted from queries, and used to detect a text's language.
STOP_WORDS = word_sets("stop_words")
ALL_STOP_WORDS: frozenset[str] = frozenset().union(*STOP_WORDS.values())
# Grammatical words of all languages, for finding a text's topic; matched case folded.
FUNCTION_WORDS: frozenset[str] = frozenset().union(*word_sets("function_words").values())
# Languages whose words are found as pairs of characters, and their stop words of 1 or 2 characters.
UNSPACED_LANGUAGES = frozenset({"chinese", "japanese", "korean"})
UNSPACED_STOP_WORDS = frozenset().union(*(STOP_WORDS[each] for each in UNSPACED_LANGUAGES))
# Chinese characters that join words; a pair with one of them has no content.
FUNCTION_CHARACTERS = frozenset(word for word in STOP_WORDS["chinese"] if len(word) == 1)

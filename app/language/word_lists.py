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
# Chinese characters and Japanese kana that join words; a bigram with one of them has no content.
FUNCTION_CHARACTERS = frozenset(
    "的了是在我你他她它们這这那有和就不也都很吗嗎呢吧啊个個与與及或把被让讓对對从從到"
)

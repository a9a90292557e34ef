"""Word lists of resources/language: stop words, function words, and words common in chats."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_FOLDER = Path(__file__).resolve().parents[2] / "resources/language"


def read_words(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the words of each paragraph of a file, by its title; comments are left out."""
    text = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    paragraphs = [each.partition(":\n") for each in text.split("\n\n") if not each.startswith("#")]
    return {title: tuple(words.split()) for title, _, words in paragraphs}


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# By language: omitted from queries, and used to detect a text's language.
STOP_WORDS = MappingProxyType(
    {language: frozenset(words) for language, words in read_words("stop_words").items()}
)
# Grammatical words of all languages, for finding a text's topic; matched case folded.
FUNCTION_WORDS = frozenset().union(*read_words("function_words").values())
# Chinese characters and Japanese kana that join words; a bigram with one of them has no content.
FUNCTION_CHARACTERS = frozenset(
    "的了是在我你他她它们這这那有和就不也都很吗嗎呢吧啊个個与與及或把被让讓对對从從到"
)
COMMON_WORDS = frozenset(read_words("common_words")["english"])

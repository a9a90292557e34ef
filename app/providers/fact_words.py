"""The words that facts by patterns are made of: what was said, what is learned, words that count. Pure."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.facts import FactCategory
from app.providers.extractive_text import words_of
from app.providers.extractive_words import FUNCTION_WORDS

USER = "The user"
MOST_WORDS = 40  # of a statement


@dataclass(frozen=True, slots=True)
class Said:
    """A message: its words, whether the user wrote it, and when (UTC)."""

    text: str
    by_user: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Statement:
    """What was learned from a message.

    `subject` names what may have one value at a time and `value` is that, both in small letters;
    "" where many may be true. `place` is the message's among those given.
    """

    text: str
    category: FactCategory
    subject: str
    value: str
    place: int


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry content, small, in order."""
    return [word for word in words_of(text) if word not in FUNCTION_WORDS and len(word) > 1]


def finished(text: str) -> str:
    """Return a text as a sentence: a capital first, a stop last."""
    text = " ".join(text.split()).rstrip(" ,.!;:-")
    return f"{text[:1].upper()}{text[1:]}."


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list written as text."""
    return frozenset(text.split())

"""Statements, the messages they are found in, and their content words."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.facts import FactCategory
from app.language.sentences import split_words
from app.language.word_lists import FUNCTION_WORDS, word_sets

WORDS = word_sets("english_statements")
USER = "The user"
MOST_WORDS = 40  # of a statement


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """The text of a message, whether the user wrote it, and when (UTC)."""

    text: str
    by_user: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact found in a message.

    Attributes:
        subject: The attribute that has one value at a time, in lower case; "" for none.
        value: Its value, in lower case.
        place: The index of the message among those given.
    """

    text: str
    category: FactCategory
    subject: str
    value: str
    place: int


def content_words(text: str) -> list[str]:
    """Return the content words of a text in lower case, in order."""
    return [word for word in split_words(text) if word not in FUNCTION_WORDS and len(word) > 1]


def as_sentence(text: str) -> str:
    """Return a text with an initial capital and a final period."""
    text = " ".join(text.split()).rstrip(" ,.!;:-")
    return f"{text[:1].upper()}{text[1:]}."

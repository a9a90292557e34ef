"""Titles of conversations from the first words of their messages, without greetings and markup."""

import re
from collections.abc import Iterable, Sequence

from app.domain.text import one_line
from app.language.sentences import split_sentences
from app.language.word_lists import word_sets

TITLE_LIMIT_CHARS = 60
_READ_CHARS = 2_000  # of a message
_MOST_OF_A_GREETING = 3  # words
_WORDS = word_sets("requests")
_COURTESIES = _WORDS["courtesies"] | _WORDS["unspaced courtesies"]
_GREETING = re.compile(r"([^,!.，！。~]{1,30})[,!.，！。~]+\s*")
_FENCES = ("```", "~~~")
_MARKS = "`#>|*=~_ \t"


def first_words(messages: Iterable[str]) -> str:
    """Return the first sentence of a user's messages that is more than a greeting, cut at a word.

    Of messages that only greet, the first one; "" if none has a word.
    """
    greeting = ""
    for text in messages:
        lines = _sentences(text[:_READ_CHARS])
        title = next((found for each in lines if (found := _without_greeting(each))), "")
        if title:
            return one_line(title, TITLE_LIMIT_CHARS).rstrip(".。:：,; ")
        greeting = greeting or one_line(" ".join(lines), TITLE_LIMIT_CHARS)
    return greeting


def _sentences(text: str) -> Sequence[str]:
    """Return the sentences of a Markdown text; of code or a table alone, its first line."""
    if found := [sentence for sentence, _ in split_sentences(text)]:
        return found
    lines = (line.strip(_MARKS) for line in text.splitlines() if not line.startswith(_FENCES))
    return [line for line in lines if any(sign.isalnum() for sign in line)][:1]


def _without_greeting(sentence: str) -> str:
    """Return a sentence without a greeting at its start; "" for a greeting alone."""
    while (found := _GREETING.match(sentence)) and _greets(found[1]):
        sentence = sentence[found.end() :]
        sentence = f"{sentence[:1].upper()}{sentence[1:]}"
    return "" if _greets(sentence.strip(_MARKS + ".!?…")) else sentence.strip()


def _greets(words: str) -> bool:
    """Return whether a few words begin with a courtesy."""
    said = words.casefold().split()
    return len(said) <= _MOST_OF_A_GREETING and bool(said) and said[0] in _COURTESIES

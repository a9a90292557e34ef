"""When two statements are one fact: said again in other words, or with another value. Pure.

Who finds the facts to compare with, and keeps the outcome, is the knowledge extractor.
"""

import re
from collections.abc import Iterable, Sequence

from app.domain.facts import Fact
from app.providers.fact_words import content_words

# Of 1,576 facts learned from the LoCoMo talks, the pairs at 0.90 or more that differ in no number,
# name or negation say the same; below, some are of two things ("applied to", "is researching").
SAME_COSINE = 0.90
LIKE_SHARE = 0.5
_STEM_CHARS = 5
_MARKS = re.compile(r"\d+|\b[A-Z][\w'-]*|\b(?:not|never|no|used to)\b")
_WORDS = re.compile(r"[^\W_]+")
_MOST_CANDIDATES = 8


def likely_same(text: str, known: Iterable[Fact]) -> Sequence[Fact]:
    """Return the few facts whose words are near enough for their meaning to be compared."""
    own = _stems(text)
    rated = [
        (len(own & theirs) / max(1, min(len(own), len(theirs))), fact)
        for fact in known
        if (theirs := _stems(fact.text)) and may_be_same(text, fact.text)
    ]
    near = [(share, fact) for share, fact in rated if share >= LIKE_SHARE]
    near.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [fact for _, fact in near[:_MOST_CANDIDATES]]


def may_be_same(text: str, other: str) -> bool:
    """Return False for texts about two, or that differ in a number, a name or a negation."""
    return text.split()[:1] == other.split()[:1] and _marks(text) == _marks(other)


def says_value(text: str, value: str) -> bool:
    """Return whether a text holds a value (in small letters) as whole words."""
    words = f" {' '.join(_WORDS.findall(text.casefold()))} "
    return f" {' '.join(_WORDS.findall(value.casefold()))} " in words


def repeats(text: str, others: Iterable[str]) -> bool:
    """Return whether a statement only says what one of other texts says already."""
    own = _stems(text)
    return any(len(own & _stems(other)) >= 0.8 * len(own) for other in others) if own else False


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM_CHARS] for word in content_words(text))


def _marks(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _MARKS.findall(text))

"""When two statements are one fact: said again in other words, or with another value. Pure.

Who finds the facts to compare with, and keeps the outcome, is the knowledge extractor.
"""

import re
from collections.abc import Iterable, Sequence

from app.domain.facts import Fact
from app.domain.ids import MessageId
from app.domain.turn_text import content_hash
from app.index.languages import stem
from app.providers.extractive_words import FUNCTION_WORDS
from app.providers.fact_words import content_words

# Of 1,576 facts learned from the LoCoMo talks, the pairs at 0.90 or more that differ in no number,
# name or negation say the same; below, some are of two things ("applied to", "is researching").
SAME_COSINE = 0.90
LIKE_SHARE = 0.5
_STEM_CHARS = 5
_MARKS = re.compile(r"\d+|\b[A-Z][\w'-]*|\b(?:not|never|no|used to)\b")
_WORDS = re.compile(r"[^\W_]+")
_MOST_CANDIDATES = 8
_REPEATED_SHARE = 0.8
_SENTENCE_END = re.compile(r"[.!?]\s+|\n+")
# A name before a colon or a verb in the third person.
_OF_SOMEBODY = re.compile(
    r"([A-Z][\w-]+)(?:'s \w| (?:[A-Z][\w-]+ )?(?:[a-z]+(?:s|ed)|has|is|was|does) |(?: [A-Z][\w-]+)?: )"
)


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


def silenced(message_id: MessageId) -> str:
    """Return the hash that is refused when the user forgets a fact which a message taught.

    Other words for it would get past the refusal of its wording, so nothing new is learned there.
    """
    return content_hash(f"message {message_id}")


def says_value(text: str, value: str) -> bool:
    """Return whether a text holds a value (in small letters) as whole words."""
    words = f" {' '.join(_WORDS.findall(text.casefold()))} "
    return f" {' '.join(_WORDS.findall(value.casefold()))} " in words


def repeats(text: str, others: Iterable[str]) -> bool:
    """Return whether a statement only says what one of other texts says already of the same person.

    Texts may be statements too, or what somebody said: "I live in Rome" is of the user where no name
    stands before it.
    """
    who = _name_in(text)
    own = _told(text, who)
    return bool(own) and any(
        len(own & _told(part, who)) >= _REPEATED_SHARE * len(own)
        for other in others
        for part in (*_SENTENCE_END.split(other), other)
        if _is_of(who, part, other)
    )


def _is_of(who: str, part: str, whole: str) -> bool:
    """Return whether part of a text may be of somebody; "" is the user."""
    if who:
        return who in {word.casefold() for word in _WORDS.findall(part)} or bool(
            re.match(rf"\W*{re.escape(who)}\b[^:\n]{{0,30}}:", whole, re.IGNORECASE)
        )
    return not _name_in(part)


def _name_in(text: str) -> str:
    """Return who a statement is of, small: "tom" of "Tom lives here" and "Tom: I do"; "" for the user."""
    found = _OF_SOMEBODY.match(text.strip())
    return "" if found is None or found[1].casefold() in FUNCTION_WORDS else found[1].casefold()


def _told(text: str, who: str) -> frozenset[str]:
    """Return the stems of what a statement tells, without the one it is of."""
    words = (word.removesuffix("'s") for word in content_words(text))
    return frozenset(stem(word, "english") for word in words if word not in {"user", who})


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM_CHARS] for word in content_words(text))


def _marks(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _MARKS.findall(text))

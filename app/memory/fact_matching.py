"""Fact matching: whether two statements are the same fact. Pure."""

import re
from collections.abc import Iterable, Sequence

from app.domain.facts import Fact
from app.domain.ids import MessageId
from app.domain.turn_text import content_hash
from app.language.sentences import content_terms, unspaced_runs
from app.language.statements.patterns import LANGUAGES, patterns_of
from app.language.word_lists import FUNCTION_WORDS

LIKE_SHARE = 0.5
_WORDS = re.compile(r"[^\W_]+")
_MOST_CANDIDATES = 8
# A name before a colon or a verb in the third person.
_SUBJECT = re.compile(
    r"([A-Z][\w-]+)(?:'s \w| (?:[A-Z][\w-]+ )?(?:[a-z]+(?:s|ed)|has|is|was|does) |(?: [A-Z][\w-]+)?: )"
)


def similar_facts(text: str, known: Iterable[Fact]) -> Sequence[Fact]:
    """Return the few facts that share enough words for their embeddings to be compared."""
    own = frozenset(content_terms(text))
    rated = [
        (len(own & theirs) / max(1, min(len(own), len(theirs))), fact)
        for fact in known
        if (theirs := frozenset(content_terms(fact.text))) and may_be_same(text, fact.text)
    ]
    near = [(share, fact) for share, fact in rated if share >= LIKE_SHARE]
    near.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [fact for _, fact in near[:_MOST_CANDIDATES]]


def may_be_same(text: str, other: str) -> bool:
    """Return False for texts with different subjects, numbers, names or negations."""
    return _subject_of(text) == _subject_of(other) and distinguishing_words(
        text
    ) == distinguishing_words(other)


def blocked_message_hash(message_id: MessageId) -> str:
    """Return the hash that blocks extraction from a message after the user forgot a fact of it.

    Another phrasing would pass the hash of the fact's text, so nothing new is extracted from the
    message.
    """
    return content_hash(f"message {message_id}")


def contains_value(text: str, value: str) -> bool:
    """Return whether a text contains a value (lower case) as whole words, if its script has any."""
    if unspaced_runs(value):
        return value.casefold() in text.casefold()
    words = f" {' '.join(_WORDS.findall(text.casefold()))} "
    return f" {' '.join(_WORDS.findall(value.casefold()))} " in words


def _subject_of(text: str) -> str:
    """Return a statement's subject, lower case: "tom" for "Tom lives here"; "" is the user."""
    found = _SUBJECT.match(text.strip())
    return "" if found is None or found[1].casefold() in FUNCTION_WORDS else found[1].casefold()


def distinguishing_words(text: str) -> frozenset[str]:
    """Return the numbers, the names inside a text and its negations, in any language."""
    words = _WORDS.findall(text)
    named = {word.casefold() for word in words[1:] if word[0].isupper() or word[0].isdecimal()}
    negations = (patterns_of(each).negated.findall(text) for each in LANGUAGES)
    return frozenset(named.difference(FUNCTION_WORDS).union(*negations))

"""Fact matching: whether two statements are the same fact, and whether a text restates one. Pure."""

import re
from collections.abc import Iterable, Sequence

from app.domain.facts import Fact
from app.domain.ids import MessageId
from app.domain.turn_text import content_hash
from app.language.languages import stem
from app.language.sentences import content_terms, content_words, unspaced_runs
from app.language.statements.patterns import LANGUAGES, patterns_of
from app.language.word_lists import FUNCTION_WORDS

# Of 1,576 facts extracted from the LoCoMo chats, the pairs at 0.90 or more that differ in no number,
# name or negation say the same; below, some differ ("applied to", "is researching").
SAME_COSINE = 0.90
LIKE_SHARE = 0.5
_WORDS = re.compile(r"[^\W_]+")
_MOST_CANDIDATES = 8
_REPEATED_SHARE = 0.8
_SENTENCE_END = re.compile(r"[.!?]\s+|\n+")
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
    """Return False for texts about different subjects, or with different numbers, names or negations."""
    return _subject_of(text) == _subject_of(other) and _distinguishing_words(
        text
    ) == _distinguishing_words(other)


def blocked_message_hash(message_id: MessageId) -> str:
    """Return the hash that blocks extraction from a message after the user forgot a fact of it.

    Another phrasing would pass the hash of the fact's text, so nothing new is extracted from the message.
    """
    return content_hash(f"message {message_id}")


def contains_value(text: str, value: str) -> bool:
    """Return whether a text contains a value (lower case) as whole words, if its script has any."""
    if unspaced_runs(value):
        return value.casefold() in text.casefold()
    words = f" {' '.join(_WORDS.findall(text.casefold()))} "
    return f" {' '.join(_WORDS.findall(value.casefold()))} " in words


def restates(text: str, others: Iterable[str]) -> bool:
    """Return whether a statement only repeats what another text says of the same person.

    The others may be statements or messages: "I live in Rome" is about the user unless a name precedes it.
    """
    who = _subject_of(text)
    own = _statement_stems(text, who)
    return bool(own) and any(
        len(own & _statement_stems(part, who)) >= _REPEATED_SHARE * len(own)
        for other in others
        for part in (*_SENTENCE_END.split(other), other)
        if _is_about(who, part, other)
    )


def _is_about(who: str, part: str, whole: str) -> bool:
    """Return whether part of a text may be about somebody; "" is the user."""
    if who:
        return who in {word.casefold() for word in _WORDS.findall(part)} or bool(
            re.match(rf"\W*{re.escape(who)}\b[^:\n]{{0,30}}:", whole, re.IGNORECASE)
        )
    return not _subject_of(part)


def _subject_of(text: str) -> str:
    """Return whom a statement is about, lower case: "tom" in "Tom lives here" and "Tom: I do"; "" is the user."""
    found = _SUBJECT.match(text.strip())
    return "" if found is None or found[1].casefold() in FUNCTION_WORDS else found[1].casefold()


def _statement_stems(text: str, who: str) -> frozenset[str]:
    """Return the stems of a statement without its subject."""
    words = (word.removesuffix("'s") for word in content_words(text))
    return frozenset(stem(word, "english") for word in words if word not in {"user", who})


def _distinguishing_words(text: str) -> frozenset[str]:
    """Return the numbers, the names inside a text and its negations, in any language."""
    words = _WORDS.findall(text)
    named = {word.casefold() for word in words[1:] if word[0].isupper() or word[0].isdecimal()}
    negations = (patterns_of(each).negated.findall(text) for each in LANGUAGES)
    return frozenset(named.difference(FUNCTION_WORDS).union(*negations))

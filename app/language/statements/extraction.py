"""Extraction of facts by patterns: atomic statements of the writers about themselves. English.

There are two kinds of conversation. To a model, people mostly make requests, and only a clear
preference, instruction, event and so on is a fact. In a conversation between two named people, as
imports contain it, everything that they tell about themselves is one.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from app.domain.facts import FactCategory
from app.language.sentences import split_words
from app.language.statements.categories import PREFERENCES, categorize, categorize_possessive
from app.language.statements.clauses import split_clauses, split_speaker
from app.language.statements.dates import resolve_relative_dates
from app.language.statements.grammar import (
    Clause,
    expand_contractions,
    first_person_part,
    parse_clause,
    rephrase_opinion,
    restore_subject,
    third_person,
    third_person_possessive,
)
from app.language.statements.instructions import confirmed_decisions, parse_instruction
from app.language.statements.statement import (
    MOST_WORDS,
    USER,
    WORDS,
    SourceMessage,
    Statement,
    as_sentence,
    content_words,
)
from app.language.statements.subjects import subject_and_value

_MOST_FACTS = 12  # of one message


def extract_statements(
    messages: Sequence[SourceMessage], speakers: Collection[str] = ()
) -> tuple[Statement, ...]:
    """Return the distinct statements in the messages of one turn, in order.

    `speakers` are those of its conversation, as `find_speakers` returns them.
    """
    spoken = [split_speaker(message.text, speakers) for message in messages]
    names = list(dict.fromkeys(name for name, _ in spoken))
    is_talk = bool(names) and "" not in names and len(names) <= 2
    found: dict[str, Statement] = {}
    for place, message in enumerate(messages):
        name, text = spoken[place]
        if is_talk:
            other = next((each for each in names if each != name), "")
            made = _of_message(text, name, other, message.at)
        elif message.by_user:
            made = [] if _is_exercise(text) else _of_message(message.text, USER, "", message.at)
        else:
            made = confirmed_decisions(message, messages[:place])
        for statement in made:
            found.setdefault(statement.text.casefold(), replace(statement, place=place))
    return tuple(found.values())


def _is_exercise(text: str) -> bool:
    """Return whether a message is an exercise: "I had 12 apples and ate 3. How many are left?"."""
    asked = _HOW_MANY.search(text)
    return asked is not None and len(_NUMBER.findall(text[: asked.start()])) > 1


_HOW_MANY = re.compile(r"\bhow (?:many|much|long|far|old)\b[^?]{0,200}\?", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d+")


def _of_message(text: str, who: str, other: str, at: datetime) -> list[Statement]:
    made: list[Statement] = []
    for clause in split_clauses(text):
        for statement in _of_clause(clause, who, other, at):
            made.append(statement)
            if len(made) == _MOST_FACTS:
                return made
    return made


def _of_clause(said: str, who: str, other: str, at: datetime) -> Iterator[Statement]:
    if instruction := parse_instruction(said, who):
        yield instruction
        return
    clause = expand_contractions(said)
    if who != USER:
        clause = restore_subject(rephrase_opinion(clause))
    parsed = parse_clause(clause)
    if parsed is None and who != USER:
        parsed = parse_clause(first_person_part(clause))
    category = None
    ahead: bool | None = " will " in clause
    if parsed is not None:
        category = categorize(parsed, clause, is_talk=who != USER)
        text = third_person(parsed, who, other) if category else None
        is_over = parsed.is_past or "have" in parsed.auxiliaries
        ahead = category is FactCategory.PLAN or (False if is_over else None)
    else:
        category = categorize_possessive(clause, is_talk=who != USER)
        text = third_person_possessive(clause, who, other) if category else None
    if text is None or category is None:
        return
    text = resolve_relative_dates(text, at, ahead=ahead)
    if not _is_meaningful(text, who, other, parsed):
        return
    text = _NOW.sub("", text)
    subject, value = subject_and_value(text, who)
    yield Statement(as_sentence(text), category, subject, value, 0)


def _is_meaningful(text: str, who: str, other: str, parsed: Clause | None) -> bool:
    """Return whether a statement is meaningful without its context."""
    words = text.split()
    if not 3 <= len(words) <= MOST_WORDS or words[-1].lower().strip(",.") in _NO_ENDS:
        return False
    own = {*split_words(who), *split_words(other)}
    content = [
        word
        for word in content_words(_WHEN.sub("", text))
        if word not in own and word not in _EMPTY
    ]
    vague = bool(_VAGUE.search(text))
    if (
        parsed is not None
        and parsed.verb in {*PREFERENCES, "have", "be", "own", "use", "do"}
        and not vague
    ):
        return bool(content)
    if parsed is not None and _WHEN.search(text) and not vague:
        return bool(content)
    return len(set(content)) >= (3 if vague else 2)


_NO_ENDS = WORDS["no ends"]
_EMPTY = WORDS["empty"]
_VAGUE = re.compile(
    r"\b(?:it|there|so|such|he|she|him|her|one|someone|somebody|everyone)\b|\b(?:them|they)$|"
    r"\b(?:this|that|these|those)\b(?=$|,| (?:is|was|will|can|to|and|for|in|with|at|on|so|up|out)\b)",
    re.IGNORECASE,
)
# Present states need no "now".
_NOW = re.compile(
    r"(?<!by)(?<!for)(?<!from)(?<!just)(?<!even)(?<!especially)(?<!until)(?<!till)(?<!up to)(?<!as of)"
    r",? (?:right now|now|these days|nowadays|at the moment)[.!]*$",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:in|on|around) (?:the (?:week|weekend) of )?(?:\d{1,2} )?(?:[A-Z]\w+ )?\d{4}"
)

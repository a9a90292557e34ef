"""Facts by patterns: atomic statements about who speaks, from what was said in a turn. Pure.

English alone: of other languages it says nothing. It knows two kinds of talk. To a model, people
mostly ask for things, and only what is plainly a preference, an instruction, an event and so on is
a fact. In a talk of two named people, as imports bring it, whatever they tell of themselves is.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from app.domain.facts import FactCategory
from app.providers.extractive_text import words_of
from app.providers.fact_dates import with_dates
from app.providers.fact_grammar import (
    Clause,
    as_found,
    part_of,
    plain_english,
    said_of,
    said_of_own,
    taken_apart,
    with_subject,
)
from app.providers.fact_kinds import PREFERENCES, category_of
from app.providers.fact_owned import category_of_own
from app.providers.fact_sentences import clauses_of, speaker_of
from app.providers.fact_subjects import subject_of
from app.providers.fact_wishes import confirmed_in, instruction_in
from app.providers.fact_words import (
    MOST_WORDS,
    USER,
    Said,
    Statement,
    content_words,
    finished,
    word_set,
)

_MOST_FACTS = 12  # of one message


def statements_of(
    messages: Sequence[Said], speakers: Collection[str] = ()
) -> tuple[Statement, ...]:
    """Return what the messages of one turn state, in order, each once.

    `speakers` are those of its conversation, as `speakers_in` finds them.
    """
    spoken = [speaker_of(message.text, speakers) for message in messages]
    names = list(dict.fromkeys(name for name, _ in spoken))
    is_talk = bool(names) and "" not in names and len(names) <= 2
    found: dict[str, Statement] = {}
    for place, message in enumerate(messages):
        name, text = spoken[place]
        if is_talk:
            other = next((each for each in names if each != name), "")
            made = _of_message(text, name, other, message.at)
        elif message.by_user:
            made = [] if _is_sum(text) else _of_message(message.text, USER, "", message.at)
        else:
            made = confirmed_in(message, messages[:place])
        for statement in made:
            found.setdefault(statement.text.casefold(), replace(statement, place=place))
    return tuple(found.values())


def _is_sum(text: str) -> bool:
    """Return whether a message is an exercise: "I had 12 apples and ate 3. How many are left?"."""
    asked = _HOW_MANY.search(text)
    return asked is not None and len(_NUMBER.findall(text[: asked.start()])) > 1


_HOW_MANY = re.compile(r"\bhow (?:many|much|long|far|old)\b[^?]{0,200}\?", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d+")


# -- one message


def _of_message(text: str, who: str, other: str, at: datetime) -> list[Statement]:
    made: list[Statement] = []
    for clause in clauses_of(text):
        for statement in _of_clause(clause, who, other, at):
            made.append(statement)
            if len(made) == _MOST_FACTS:
                return made
    return made


def _of_clause(said: str, who: str, other: str, at: datetime) -> Iterator[Statement]:
    if instruction := instruction_in(said, who):
        yield instruction
        return
    clause = plain_english(said)
    if who != USER:
        clause = with_subject(as_found(clause))
    parsed = taken_apart(clause)
    if parsed is None and who != USER:
        parsed = taken_apart(part_of(clause))
    category = None
    ahead: bool | None = " will " in clause
    if parsed is not None:
        category = category_of(parsed, clause, is_talk=who != USER)
        text = said_of(parsed, who, other) if category else None
        is_over = parsed.is_past or "have" in parsed.auxiliaries
        ahead = category is FactCategory.PLAN or (False if is_over else None)
    else:
        category = category_of_own(clause, is_talk=who != USER)
        text = said_of_own(clause, who, other) if category else None
    if text is None or category is None:
        return
    text = with_dates(text, at, ahead=ahead)
    if not _is_telling(text, who, other, parsed):
        return
    text = _NOW.sub("", text)
    subject, value = subject_of(text, who)
    yield Statement(finished(text), category, subject, value, 0)


def _is_telling(text: str, who: str, other: str, parsed: Clause | None) -> bool:
    """Return whether a statement says something that can be understood by itself."""
    words = text.split()
    if not 3 <= len(words) <= MOST_WORDS or words[-1].lower().strip(",.") in _NO_ENDS:
        return False
    own = {*words_of(who), *words_of(other)}
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


_NO_ENDS = word_set(
    """
    when where the a an to of for with and or but in at by from that which who because is am are
    my their like as than
    """
)
_EMPTY = word_set(
    """
    posted updated younger news hooked thing things stuff way bit lot lots one ones something anything everything nothing kind sort
    much many really pretty super actually also just feel feeling felt going got get went came
    done doing did do been being day week month year recently lately ago today yesterday hope
    glad sure happy excited agree true right yeah amazing awesome great cool nice good fun best
    love loves enjoy
    """
)
_VAGUE = re.compile(
    r"\b(?:it|there|so|such|he|she|him|her|one|someone|somebody|everyone)\b|\b(?:them|they)$|"
    r"\b(?:this|that|these|those)\b(?=$|,| (?:is|was|will|can|to|and|for|in|with|at|on|so|up|out)\b)",
    re.IGNORECASE,
)
# What holds holds now.
_NOW = re.compile(
    r"(?<!by)(?<!for)(?<!from)(?<!just)(?<!even)(?<!especially)(?<!until)(?<!till)(?<!up to)(?<!as of)"
    r",? (?:right now|now|these days|nowadays|at the moment)[.!]*$",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:in|on|around) (?:the (?:week|weekend) of )?(?:\d{1,2} )?(?:[A-Z]\w+ )?\d{4}"
)

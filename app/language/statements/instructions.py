"""Standing instructions of the user, and decisions that the assistant confirms. English."""

import re
from collections.abc import Sequence

from app.domain.facts import FactCategory
from app.language.statements.categories import NEGATED
from app.language.statements.clauses import split_clauses
from app.language.statements.dates import resolve_relative_dates
from app.language.statements.grammar import replace_first_person
from app.language.statements.statement import (
    MOST_WORDS,
    USER,
    SourceMessage,
    Statement,
    as_sentence,
    content_words,
)
from app.language.statements.subjects import subject_and_value

_STANDING = re.compile(
    r"^(?:(?:please|and|also|so|remember to|make sure (?:to|you)|i(?: would|'d)? (?:want|like|need|prefer) (?:you )?to|from now on|in (?:the )?future|"
    r"going forward|whenever possible|by default|for all future \w+)[, ]+)*"
    r"(?:(?P<how>always|never)\b|(?:don't|do not) (?:ever )?(?P<dont>use|add|include|call|explain|apologi[sz]e|write|answer|give|start|mention|make|say|repeat)\b)\s*(?P<what>.+)",
    re.IGNORECASE,
)
_FROM_NOW = re.compile(
    r"\b(?:from now on|going forward|in (?:the )?future|for all future|every time|whenever|in all (?:your|future)|by default)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:please |i want you to |i(?:'d| would) like you to |make sure (?:to |you )|remember to )?"
    r"(?P<what>(?:use|call|answer|respond|reply|write|keep|include|add|address|speak|format|show|give|explain|assume|avoid|provide|mention|be) .+)",
    re.IGNORECASE,
)
_STYLE = re.compile(
    r"^(?:[Pp]lease |[Yy]ou can )?(?P<what>(?:[Cc]all me [A-Z]\w+|(?:[Aa]nswer|[Rr]espond|[Rr]eply|[Ss]peak|[Tt]alk)(?: to me)? (?:only |always )?in [A-Z]\w+|"
    r"[Kk]eep (?:your |all )?(?:answers|responses|replies|explanations) [\w -]+))$",
)
_TRIGGER = re.compile(
    r",?\s*\b(?:from now on|going forward|in (?:the )?future|please)\b,?\s*", re.IGNORECASE
)


def parse_instruction(clause: str, who: str) -> Statement | None:
    """Return a standing instruction as a statement; None for none, and between named people."""
    if who != USER or re.match(
        r"(?:I|we|my|it|they|he|she|that|there)\b(?! (?:want|would like|need|prefer) you)(?!'d like you)",
        clause,
        re.IGNORECASE,
    ):
        return None
    text = " ".join(clause.split())
    if (found := _STANDING.match(text)) is not None:
        never = (found["how"] or "never").lower() == "never"
        verb = f"{found['dont']} " if found["dont"] else ""
        instruction = f"asks {'never' if never else 'always'} to {verb}{found['what']}"
    elif (found := _STYLE.match(text)) is not None or (
        _FROM_NOW.search(text)
        and (found := _REQUEST.match(_TRIGGER.sub(" ", text).strip())) is not None
    ):
        instruction = f"asks to {found['what'][:1].lower()}{found['what'][1:]}"
    else:
        return None
    instruction = re.sub(
        r"\byou(r?)\b",
        lambda m: "the assistant's" if m[1] else "the assistant",
        _TRIGGER.sub(" ", instruction),
    )
    sentence = replace_first_person(instruction, "the assistant")
    if sentence is None or len(sentence.split()) < 4 or len(sentence.split()) > MOST_WORDS:
        return None
    subject, value = subject_and_value(f"{who} {sentence}", who)
    return Statement(as_sentence(f"{who} {sentence}"), FactCategory.INSTRUCTION, subject, value, 0)


_CONFIRMED = re.compile(
    r"^(?:so |then |noted: |got it: )?(?:you(?:'ve| have)? |we(?:'ve| have)? |it's |it is )(?P<how>decided|chosen|agreed|settled)"
    r"(?P<what> (?:to|on|that) .+)",
    re.IGNORECASE,
)


def confirmed_decisions(message: SourceMessage, before: Sequence[SourceMessage]) -> list[Statement]:
    """Return the decisions that the assistant repeats in words of the user."""
    asked = {word for said in before if said.by_user for word in content_words(said.text)}
    made = []
    for clause in split_clauses(message.text):
        found = _CONFIRMED.match(clause)
        if found is None or not set(content_words(found["what"])) or NEGATED.search(clause):
            continue
        if not set(content_words(found["what"])) <= asked:
            continue  # only the user decides
        text = replace_first_person(f"{USER} {found['how'].lower()}{found['what']}", "the user")
        if text is not None:
            text = resolve_relative_dates(text, message.at, ahead=True)
            made.append(
                Statement(
                    as_sentence(text), FactCategory.DECISION, *subject_and_value(text, USER), 0
                )
            )
    return made

"""What the user asks for from now on, and what they decided, as the assistant confirms. Pure; English."""

import re
from collections.abc import Sequence

from app.domain.facts import FactCategory
from app.providers.fact_dates import with_dates
from app.providers.fact_grammar import others_words
from app.providers.fact_owned import NEGATED
from app.providers.fact_sentences import clauses_of
from app.providers.fact_subjects import subject_of
from app.providers.fact_words import MOST_WORDS, USER, Said, Statement, content_words, finished

# -- how to behave

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


def instruction_in(clause: str, who: str) -> Statement | None:
    """Return what is to be done from now on, as what the user asks for; talk of people has none."""
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
        wish = f"asks {'never' if never else 'always'} to {verb}{found['what']}"
    elif (found := _STYLE.match(text)) is not None or (
        _FROM_NOW.search(text)
        and (found := _REQUEST.match(_TRIGGER.sub(" ", text).strip())) is not None
    ):
        wish = f"asks to {found['what'][:1].lower()}{found['what'][1:]}"
    else:
        return None
    wish = re.sub(
        r"\byou(r?)\b",
        lambda m: "the assistant's" if m[1] else "the assistant",
        _TRIGGER.sub(" ", wish),
    )
    sentence = others_words(
        re.sub(r"\b(do|ca|wo)n't\b", lambda m: f"{m[0]}", wish), "the assistant"
    )
    if sentence is None or len(sentence.split()) < 4 or len(sentence.split()) > MOST_WORDS:
        return None
    subject, value = subject_of(f"{who} {sentence}", who)
    return Statement(finished(f"{who} {sentence}"), FactCategory.INSTRUCTION, subject, value, 0)


# -- what the assistant confirms

_CONFIRMED = re.compile(
    r"^(?:so |then |noted: |got it: )?(?:you(?:'ve| have)? |we(?:'ve| have)? |it's |it is )(?P<how>decided|chosen|agreed|settled)"
    r"(?P<what> (?:to|on|that) .+)",
    re.IGNORECASE,
)


def confirmed_in(message: Said, before: Sequence[Said]) -> list[Statement]:
    """Return decisions that the assistant repeats in words the user has used."""
    asked = {word for said in before if said.by_user for word in content_words(said.text)}
    made = []
    for clause in clauses_of(message.text):
        found = _CONFIRMED.match(clause)
        if found is None or not set(content_words(found["what"])) or NEGATED.search(clause):
            continue
        if not set(content_words(found["what"])) <= asked:
            continue  # nobody but the user decides
        text = others_words(f"{USER} {found['how'].lower()}{found['what']}", "the user")
        if text is not None:
            text = with_dates(text, message.at, ahead=True)
            made.append(
                Statement(finished(text), FactCategory.DECISION, *subject_of(text, USER), 0)
            )
    return made

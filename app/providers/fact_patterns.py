"""Facts by patterns: atomic statements about who speaks, from what was said in a turn. Pure.

English alone: of other languages it says nothing. It knows two kinds of talk. To a model, people
mostly ask for things, and only what is plainly a preference, an instruction, an event and so on is
a fact. In a talk of two named people, as imports bring it, whatever they tell of themselves is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.facts import FactCategory
from app.providers.extractive_text import words_of
from app.providers.extractive_words import FUNCTION_WORDS
from app.providers.fact_dates import names_a_day, with_dates
from app.providers.fact_grammar import (
    Clause,
    others_words,
    part_of,
    plain_english,
    said_of,
    said_of_own,
    taken_apart,
    with_subject,
)
from app.providers.fact_sentences import clauses_of, speaker_of
from app.providers.fact_subjects import subject_of

USER = "The user"
_MOST_WORDS = 40
_MOST_FACTS = 12  # of one message


@dataclass(frozen=True, slots=True)
class Said:
    """A message: its words, whether the user wrote it, and when (UTC)."""

    text: str
    by_user: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Statement:
    """What was learned from a message.

    `subject` names what may have one value at a time and `value` is that, both in small letters;
    "" where many may be true. `place` is the message's among those given.
    """

    text: str
    category: FactCategory
    subject: str
    value: str
    place: int


def statements_of(messages: Sequence[Said]) -> tuple[Statement, ...]:
    """Return what the messages of one turn state, in order, each once."""
    spoken = [speaker_of(message.text) for message in messages]
    names = list(dict.fromkeys(name for name, _ in spoken))
    is_talk = bool(names) and "" not in names and len(names) <= 2
    found: dict[str, Statement] = {}
    for place, message in enumerate(messages):
        name, text = spoken[place]
        if is_talk:
            other = next((each for each in names if each != name), "")
            made = _of_message(text, name, other, message.at)
        elif message.by_user:
            made = _of_message(message.text, USER, "", message.at)
        else:
            made = _confirmed(message, messages[:place])
        for statement in made:
            found.setdefault(statement.text.casefold(), replace(statement, place=place))
    return tuple(found.values())


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry content, small, in order."""
    return [word for word in words_of(text) if word not in FUNCTION_WORDS and len(word) > 1]


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
    if instruction := _instruction(said, who):
        yield instruction
        return
    clause = plain_english(said)
    if who != USER:
        clause = with_subject(clause)
    parsed = taken_apart(clause) or taken_apart(part_of(clause))
    category = None
    if parsed is not None:
        category = _category(parsed, clause, is_talk=who != USER)
        text = said_of(parsed, who, other) if category else None
        ahead = category is FactCategory.PLAN
    else:
        category = _category_of_own(clause, is_talk=who != USER)
        text = said_of_own(clause, who, other) if category else None
        ahead = " will " in clause
    if text is None or category is None:
        return
    text = with_dates(text, at, ahead=ahead)
    if not _is_telling(text, who, other, parsed):
        return
    subject, value = subject_of(text, who)
    yield Statement(_finished(text), category, subject, value, 0)


def _finished(text: str) -> str:
    text = " ".join(text.split()).rstrip(" ,.!;:-")
    return f"{text[:1].upper()}{text[1:]}."


def _is_telling(text: str, who: str, other: str, parsed: Clause | None) -> bool:
    """Return whether a statement says something that can be understood by itself."""
    words = text.split()
    if not 3 <= len(words) <= _MOST_WORDS or words[-1].lower().strip(",.") in _NO_ENDS:
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
        and parsed.verb in {*_PREFERENCES, "have", "be", "own", "use", "do"}
        and not vague
    ):
        return bool(content)
    if parsed is not None and _WHEN.search(text) and not vague:
        return bool(content)
    return len(set(content)) >= (3 if vague else 2)


_NO_ENDS = frozenset(
    [
        "when",
        "where",
        "the",
        "a",
        "an",
        "to",
        "of",
        "for",
        "with",
        "and",
        "or",
        "but",
        "in",
        "at",
        "by",
        "from",
        "that",
        "which",
        "who",
        "because",
        "is",
        "am",
        "are",
        "my",
        "their",
        "like",
        "as",
        "than",
    ]
)
_EMPTY = frozenset(
    [
        "thing",
        "things",
        "stuff",
        "way",
        "bit",
        "lot",
        "lots",
        "one",
        "ones",
        "something",
        "anything",
        "everything",
        "nothing",
        "kind",
        "sort",
        "much",
        "many",
        "really",
        "pretty",
        "super",
        "actually",
        "also",
        "just",
        "feel",
        "feeling",
        "felt",
        "going",
        "got",
        "get",
        "went",
        "came",
        "done",
        "doing",
        "did",
        "do",
        "been",
        "being",
        "day",
        "week",
        "month",
        "year",
        "recently",
        "lately",
        "ago",
        "today",
        "yesterday",
        "hope",
        "glad",
        "sure",
        "happy",
        "excited",
        "agree",
        "true",
        "right",
        "yeah",
        "amazing",
        "awesome",
        "great",
        "cool",
        "nice",
        "good",
        "fun",
        "best",
        "love",
        "loves",
        "enjoy",
    ]
)
_VAGUE = re.compile(
    r"\b(?:it|there|so|such|he|she|him|her|one|someone|somebody|everyone)\b|\b(?:them|they)$|"
    r"\b(?:this|that|these|those)\b(?=$|,| (?:is|was|will|can|to|and|for|in|with|at|on|so|up|out)\b)",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:in|on|around) (?:the (?:week|weekend) of )?(?:\d{1,2} )?(?:[A-Z]\w+ )?\d{4}"
)

# -- what is said of "I" and "we"

_PREFERENCES = frozenset(
    ["love", "like", "enjoy", "prefer", "hate", "dislike", "adore", "crave", "cherish"]
)
_DECISIONS = frozenset(["decide", "choose", "settle", "opt", "agree", "pick", "commit", "select"])
_PLANS = frozenset(["plan", "intend", "aim"])
_POSSESSIONS = frozenset(["own", "adopt", "buy", "inherit"])
_LIFE = frozenset(
    [
        "move",
        "marry",
        "graduate",
        "adopt",
        "buy",
        "sell",
        "quit",
        "join",
        "win",
        "lose",
        "celebrate",
        "visit",
        "travel",
        "attend",
        "enroll",
        "register",
        "retire",
        "switch",
        "launch",
        "finish",
        "complete",
        "hire",
        "book",
        "schedule",
        "sign",
        "submit",
        "achieve",
        "start",
        "earn",
        "receive",
        "publish",
        "divorce",
        "relocate",
        "renovate",
        "promote",
        "meet",
        "volunteer",
        "pass",
        "negotiate",
        "reach",
        "raise",
        "inherit",
        "migrate",
        "deploy",
        "break",
    ]
)
# Said to a model, these tell what is wanted now; to a friend, how one listens.
_OF_THE_MOMENT = frozenset(
    [
        "need",
        "want",
        "try",
        "ask",
        "wonder",
        "mean",
        "see",
        "say",
        "guess",
        "suppose",
        "hope",
        "wish",
        "think",
        "understand",
        "appreciate",
        "know",
        "hear",
        "thank",
        "look",
        "get",
        "notice",
        "consider",
        "tell",
        "show",
        "give",
        "put",
        "bet",
        "feel",
        "remember",
        "forget",
        "run",
        "call",
        "add",
    ]
)
_POLITE = frozenset(
    [
        "agree",
        "hear",
        "understand",
        "mean",
        "appreciate",
        "guess",
        "bet",
        "wonder",
        "say",
        "thank",
        "suppose",
        "wish",
        "know",
        "see",
        "admire",
        "hope",
    ]
)
_WORK_WORDS = re.compile(
    r"\b(?:error|bug|exception|code|script|function|query|problem|issue|trouble|question|confus\w+|stuck|not sure|unsure|"
    r"wondering|curious|worried|concerned|struggling|example|answer|explanation|suggestion|sure)\b",
    re.IGNORECASE,
)
_PET_OR_HOME = re.compile(
    r"\b(?:dogs?|cats?|pupp(?:y|ies)|kittens?|pets?|horses?|rabbits?|parrots?|car|bike|bicycle|motorbike|house|apartment|"
    r"flat|garden|boat|cabin|piano|guitar|violin|laptop|macbook|iphone|phone|camera|kids?|child(?:ren)?|sons?|"
    r"daughters?|twins|brothers?|sisters?|siblings?|wife|husband|partner|boyfriend|girlfriend|fianc[eé]e?|degree|"
    r"bachelor\S*|master\S*|ph\.?d|allerg\w+|diabetes|asthma|adhd|meeting|interview|appointment|exam|flight|deadline|wedding|trip)\b",
    re.IGNORECASE,
)
_IS_SOMEBODY = re.compile(
    r"^(?:(?:currently |originally |also )?(?:an?|the) (?!bit\b|little\b|lot\b|fan\b|few\b|huge\b|big\b)[\w-]+|from |based in |allergic|vegan|vegetarian|pescatarian|"
    r"married|single|divorced|engaged|widowed|pregnant|retired|left-handed|colou?r ?blind|lactose|diabetic|"
    r"\d{1,3}(?: years old)?\b|bilingual|fluent in|in my \w+ties|self-employed|unemployed)",
    re.IGNORECASE,
)
_IS_FOND = re.compile(
    r"^(?:really |so )?(?:an?|the) (?:big|huge|massive|die-?hard)?\s*fan of|^(?:really )?(?:into|keen on|fond of|passionate about|obsessed with|interested in)\b",
    re.IGNORECASE,
)
_RELATIVES = (
    r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|mother|mom|mum|father|dad|parents?|sister|brother|"
    r"son|daughter|kids?|children|grand(?:mother|father|ma|pa|parents)|aunt|uncle|cousin|niece|nephew|friend|"
    r"roommate|boss|manager|colleague|mentor|team|dog|cat|puppy|kitten|pet)s?"
)


_POINTS_BACK = re.compile(
    r"(?:it|them|him|her|so|the following)\b|(?:this|that|these|those)(?:$| (?:in|at|on|for|with|to|because|one|way)\b)",
    re.IGNORECASE,
)


def _category(clause: Clause, said: str, *, is_talk: bool) -> FactCategory | None:
    """Return what kind of fact a clause of the first person is, None for no fact."""
    if _POINTS_BACK.match(clause.rest):
        return None
    if clause.negated:
        return _of_negated(clause)
    helping = set(clause.auxiliaries)
    if helping & {"could", "should", "might", "may", "must", "can"}:
        return _able(clause)
    if "would" in helping:
        wish = clause.verb in {"love", "like", "prefer"}
        return FactCategory.PREFERENCE if wish and (is_talk or clause.verb == "prefer") else None
    if not is_talk and (_WORK_WORDS.search(said) and not names_a_day(said)):
        return FactCategory.DECISION if clause.verb == "decide" and clause.is_past else None
    kind = _plain_category(clause, said, is_talk=is_talk)
    if kind is not None or not is_talk:
        return kind
    if clause.verb == "know" and clause.is_past and "have" in clause.auxiliaries:
        return FactCategory.RELATIONSHIP
    if clause.verb == "be" and clause.rest.startswith("off to "):
        return FactCategory.PLAN
    if clause.verb in _POLITE or (clause.verb == "be" and _PRAISE.match(clause.rest)):
        return None
    if clause.is_past:
        return FactCategory.EVENT
    return FactCategory.PLAN if clause.is_ahead else FactCategory.OTHER


_PRAISE = re.compile(
    r"(?:so |really |super |very |always |just )*(?:proud of you|happy (?:for|to hear)|glad|here for|sure|sorry|excited for you|so|not|"
    r"curious|honou?red|all (?:for|ears)|rooting|sending|good|great|fine|okay|well|off|back|impressed|happy you)\b",
    re.IGNORECASE,
)


def _of_negated(clause: Clause) -> FactCategory | None:
    """Return a kind where what is not so says something: what is not liked, never done."""
    never = "never" in clause.tokens
    if (
        clause.verb in {*_PREFERENCES, "eat", "drink", "smoke"}
        and not clause.is_past
        and ({"do", "can"} & set(clause.auxiliaries) or never)
    ):
        return FactCategory.PREFERENCE
    if clause.verb == "stand" and "can" in clause.auxiliaries:
        return FactCategory.PREFERENCE
    if never and "have" in clause.auxiliaries and clause.is_past:
        return FactCategory.OTHER
    return None


def _able(clause: Clause) -> FactCategory | None:
    if "can" in clause.auxiliaries and clause.verb in {"speak", "play"}:
        return FactCategory.IDENTITY
    return None


def _plain_category(clause: Clause, said: str, *, is_talk: bool) -> FactCategory | None:
    verb, rest = clause.verb, clause.rest
    if (
        verb in _PREFERENCES
        and "to see" not in rest
        and "to hear" not in rest
        and "it if" not in rest
    ):
        return FactCategory.PREFERENCE
    if verb == "be" and not clause.is_past:
        return _being(rest)
    if verb == "use" and "will" in clause.auxiliaries:
        return FactCategory.DECISION
    if verb == "get" and clause.form == "got" and _GOT_TO_BE.match(rest):
        return FactCategory.EVENT
    if verb in _DECISIONS and (clause.is_past or (verb == "choose" and clause.form == "choosing")):
        return FactCategory.DECISION
    if (
        verb == "go"
        and rest.startswith("with ")
        and (clause.is_ahead or clause.form in {"went", "going", "go"})
    ):
        return FactCategory.DECISION
    if _is_plan(clause, said):
        return FactCategory.PLAN
    if not clause.is_past and not clause.form.endswith("ing"):
        return _holding(clause, said)
    if verb == "get" and clause.form == "got" and "have" in clause.auxiliaries:
        return FactCategory.POSSESSION if is_talk or _PET_OR_HOME.search(rest) else None
    return _happened(clause, said)


_GOT_TO_BE = re.compile(
    r"(?:promoted|married|engaged|divorced|hired|fired|laid off|accepted|admitted|diagnosed|elected|a (?:\w+ )?(?:job|raise|promotion|offer|scholarship))\b",
    re.IGNORECASE,
)


def _being(rest: str) -> FactCategory | None:
    if _IS_FOND.match(rest):
        return FactCategory.PREFERENCE
    if _IS_SOMEBODY.match(rest) and not re.match(
        r"(?:an?|the) (?:bit|little|lot|one|same|only|kind|way)\b", rest
    ):
        married = rest.lower().startswith(("married", "engaged", "single", "divorced"))
        return FactCategory.RELATIONSHIP if married else FactCategory.IDENTITY
    return None


def _is_plan(clause: Clause, said: str) -> bool:
    if clause.verb in _PLANS and (
        clause.rest.startswith(("to ", "on ", "a ", "the ")) or clause.is_past
    ):
        return True
    if clause.verb == "look" and clause.rest.startswith("forward to "):
        return not re.match(r"forward to (?:hearing|seeing (?:it|you)|it|that)", clause.rest)
    if clause.is_ahead or (clause.form.endswith("ing") and {"am", "are"} & set(clause.auxiliaries)):
        return names_a_day(said) and clause.verb not in {
            *_OF_THE_MOMENT,
            "have",
            "work",
            "struggle",
            "wait",
            "do",
        }
    return False


def _holding(clause: Clause, said: str) -> FactCategory | None:
    """Return the kind of what is so at present."""
    verb, rest = clause.verb, clause.rest
    if verb in {
        "live",
        "work",
        "study",
        "teach",
        "speak",
        "major",
        "specialise",
        "specialize",
    } and re.match(
        r"(?:as|at|for|in|near|with|from|on|out|remotely|full|part|english|german|spanish|french|\w+ and \w+$|both|\w+$)",
        rest,
        re.IGNORECASE,
    ):
        return FactCategory.IDENTITY
    if verb == "have":
        if re.match(r"(?:to|a (?:question|problem|feeling|hard))\b", rest) or _WORK_WORDS.search(
            said
        ):
            return None
        if not _PET_OR_HOME.search(rest):
            return None
        related = re.search(rf"\b{_RELATIVES}\b", rest) and not re.search(
            r"\b(?:dog|cat|pet|pupp|kitten|team)", rest
        )
        return FactCategory.RELATIONSHIP if related else FactCategory.POSSESSION
    if verb == "own":
        return FactCategory.POSSESSION
    if verb in {
        "use",
        "run",
        "drive",
        "play",
        "practice",
        "practise",
        "follow",
        "eat",
        "drink",
        "read",
        "write",
        "watch",
    }:
        habit = re.search(
            r"\b(?:every|usually|always|daily|weekly|mostly|twice|often|on \w+days|times a|for|instead of)\b",
            said,
        )
        return FactCategory.PREFERENCE if habit and not _WORK_WORDS.search(said) else None
    return None


def _happened(clause: Clause, said: str) -> FactCategory | None:
    """Return the kind of what came to pass, where that is worth keeping."""
    if clause.verb in _POSSESSIONS and clause.is_past:
        return FactCategory.POSSESSION
    dated = names_a_day(said)
    lasting = {"been"} & set(clause.auxiliaries) and re.search(
        r"\b(?:for (?:the|about|over|\d|a |\w+ years)|since)\b", said
    )
    if lasting or (clause.is_past and clause.verb in _LIFE):
        return FactCategory.EVENT
    if clause.is_past and dated and clause.verb not in _OF_THE_MOMENT:
        return FactCategory.EVENT
    return None


# -- what is said of "my"

_OWN = re.compile(
    rf"^(?:my|our) (?:(?:current|new|old|older|younger|late|best|eldest|oldest|youngest|\w+-year-old) )?"
    rf"(?:{_RELATIVES}|name|birthday|job|home ?town|hometown|address|pronouns|nickname|favou?rite [\w' -]{{2,40}}?|"
    r"(?:wedding|anniversary|interview|flight|exam|deadline|appointment|budget|goal|dream|native language|mother tongue|"
    r"time ?zone|company|startup|salary|major|degree|hobby|hobbies|allergy|diet|plan|car|house|apartment))"
    r"(?:'s? name)?(?:,? [\w' -]{1,40}?,?)?\s(?:is|are|was|were|works?|lives?|has|have|likes?|loves?|hates?|prefers?|got|gave|"
    r"moved|started|died|passed|turned|turns|named|called|will|graduated|wants?|bought|adopted|plays?|speaks?|studies|helps?|taught)\b",
    re.IGNORECASE,
)
_OWN_PRAISE = re.compile(
    r"\byour?\b|^(?:it|they|he|she|you|there|those|these|their|his|her|let|let's|here|here's|hearing|seeing|"
    r"what|who|all|everything|everyone|some|having|knowing|glad|happy)\b|"
    r"^(?:that|this)(?:'s| is| was| has| really| means?| helps?| made| makes| will| can| one)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not(?! just\b)|never|no)\b|n't\b", re.IGNORECASE)


def _category_of_own(clause: str, *, is_talk: bool) -> FactCategory | None:
    if _NEGATED.search(clause) or re.search(r"\b(?:could|should|might|would|may) ", clause):
        return None
    if _OWN.match(clause):
        if re.match(r"(?:my|our) favou?rite", clause, re.IGNORECASE):
            return FactCategory.PREFERENCE
        if re.match(rf"(?:my|our) (?:\w+ )?{_RELATIVES}\b", clause, re.IGNORECASE):
            return FactCategory.RELATIONSHIP
        if not is_talk and _WORK_WORDS.search(clause):
            return None
        plan = re.match(
            r"(?:my|our) (?:goal|dream|plan|wedding|interview|flight|exam|deadline|appointment)",
            clause,
            re.IGNORECASE,
        )
        return FactCategory.PLAN if plan else FactCategory.IDENTITY
    if is_talk and re.search(r"\b(?:my|our|me|us)\b", clause, re.IGNORECASE):
        own = re.match(r"(?:my|our)\b", clause, re.IGNORECASE)
        if (own or _TELLS.search(clause)) and not _OWN_PRAISE.search(clause):
            return FactCategory.OTHER
    return None


_TELLS = re.compile(
    r"^(?!I\b)[A-Z][\w' -]+ (?:is|are|was|were|has|have|gives?|gave|helps?|helped|makes?|made|keeps?|taught|brings?|means?|lets?|motivates?|inspires?|inspired|\w+s) "
)

# -- how to behave

_STANDING = re.compile(
    r"^(?:(?:please|and|also|so|remember to|make sure (?:to|you)|you should|i(?: would|'d)? (?:want|like|need|prefer) (?:you )?to|from now on|in (?:the )?future|"
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
_TRIGGER = re.compile(r",?\s*\b(?:from now on|going forward|please)\b,?\s*", re.IGNORECASE)


def _instruction(clause: str, who: str) -> Statement | None:
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
    if sentence is None or len(sentence.split()) < 4 or len(sentence.split()) > _MOST_WORDS:
        return None
    subject, value = subject_of(f"{who} {sentence}", who)
    return Statement(_finished(f"{who} {sentence}"), FactCategory.INSTRUCTION, subject, value, 0)


# -- what the assistant confirms

_CONFIRMED = re.compile(
    r"^(?:so |then |noted: |got it: )?(?:you(?:'ve| have)? |we(?:'ve| have)? |it's |it is )(?P<how>decided|chosen|agreed|settled)"
    r"(?P<what> (?:to|on|that) .+)",
    re.IGNORECASE,
)


def _confirmed(message: Said, before: Sequence[Said]) -> list[Statement]:
    """Return decisions that the assistant repeats in words the user has used."""
    asked = {word for said in before if said.by_user for word in content_words(said.text)}
    made = []
    for clause in clauses_of(message.text):
        found = _CONFIRMED.match(clause)
        if found is None or not set(content_words(found["what"])) or _NEGATED.search(clause):
            continue
        if not set(content_words(found["what"])) <= asked:
            continue  # nobody but the user decides
        text = others_words(f"{USER} {found['how'].lower()}{found['what']}", "the user")
        if text is not None:
            text = with_dates(text, message.at, ahead=True)
            made.append(
                Statement(_finished(text), FactCategory.DECISION, *subject_of(text, USER), 0)
            )
    return made[:_MOST_FACTS]

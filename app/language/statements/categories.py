"""Categories of facts: the kind of fact that a clause states, None for no fact. English."""

import re

from app.domain.facts import FactCategory
from app.language.statements.dates import mentions_date
from app.language.statements.grammar import Clause
from app.language.statements.statement import WORDS

PREFERENCES = WORDS["preferences"]
_DECISIONS = WORDS["decisions"]
_PLANS = WORDS["plans"]
_POSSESSIONS = WORDS["possessions"]
_LIFE = WORDS["events"]
# To a model these express a current request, to a friend how one listens.
_MOMENTARY = WORDS["momentary"]
_ONGOING = WORDS["ongoing"]
_POLITE = WORDS["polite"]
_WORK = re.compile(
    r"\b(?:error|bug|exception|(?-i:code)|script|function|query|problem|issue|trouble|question|confus\w+|stuck|not sure|unsure|"
    r"wondering|curious|worried|concerned|struggling|example|answer|explanation|suggestion|sure)\b",
    re.IGNORECASE,
)
_PET_OR_HOME = re.compile(
    r"\b(?:dogs?|cats?|pupp(?:y|ies)|kittens?|pets?|horses?|rabbits?|parrots?|car|bike|bicycle|motorbike|house|apartment|"
    r"flat|garden|boat|cabin|piano|guitar|violin|laptop|macbook|iphone|phone|camera|kids?|child(?:ren)?|sons?|"
    r"daughters?|twins|brothers?|sisters?|siblings?|wife|husband|partner|boyfriend|girlfriend|fianc[eé]e?|degree|"
    r"bachelor\S*|master\S*|ph\.?d|meeting|interview|appointment|exam|flight|deadline|wedding|trip)\b",
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


_AT_HAND = re.compile(
    r"(?:this|that|these|those|the (?:first|second|third|last|idea|approach|option|suggestion|way|plan|example|"
    r"new|other|current|updated|revised))\b",
    re.IGNORECASE,
)


def categorize(clause: Clause, said: str, *, is_talk: bool) -> FactCategory | None:
    """Return the kind of fact that a clause of the first person states, None for no fact."""
    if is_talk and clause.verb == "find" and clause.rest.startswith("it "):
        return FactCategory.OTHER
    if _POINTS_BACK.match(clause.rest) or (not is_talk and _AT_HAND.match(clause.rest)):
        return None
    if clause.negated:
        return _of_negated(clause)
    helping = set(clause.auxiliaries)
    if helping & {"could", "should", "might", "may", "must", "can"}:
        is_able = "can" in helping and clause.verb in {"speak", "play"}
        return FactCategory.IDENTITY if is_able else None
    if "would" in helping:
        wish = clause.verb in {"love", "like", "prefer"}
        return FactCategory.PREFERENCE if wish and (is_talk or clause.verb == "prefer") else None
    if not is_talk and (_WORK.search(said) and not mentions_date(said)):
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
    """Return the kind of a negated fact: something not liked, or never done."""
    never = "never" in clause.tokens
    if (
        clause.verb in {*PREFERENCES, "eat", "drink", "smoke"}
        and not clause.is_past
        and ({"do", "can"} & set(clause.auxiliaries) or never)
    ):
        return FactCategory.PREFERENCE
    if clause.verb == "stand" and "can" in clause.auxiliaries:
        return FactCategory.PREFERENCE
    if never and "have" in clause.auxiliaries and clause.is_past:
        return FactCategory.OTHER
    return None


def _plain_category(clause: Clause, said: str, *, is_talk: bool) -> FactCategory | None:
    verb, rest = clause.verb, clause.rest
    if (
        verb in PREFERENCES
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
    if verb in {"learn", "study", "train"} and clause.form.endswith("ing") and not clause.is_past:
        return FactCategory.OTHER
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
    if clause.form == "getting" and _GOT_TO_BE.match(clause.rest):
        return True
    if clause.is_ahead or (clause.form.endswith("ing") and {"am", "are"} & set(clause.auxiliaries)):
        return mentions_date(said) and clause.verb not in _MOMENTARY | _ONGOING
    return False


_ILLNESS = re.compile(
    r"\b(?:allerg\w+|diabetes|asthma|adhd|epilepsy|migraines?|dyslexia)\b", re.IGNORECASE
)


_CALLINGS = WORDS["callings"]
_CALLED = re.compile(
    r"(?:as|at|for|in|near|with|from|on|out|remotely|full|part|english|german|spanish|french|\w+ and \w+$|both|\w+$)",
    re.IGNORECASE,
)
_HABITS = WORDS["habits"]
_OFTEN = re.compile(
    r"\b(?:every|usually|always|daily|weekly|mostly|twice|often|on \w+days|times a|for|instead of)\b"
)
_NOT_HAD = re.compile(r"(?:to|a (?:question|problem|feeling|hard))\b")
_RELATED = re.compile(rf"\b{_RELATIVES}\b")
_KEPT = re.compile(r"\b(?:dog|cat|pet|pupp|kitten|team)")


def _holding(clause: Clause, said: str) -> FactCategory | None:
    """Return the kind of a present state."""
    verb, rest = clause.verb, clause.rest
    if verb in _CALLINGS and _CALLED.match(rest):
        return FactCategory.IDENTITY
    if verb == "have":
        return _having(rest, said)
    if verb == "own" or (verb == "drive" and re.match(r"an? ", rest)):
        return FactCategory.POSSESSION
    if verb == "avoid":
        return FactCategory.PREFERENCE
    if verb in _HABITS and _OFTEN.search(said) and not _WORK.search(said):
        return FactCategory.PREFERENCE
    return None


def _having(rest: str, said: str) -> FactCategory | None:
    if _NOT_HAD.match(rest) or _WORK.search(said):
        return None
    if _ILLNESS.search(rest):
        return FactCategory.IDENTITY
    if not _PET_OR_HOME.search(rest):
        return None
    is_relative = _RELATED.search(rest) and not _KEPT.search(rest)
    return FactCategory.RELATIONSHIP if is_relative else FactCategory.POSSESSION


def _happened(clause: Clause, said: str) -> FactCategory | None:
    """Return the kind of a past event, None for one that is not worth keeping."""
    if clause.verb in _POSSESSIONS and clause.is_past:
        return FactCategory.POSSESSION
    dated = mentions_date(said)
    lasting = (
        "have" in clause.auxiliaries
        and clause.verb not in _MOMENTARY
        and re.search(r"\b(?:for (?:the|about|over|\d|a |\w+ years)|since)\b", said)
    )
    if lasting or (clause.is_past and clause.verb in _LIFE):
        return FactCategory.EVENT
    if clause.is_past and dated and clause.verb not in _MOMENTARY:
        return FactCategory.EVENT
    return None


_OWN = re.compile(
    rf"^(?:my|our) (?:(?:current|new|old|older|younger|late|best|eldest|oldest|youngest|\w+-year-old) )?"
    rf"(?:{_RELATIVES}|name|birthday|job|home ?town|hometown|address|pronouns|nickname|favou?rite [\w' -]{{2,40}}?|"
    r"(?:wedding|anniversary|interview|flight|exam|deadline|appointment|budget|goal|dream|native language|mother tongue|"
    r"time ?zone|company|startup|salary|major|degree|hobby|hobbies|allergy|diet|plan|car|house|apartment))"
    r"(?:'s? name)?(?:,? [\w' -]{1,40}?,?)?\s(?:is|are|was|were|works?|lives?|starts?|goes|attends?|has|have|likes?|loves?|hates?|prefers?|got|gave|"
    r"moved|started|died|passed|turned|turns|named|called|will|graduated|wants?|bought|adopted|plays?|speaks?|studies|helps?|taught)\b",
    re.IGNORECASE,
)
_OWN_PRAISE = re.compile(
    r"\byour?\b|^(?:it|they|he|she|you|there|those|these|their|his|her|let|let's|here|here's|hearing|seeing|"
    r"what|who|all|everything|everyone|some|having|knowing|glad|happy)\b|"
    r"^(?:that|this)(?:'s| is| was| has| really| means?| helps?| made| makes| will| can| one)\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r" (?:is|are|was|were) (?:so |very |really |a bit )?(?:angry|mad|upset|sick|ill|late|busy|tired|waiting|here|coming|asking|saying|"
    r"right|wrong|fine|ok|okay|not)\b",
    re.IGNORECASE,
)
NEGATED = re.compile(r"\b(?:not(?! just\b)|never|no)\b|n't\b", re.IGNORECASE)
_TELLS = re.compile(
    r"^(?!I\b)[A-Z][\w' -]+ (?:is|are|was|were|has|have|gives?|gave|helps?|helped|makes?|made|keeps?|taught|brings?|means?|lets?|motivates?|inspires?|inspired|\w+s) "
)


def categorize_possessive(clause: str, *, is_talk: bool) -> FactCategory | None:
    """Return the kind of fact, None for no fact; between named people more clauses count."""
    if NEGATED.search(clause) or re.search(r"\b(?:could|should|might|would|may) ", clause):
        return None
    if _OWN.match(clause):
        if not is_talk and _PASSING.search(clause):
            return None
        if re.match(r"(?:my|our) favou?rite", clause, re.IGNORECASE):
            return FactCategory.PREFERENCE
        if re.match(rf"(?:my|our) (?:\w+ )?{_RELATIVES}\b", clause, re.IGNORECASE):
            return FactCategory.RELATIONSHIP
        if not is_talk and _WORK.search(clause):
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

"""What kind of fact a clause about something of the speaker's is: "My dog is old". Pure; English."""

import re

from app.domain.facts import FactCategory
from app.providers.fact_kinds import RELATIVES, WORK_WORDS

_OWN = re.compile(
    rf"^(?:my|our) (?:(?:current|new|old|older|younger|late|best|eldest|oldest|youngest|\w+-year-old) )?"
    rf"(?:{RELATIVES}|name|birthday|job|home ?town|hometown|address|pronouns|nickname|favou?rite [\w' -]{{2,40}}?|"
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


def category_of_own(clause: str, *, is_talk: bool) -> FactCategory | None:
    """Return what kind of fact it is, None for no fact; in a talk of named people more counts."""
    if NEGATED.search(clause) or re.search(r"\b(?:could|should|might|would|may) ", clause):
        return None
    if _OWN.match(clause):
        if not is_talk and _PASSING.search(clause):
            return None
        if re.match(r"(?:my|our) favou?rite", clause, re.IGNORECASE):
            return FactCategory.PREFERENCE
        if re.match(rf"(?:my|our) (?:\w+ )?{RELATIVES}\b", clause, re.IGNORECASE):
            return FactCategory.RELATIONSHIP
        if not is_talk and WORK_WORDS.search(clause):
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

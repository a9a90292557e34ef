"""Grammar of first-person clauses: "I love my dog" becomes "Ann loves their dog". English.

A clause is parsed up to its verb; one that is no plain statement of the first person is not parsed.
"""

import re
from dataclasses import dataclass

from app.language.statements.statement import WORDS
from app.language.statements.verbs import (
    BASES,
    gerund_base,
    participle_base,
    past_base,
    third_form,
)

_CONTRACTIONS = (
    (re.compile(r"^[Ll]et'?s (?=(?:go with|use|stick with|pick|choose|switch to) )"), "I decided to "),
    (re.compile(r"\b([Ii]|we|We)'?m\b|\bIm\b"), "I am"),
    (re.compile(r"\b[Ii]'?ve\b"), "I have"),
    (re.compile(r"\b([Ww]e)'ve\b"), r"\1 have"),
    (re.compile(r"\b([Ww]e)'re\b"), r"\1 are"),
    (re.compile(r"\b([Ii]|[Ww]e|[Yy]ou|[Tt]hey)'ll\b"), r"\1 will"),
    (re.compile(r"\b([Ii]|[Ww]e)'d (?=(?:really |also |still |definitely )*(?:love|like|rather|prefer|say|be)\b)"),
     r"\1 would "),
    (re.compile(r"\b([Ii]|[Ww]e)'d\b"), r"\1 had"),
    (re.compile(r"\b[Cc]an'?t\b|\b[Cc]annot\b"), "can not"),
    (re.compile(r"\b[Ww]on't\b"), "will not"),
    (re.compile(r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should)n't\b"), r"\1 not"),
    (re.compile(r"\b[Gg]onna\b"), "going to"),
    (re.compile(r"\b[Ww]anna\b"), "want to"),
    (re.compile(r"\b[Gg]otta\b"), "got to"),
    (re.compile(r"\b(?:kinda|sorta|kind of|sort of|like,|you know,|I mean,)\s+"), ""),
    (re.compile(r"(?<!\w)'?(?:cause|cuz|cos)\b"), "because"),
    (re.compile(r"\bw/(?=\s)"), "with"),
    (re.compile(r"\s&\s"), " and "),
    (re.compile(r"(?<=\w\w)in'(?!\w)"), "ing"),
    (re.compile(r"(?<![\w'])i(?![\w'.])"), "I"),
)  # fmt: skip
_ADJUNCT = (
    r"(?:after|before|during|since|as|when|while|at|in|on|for|with|by|because|once|until|throughout|back in|growing up|"
    r"{time})"
)
_TIME = (
    r"lately|recently|today|yesterday|tonight|tomorrow|right now|these days|currently|one day|some days|"
    r"(?:this|last|next|every) \w+|(?:a|an|a few|a couple(?: of)?|one|two|three|four|five|six|\d+) \w+ ago|"
    r"(?:in|on) (?:[A-Z]\w+ )?\d{1,4}(?:st|nd|rd|th)?"
)
LEADING = re.compile(rf"^{_ADJUNCT.format(time=_TIME)}\b[^,]{{0,80}}$", re.IGNORECASE)
_LEADING = re.compile(
    rf"^({_ADJUNCT.format(time=_TIME)}\b[^,]{{0,80}}?),\s+(?=(?:I|we|my)\b(?!,))|^({_TIME}) (?=(?:I|we|my)\b)",
    re.IGNORECASE,
)

_ADVERBS = WORDS["adverbs"]
_AUXILIARIES = WORDS["auxiliaries"]
_FINITE = {"am": "is", "are": "is", "was": "was", "were": "was", "have": "has", "do": "does"}
_THIRD_PERSON = {
    "i": "they", "me": "them", "my": "their", "mine": "theirs", "myself": "themselves", "we": "they",
    "us": "them", "our": "their", "ours": "theirs", "ourselves": "themselves", "i'm": "they are",
    "i've": "they have", "i'll": "they will", "i'd": "they had",
}  # fmt: skip
_YOU = re.compile(r"\b(?:you|your|yours|yourself|u|ya|ur|you're|you've|you'll)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z']+")
_DROPPED_PAST = WORDS["dropped past"]
_DROPPED_SUBJECT = re.compile(
    r"(?:just |recently |finally |also |still |already |been |busy )*([A-Za-z]+)", re.IGNORECASE
)
_PREDICATES = re.compile(
    r"\b(?:is|are|was|were|has|helps?|makes?|made|gives?|gave|brings?|seems?|looks?|feels?|sounds?|can|keeps?|really|"
    r"reminds?|means|requires?|takes?|sure|truly)\b"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A parsed statement of the first person.

    Attributes:
        verb: The base of the main verb, "be" where there is none.
        form: The verb as written, in lower case.
        auxiliaries: The words before the verb that determine its tense, in lower case.
        rest: The text after the verb.
        is_past: Whether it is about the past.
        tokens: All words except the subject; what preceded the subject comes last.
    """

    verb: str
    form: str
    auxiliaries: tuple[str, ...]
    rest: str
    negated: bool
    is_past: bool
    tokens: tuple[str, ...]

    @property
    def is_ahead(self) -> bool:
        """Whether it is about the future."""
        return "will" in self.auxiliaries or (self.form == "going" and self.rest.startswith("to "))


def expand_contractions(clause: str) -> str:
    """Return a clause with its contractions expanded, and with the text before "I" at the end."""
    for pattern, words in _CONTRACTIONS:
        clause = pattern.sub(words, clause)
    if (found := _LEADING.match(clause)) is not None:
        lead = found[1] or found[2]
        clause = f"{clause[found.end() :]} {lead[0].lower()}{lead[1:]}"
    return " ".join(clause.split())


def restore_subject(clause: str) -> str:
    """Return a clause with the omitted "I" restored, as in "Got a puppy"."""
    found = _DROPPED_SUBJECT.match(clause)
    if found is None or (words := clause.lower().split())[0] in {"i", "we", "my", "our"}:
        return clause
    word = found[1].lower()
    lower = clause[0].lower() + clause[1:]
    if word in {"going", "planning", "hoping", "looking", "trying", "working", "thinking"} or (
        gerund_base(word) and not _PREDICATES.search(clause) and word not in _NO_STATEMENTS
    ):
        been = bool({"been", "busy"} & set(words[:3]))
        return f"I have {lower}" if been else f"I am {lower}"
    if word in _DROPPED_PAST and len(clause.split()) > 2:
        return f"I {lower}"
    return clause


_FOUND = re.compile(
    r"^(?:[Ii]t|[Tt]hat)(?P<tense>'s been| has been|'s| is| was) "
    r"(?P<how>(?:so |really |super |pretty |truly |always )*(?!(?:been|about|like|not|just|my|on|in|going|getting|a|the|so|"
    r"really|super|pretty|truly|always|very|too|quite|also|got|all|what|how|why|never|time)\b)[a-z]+)"
    r" (?P<what>(?:to|[a-z]{2,}ing) .+)$"
)


def rephrase_opinion(clause: str) -> str:
    """Return "I find it great to be out" for "It's great to be out"; any other clause unchanged."""
    if (found := _FOUND.match(clause)) is None or _YOU.search(clause):
        return clause  # an opinion about the other person is a compliment
    verb = "found" if found["tense"] == " was" else "find"
    return f"I {verb} it {found['how']} {found['what']}"


def first_person_part(clause: str) -> str:
    """Return the part of a longer clause in the first person: "... since I moved here"."""
    found = _SUBORDINATE.search(clause)
    return clause[found.start(1) :] if found else ""


_SUBORDINATE = re.compile(r"\b(?:since|when|after|because|while|about how|how) ((?:I|we) .+)$")
_NO_STATEMENTS = WORDS["no statements"]


def parse_clause(clause: str) -> Clause | None:
    """Return a parsed clause that begins with "I" or "we", None for no plain statement."""
    words = clause.split()
    if len(words) < 2 or words[0].lower() not in {"i", "we"}:
        return None
    auxiliaries: list[str] = []
    negated = False
    for place, word in enumerate(words[1:], 1):
        bare = word.lower().strip(",")
        if bare in {"not", "never", "hardly", "barely"} or bare == "no":
            negated = True
        elif bare in _ADVERBS or (
            bare.endswith("ly") and bare not in {"rely", "apply", "reply", "fly"}
        ):
            continue
        elif (bare in _AUXILIARIES and not (auxiliaries and bare in {"do", "had", "have"})) or (
            bare in {"been", "be"} and auxiliaries
        ):
            auxiliaries.append(bare)
        else:
            return _with_verb(words, place, auxiliaries, negated)
    return None


def _with_verb(
    words: list[str], place: int, auxiliaries: list[str], negated: bool
) -> Clause | None:
    form = words[place].lower().strip(",.")
    rest = " ".join(words[place + 1 :])
    last = auxiliaries[-1] if auxiliaries else ""
    base: str | None
    is_past = last in {"was", "were"} or "had" in auxiliaries
    if last in {"have", "had"}:
        base = participle_base(form)
        is_past = base is not None or is_past
        if base is None:  # "have" is the main verb
            base, form, rest = "have", last, " ".join(words[place:])
            auxiliaries = auxiliaries[:-1]
            is_past = last == "had"
    elif last in {"am", "are", "was", "were", "been", "be"}:
        base = gerund_base(form)
        if base is None:
            base, form, rest = "be", last, " ".join(words[place:])
            is_past = is_past or last == "been"
    elif last:
        base = form if form in BASES else None
        is_past = last == "did"
    else:
        base = past_base(form)
        is_past = base is not None
        base = base or (form if form in BASES else None)
    if base is None:
        return None
    return Clause(base, form, tuple(auxiliaries), rest, negated, is_past, tuple(words[1:]))


def third_person(clause: Clause, who: str, other: str = "") -> str | None:
    """Return a clause as a sentence about `who`; None if it addresses somebody.

    `other` is the name of the person addressed as "you", if known.
    """
    words = [
        word for word in clause.tokens if word not in {"both", "all"} or word != clause.tokens[0]
    ]
    changed = False
    for place, word in enumerate(words):
        bare = word.lower().strip(",")
        if not changed and bare in _AUXILIARIES:
            words[place] = _FINITE.get(bare, bare)
            changed = True
        elif not changed and bare.strip(",.") == clause.form:
            past = past_base(clause.form) is not None and clause.is_past
            words[place] = word if past else third_form(clause.verb)
            changed = True
    sentence = replace_first_person(" ".join(words), other)
    return None if sentence is None else f"{who} {_with_agreement(clause, sentence)}"


def third_person_possessive(clause: str, who: str, other: str = "") -> str | None:
    """Return a clause about the speaker's possession ("My dog is old") as one about `who`'s."""
    owner = f"{who}'" if who.endswith("s") else f"{who}'s"
    sentence = re.sub(r"^(?:my|our)\b", owner, clause, count=1, flags=re.IGNORECASE)
    if sentence == clause:
        found = re.search(r"\b(?:my|our|me|us)\b", clause)
        if found is None:
            return None
        named = owner if found[0] in {"my", "our"} else who
        sentence = f"{clause[: found.start()]}{named}{clause[found.end() :]}"
        sentence = sentence[:1].upper() + sentence[1:]
    return replace_first_person(sentence, other)


def replace_first_person(sentence: str, other: str) -> str | None:
    """Return a sentence in the third person; None if it addresses an unknown "you"."""
    if _YOU.search(sentence):
        if not other:
            return None
        sentence = re.sub(r"\b(?:your|ur|yours)\b", f"{other}'s", sentence, flags=re.IGNORECASE)
        sentence = re.sub(r"\byou're\b", f"{other} is", sentence, flags=re.IGNORECASE)
        sentence = _YOU.sub(other, sentence)
    changed = _WORD.sub(lambda word: _THIRD_PERSON.get(word[0].lower(), word[0]), sentence)
    return re.sub(r"\bthey am\b", "they are", changed)


def _with_agreement(clause: Clause, sentence: str) -> str:
    """Return a sentence whose second verb agrees too: "runs and swims"."""
    if clause.is_past or set(clause.auxiliaries) - {"am", "are"}:
        return sentence

    def agreed(found: re.Match[str]) -> str:
        word = found[2]
        return f"{found[1]}{third_form(word)}" if word in BASES and word not in _NOUNS else found[0]

    return re.sub(
        r"(\b(?:and|or|but) )([a-z]+)\b(?= (?:the|a|an|to|my|their|in|at|with|on|for|it)\b)",
        agreed,
        sentence,
    )


_NOUNS = WORDS["nouns"]

"""Facts by patterns: explicit statements of users about themselves, in their own words.

A message is reduced to what its writer asserts: quotations, code, pasted texts, letters, role play
and what follows a supposition are left out. A fact is a clause that begins with a pattern of its
language and neither asks, doubts nor denies. Precision comes first: whatever is unclear gives no
fact.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

from app.domain.records.facts import FactCategory
from app.language.languages import languages_in
from app.language.sentences import split_sentences
from app.language.statements.patterns import (
    DATED,
    LANGUAGES,
    LATIN,
    UNSPACED,
    Patterns,
    corrected_kind,
    end_of_date,
    patterns_of,
    slots_of,
)

_MOST_CHARS = 20_000
_MOST_OF_A_SENTENCE_CHARS = 400
_MOST_OF_A_PARAGRAPH_CHARS = 800  # longer ones are pasted
_MOST_FACTS = 12  # of one message
_DATE_WITHIN_CHARS = 80  # of the start of a plan
_MOST_OF_AN_ITEM = 2  # words

# The kinds of facts, most specific first, and whether each has one value at a time.
_SLOTS = MappingProxyType(
    {
        "remember": (FactCategory.OTHER, False),
        "language of answers": (FactCategory.INSTRUCTION, True),
        "instruction": (FactCategory.INSTRUCTION, False),
        "decision": (FactCategory.DECISION, False),
        "plan": (FactCategory.PLAN, False),
        "name": (FactCategory.IDENTITY, True),
        "form of address": (FactCategory.IDENTITY, True),
        "pronouns": (FactCategory.IDENTITY, True),
        "age": (FactCategory.IDENTITY, True),
        "birthday": (FactCategory.IDENTITY, True),
        "home": (FactCategory.IDENTITY, True),
        "origin": (FactCategory.IDENTITY, True),
        "employer": (FactCategory.IDENTITY, True),
        "job": (FactCategory.IDENTITY, True),
        "marital status": (FactCategory.RELATIONSHIP, True),
        "partner": (FactCategory.RELATIONSHIP, True),
        "family": (FactCategory.RELATIONSHIP, False),
        "pet": (FactCategory.POSSESSION, False),
        "diet": (FactCategory.IDENTITY, True),
        "diet item": (FactCategory.IDENTITY, False),
        "allergy": (FactCategory.IDENTITY, False),
        "native language": (FactCategory.IDENTITY, True),
        "languages": (FactCategory.IDENTITY, False),
        "tool": (FactCategory.PREFERENCE, False),
        "favourite": (FactCategory.PREFERENCE, True),
    }
)
_OF_OTHERS = frozenset({"family", "partner", "pet"})  # a clause without a subject is about them
_BARE = frozenset({"name", "origin", "diet item"})  # only a list follows the value in its clause
# To the sentence's end.
_WHOLE = frozenset({"remember", "language of answers", "instruction", "decision"})

_ARTICLES = frozenset(
    [
        "a", "an", "the", "le", "la", "les", "el", "los", "las", "il", "lo", "i", "gli", "o", "os",
        "as", "der", "die", "das",
    ]
)  # fmt: skip
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(
    r"“[^”]{0,2000}(?:”|\Z)|„[^“”]{0,2000}(?:[“”]|\Z)|«[^»]{0,2000}(?:»|\Z)|»[^«]{0,2000}«"
    r"|[「『][^」』]{0,2000}(?:[」』]|\Z)|\"[^\"]{0,2000}(?:\"|\Z)|(?<!\w)'[^'\n]{12,300}'(?!\w)|`[^`\n]*`"
)
_SHORT_QUOTE_CHARS = 16  # a name or a word that is spoken of
_SHORT_UNSPACED_QUOTE_CHARS = 6
_ASIDE = re.compile(r"\([^()]{0,300}\)|（[^（）]{0,300}）|\[[^\[\]]{0,300}\]|[*_~]{1,3}")
_OMITTED = "\ufffc"
_PARAGRAPH = re.compile(r"\n\s*\n")
_COLON_END = re.compile(r"[:：]\s*$")
_COLON = re.compile(r":\s+|：\s*")
_RECORD = re.compile(r"^[\w .-]{1,30}: \S.*\n[\w .-]{1,30}: \S", re.MULTILINE)
_IN_A_LIST = re.compile(
    r"\W*(?:$|[,;、]|\b(?:and|or|nor|und|oder|noch|et|ou|ni|y|o|e|ed|né|nem|и|или|ни)\b)",
    re.IGNORECASE,
)
_QUESTION = tuple("?？؟﹖")
_ASKING_END = tuple("か吗嗎呢么麼")  # of a sentence in a language without spaces
_UNSPACED = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_CLOSING = " .!…。！~"


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact found in a message, in the writer's words, or the end of one.

    Attributes:
        text: "" says that the attribute no longer has the value.
        subject: The attribute that has one value at a time ("user: home"); "" for none.
        value: Its value, in lower case.
    """

    text: str
    category: FactCategory
    subject: str
    value: str


def extract_statements(text: str, earlier: Sequence[str] = ()) -> tuple[Statement, ...]:
    """Return the distinct statements of a user's message, in order.

    `earlier` are the beginnings of the messages before it in its conversation: a role play that
    began there goes on. Of an attribute with one value the last one counts.
    """
    fictions = [patterns_of(each).role_play for each in LANGUAGES]
    texts = (*earlier, text[:_MOST_CHARS])
    if any(fiction.search(each) for each in texts for fiction in fictions):
        return ()
    found: dict[str, Statement] = {}
    for sentence in _asserted(text[:_MOST_CHARS]):
        for made in _of_sentence(sentence, _languages(sentence, text)):
            found.pop(made.subject or made.text.casefold(), None)
            found[made.subject or made.text.casefold()] = made
    return tuple(found.values())[:_MOST_FACTS]


def without_quoted_lines(text: str) -> str:
    """Return a text without the lines that it quotes; code stays as it is."""
    ends = [(0, 0), *(each.span() for each in _FENCED.finditer(text)), (len(text), len(text))]
    return "".join(
        text[start:end] + _QUOTED_LINE.sub("", text[end:following])
        for (start, end), (following, _) in pairwise(ends)
    )


def is_correction(text: str, said: str, reply: str) -> bool:
    """Return whether a message only corrects what the user `said` in the one before.

    It asks nothing, and answers no question of the `reply` between them.
    """
    if not set(_QUESTION).isdisjoint(text + reply):
        return False
    kinds = (corrected_kind(each, text.strip()) for each in _languages(text, text))
    return any(kind is not None and kind.search(said) for kind in kinds)


def _asserted(text: str) -> Iterator[str]:
    """Yield the sentences that the writer asserts, without quotations and pasted text."""
    known = [patterns_of(each) for each in LANGUAGES]
    text = _FENCED.sub("\n", without_quoted_lines(text)).replace("’", "'").replace("\u00a0", " ")
    if any(each.texts.search(text) or each.closings.search(text) for each in known):
        return
    text = _ASIDE.sub(" ", _QUOTED.sub(_without_quotation, text))
    for paragraph in _PARAGRAPH.split(text):
        if len(paragraph) > _MOST_OF_A_PARAGRAPH_CHARS or _RECORD.search(paragraph):
            continue
        for sentence, _ in split_sentences(paragraph):
            if any(each.supposed.search(sentence) for each in known):
                return
            colon = _COLON.search(sentence) or _COLON_END.search(sentence)
            head = sentence if colon is None else sentence[: colon.start()]
            if colon and not any(each.introductions.match(head) for each in known):
                if colon.end() == len(sentence):
                    return  # what follows is pasted
                continue
            if _OMITTED not in sentence and len(sentence) <= _MOST_OF_A_SENTENCE_CHARS:
                yield sentence


def _without_quotation(match: re.Match[str]) -> str:
    inside = match[0][1:-1].strip()
    most = _SHORT_UNSPACED_QUOTE_CHARS if _UNSPACED.search(inside) else _SHORT_QUOTE_CHARS
    is_name = len(match[0]) <= most and inside.count(" ") <= 1
    return inside if is_name else _OMITTED


def _languages(sentence: str, text: str) -> Sequence[str]:
    if any("\u3040" <= sign <= "\u30ff" for sign in sentence):
        return ("japanese",)
    if any("\u4e00" <= sign <= "\u9fff" for sign in sentence):
        return ("chinese",)
    if any("\u0400" <= sign <= "\u04ff" for sign in sentence):
        return ("russian",)
    likely = languages_in(sentence) or languages_in(text)
    return list(dict.fromkeys((*(each for each in likely if each in LATIN), *LATIN)))


def _of_sentence(sentence: str, languages: Sequence[str]) -> Sequence[Statement]:
    for language in languages:
        if made := list(_statements(sentence, patterns_of(language))):
            return made
    return ()


def _statements(sentence: str, known: Patterns) -> Iterator[Statement]:
    said = sentence.rstrip(_CLOSING + "?？؟")
    asks = sentence.rstrip("\"')* ").endswith(_QUESTION) or (
        known.language in UNSPACED and said.endswith(_ASKING_END)
    )
    bare = said[found.end() :] if (found := known.leads.match(said)) else said
    if not known.reported.search(said) and (whole := _whole(bare, known, asks=asks)):
        yield whole
        return
    if known.unsure.search(said):
        return
    ends = [mark.span() for mark in known.split.finditer(said)]
    before = ""  # the subject of an earlier clause
    done = 0
    for start in (0, *(end for _, end in ends)):
        if start < done:
            continue
        rest = _without_lead(said[start:], known, asks=asks)
        for candidate in (rest, before + rest) if before else (rest,):
            if (hit := _first_match(candidate, known)) is None:
                continue
            slot, match = hit
            if slot == "name" and candidate is not rest:
                continue
            shift = len(said) - len(candidate)  # from the candidate's places to the sentence's
            value = _value_of(match, known)
            last = match.end() - (len(match["value"]) - len(value))
            if slot in DATED and match.end() == match.end("value"):
                last = match.start("value") + end_of_date(value)
            stop, after = _clause_end(said, last + shift, ends, known)
            done = stop
            before = "" if slot in _OF_OTHERS else known.subject
            clause = candidate[: stop - shift]
            if slot in _BARE and not _IN_A_LIST.match(clause[last:]):
                break
            denies = known.negated.search(clause[match.start("value") :])
            if value and (not asks or known.asking.match(after)):
                if not denies:
                    yield _statement(slot, match, clause, value)
                elif _SLOTS[slot][1]:
                    yield replace(_statement(slot, match, clause, value), text="")
            break
        else:
            if not asks:
                yield from _denied(rest, known)


def _without_lead(clause: str, known: Patterns, *, asks: bool) -> str:
    """Return a clause without its opening words, subject before verb: "Übrigens bin ich" is "ich bin"."""
    if (lead := known.leads.match(clause)) is None:
        return clause
    if asks or (turned := known.inverted.match(clause, lead.end())) is None:
        return clause[lead.end() :]
    return f"{turned[2]} {turned[1]}{clause[turned.end() :]}"


def _denied(clause: str, known: Patterns) -> Iterator[Statement]:
    """Yield that an attribute no longer has a value: "I no longer live in Rome"."""
    gap = "" if known.language in UNSPACED else " "
    positive = gap.join(known.negated.sub(" ", clause).split())
    hit = _first_match(positive, known) if known.negated.search(clause) else None
    if hit is not None and _SLOTS[hit[0]][1] and (value := _value_of(hit[1], known)):
        yield replace(_statement(*hit, positive, value), text="")


def _value_of(match: re.Match[str], known: Patterns) -> str:
    """Return a value; {words} end at the first stop word, which patterns do not know."""
    value = match["value"]
    if "words" not in match.groupdict():
        return value
    words = value.split(" ")
    kept = next(
        (place for place, word in enumerate(words) if place and word.casefold() in known.stops),
        len(words),
    )
    return "" if words[0].casefold() in known.stops - _ARTICLES else " ".join(words[:kept])


def _clause_end(
    said: str, last: int, ends: Sequence[tuple[int, int]], known: Patterns
) -> tuple[int, str]:
    """Return where a clause ends after `last`, with items of a list after it, and what follows."""
    later = [span for span in ends if span[0] >= last]
    for place, (at, end) in enumerate(later):
        until = later[place + 1][0] if place + 1 < len(later) else len(said)
        item = said[end:until].casefold().split()
        if known.language in UNSPACED and "、" not in said[at:end]:
            return at, said[end:]
        if not 0 < len(item) <= _MOST_OF_AN_ITEM or known.stops.intersection(item):
            return at, said[end:]
    return len(said), ""


def _whole(sentence: str, known: Patterns, *, asks: bool) -> Statement | None:
    """Return what the writer asks to remember, a standing instruction, or a decision.

    Of a sentence that `asks` only the former, if it is a statement: "Can you remember that I live in Rome?"
    """
    for slot in ("remember",) if asks else _WHOLE_ORDER:
        for pattern in slots_of(known.language).get(slot, ()):
            if (match := pattern.match(sentence)) is None:
                continue
            value = match["value"]
            if slot == "decision":
                return _statement(slot, match, _before_question(sentence, match, known), value)
            if slot != "remember":
                return _statement(slot, match, sentence, value)
            inner = next(iter(_statements(value, known)), None)
            text = sentence if known.is_verb_final else value
            return inner or (None if asks else _statement(slot, match, text, value))
    return None


def _before_question(sentence: str, match: re.Match[str], known: Patterns) -> str:
    """Return a sentence without the question that its last clauses ask."""
    ends = known.split.finditer(sentence, match.start("value") + 1)
    asked = (end.start() for end in ends if known.asking.match(sentence[end.end() :]))
    return sentence[: next(asked, len(sentence))]


_WHOLE_ORDER = tuple(slot for slot in _SLOTS if slot in _WHOLE)


def _first_match(text: str, known: Patterns) -> tuple[str, re.Match[str]] | None:
    for slot in _SLOTS:
        if slot not in _WHOLE:
            for pattern in slots_of(known.language).get(slot, ()):
                match = pattern.match(text)
                if match and (
                    slot not in DATED or end_of_date(match["value"][:_DATE_WITHIN_CHARS])
                ):
                    return slot, match
    return None


def _statement(slot: str, match: re.Match[str], text: str, value: str) -> Statement:
    category, is_single = _SLOTS[slot]
    what = match.groupdict().get("what")
    name = f"{slot} {what.lower()}" if what else slot
    value = " ".join(value.lower().split())
    subject = f"user: {name}" if is_single else ""
    return Statement(_as_sentence(text), category, subject, value if is_single else "")


def _as_sentence(text: str) -> str:
    text = " ".join(text.split()).rstrip(" ,.!;:-，。！；")
    stop = "。" if "\u3040" <= text[-1:] <= "\u9fff" else "."
    return f"{text[:1].upper()}{text[1:]}{stop}"

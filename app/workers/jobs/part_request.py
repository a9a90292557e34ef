"""One request for the new part of a conversation: its prompt, its schema, and the checked answer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import accumulate
from typing import Any, NamedTuple
from unicodedata import normalize

from app.domain.conversations import TitleOrigin
from app.domain.records.facts import Fact, FactCategory, text_until
from app.domain.text import clean, one_line
from app.language.sentences import content_terms, shorten_middle
from app.memory.facts import contains_value
from app.providers.pricing.usage import estimated_tokens
from app.storage.engine.stamps import now
from app.storage.work.extraction_work import MessageToRead
from app.storage.work.part_work import ConversationPart, PartTurn
from app.storage.work.summary_work import THINKING
from app.workers.background_model import UnusableAnswer
from app.workers.jobs.fact_writer import ExtractedFact
from app.workers.prompts_and_answers import (
    Prompt,
    Quoted,
    Schema,
    fill_prompt,
    list_of,
    prompt_lines,
)

_SUMMARY_LIMIT_CHARS = 900
_LINE_LIMIT_CHARS = 600
_TITLE_LIMIT_CHARS = 60
_FACT_LIMIT_CHARS = 300
_TAG_LIMIT_CHARS = 30
_MOST_TAGS = 5
_MOST_FACTS_OF_A_TURN = 8
_MOST_PART_TOKENS = 24_000
_ANSWER_TOKENS = 250  # summary, title and tags
_ANSWER_TOKENS_OF_A_TURN = 150
_LEAST_ROOM_TOKENS = 500
_KNOWN_SHARE = 0.25  # of the room
_SLACK = 0.95
_NOT_COPIED = 1 / 3  # of the words that a model should have copied
_LEAST_COPIED = 2  # words, beside one that a model corrected or inflected
_ALIKE = 0.8  # share of equal letters, as difflib counts
_QUOTES = "\"'“”„«»`* "
# Words of the prompt itself, which small models give as tags and titles.
_LABELS = frozenset(
    (
        "user",
        "assistant",
        "title",
        "summary",
        "tag",
        "tags",
        "text",
        "turn",
        "turns",
        "facts",
        "null",
    )
)
_MARK = re.compile(r"[0-9a-f]{16}")
_TITLE_LABEL = re.compile(rf"\A(?:title:[{_QUOTES}]*)+", re.IGNORECASE)
# Code blocks, lines that begin with ">", and what stands between quotation marks, but not inches.
_QUOTED = re.compile(
    r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)|^[ \t]*>[^\n]*(?:\n|\Z)"
    r"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|(?<!\d)\"(?:[^\"\n]|\n(?!\s*\n))*\"",
    re.MULTILINE | re.DOTALL,
)
_SPOKEN_OF_CHARS = 60  # between quotation marks: a title or a phrase is the user's own
_INTEGER: Schema = {"type": "integer"}
_TEXT: Schema = {"type": "string"}
_OPTIONAL_TEXT: Schema = {"type": ["string", "null"]}
_FIELDS: Mapping[str, Schema] = {
    "summary": _TEXT,
    "title": _TEXT,
    "tags": {"type": "array", "items": _TEXT},
    "turns": list_of(number=_INTEGER, line=_TEXT),
    "facts": list_of(
        "source_turn",
        "op",
        # In this order, so that a model says what a fact rests on before it says the fact.
        source_turn=_INTEGER,
        words=_OPTIONAL_TEXT,
        in_earnest={"type": ["boolean", "null"]},
        op={"type": "string", "enum": ["add", "update", "end", "none"]},
        id={"type": ["integer", "null"]},
        text=_OPTIONAL_TEXT,
        category={**_OPTIONAL_TEXT, "enum": [*FactCategory, None]},
        valid_from=_OPTIONAL_TEXT,
        valid_to=_OPTIONAL_TEXT,
    ),
}


class _Source(NamedTuple):
    """A user's message in a turn of a part, its own words in folded form, and their terms."""

    place: int
    message: MessageToRead
    text: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The checked answer; what was not asked for is empty.

    `lines` and `facts` are by the place of their turn in the part.
    """

    summary: str
    title: str
    tags: tuple[str, ...]
    lines: Mapping[int, str]
    facts: Mapping[int, Sequence[ExtractedFact]]


@dataclass(frozen=True, slots=True)
class PartRequest:
    """The prompt for as many turns of a part as fit, and the schema of the answer.

    `part` has these turns only; `known` are the facts that the answer may refer to.
    """

    part: ConversationPart
    known: tuple[Fact, ...]
    prompt: Prompt
    schema: Schema

    def answer(self, fields: Mapping[str, Any]) -> PartAnswer:
        """Return the checked answer, each text cut to its limit.

        Raises UnusableAnswer without a wanted summary, and for thinking in place of one or of a line.
        """
        tags = (
            self._said(tag.strip("# ").rstrip(".,;:!?").casefold(), _TAG_LIMIT_CHARS)
            for tag in fields.get("tags", ())
        )
        title = _TITLE_LABEL.sub("", fields.get("title", "").strip(_QUOTES)).rstrip(". ")
        answer = PartAnswer(
            summary=self._said(fields.get("summary", ""), _SUMMARY_LIMIT_CHARS),
            title=self._said(title, _TITLE_LIMIT_CHARS),
            tags=tuple(dict.fromkeys(tag for tag in tags if tag))[:_MOST_TAGS],
            lines={
                each["number"] - 1: self._said(each["line"].strip(_QUOTES), _LINE_LIMIT_CHARS)
                for each in fields.get("turns", ())
            },
            facts=self._facts(fields.get("facts", ())),
        )
        is_thinking = any(
            each.startswith(THINKING) for each in (answer.summary, *answer.lines.values())
        )
        if is_thinking or (self.part.wants_summary and not answer.summary):
            raise UnusableAnswer(
                f"The model gave {'thinking as a' if is_thinking else 'an empty'} summary",
                "Try again, or choose another model.",
            )
        return answer

    def _said(self, text: str, limit_chars: int) -> str:
        """Return a text of the answer, "" for one that says nothing: no letter, a label, an opening.

        Small models also repeat the random mark that the pieces of the prompt begin with.
        """
        text = _label(text, limit_chars)
        is_empty = not any(map(str.isalpha, text)) or text.endswith(":")
        repeats_prompt = text.casefold() in _LABELS or any(
            mark in self.prompt.user for mark in _MARK.findall(text)
        )
        return "" if is_empty or repeats_prompt else text

    def _facts(self, given: Sequence[Mapping[str, Any]]) -> Mapping[int, Sequence[ExtractedFact]]:
        """Return the facts that are meant and point to words of the user in this part, not to what is quoted.

        An id that was not offered makes an update a new fact, and an end nothing. A fact that is added
        in the words of a known one repeats the prompt.
        """
        found: dict[int, list[ExtractedFact]] = {}
        offered = {fact.id for fact in self.known}
        repeated = {fact.text.casefold() for fact in self.known}
        sources = self._sources()
        for each in given:
            operation = each["op"]
            if operation == "none" or each.get("in_earnest") is False:
                continue
            known = each.get("id") if operation != "add" and each.get("id") in offered else None
            until = _date(each.get("valid_to"))
            text = (
                "" if operation == "end" else self._said(each.get("text") or "", _FACT_LIMIT_CHARS)
            )
            source = _stating(each.get("words") or "", each["source_turn"] - 1, sources)
            is_repeated = operation == "add" and text.casefold() in repeated
            text = text and text_until(text, until, now())
            if source is None or is_repeated or not (text or (operation == "end" and known)):
                continue
            found.setdefault(source.place, []).append(
                ExtractedFact(
                    text, FactCategory(each.get("category") or FactCategory.OTHER), "", "",
                    source.message.id, source.message.said_at, known,
                    _date(each.get("valid_from")), until,
                )
            )  # fmt: skip
        return {place: facts[:_MOST_FACTS_OF_A_TURN] for place, facts in found.items()}

    def _sources(self) -> Sequence[_Source]:
        """Return the messages in which the user says something of their own, oldest first."""
        found = []
        for place, turn in enumerate(self.part.turns):
            for each in turn.exchange.messages if turn.wants_facts else ():
                pieces = _divided(each.text) if each.by_user else ()
                if own := "\n".join(piece for is_quoted, piece in pieces if not is_quoted):
                    own = _folded(own)
                    found.append(_Source(place, each, own, frozenset(content_terms(own))))
        return found


def _divided(text: str) -> Iterator[tuple[bool, str]]:
    """Yield what a user wrote in pieces, each with whether it is quoted."""
    start = 0
    for found in _QUOTED.finditer(text):
        if found[0][0] in '"“„«' and len(found[0]) < _SPOKEN_OF_CHARS:
            continue
        if own := text[start : found.start()].strip():
            yield False, own
        yield True, found[0].strip()
        start = found.end()
    if own := text[start:].strip():
        yield False, own


def _stating(words: str, named: int, sources: Sequence[_Source]) -> _Source | None:
    """Return the message that words were copied from, rather one of the named turn; None for none.

    Small models number the turns wrongly, and do not copy every word.
    """
    copied = _folded(words).strip(f"{_QUOTES}\n.…,;:!?。！？")
    if not copied:
        return None
    terms = frozenset(content_terms(copied))
    ordered = sorted(sources, key=lambda each: each.place != named)
    if not terms:  # "yes" and "not any more" say something as a whole clause, an "I" says nothing
        run = r"\s+".join(map(re.escape, copied.split()))
        clause = re.compile(rf"(?m)(?:^|[.!?。])\W{{0,3}}{run}\s*(?:$|[.,;:!?。])")
        return next((each for each in ordered if clause.search(each.text)), None)
    exact = (each for each in ordered if contains_value(each.text, copied))
    near = (each for each in ordered if _is_near(terms, each.terms))
    return next(exact, None) or next(near, None)


def _is_near(terms: frozenset[str], source: frozenset[str]) -> bool:
    """Whether a message with the terms `source` has most of `terms`, or all but one that is much alike."""
    missing = sorted(terms - source)
    is_typo = len(missing) == 1 and len(terms) > _LEAST_COPIED and missing[0].isalpha()
    return len(missing) < max(1, _NOT_COPIED * len(terms)) or (
        is_typo and bool(get_close_matches(missing[0], source - terms, 1, _ALIKE))
    )


def _folded(text: str) -> str:
    return normalize("NFKC", text).casefold()


def part_request(
    part: ConversationPart, known: Sequence[Fact], context_tokens: int, answer_tokens: int
) -> PartRequest:
    """Return the request for the first turns of a part that fit a model's window.

    `answer_tokens` of the window are left for the answer.
    """
    wanted = _wanted(part)
    lines = prompt_lines("part_fields")
    schema = {
        "type": "object",
        "properties": {name: _FIELDS[name] for name in wanted},
        "required": list(wanted),
    }
    template = "\n".join(f'- "{name}": {lines[name]}' for name in wanted)
    around = fill_prompt("part", (), wanted=template)
    room = (
        context_tokens - answer_tokens - estimated_tokens(f"{around.system}{around.user}{schema}")
    )
    room = max(_LEAST_ROOM_TOKENS, min(room, _MOST_PART_TOKENS))
    before = [Quoted("title", part.conversation.title)]
    if part.summary:
        before.append(Quoted("summary of what came before", part.summary))
    sizes = accumulate(estimated_tokens(_known_line(fact)) for fact in known)
    fitting = sum(size <= round(room * _KNOWN_SHARE) for size in sizes)
    offered = tuple(known[:fitting]) if "facts" in wanted else ()
    if offered:
        before.append(Quoted("known", "\n".join(map(_known_line, offered))))
    room = max(_LEAST_ROOM_TOKENS, room - sum(estimated_tokens(each.text) for each in before))
    most_turns = max(1, (answer_tokens - _ANSWER_TOKENS) // _ANSWER_TOKENS_OF_A_TURN)
    turns, pieces = _fitting(part.turns[:most_turns], room)
    prompt = fill_prompt("part", [*before, *pieces], wanted=template)
    return PartRequest(replace(part, turns=turns), offered, prompt, schema)


def _wanted(part: ConversationPart) -> tuple[str, ...]:
    has = {
        "summary": part.wants_summary,
        "title": part.wants_summary and part.conversation.title_origin is TitleOrigin.FIRST_WORDS,
        "tags": part.wants_tags,
        "turns": any(turn.wants_line for turn in part.turns),
        "facts": any(turn.wants_facts for turn in part.turns),
    }
    return tuple(name for name, wanted in has.items() if wanted)


def _fitting(
    turns: Sequence[PartTurn], room_tokens: int
) -> tuple[tuple[PartTurn, ...], list[Quoted]]:
    """Return the first turns that fit, one at least, and their pieces."""
    taken: list[PartTurn] = []
    pieces: list[Quoted] = []
    left = room_tokens
    for number, turn in enumerate(turns, 1):
        own = list(_pieces(number, turn, room_tokens))
        size = sum(estimated_tokens(f"{each.label} {each.text}") + 20 for each in own)
        if taken and size > left:
            break
        taken.append(turn)
        pieces += own
        left -= size
    return tuple(taken), pieces


def _pieces(number: int, turn: PartTurn, room_tokens: int) -> Iterator[Quoted]:
    """Yield what is said in a turn, each piece labelled with who wrote it."""
    at = f"turn {number}, {turn.said_at:%A %d %B %Y %H:%M}"
    if turn.line:
        yield Quoted(f"{at}, in short", turn.line)
        return
    half = room_tokens // 2
    asked = _within(turn.text.asked, max(half, room_tokens - estimated_tokens(turn.text.answered)))
    answered = _within(turn.text.answered, max(half, room_tokens - estimated_tokens(asked)))
    for is_quoted, piece in _divided(asked):
        yield Quoted(f"{at}, {'quoted by the user' if is_quoted else 'user'}", piece)
    if answered.strip():
        yield Quoted(f"{at}, assistant{', cut off' * turn.text.is_cut_off}", answered)


def _known_line(fact: Fact) -> str:
    return f"{fact.id} | {fact.said_at:%Y-%m-%d} | {fact.category} | {fact.text}"


def _within(text: str, room_tokens: int) -> str:
    """Return the text, or its head and tail, in about so many tokens."""
    while (tokens := estimated_tokens(text)) > room_tokens and len(text) > room_tokens:
        text = shorten_middle(text, int(len(text) * room_tokens / tokens * _SLACK))
    return text


def _label(text: str, limit_chars: int) -> str:
    return one_line(clean(text), limit_chars)


def _date(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat((text or "")[:10]).replace(tzinfo=UTC)
    except ValueError:
        return None

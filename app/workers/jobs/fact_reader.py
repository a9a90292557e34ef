"""Extraction of facts from exchanges: by patterns, or by a language model if one is chosen."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled, ContextTooLong
from app.domain.facts import BY_PATTERNS, FactCategory
from app.domain.ids import ConversationId, MessageId
from app.domain.text import clean, one_line
from app.domain.turn_text import content_hash
from app.domain.workers import WorkerName
from app.language.sentences import content_words, shorten_middle, unspaced_runs
from app.language.speakers import find_speakers, split_speaker
from app.language.statements.extraction import extract_statements
from app.memory.fact_matching import restates
from app.storage.engine.store import Store
from app.storage.work.extraction_work import ExchangeToRead, MessageToRead
from app.storage.work.summary_work import PartNotes
from app.workers.background_model import Answer, ModelClient
from app.workers.job import IsCancelled
from app.workers.json_output import Schema
from app.workers.prompts import Quoted, prompt

MOST_MESSAGES = 20
_FACT_LIMIT_CHARS = 300
_SUBJECT_LIMIT_CHARS = 60
_MOST_OF_A_MESSAGE = 8
_PROMPT_TOKENS = 900
_CHARS_PER_TOKEN = 2  # a quick lower bound, for what has to be cut
_LEAST_CHARS = 400
_SHORTENINGS = 4
_STEM_CHARS = 4
_SUPPORTED_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A statement and the message it is from. `subject` and `value` as in `Statement`."""

    text: str
    category: FactCategory
    subject: str
    value: str
    message_id: MessageId
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """Facts of some exchanges, one tuple for each in their order, and the cost."""

    facts: tuple[tuple[ExtractedFact, ...], ...]
    model: str
    spent: tuple[SpendAdded, ...] = ()


_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "message": {"type": "integer"},
                    "text": {"type": "string"},
                    "category": {"type": "string", "enum": [each.value for each in FactCategory]},
                    "subject": {"type": "string"},
                    "value": {"type": "string"},
                },
                "required": ["message", "text", "category"],
            },
        }
    },
    "required": ["facts"],
}


class FactReader:
    """Reads exchanges for facts: by the background model while one is chosen, otherwise by patterns.

    Blocking. History goes to the model as a quotation, and its claims are checked: a fact counts
    only if the message it names is the user's, or a named speaker's, and holds a part of its words.
    """

    def __init__(self, store: Store, model: ModelClient | None = None) -> None:
        self._model = model
        self._notes = PartNotes(store)

    def read(self, exchanges: Sequence[ExchangeToRead], is_cancelled: IsCancelled) -> Reading:
        """Return what exchanges say of their user, and of whoever speaks in them by name.

        What an assistant says is no fact unless it repeats what the user decided, and never when it
        was recalled. Raises `Cancelled`, `Blocked`, `ProviderError`.
        """
        if self._model is None or not self._model.model:
            return _read_by_patterns(exchanges, is_cancelled)
        return self._read_by_model(self._model, exchanges, is_cancelled)

    def _read_by_model(
        self, model: ModelClient, exchanges: Sequence[ExchangeToRead], is_cancelled: IsCancelled
    ) -> Reading:
        """Send at most 20 messages a request.

        Facts of a part that others follow are stored before more is sent: after a kill none is paid
        for twice.
        """
        messages = [
            (place, message)
            for place, exchange in enumerate(exchanges)
            for message in exchange.messages
        ]
        found: list[list[ExtractedFact]] = [[] for _ in exchanges]
        spent: list[SpendAdded] = []
        name = model.model
        for start in range(0, len(messages), MOST_MESSAGES):
            part = messages[start : start + MOST_MESSAGES]
            said = [message for _, message in part]
            if not any(message.text.strip() for message in said):
                continue
            if start + MOST_MESSAGES < len(messages):
                conversation_id = exchanges[part[0][0]].conversation_id
                checked = self._noted(model, conversation_id, said, is_cancelled)
            else:
                answer = _ask(model, said, is_cancelled)
                name = answer.model
                spent.append(answer.spent)
                checked = _checked(answer.fields, said)
            for number, fact in checked:
                place, message = part[number]
                if _may_be_stated(fact, message, exchanges[place]):
                    found[place].append(fact)
        return Reading(tuple(tuple(each) for each in found), name, tuple(spent))

    def _noted(
        self,
        model: ModelClient,
        conversation_id: ConversationId,
        messages: Sequence[MessageToRead],
        is_cancelled: IsCancelled,
    ) -> list[tuple[int, ExtractedFact]]:
        text = "\n".join(f"{message.id}: {message.text}" for message in messages)
        part_hash = content_hash(f"facts by {model.model}\n{text}")
        if (known := self._notes.find(conversation_id, part_hash)) is not None:
            return _checked(json.loads(known), messages)
        answer = _ask(model, messages, is_cancelled)
        checked = _checked(answer.fields, messages)
        self._notes.keep(conversation_id, part_hash, _as_json(checked), answer.spent)
        return checked


def _read_by_patterns(exchanges: Sequence[ExchangeToRead], is_cancelled: IsCancelled) -> Reading:
    found = []
    for exchange in exchanges:
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        facts = []
        for message in exchange.messages:
            if message.by_user:
                facts += [
                    ExtractedFact(
                        one.text, one.category, one.subject, one.value, message.id, message.said_at
                    )
                    for one in extract_statements(message.text, _before(message, exchange.openings))
                ]
        found.append(tuple(facts))
    return Reading(tuple(found), BY_PATTERNS)


def _before(message: MessageToRead, openings: Sequence[str]) -> Sequence[str]:
    """Return the openings before a message's own, the last one like it."""
    own = [place for place, each in enumerate(openings) if message.text.startswith(each)]
    return openings[: own[-1]] if own else openings


def _ask(
    model: ModelClient, messages: Sequence[MessageToRead], is_cancelled: IsCancelled
) -> Answer:
    room = model.context_tokens() * 3 // 4 - _PROMPT_TOKENS
    limit = max(_LEAST_CHARS, room * _CHARS_PER_TOKEN // len(messages))
    for shortening in range(_SHORTENINGS + 1):
        quoted = [
            Quoted(_label(number, message), shorten_middle(message.text, limit >> shortening))
            for number, message in enumerate(messages, 1)
        ]
        try:
            asked = prompt("facts", quoted)
            return model.ask(asked, WorkerName.KNOWLEDGE_EXTRACTOR, is_cancelled, _SCHEMA)
        except ContextTooLong:
            if shortening == _SHORTENINGS:
                raise
    raise AssertionError("the last try returns or raises")


def _label(number: int, message: MessageToRead) -> str:
    side = "user" if message.by_user else "assistant"
    return f"{side}, message {number}, {message.said_at:%A %d %B %Y}"


def _checked(fields: Any, messages: Sequence[MessageToRead]) -> list[tuple[int, ExtractedFact]]:
    """Return (place of the message, fact) of the claims of a model that their messages support."""
    kept: list[tuple[int, ExtractedFact]] = []
    counts: dict[int, int] = {}
    for each in fields["facts"]:
        place = each["message"] - 1
        text = one_line(clean(each["text"]), _FACT_LIMIT_CHARS)
        if not 0 <= place < len(messages) or not text or counts.get(place, 0) >= _MOST_OF_A_MESSAGE:
            continue
        message = messages[place]
        if not _is_supported(text, message.text):
            continue
        subject = one_line(str(each.get("subject") or ""), _SUBJECT_LIMIT_CHARS).lower()
        value = one_line(str(each.get("value") or ""), _SUBJECT_LIMIT_CHARS).lower()
        if not subject or not value:
            subject = value = ""
        counts[place] = counts.get(place, 0) + 1
        category = FactCategory(each["category"])
        kept.append(
            (place, ExtractedFact(text, category, subject, value, message.id, message.said_at))
        )
    return kept


def _as_json(checked: Sequence[tuple[int, ExtractedFact]]) -> str:
    """Return facts in the format of the model's answers."""
    facts = [
        {
            "message": place + 1,
            "text": fact.text,
            "category": fact.category.value,
            "subject": fact.subject,
            "value": fact.value,
        }
        for place, fact in checked
    ]
    return json.dumps({"facts": facts}, ensure_ascii=False)


def _may_be_stated(fact: ExtractedFact, message: MessageToRead, exchange: ExchangeToRead) -> bool:
    """Return whether a message may state facts: the user's, or a named speaker's own words."""
    if message.by_user:
        return True
    is_named = bool(split_speaker(message.text, find_speakers(exchange.openings))[0])
    return is_named and not restates(fact.text, exchange.recalled)


def _is_supported(text: str, source: str) -> bool:
    """Return whether enough of a statement's words are in its source."""
    if unspaced_runs(text):
        runs = {run[at : at + 2] for run in unspaced_runs(text) for at in range(len(run))}
        return any(pair in source for pair in runs)
    own = {word[:_STEM_CHARS] for word in content_words(text)} - {"user"}
    said = {word[:_STEM_CHARS] for word in content_words(source)}
    return bool(own) and len(own & said) >= _SUPPORTED_SHARE * len(own)

"""Who reads conversations for facts: patterns by default, a language model where one is chosen."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled
from app.domain.facts import BY_PATTERNS, FactCategory
from app.domain.ids import ConversationId, MessageId
from app.domain.provider_errors import ContextTooLong
from app.domain.text import clean, one_line
from app.domain.turn_text import content_hash
from app.domain.workers import WorkerName
from app.memory.fact_merging import repeats
from app.providers.extractive_text import abridged, unspaced_runs
from app.providers.fact_patterns import statements_of
from app.providers.fact_sentences import speaker_of, speakers_in
from app.providers.fact_words import Said, content_words
from app.storage.extraction_work import SaidMessage, UnreadExchange
from app.storage.part_notes import PartNotes
from app.workers.background_model import Answer, AsksModel
from app.workers.job import IsCancelled
from app.workers.prompts import Quoted, prompt
from app.workers.structured import Schema

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
class Learnt:
    """A statement and the message it is from. `subject` and `value` as in `Statement`."""

    text: str
    category: FactCategory
    subject: str
    value: str
    message_id: MessageId
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """What some exchanges say, one tuple for each in their order; what reading them did cost."""

    facts: tuple[tuple[Learnt, ...], ...]
    model: str
    spent: tuple[SpendAdded, ...] = ()


class FactEngine(Protocol):
    """Reads exchanges for facts. Blocking."""

    def read(self, exchanges: Sequence[UnreadExchange], is_cancelled: IsCancelled) -> Reading:
        """Return what exchanges say of their user, and of whoever speaks in them by name.

        What an assistant says is no fact unless it repeats what the user decided, and never when it
        was recalled. Raises `Cancelled`, `Blocked`, `ProviderError`.
        """
        ...


class PatternEngine:
    """Facts by patterns, on this machine and at once."""

    def read(self, exchanges: Sequence[UnreadExchange], is_cancelled: IsCancelled) -> Reading:
        """Return what patterns find; see `FactEngine`."""
        found = []
        for exchange in exchanges:
            if is_cancelled():
                raise Cancelled("The worker was stopped")
            said = [Said(each.text, each.by_user, each.said_at) for each in exchange.messages]
            learnt = []
            for one in statements_of(said, speakers_in(exchange.openings)):
                source = exchange.messages[one.place]
                if source.by_user or not repeats(one.text, exchange.recalled):
                    learnt.append(
                        Learnt(
                            one.text, one.category, one.subject, one.value, source.id,
                            source.said_at,
                        )
                    )  # fmt: skip
            found.append(tuple(learnt))
        return Reading(tuple(found), BY_PATTERNS)


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


class ModelEngine:
    """Facts by a language model: history goes to it as a quotation, what it says is checked.

    A fact counts only if the message it names is the user's, or a named speaker's, and holds a part
    of its words.
    """

    def __init__(self, model: AsksModel, notes: PartNotes) -> None:
        self._model = model
        self._notes = notes

    def read(self, exchanges: Sequence[UnreadExchange], is_cancelled: IsCancelled) -> Reading:
        """Return what a model finds, at most 20 messages a request; see `FactEngine`.

        What a part says that others follow is stored before more is asked: a kill pays for none
        twice.
        """
        messages = [
            (place, message)
            for place, exchange in enumerate(exchanges)
            for message in exchange.messages
        ]
        found: list[list[Learnt]] = [[] for _ in exchanges]
        spent: list[SpendAdded] = []
        name = self._model.model
        for start in range(0, len(messages), MOST_MESSAGES):
            part = messages[start : start + MOST_MESSAGES]
            said = [message for _, message in part]
            if not any(message.text.strip() for message in said):
                continue
            if start + MOST_MESSAGES < len(messages):
                conversation_id = exchanges[part[0][0]].conversation_id
                checked = self._noted(conversation_id, said, is_cancelled)
            else:
                answer = self._ask(said, is_cancelled)
                name = answer.model
                spent.append(answer.spent)
                checked = _checked(answer.fields, said)
            for number, learnt in checked:
                place, message = part[number]
                if _may_be_learnt(learnt, message, exchanges[place]):
                    found[place].append(learnt)
        return Reading(tuple(tuple(each) for each in found), name, tuple(spent))

    def _noted(
        self,
        conversation_id: ConversationId,
        messages: Sequence[SaidMessage],
        is_cancelled: IsCancelled,
    ) -> list[tuple[int, Learnt]]:
        words = "\n".join(f"{message.id}: {message.text}" for message in messages)
        part_hash = content_hash(f"facts by {self._model.model}\n{words}")
        if (known := self._notes.find(conversation_id, part_hash)) is not None:
            return _checked(json.loads(known), messages)
        answer = self._ask(messages, is_cancelled)
        checked = _checked(answer.fields, messages)
        self._notes.keep(conversation_id, part_hash, _written(checked), answer.spent)
        return checked

    def _ask(self, messages: Sequence[SaidMessage], is_cancelled: IsCancelled) -> Answer:
        room = self._model.context_tokens() * 3 // 4 - _PROMPT_TOKENS
        limit = max(_LEAST_CHARS, room * _CHARS_PER_TOKEN // len(messages))
        for shortening in range(_SHORTENINGS + 1):
            quoted = [
                Quoted(_label(number, message), abridged(message.text, limit >> shortening))
                for number, message in enumerate(messages, 1)
            ]
            try:
                asked = prompt("facts", quoted)
                purpose = WorkerName.KNOWLEDGE_EXTRACTOR
                return self._model.ask(asked, purpose, is_cancelled, _SCHEMA)
            except ContextTooLong:
                if shortening == _SHORTENINGS:
                    raise
        raise AssertionError("the last try returns or raises")


class ChosenEngine:
    """The model's while one is chosen, patterns otherwise; asked anew for each batch."""

    def __init__(self, is_model_chosen: Callable[[], bool], by_model: FactEngine) -> None:
        self._is_model_chosen = is_model_chosen
        self._by_model = by_model
        self._patterns = PatternEngine()

    def read(self, exchanges: Sequence[UnreadExchange], is_cancelled: IsCancelled) -> Reading:
        """Return what the one of both finds whose turn it is; see `FactEngine`."""
        return self._now().read(exchanges, is_cancelled)

    def _now(self) -> FactEngine:
        return self._by_model if self._is_model_chosen() else self._patterns


def _label(number: int, message: SaidMessage) -> str:
    side = "user" if message.by_user else "assistant"
    return f"{side}, message {number}, {message.said_at:%A %d %B %Y}"


def _checked(fields: Any, messages: Sequence[SaidMessage]) -> list[tuple[int, Learnt]]:
    """Return (place of the message, fact) of what a model said, as far as it can be true."""
    kept: list[tuple[int, Learnt]] = []
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
        kept.append((place, Learnt(text, category, subject, value, message.id, message.said_at)))
    return kept


def _written(checked: Sequence[tuple[int, Learnt]]) -> str:
    """Return facts as the model could have said them."""
    facts = [
        {
            "message": place + 1,
            "text": learnt.text,
            "category": learnt.category.value,
            "subject": learnt.subject,
            "value": learnt.value,
        }
        for place, learnt in checked
    ]
    return json.dumps({"facts": facts}, ensure_ascii=False)


def _may_be_learnt(learnt: Learnt, message: SaidMessage, exchange: UnreadExchange) -> bool:
    """Return whether a message tells what is so: the user's, or a named speaker's own words."""
    if message.by_user:
        return True
    is_named = bool(speaker_of(message.text, speakers_in(exchange.openings))[0])
    return is_named and not repeats(learnt.text, exchange.recalled)


def _is_supported(text: str, source: str) -> bool:
    """Return whether enough of a statement's words are in what it is said to come from."""
    if unspaced_runs(text):
        runs = {run[at : at + 2] for run in unspaced_runs(text) for at in range(len(run))}
        return any(pair in source for pair in runs)
    own = {word[:_STEM_CHARS] for word in content_words(text)} - {"user"}
    said = {word[:_STEM_CHARS] for word in content_words(source)}
    return bool(own) and len(own & said) >= _SUPPORTED_SHARE * len(own)

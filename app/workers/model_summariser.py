"""Summaries by a language model: history goes to it as a quotation, what it says is checked and cut.

A conversation that is longer than the model reads is summarised in parts, the parts' notes
together. Nothing but a summary comes back: no answer of a model reaches the database unbounded.
"""

from collections.abc import Callable, Iterator, Sequence

from app.domain.ids import ConversationId
from app.domain.provider_errors import ContextTooLong
from app.domain.text import one_line
from app.domain.turn_text import content_hash
from app.domain.workers import WorkerName
from app.providers.estimated_tokens import estimated_tokens
from app.providers.extractive import Turn
from app.providers.extractive_text import abridged
from app.storage.part_notes import PartNotes
from app.workers.background_model import Answer, AsksModel, UnusableAnswer
from app.workers.job import IsCancelled
from app.workers.prompts import Quoted, prompt
from app.workers.summariser import Digest

EXCHANGE_LIMIT_CHARS = 600
CONVERSATION_LIMIT_CHARS = 900
_NOTES_LIMIT_CHARS = 1_200
_TITLE_LIMIT_CHARS = 60
_TAG_LIMIT_CHARS = 30
_MOST_TAGS = 5
_PROMPT_TOKENS = 600
_LEAST_ROOM_TOKENS = 1_000  # several notes must fit, or parts would never become fewer
_SHORTER = 0.5
_SLACK = 0.95
_QUOTES = "\"'“”„«»`* "
_SCHEMA = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["summary", "title", "tags"],
}


class ModelSummariser:
    """A `Summariser` that asks a model; one request for an exchange or a short conversation."""

    is_paid = True

    def __init__(self, model: AsksModel, notes: PartNotes) -> None:
        self._model = model
        self._notes = notes

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        """Return one or two sentences. Raises as `AsksModel.ask`."""
        if not _says_something(turn):
            return Digest("")

        def ask(room_tokens: int) -> Answer:
            asked = prompt("exchange_summary", tuple(_sides(turn, room_tokens)))
            return self._model.ask(asked, WorkerName.EXCHANGE_SUMMARIZER, is_cancelled)

        answer = self._with_room(ask)
        summary = one_line(answer.text.strip(_QUOTES), EXCHANGE_LIMIT_CHARS)
        return Digest(summary, spent=(answer.spent,), model=answer.model)

    def conversation(
        self,
        conversation_id: ConversationId,
        turns: Sequence[Turn],
        is_cancelled: IsCancelled,
    ) -> Digest:
        """Return two or three sentences, a title and tags. Raises as `AsksModel.ask`."""
        said = [turn for turn in turns if _says_something(turn)]
        if not said:
            return Digest("")

        def ask(room_tokens: int) -> Answer:
            pieces = [piece for turn in said for piece in _sides(turn, room_tokens)]
            name = "conversation_summary"
            while len(parts := _parts(pieces, room_tokens)) > 1:
                name = "conversation_parts"
                pieces = [
                    Quoted(f"notes {number}", self._read(conversation_id, part, is_cancelled))
                    for number, part in enumerate(parts, 1)
                ]
            purpose = WorkerName.CONVERSATION_SUMMARIZER
            return self._model.ask(prompt(name, pieces), purpose, is_cancelled, _SCHEMA)

        answer = self._with_room(ask)
        digest = _digest(answer)
        if not digest.summary:
            self._model.write_off(answer)
            raise UnusableAnswer(
                f"{answer.model} gave an empty summary", "Try again, or choose another model."
            )
        return digest

    def _read(
        self, conversation_id: ConversationId, part: Sequence[Quoted], is_cancelled: IsCancelled
    ) -> str:
        """Return notes on one part; they are stored before the next part is sent."""
        part_hash = content_hash("\n".join(f"{each.label}: {each.text}" for each in part))
        if (known := self._notes.find(conversation_id, part_hash)) is not None:
            return known
        asked = prompt("conversation_part", part)
        answer = self._model.ask(asked, WorkerName.CONVERSATION_SUMMARIZER, is_cancelled)
        notes = one_line(answer.text, _NOTES_LIMIT_CHARS)
        self._notes.keep(conversation_id, part_hash, notes, answer.spent)
        return notes

    def _with_room(self, ask: Callable[[int], Answer]) -> Answer:
        """Return what is answered with as much history as fits; less each time it proves too long."""
        context = self._model.context_tokens()
        room_tokens = context - context // 4 - _PROMPT_TOKENS
        while True:
            room_tokens = max(_LEAST_ROOM_TOKENS, room_tokens)
            try:
                return ask(room_tokens)
            except ContextTooLong:
                if room_tokens == _LEAST_ROOM_TOKENS:
                    raise
            room_tokens = int(room_tokens * _SHORTER)


def _says_something(turn: Turn) -> bool:
    return bool(turn.asked.strip() or turn.answered.strip())


def _sides(turn: Turn, room_tokens: int) -> Iterator[Quoted]:
    """The two sides of a turn, as far as they are there, both together within the room."""
    half = room_tokens // 2
    asked = _within(turn.asked, max(half, room_tokens - _tokens(turn.answered)))
    answered = _within(turn.answered, max(half, room_tokens - _tokens(asked)))
    for label, text in (("user", asked), ("assistant", answered)):
        if text.strip():
            yield Quoted(label, text)


def _within(text: str, room_tokens: int) -> str:
    """The text, or its head and tail, in about so many tokens."""
    while (tokens := _tokens(text)) > room_tokens and len(text) > room_tokens:
        text = abridged(text, int(len(text) * room_tokens / tokens * _SLACK))
    return text


def _parts(pieces: Sequence[Quoted], room_tokens: int) -> list[list[Quoted]]:
    """The pieces in order, as many together as the room holds."""
    parts: list[list[Quoted]] = [[]]
    held = 0
    for piece in pieces:
        tokens = _tokens(piece.text)
        if parts[-1] and held + tokens > room_tokens:
            parts.append([])
            held = 0
        parts[-1].append(piece)
        held += tokens
    return parts


def _tokens(text: str) -> int:
    return estimated_tokens(text, "")


def _digest(answer: Answer) -> Digest:
    """What the model gave, each part cut to what has room for it."""
    said = answer.fields
    tags = (one_line(tag.strip("# ").casefold(), _TAG_LIMIT_CHARS) for tag in said["tags"])
    return Digest(
        one_line(said["summary"], CONVERSATION_LIMIT_CHARS),
        one_line(said["title"].strip(_QUOTES).rstrip(". "), _TITLE_LIMIT_CHARS),
        tuple(dict.fromkeys(tag for tag in tags if tag))[:_MOST_TAGS],
        (answer.spent,),
        answer.model,
    )

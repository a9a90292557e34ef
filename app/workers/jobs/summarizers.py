"""Summaries: extractive or by a language model, and what the jobs of both summarizers share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from app.domain.changes import Change, PassagesPut, SpendAdded, SummaryPut
from app.domain.errors import Cancelled, ContextTooLong
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.text import one_line
from app.domain.turn_text import content_hash, estimate_tokens
from app.domain.workers import UsageTotals, WorkerName
from app.language.extractive.labels import extract_tags, extract_title
from app.language.extractive.summaries import (
    MODEL,
    TurnMarkdown,
    conversation_sentences,
    summarize_conversation,
    summarize_exchange,
)
from app.language.sentences import shorten_middle
from app.providers.pricing.estimated_tokens import estimated_tokens
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.settings import Settings
from app.storage.work.queue import SUMMARIES
from app.storage.work.summary_work import PartNotes, Summarizable, SummaryWork
from app.workers.background_model import MODEL_KEYS, Answer, ModelClient, UnusableAnswer
from app.workers.job import PAID, IsCancelled, Job, Pace, Saved
from app.workers.jobs.exchange_selection import OpenConversation
from app.workers.prompts import Quoted, prompt


@dataclass(frozen=True, slots=True)
class GeneratedSummary:
    """A summary of an exchange or a conversation, "" for one without text.

    `spent` is the cost to be stored with it, `model` "extractive" or PROVIDER:MODEL; `title` and
    `tags` are empty for an exchange.
    """

    summary: str
    title: str = ""
    tags: tuple[str, ...] = ()
    spent: tuple[SpendAdded, ...] = ()
    model: str = MODEL


class Summarizer(Protocol):
    """Writes summaries in the language of the text. Blocking."""

    @property
    def is_paid(self) -> bool:
        """Whether each summary is to be stored before the next one is requested."""
        ...

    def exchange(self, turn: TurnMarkdown, is_cancelled: IsCancelled) -> GeneratedSummary:
        """Return one or two sentences: what was asked, what was done, how it ended.

        Raises `Cancelled` within a second of `is_cancelled`, `Blocked`, `ProviderError`, and
        `UnusableAnswer`.
        """
        ...

    def conversation(
        self,
        conversation_id: ConversationId,
        turns: Sequence[TurnMarkdown],
        is_cancelled: IsCancelled,
    ) -> GeneratedSummary:
        """Return two or three sentences, a title and tags; raises as above."""
        ...


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


class BackgroundSummarizer:
    """A `Summarizer`: the background model while one is chosen, otherwise central sentences.

    The model gets one request for an exchange or a short conversation.
    """

    def __init__(self, store: Store, model: ModelClient | None) -> None:
        self._model = model
        self._notes = PartNotes(store)

    @property
    def is_paid(self) -> bool:
        """Whether a model is chosen now."""
        return self._model is not None and bool(self._model.model)

    def exchange(self, turn: TurnMarkdown, is_cancelled: IsCancelled) -> GeneratedSummary:
        """Return one or two sentences; see `Summarizer`."""
        if (model := self._model) is None or not model.model:
            _stop_if(is_cancelled)
            return GeneratedSummary(summarize_exchange(turn))
        if not _says_something(turn):
            return GeneratedSummary("")

        def ask(room_tokens: int) -> Answer:
            asked = prompt("exchange_summary", tuple(_sides(turn, room_tokens)))
            return model.ask(asked, WorkerName.EXCHANGE_SUMMARIZER, is_cancelled)

        answer = _with_room(model, ask)
        summary = _line(answer.text.strip(_QUOTES), EXCHANGE_LIMIT_CHARS)
        return GeneratedSummary(summary, spent=(answer.spent,), model=answer.model)

    def conversation(
        self,
        conversation_id: ConversationId,
        turns: Sequence[TurnMarkdown],
        is_cancelled: IsCancelled,
    ) -> GeneratedSummary:
        """Return two or three sentences, a title and tags; see `Summarizer`."""
        if (model := self._model) is None or not model.model:
            _stop_if(is_cancelled)
            sentences = conversation_sentences(turns)
            summary = summarize_conversation(turns, sentences)
            return GeneratedSummary(summary, extract_title(sentences), extract_tags(sentences))
        said = [turn for turn in turns if _says_something(turn)]
        if not said:
            return GeneratedSummary("")

        def ask(room_tokens: int) -> Answer:
            pieces = [piece for turn in said for piece in _sides(turn, room_tokens)]
            name = "conversation_summary"
            while len(parts := _parts(pieces, room_tokens)) > 1:
                name = "conversation_parts"
                pieces = [
                    Quoted(
                        f"notes {number}", self._read(model, conversation_id, part, is_cancelled)
                    )
                    for number, part in enumerate(parts, 1)
                ]
            purpose = WorkerName.CONVERSATION_SUMMARIZER
            return model.ask(prompt(name, pieces), purpose, is_cancelled, _SCHEMA)

        answer = _with_room(model, ask)
        digest = _digest(answer)
        if not digest.summary:
            model.write_off(answer)
            raise UnusableAnswer(
                f"{answer.model} gave an empty summary", "Try again, or choose another model."
            )
        return digest

    def _read(
        self,
        model: ModelClient,
        conversation_id: ConversationId,
        part: Sequence[Quoted],
        is_cancelled: IsCancelled,
    ) -> str:
        """Return notes on one part; they are stored before the next part is sent."""
        part_hash = content_hash("\n".join(f"{each.label}: {each.text}" for each in part))
        if (known := self._notes.find(conversation_id, part_hash)) is not None:
            return known
        asked = prompt("conversation_part", part)
        answer = model.ask(asked, WorkerName.CONVERSATION_SUMMARIZER, is_cancelled)
        notes = one_line(answer.text, _NOTES_LIMIT_CHARS)
        self._notes.keep(conversation_id, part_hash, notes, answer.spent)
        return notes


def _stop_if(is_cancelled: IsCancelled) -> None:
    if is_cancelled():
        raise Cancelled("The worker was stopped")


def _with_room(model: ModelClient, ask: Callable[[int], Answer]) -> Answer:
    """Return the answer to as much history as fits; less each time it proves too long."""
    context = model.context_tokens()
    room_tokens = context - context // 4 - _PROMPT_TOKENS
    while True:
        room_tokens = max(_LEAST_ROOM_TOKENS, room_tokens)
        try:
            return ask(room_tokens)
        except ContextTooLong:
            if room_tokens == _LEAST_ROOM_TOKENS:
                raise
        room_tokens = int(room_tokens * _SHORTER)


def _says_something(turn: TurnMarkdown) -> bool:
    return bool(turn.asked.strip() or turn.answered.strip())


def _sides(turn: TurnMarkdown, room_tokens: int) -> Iterator[Quoted]:
    """Yield the sides of a turn that have text, both together within the room."""
    half = room_tokens // 2
    asked = _within(turn.asked, max(half, room_tokens - _tokens(turn.answered)))
    answered = _within(turn.answered, max(half, room_tokens - _tokens(asked)))
    for label, text in (("user", asked), ("assistant", answered)):
        if text.strip():
            yield Quoted(label, text)


def _within(text: str, room_tokens: int) -> str:
    """Return the text, or its head and tail, in about so many tokens."""
    while (tokens := _tokens(text)) > room_tokens and len(text) > room_tokens:
        text = shorten_middle(text, int(len(text) * room_tokens / tokens * _SLACK))
    return text


def _parts(pieces: Sequence[Quoted], room_tokens: int) -> list[list[Quoted]]:
    """Return the pieces in order, as many together as fit."""
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


def _line(summary: str, limit_chars: int) -> str:
    """Return a summary as one line; one that began with thinking would be regenerated for ever."""
    return one_line(summary, limit_chars).removeprefix("<think>")


def _tokens(text: str) -> int:
    return estimated_tokens(text, "")


def _digest(answer: Answer) -> GeneratedSummary:
    """Return the model's answer, each part cut to its limit."""
    said = answer.fields
    tags = (one_line(tag.strip("# ").casefold(), _TAG_LIMIT_CHARS) for tag in said["tags"])
    return GeneratedSummary(
        _line(said["summary"], CONVERSATION_LIMIT_CHARS),
        one_line(said["title"].strip(_QUOTES).rstrip(". "), _TITLE_LIMIT_CHARS),
        tuple(dict.fromkeys(tag for tag in tags if tag))[:_MOST_TAGS],
        (answer.spent,),
        answer.model,
    )


@dataclass(frozen=True, slots=True)
class Summarized:
    """The summary of a source; `passage` is its passage but for id and text."""

    source: Any
    passage: Passage
    digest: GeneratedSummary


class SummaryJob(Job[Any, Summarized]):
    """What the two summarizers share: one item a call, summaries and passages in one commit.

    Attributes:
        minimum: The setting that says how much a source must hold.
        batch: How many summaries are saved together.
    """

    minimum: str
    batch: int

    def __init__(
        self,
        store: Store,
        settings: Settings,
        summarizer: Summarizer,
        opened: OpenConversation,
    ) -> None:
        self._store = store
        self._settings = settings
        self._summarizer = summarizer
        self._opened = opened
        self._work = SummaryWork(store)
        keys = (self.minimum, "summarizer_quiet_minutes", SUMMARIES.key)
        self.concerned = MODEL_KEYS.union(keys)

    @property
    def pace(self) -> Pace:
        """One at a time for paid work."""
        return PAID if self._summarizer.is_paid else Pace(save_items=self.batch)

    def poll_interval_s(self) -> float:
        """Return `summarizer_idle_timeout`."""
        return float(self._settings.number("summarizer_idle_timeout"))

    def save(self, results: Sequence[Summarized]) -> Saved:
        """Store summaries and passages, except of sources that may no longer have one."""

        def commit() -> Saved:
            stored = self._summarizable([each.source.id for each in results])
            kept = [each for each in results if each.source.id in stored.ids]
            spent = [paid for each in results for paid in each.digest.spent]
            changes: list[Change] = [*spent]
            for each in kept:
                digest = each.digest
                summary = SummaryText(digest.summary, digest.model, each.source.stamp)
                replaced = stored.passages.get(each.source.id, ())
                changes += summary_changes(self._store, each.passage, summary, replaced)
                changes += self._more_changes(each, stored)
            if changes:
                self._store.commit_now(*changes)
            made = sum(bool(each.digest.summary) for each in kept)
            return Saved(made, len(results) - made, total_usage(spent))

        return self._store.on_writer(commit).result()

    def _summarizable(self, ids: Sequence[int]) -> Summarizable:
        """Return which of the sources may have a summary now, and their present passages."""
        raise NotImplementedError

    def _more_changes(
        self,
        made: Summarized,  # noqa: ARG002 - for subclasses
        stored: Summarizable,  # noqa: ARG002
    ) -> list[Change]:
        """Return changes to store together with a summary."""
        return []


@dataclass(frozen=True, slots=True)
class SummaryText:
    """The text of a summary, "" for a source without text; who made it; the stamp of its source."""

    text: str
    model: str
    stamp: str


def exchange_passage(
    exchange_id: ExchangeId, conversation_id: ConversationId, said_at: datetime
) -> Passage:
    """Return the passage of an exchange's summary but for id and text."""
    kind = PassageKind.EXCHANGE_SUMMARY
    own = PassageId(0)
    return Passage(own, kind, exchange_id, conversation_id, exchange_id, "", said_at)


def conversation_passage(conversation_id: ConversationId, said_at: datetime) -> Passage:
    """Return the passage of a conversation's summary but for id and text."""
    kind = PassageKind.CONVERSATION_SUMMARY
    return Passage(PassageId(0), kind, conversation_id, conversation_id, None, "", said_at)


def summary_changes(
    store: Store, passage: Passage, summary: SummaryText, replaced: tuple[int, ...]
) -> list[Change]:
    """Return what stores a summary; an empty one is kept too, so that it is not tried again.

    The passage has the time of its source, not of the summary. `replaced` are its earlier ones.
    """
    assert passage.conversation_id is not None
    put = SummaryPut(
        kind=passage.kind.removesuffix("_summary"),
        source_id=passage.source_id,
        conversation_id=passage.conversation_id,
        text=summary.text,
        model=summary.model,
        source_hash=summary.stamp,
        made_at=now(),
    )
    stored = replace(
        passage,
        id=store.ids.passage(),
        content_hash=content_hash(summary.text),
        tokens=estimate_tokens(summary.text),
    )
    return [put, PassagesPut((stored,) if summary.text else (), replaced)]


def total_usage(spent: Sequence[SpendAdded]) -> UsageTotals:
    """Return the usage of requests together; an unknown price makes the sum unknown."""
    prices = [each.cost_usd for each in spent]
    tokens = sum(each.input_tokens + each.output_tokens for each in spent)
    estimated_usd = sum(each.cost_usd or 0.0 for each in spent if each.is_estimated)
    return UsageTotals(tokens, None if None in prices else sum(filter(None, prices)), estimated_usd)

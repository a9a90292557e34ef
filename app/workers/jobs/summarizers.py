"""Extractive summaries, how summaries are stored, and what the jobs of both summarizers share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from app.domain.changes import Change, PassagesPut, SpendAdded, SummaryPut
from app.domain.errors import Cancelled
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.turn_text import content_hash, estimate_tokens
from app.domain.workers import UsageTotals
from app.language.extractive.summaries import (
    MODEL,
    TurnMarkdown,
    summarize_conversation,
    summarize_exchange,
)
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.settings import Settings
from app.storage.work.queue import SUMMARIES, is_superseded
from app.storage.work.summary_work import Summarizable, SummaryWork
from app.workers.background_model import MODEL_KEYS
from app.workers.job import IsCancelled, Job, Pace, Saved
from app.workers.jobs.open_conversation import OpenConversation

# Returns the summary of turns in their language, "" for turns without text. Raises `Cancelled`.
Summarize = Callable[[Sequence[TurnMarkdown], IsCancelled], str]


def extract_exchange(turns: Sequence[TurnMarkdown], is_cancelled: IsCancelled) -> str:
    """Return one or two sentences of one turn: what was asked, what was done, how it ended."""
    (turn,) = turns
    _stop_if(is_cancelled)
    return summarize_exchange(turn)


def extract_conversation(turns: Sequence[TurnMarkdown], is_cancelled: IsCancelled) -> str:
    """Return two or three sentences of a conversation, one of them on how it ended."""
    _stop_if(is_cancelled)
    return summarize_conversation(turns)


def _stop_if(is_cancelled: IsCancelled) -> None:
    if is_cancelled():
        raise Cancelled("The worker was stopped")


@dataclass(frozen=True, slots=True)
class Summarized:
    """The summary of a source; `passage` is its passage but for id and text."""

    source: Any
    passage: Passage
    text: str
    made_at: datetime = field(default_factory=now)


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
        opened: OpenConversation,
        summarize: Summarize,
    ) -> None:
        self._store = store
        self._settings = settings
        self._opened = opened
        self._summarize = summarize
        self._work = SummaryWork(store)
        keys = (self.minimum, "summarizer_quiet_minutes", SUMMARIES.key)
        self.concerned = MODEL_KEYS.union(keys)

    @property
    def pace(self) -> Pace:
        """Many summaries in one commit."""
        return Pace(save_items=self.batch)

    def poll_interval_s(self) -> float:
        """Return `summarizer_idle_timeout`."""
        return float(self._settings.number("summarizer_idle_timeout"))

    def save(self, results: Sequence[Summarized]) -> Saved:
        """Store summaries and passages, except of sources that may no longer have one."""

        def commit() -> Saved:
            stored = self._summarizable([each.source.id for each in results])
            first_at = min(each.made_at for each in results)
            is_late = self._store.read(lambda c: is_superseded(c, SUMMARIES, first_at, MODEL))
            kept = [each for each in results if each.source.id in stored.ids and not is_late]
            changes: list[Change] = []
            for each in kept:
                summary = SummaryText(each.text, MODEL, each.source.stamp)
                replaced = stored.passages.get(each.source.id, ())
                changes += summary_changes(self._store, each.passage, summary, replaced)
            if changes:
                self._store.commit_now(*changes)
            made = sum(bool(each.text) for each in kept)
            return Saved(made, len(results) - made)

        return self._store.on_writer(commit).result()

    def _summarizable(self, ids: Sequence[int]) -> Summarizable:
        """Return which of the sources may have a summary now, and their present passages."""
        raise NotImplementedError


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

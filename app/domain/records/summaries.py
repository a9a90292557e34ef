"""Summaries as changes: a summary of an exchange or of a conversation, with its passage."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import PassagesPut, SummaryPut
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.turns import text_passage


@dataclass(frozen=True, slots=True)
class SummarySource:
    """What a summary is of: an exchange, or a conversation if that is None; its time is `said_at`, UTC."""

    conversation_id: ConversationId
    exchange_id: ExchangeId | None
    said_at: datetime

    @property
    def id(self) -> int:
        return self.conversation_id if self.exchange_id is None else self.exchange_id

    @property
    def passage_kind(self) -> PassageKind:
        if self.exchange_id is None:
            return PassageKind.CONVERSATION_SUMMARY
        return PassageKind.EXCHANGE_SUMMARY


@dataclass(frozen=True, slots=True)
class SummaryText:
    """The text of a summary, "" for a source without text; who made it; the stamp of its source."""

    text: str
    model: str
    stamp: str


def summary_changes(
    source: SummarySource,
    summary: SummaryText,
    made_at: datetime,
    passage_id: PassageId,
    replaced: tuple[int, ...] = (),
) -> tuple[SummaryPut, PassagesPut]:
    """Return what stores a summary; an empty one is kept too, so that it is not tried again.

    The passage has the time of its source, not of the summary. `replaced` are its earlier ones.
    """
    kind, text = source.passage_kind, summary.text
    put = SummaryPut(
        kind.removesuffix("_summary"), source.id, source.conversation_id, text, summary.model,
        summary.stamp, made_at,
    )  # fmt: skip
    passage = text_passage(
        passage_id,
        kind,
        source.id,
        source.conversation_id,
        source.exchange_id,
        text,
        source.said_at,
    )
    return put, PassagesPut((passage,) if text else (), replaced)

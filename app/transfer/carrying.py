"""Summaries that come with an import: kept, findable, and taken for current where they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import Change, PassagesPut, SummaryPut
from app.domain.conversations import Conversation, Exchange
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.transfer import CarriedSummary
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage.summary_work import conversation_stamp, exchange_stamp


@dataclass(frozen=True, slots=True)
class _Source:
    """What a summary is of: a conversation, or (with `exchange_id`) one of its exchanges.

    `said_at` is the time its passage bears, `ended_at` when its last reply was complete.
    """

    conversation_id: ConversationId
    exchange_id: ExchangeId | None
    stamp: str
    said_at: datetime
    ended_at: datetime | None

    @property
    def id(self) -> int:
        return self.conversation_id if self.exchange_id is None else self.exchange_id


def summary_changes(
    summaries: Iterable[CarriedSummary],
    conversation: Conversation,
    exchanges: Sequence[Exchange],
    ids: Mapping[str, MessageId],
    new_id: Callable[[], PassageId],
) -> list[Change]:
    """Return what stores the summaries of a new conversation: all of them, the newest as passages.

    `ids` are our ids of its messages by the source's. A summary that was made before its source
    was complete is due to be made again; one of an exchange that did not come along is left out.
    """
    by_end = {each.message_ids[-1]: each for each in exchanges}
    puts: list[Change] = []
    passages: dict[int | None, Passage] = {}
    for summary in sorted(summaries, key=lambda each: each.made_at):
        if summary.last_message is None:
            source = _whole(conversation, exchanges)
        elif exchange := by_end.get(ids.get(summary.last_message, MessageId(0))):
            source = _one(exchange)
        else:
            continue
        puts.append(_put(summary, source))
        passages[source.exchange_id] = _passage(new_id(), summary, source)
    return [*puts, PassagesPut(tuple(passages.values()))] if puts else []


def _whole(conversation: Conversation, exchanges: Sequence[Exchange]) -> _Source:
    ends = [each.completed_at for each in exchanges if each.completed_at is not None]
    stamp = conversation_stamp(exchanges)
    return _Source(conversation.id, None, stamp, conversation.updated_at, max(ends, default=None))


def _one(exchange: Exchange) -> _Source:
    return _Source(
        exchange.conversation_id, exchange.id, exchange_stamp(exchange), exchange.started_at,
        exchange.completed_at,
    )  # fmt: skip


def _put(summary: CarriedSummary, source: _Source) -> SummaryPut:
    is_current = source.ended_at is None or summary.made_at >= source.ended_at
    return SummaryPut(
        kind="conversation" if source.exchange_id is None else "exchange",
        source_id=source.id,
        conversation_id=source.conversation_id,
        text=summary.text,
        model=summary.model,
        source_hash=source.stamp if is_current else "",
        made_at=summary.made_at,
    )


def _passage(passage_id: PassageId, summary: CarriedSummary, source: _Source) -> Passage:
    of_whole = source.exchange_id is None
    return Passage(
        id=passage_id,
        kind=PassageKind.CONVERSATION_SUMMARY if of_whole else PassageKind.EXCHANGE_SUMMARY,
        source_id=source.id,
        conversation_id=source.conversation_id,
        exchange_id=source.exchange_id,
        content_hash=content_hash(summary.text),
        created_at=source.said_at,
        tokens=estimate_tokens(summary.text),
    )

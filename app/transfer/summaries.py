"""Imported summaries: stored with passages, and current unless their source changed afterwards."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from app.domain.changes import Change, PassagesPut, SummaryPut
from app.domain.conversations import Conversation, Exchange
from app.domain.ids import MessageId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.transfer import PortableSummary
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage.work.summary_work import conversation_stamp, exchange_stamp


def summary_changes(
    summaries: Iterable[PortableSummary],
    conversation: Conversation,
    exchanges: Sequence[Exchange],
    ids: Mapping[str, MessageId],
    new_id: Callable[[], PassageId],
    earlier: Callable[[PassageKind, int], Iterable[int]] = lambda _kind, _source: (),
) -> list[Change]:
    """Return the changes that store the summaries of a conversation, the newest as passages.

    `ids` are local message ids by the source's ids. A summary that was made before its source was
    complete is due for regeneration; a summary of an exchange that was not imported is left out.
    `earlier` returns the passages that those of a source replace.
    """
    by_last_message = {each.message_ids[-1]: each for each in exchanges}
    puts: list[Change] = []
    passages: dict[int | None, Passage] = {}
    for summary in sorted(summaries, key=lambda each: each.made_at):
        exchange = None
        if summary.last_message is not None:
            exchange = by_last_message.get(ids.get(summary.last_message, MessageId(0)))
            if exchange is None:
                continue
        puts.append(_put(summary, conversation, exchange, exchanges))
        passages[exchange.id if exchange else None] = Passage(
            id=new_id(),
            kind=PassageKind.EXCHANGE_SUMMARY if exchange else PassageKind.CONVERSATION_SUMMARY,
            source_id=exchange.id if exchange else conversation.id,
            conversation_id=conversation.id,
            exchange_id=exchange.id if exchange else None,
            content_hash=content_hash(summary.text),
            created_at=exchange.started_at if exchange else conversation.updated_at,
            tokens=estimate_tokens(summary.text),
        )
    replaced = [old for each in passages.values() for old in earlier(each.kind, each.source_id)]
    return [*puts, PassagesPut(tuple(passages.values()), tuple(replaced))] if puts else []


def _put(
    summary: PortableSummary,
    conversation: Conversation,
    exchange: Exchange | None,
    exchanges: Sequence[Exchange],
) -> SummaryPut:
    stamp = exchange_stamp(exchange) if exchange else conversation_stamp(exchanges)
    ends = [each.completed_at for each in ([exchange] if exchange else exchanges)]
    is_current = all(end is None or summary.made_at >= end for end in ends)
    return SummaryPut(
        kind="exchange" if exchange else "conversation",
        source_id=exchange.id if exchange else conversation.id,
        conversation_id=conversation.id,
        text=summary.text,
        model=summary.model,
        source_hash=stamp if is_current else "",
        made_at=summary.made_at,
    )

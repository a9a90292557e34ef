"""Imported summaries: stored with passages, and current unless their source changed afterwards."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from app.domain.changes import Change
from app.domain.conversations import Conversation, Exchange
from app.domain.ids import MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.summaries import SummarySource, SummaryText, summary_changes
from app.domain.transfer import PortableSummary
from app.storage.work.summary_work import conversation_stamp, exchange_stamp


def imported_summary_changes(
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
    passages: dict[int | None, Change] = {}
    for summary in sorted(summaries, key=lambda each: each.made_at):
        exchange = None
        if summary.last_message is not None:
            exchange = by_last_message.get(ids.get(summary.last_message, MessageId(0)))
            if exchange is None:
                continue
        stamp = exchange_stamp(exchange) if exchange else conversation_stamp(exchanges)
        ends = [each.completed_at for each in ([exchange] if exchange else exchanges)]
        is_current = all(end is None or summary.made_at >= end for end in ends)
        source = SummarySource(
            conversation.id,
            exchange.id if exchange else None,
            exchange.started_at if exchange else conversation.updated_at,
        )
        text = SummaryText(summary.text, summary.model, stamp if is_current else "")
        replaced = tuple(earlier(source.passage_kind, source.id))
        put, passages[source.exchange_id] = summary_changes(
            source, text, summary.made_at, new_id(), replaced
        )
        puts.append(put)
    return [*puts, *passages.values()]

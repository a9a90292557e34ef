"""Turns of a conversation as the transcript shows them: headers and contents from stored records."""

from collections.abc import Mapping, Sequence

from app.domain.conversations import Exchange, Message
from app.domain.ids import ExchangeId, MessageId
from ui.widgets.transcript.values import Branch, Footer, TurnContent, TurnHeader


def headers_of(
    path: Sequence[Exchange], lengths: Mapping[MessageId, int]
) -> tuple[TurnHeader, ...]:
    """Return the headers of turns; `lengths` are in characters, by message."""
    return tuple(
        TurnHeader(
            turn_number=exchange.turn_number,
            started_at=exchange.started_at,
            question_chars=lengths.get(exchange.message_ids[0], 0),
            answer_chars=sum(lengths.get(each, 0) for each in exchange.message_ids[1:]),
            segment_number=exchange.segment_number,
        )
        for exchange in path
    )


def content_of(
    exchange: Exchange, messages: Sequence[Message], siblings: Sequence[ExchangeId]
) -> TurnContent:
    """Return a turn's content; `siblings` are the exchanges at its place, itself included."""
    branches: tuple[Branch, ...] = ()
    if len(siblings) > 1 and messages:
        position = siblings.index(exchange.id) + 1
        branches = (Branch(messages[0].id, position, len(siblings)),)
    return TurnContent(
        messages=tuple(messages),
        status=exchange.status,
        footer=Footer(exchange.model, exchange.usage),
        problem=exchange.problem,
        branches=branches,
    )


def differ(shown: Exchange, stored: Exchange) -> bool:
    """Return whether a turn must be drawn again."""
    return (shown.status, shown.message_ids) != (stored.status, stored.message_ids)

"""What is stored of a turn as what the transcript shows of it."""

from collections.abc import Mapping, Sequence

from app.domain.conversations import Exchange, Message
from app.domain.ids import ExchangeId, MessageId
from ui.widgets.transcript.values import Branch, Footer, TurnContent, TurnHead


def heads_of(path: Sequence[Exchange], lengths: Mapping[MessageId, int]) -> tuple[TurnHead, ...]:
    """Return what is known of turns before their words; `lengths` in characters by message."""
    return tuple(
        TurnHead(
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
    """Return a turn's content; `siblings` stand in its place on other branches, itself included."""
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

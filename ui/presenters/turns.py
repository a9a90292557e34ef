"""Turns of a conversation as the transcript shows them: headers and contents from stored records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.chat.library import ConversationView, Library
from app.domain.conversations import Exchange, ExchangeStatus, Message
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.storage.tables.exchanges import Exchanges
from ui.widgets.transcript.values import Branch, Footer, TurnContent, TurnHeader

Position = tuple[int, int]  # turn, pixels below its top
_SHOWN_AROUND = 4  # turns on either side of the one that is opened


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


@dataclass(frozen=True, slots=True)
class ConversationReader:
    """Reads a conversation for the transcript; its methods block."""

    library: Library
    exchanges: Exchanges

    def read(
        self, conversation_id: ConversationId, exchange_id: ExchangeId | None = None
    ) -> tuple[ConversationView, tuple[TurnHeader, ...]]:
        """Return a conversation on the path through an exchange, by default the current one."""
        view = self.library.open(conversation_id, exchange_id)
        return view, headers_of(view.path, self.exchanges.text_lengths(conversation_id))

    def read_to_show(
        self,
        conversation_id: ConversationId,
        exchange_id: ExchangeId | None,
        position: Position | None,
        *,
        scrolls: bool,
    ) -> tuple[ConversationView, tuple[TurnHeader, ...], dict[int, TurnContent]]:
        """Return a conversation with the content of the turns that are on screen first."""
        view, headers = self.read(conversation_id, exchange_id)
        last = len(view.path) - 1
        middle = last if position is None else min(position[0], last)
        if scrolls and exchange_id is not None:
            middle = next(turn for turn, each in enumerate(view.path) if each.id == exchange_id)
        shown = [
            (turn, view.path[turn])
            for turn in range(max(0, middle - _SHOWN_AROUND), min(last, middle + _SHOWN_AROUND) + 1)
            if view.path[turn].status is not ExchangeStatus.RUNNING
        ]
        messages = self.library.messages([exchange for _, exchange in shown])
        contents = {
            turn: content_of(exchange, messages[exchange.id], view.siblings[turn])
            for turn, exchange in shown
        }
        return view, headers, contents

"""Where secrets stand in the library: found by reading, never stored."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Conversation, Exchange, Message, ToolCall, ToolResult
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.language.secrets import find_secrets
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.exchanges import Exchanges

_READ_TOGETHER = 64  # conversations


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """A message with a secret: its kinds, and the place of its turn. `said_at` is UTC."""

    conversation_id: ConversationId
    title: str
    turn_number: int | None
    exchange_id: ExchangeId | None
    message_id: MessageId
    kinds: tuple[str, ...]
    said_at: datetime


def secret_places(
    store: Store, is_cancelled: Callable[[], bool] = lambda: False
) -> Iterator[SecretPlace]:
    """Yield the messages with secrets, conversation by conversation, private ones too. Blocking."""
    exchanges = Exchanges(store)
    every = Conversations(store).listed(ListFilter(archived=None))
    for start in range(0, len(every), _READ_TOGETHER):
        if is_cancelled():
            return
        some = every[start : start + _READ_TOGETHER]
        ids = [each.id for each in some]
        turns_of, messages_of = exchanges.of_each(ids), exchanges.messages_in_each(ids)
        for each in some:
            yield from _in(each, turns_of.get(each.id, ()), messages_of.get(each.id, ()))


def _in(
    conversation: Conversation, exchanges: Sequence[Exchange], messages: Sequence[Message]
) -> Iterator[SecretPlace]:
    turns = {message_id: each for each in exchanges for message_id in each.message_ids}
    for message in messages:
        kinds = dict.fromkeys(
            each.kind for text in secret_texts(message) for each in find_secrets(text)
        )
        if kinds:
            turn = turns.get(message.id)
            yield SecretPlace(
                conversation.id,
                conversation.title,
                turn.turn_number if turn else None,
                turn.id if turn else None,
                message.id,
                tuple(kinds),
                message.created_at,
            )


def secret_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message that are searched for secrets."""
    yield message.text
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield block.arguments
        elif isinstance(block, ToolResult):
            yield block.text

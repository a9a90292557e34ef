"""Secrets in the library, such as keys: found by reading, forgotten wherever stored."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import (
    Attachment,
    Conversation,
    Exchange,
    Message,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.translation import trn
from app.language.secrets import find_secrets, masked
from app.storage.deletion.forget import value_places
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
            each.kind for text in _texts_of(message) for each in find_secrets(text)
        )
        if kinds:
            turn = turns.get(message.id)
            yield SecretPlace(
                conversation.id,
                masked(conversation.title),
                turn.turn_number if turn else None,
                turn.id if turn else None,
                message.id,
                tuple(kinds),
                message.created_at,
            )


def _texts_of(message: Message) -> Iterator[str]:
    yield message.text
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield block.arguments
        elif isinstance(block, ToolResult | Attachment | Thinking):
            yield block.text


class ValueService:
    """Forgets values such as keys everywhere. Blocking; no value is shown or logged.

    `forget_value` is `app.storage.deletion.forget.forget_value` for the open store.
    """

    def __init__(self, store: Store, forget_value: Callable[[str], Sequence[str]]) -> None:
        self._store = store
        self._forget_value = forget_value

    def in_messages(self, message_ids: Iterable[MessageId]) -> Sequence[str]:
        """Return the secrets in messages; raise NotFound for a message without any."""
        ids = list(message_ids)
        messages = Exchanges(self._store).messages(ids)
        values: dict[str, None] = {}
        for each in ids:
            texts = _texts_of(messages[each]) if each in messages else ()
            found = [value for text in texts for value in _values_in(text)]
            if not found:
                raise NotFound(
                    f"No secret was found in message {each}", "'commonplace secrets' lists them."
                )
            values |= dict.fromkeys(found)
        return tuple(values)

    def places(self, values: Iterable[str]) -> Mapping[str, int]:
        """Return how many records contain the values, by kind (the names of tables)."""
        total: Counter[str] = Counter()
        for each in values:
            total.update(value_places(self._store, each))
        return total

    def forget(self, values: Iterable[str]) -> Sequence[str]:
        """Remove values wherever they are stored; return what remains elsewhere.

        Raises as `forget_value` does, but for NotFound only where no value is stored.
        """
        left: dict[str, None] = {}
        missing: NotFound | None = None
        for each in sorted(values, key=len, reverse=True):  # a shorter one may be part of it
            try:
                left |= dict.fromkeys(self._forget_value(each))
            except NotFound as error:
                missing = error
        if missing is not None and not left:
            raise missing
        return tuple(left)


def places_text(counts: Mapping[str, int]) -> str:
    """Return the counts of `ValueService.places` as text: "2 messages, 1 fact"."""
    shown = (
        trn("{count} message", "{count} messages", counts.get("message", 0)),
        trn("{count} title", "{count} titles", counts.get("conversation", 0)),
        trn("{count} fact", "{count} facts", counts.get("fact", 0)),
        trn("{count} saved text", "{count} saved texts", counts.get("memory", 0)),
        trn("{count} summary", "{count} summaries", counts.get("summary", 0)),
        trn("{count} document", "{count} documents", counts.get("document", 0)),
    )
    named = ("message", "conversation", "fact", "memory", "summary", "document")
    parts = [text for name, text in zip(named, shown, strict=True) if counts.get(name)]
    if rest := sum(count for name, count in counts.items() if name not in named):
        parts.append(trn("{count} other record", "{count} other records", rest))
    return ", ".join(parts)


def _values_in(text: str) -> Iterator[str]:
    """Yield the secrets in a text; one in JSON as it is without JSON's escapes."""
    for secret in find_secrets(text):
        value = text[secret.start : secret.end]
        with suppress(ValueError):
            plain = json.loads(f'"{value}"', strict=False)
            value = plain if isinstance(plain, str) else value
        yield value

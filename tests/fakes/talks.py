"""Conversations for tests of what happens to them later: written as an import writes them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
)
from app.domain.conversations import (
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    Text,
    TitleOrigin,
)
from app.domain.ids import ConversationId, ExchangeId, new_uid
from app.domain.turn_text import turn_passage
from app.storage.store import Store

BEGAN = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
Said = tuple[str, str]


def conversation_of(store: Store, title: str = "First words", **fields: object) -> Conversation:
    """Return a new conversation that is not saved yet."""
    whole = Conversation(
        id=store.ids.conversation(),
        uid=new_uid(),
        title=title,
        title_origin=TitleOrigin.FIRST_WORDS,
        source="commonplace",
        created_at=BEGAN,
        updated_at=BEGAN,
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def turns_after(
    store: Store, conversation: Conversation, said: Sequence[Said], after: Exchange | None = None
) -> tuple[list[Change], list[Exchange]]:
    """Return what adds completed turns to the end of a conversation, and their exchanges."""
    changes: list[Change] = []
    exchanges: list[Exchange] = []
    parent = after
    for question, answer in said:
        number = 0 if parent is None else parent.turn_number + 1
        at = BEGAN + timedelta(minutes=number)
        leaf = parent.message_ids[-1] if parent else None
        asked = _message(store, conversation.id, leaf, Role.USER, question, at)
        answered = _message(store, conversation.id, asked.id, Role.ASSISTANT, answer, at)
        exchange = Exchange(
            id=store.ids.exchange(),
            conversation_id=conversation.id,
            parent_id=parent.id if parent else None,
            turn_number=number,
            segment_number=0,
            status=ExchangeStatus.COMPLETED,
            message_ids=(asked.id, answered.id),
            started_at=at,
            completed_at=at,
        )
        changes += [MessagesAdded((asked, answered)), ExchangePut(exchange)]
        passage = turn_passage(store.ids.passage(), exchange, (asked, answered))
        if passage is not None and not conversation.private:
            changes.append(PassagesPut((passage,)))
        exchanges.append(exchange)
        parent = exchange
    return changes, exchanges


def talk(
    store: Store, said: Sequence[Said], title: str = "First words", **fields: object
) -> tuple[ConversationId, list[ExchangeId]]:
    """Save a conversation of completed turns; return its id and those of its exchanges."""
    conversation = conversation_of(store, title, **fields)
    changes, exchanges = turns_after(store, conversation, said)
    leaf = exchanges[-1].message_ids[-1] if exchanges else None
    store.save(ConversationPut(replace(conversation, visible_leaf_id=leaf)), *changes)
    return conversation.id, [exchange.id for exchange in exchanges]


def go_on(
    store: Store, conversation: Conversation, after: Exchange, said: Sequence[Said]
) -> list[ExchangeId]:
    """Save more completed turns after an exchange, and show them; return their ids."""
    changes, exchanges = turns_after(store, conversation, said, after)
    last = exchanges[-1]
    shown = ConversationEdited(
        conversation.id, visible_leaf_id=last.message_ids[-1], updated_at=last.completed_at
    )
    store.save(shown, *changes)
    return [exchange.id for exchange in exchanges]


def _message(
    store: Store,
    conversation_id: ConversationId,
    parent: int | None,
    role: Role,
    text: str,
    at: datetime,
) -> Message:
    return Message(
        id=store.ids.message(),
        uid=new_uid(),
        conversation_id=conversation_id,
        parent_id=parent,  # type: ignore[arg-type]
        role=role,
        blocks=(Text(text),),
        created_at=at,
    )

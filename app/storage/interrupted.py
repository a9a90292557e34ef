"""After a kill: replies that were running are put together from the journal and marked interrupted."""

from dataclasses import replace

from app.domain import codec
from app.domain.changes import (
    Change,
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    ReplyGrew,
)
from app.domain.conversations import (
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Problem,
    Role,
    Text,
    Thinking,
)
from app.domain.ids import new_uid
from app.domain.turn_text import turn_passage
from app.storage.conversations import conversation_with
from app.storage.database import Connection
from app.storage.exchanges import Exchanges, exchanges_where
from app.storage.journal import JournalReader
from app.storage.store import Store

_PROBLEM = Problem(
    "program_ended", "The program ended while this reply was running", "Continue or regenerate it."
)


def end_running_replies(store: Store, database_uid: str) -> int:
    """Store what had arrived of every running reply, as interrupted; return how many there were."""
    running, since = store.read(_running)
    if not running:
        return 0
    grown: dict[int, list[ReplyGrew]] = {exchange.id: [] for exchange in running}
    for record in JournalReader(store.paths.journal, since - 1, database_uid):
        changes: tuple[Change, ...] = codec.loads(tuple[Change, ...], record.payload)
        for change in changes:
            if isinstance(change, ReplyGrew) and change.exchange_id in grown:
                grown[change.exchange_id].append(change)
    for exchange in running:
        store.save(*_ending(store, exchange, grown[exchange.id]))
    return len(running)


def _running(cursor: Connection) -> tuple[list[Exchange], int]:
    exchanges = exchanges_where(cursor, "status = 'running'", [])
    row = cursor.execute("SELECT min(position) FROM exchange WHERE status = 'running'").fetchone()
    return exchanges, int(row[0] or 1) if row else 1


def _ending(store: Store, exchange: Exchange, grown: list[ReplyGrew]) -> list[Change]:
    ended = replace(exchange, status=ExchangeStatus.INTERRUPTED, problem=_PROBLEM)
    known = set(exchange.message_ids)
    fresh = [part for part in grown if part.message_id not in known]
    messages = [*Exchanges(store).messages_of(exchange)]
    if not fresh:
        return [ExchangePut(ended), *_passages(store, ended, messages)]
    last = fresh[-1]
    message = Message(
        id=last.message_id,
        uid=new_uid(),
        conversation_id=exchange.conversation_id,
        parent_id=exchange.message_ids[-1] if exchange.message_ids else None,
        role=Role.ASSISTANT,
        blocks=_blocks([part for part in fresh if part.message_id == last.message_id]),
        created_at=last.at,
        model=last.model or exchange.model,
    )
    ended = replace(ended, message_ids=(*exchange.message_ids, message.id), completed_at=last.at)
    conversation = store.read(lambda cursor: conversation_with(cursor, exchange.conversation_id))
    shown = ConversationEdited(conversation.id, visible_leaf_id=message.id, updated_at=last.at)
    return [
        MessagesAdded((message,)),
        ExchangePut(ended),
        shown,
        *([] if conversation.private else _passages(store, ended, [*messages, message])),
    ]


def _passages(store: Store, ended: Exchange, messages: list[Message]) -> list[Change]:
    passage = turn_passage(store.ids.passage(), ended, messages)
    return [] if passage is None else [PassagesPut((passage,))]


def _blocks(parts: list[ReplyGrew]) -> tuple[Block, ...]:
    """Return consecutive parts of one kind joined to blocks, in order of arrival."""
    blocks: list[Block] = []
    for part in parts:
        kind = Thinking if part.kind == "thinking" else Text
        if blocks and isinstance(blocks[-1], kind):
            blocks[-1] = kind(blocks[-1].text + part.text)
        else:
            blocks.append(kind(part.text))
    return tuple(blocks)

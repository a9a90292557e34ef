"""Interrupted replies: after a kill, running replies are reassembled from the journal."""

from dataclasses import replace
from itertools import groupby

from app.domain.changes import (
    TEXT_WAS_THINKING,
    Change,
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    ReplyGrew,
)
from app.domain.conversations import (
    Block,
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Problem,
    Role,
    Text,
    Thinking,
)
from app.domain.ids import new_uid
from app.domain.passages import PassageKind
from app.domain.turns import turn_passage
from app.storage.engine.journal import JournalReader
from app.storage.engine.store import Store
from app.storage.safety.replay import changes_of
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, exchanges_where
from app.storage.tables.passages.queries import Passages

PROGRAM_ENDED = Problem("program_ended", "The program ended while this reply was running")


def end_running_replies(store: Store) -> int:
    """Store the received part of every running reply as interrupted; return how many there were.

    Blocking; raises StorageError.
    """
    running = running_exchanges(store)
    if not running:
        return 0
    grown = grown_since(store, running)
    used = [part.message_id for parts in grown.values() for part in parts]
    # The journal has used these ids for messages that are not rows yet.
    store.ids.pass_over(max(used, default=0))
    conversations = Conversations(store).by_ids(
        {exchange.conversation_id for exchange, _ in running}
    )
    for exchange, _ in running:
        conversation = conversations.get(exchange.conversation_id)
        store.save(*_ending(store, exchange, conversation, grown[exchange.id]))
    return len(running)


def running_exchanges(store: Store) -> list[tuple[Exchange, int]]:
    """Return the running exchanges, each with the journal position of its record."""
    running = store.read(exchanges_where, "status = 'running'", [])
    positions: dict[int, int] = dict(
        store.select_in("exchange", "id, position", [each.id for each in running])
    )
    return [(each, positions[each.id]) for each in running]


def grown_since(store: Store, running: list[tuple[Exchange, int]]) -> dict[int, list[ReplyGrew]]:
    """Return the journalled parts of each running reply, by exchange, in order of arrival.

    Parts before the exchange's own record belong to an earlier try of it.
    """
    since = {int(exchange.id): position for exchange, position in running}
    grown: dict[int, list[ReplyGrew]] = {each: [] for each in since}
    for record in JournalReader(store.paths.journal, min(since.values()) - 1, store.uid):
        if '"ReplyGrew"' not in record.payload:
            continue
        for change in changes_of(record):
            if isinstance(change, ReplyGrew) and record.position >= since.get(
                change.exchange_id, record.position + 1
            ):
                grown[change.exchange_id].append(change)
    return grown


def _ending(
    store: Store, exchange: Exchange, conversation: Conversation | None, grown: list[ReplyGrew]
) -> list[Change]:
    known = [*Exchanges(store).messages_of(exchange)]
    fresh = _messages(exchange, [g for g in grown if g.message_id not in exchange.message_ids])
    ended = replace(
        exchange,
        status=ExchangeStatus.INTERRUPTED,
        problem=PROGRAM_ENDED,
        message_ids=(*exchange.message_ids, *(message.id for message in fresh)),
    )
    changes: list[Change] = []
    if fresh:
        at = grown[-1].at
        ended = replace(ended, completed_at=at)
        changes.append(MessagesAdded(tuple(fresh)))
        if conversation is not None and conversation.visible_leaf_id in exchange.message_ids:
            shown = ConversationEdited(conversation.id, visible_leaf_id=fresh[-1].id, updated_at=at)
            changes.append(shown)
    changes.append(ExchangePut(ended))
    if conversation is not None and not conversation.private:
        passage = turn_passage(store.ids.passage(), ended, [*known, *fresh])
        if passage is not None:
            earlier = Passages(store).of_source(PassageKind.TURN, ended.id)
            changes.append(PassagesPut((passage,), replaced=tuple(earlier)))
    return changes


def _messages(exchange: Exchange, grown: list[ReplyGrew]) -> list[Message]:
    """Return the assistant messages that had started, each the parent of the next."""
    messages: list[Message] = []
    parent = exchange.message_ids[-1] if exchange.message_ids else None
    for message_id, found in groupby(grown, lambda part: part.message_id):
        parts = list(found)
        blocks = _blocks(parts)
        if blocks:
            model = parts[0].model or exchange.model
            messages.append(
                Message(
                    message_id, new_uid(), exchange.conversation_id, parent, Role.ASSISTANT,
                    blocks, parts[0].at, model,
                )
            )  # fmt: skip
            parent = message_id
    return messages


def _blocks(parts: list[ReplyGrew]) -> tuple[Block, ...]:
    """Return consecutive parts of one kind joined to blocks, in order of arrival."""
    blocks: list[Text | Thinking] = []
    for part in parts:
        kind = Thinking if part.kind == "thinking" else Text
        if part.kind == TEXT_WAS_THINKING:
            blocks = [Thinking("".join(block.text for block in blocks).strip())]
        elif blocks and isinstance(blocks[-1], kind):
            blocks[-1] = kind(blocks[-1].text + part.text)
        elif part.text:
            blocks.append(kind(part.text))
    return tuple(blocks)

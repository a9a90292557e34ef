"""What a wish of the user writes before anything runs. Pure: rows in, changes out.

Send appends a turn, edit and regenerate make a sibling of one, retry and continue reuse it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.chat.tool_rounds import unfinished_result
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
)
from app.domain.conversations import (
    Block,
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    TitleOrigin,
    ToolCall,
    plain_text,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId, new_uid
from app.domain.text import one_line
from app.domain.turns import is_reply

TITLE_LIMIT_CHARS = 60
UNTITLED = "New conversation"


@dataclass(frozen=True, slots=True)
class Plan:
    """An exchange about to run: `path` is every message so far, oldest first, its own last.

    What runs has a path of its own segment alone.
    """

    conversation: Conversation
    exchange: Exchange
    path: tuple[Message, ...]
    changes: tuple[Change, ...]
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Allocator:
    """Gives what a plan needs of the world: ids and the time."""

    message: Callable[[], MessageId]
    exchange: Callable[[], ExchangeId]
    now: Callable[[], datetime]


def plan_send(
    conversation: Conversation,
    shown: Sequence[Exchange],
    path: Sequence[Message],
    blocks: tuple[Block, ...],
    model: str,
    allocate: Allocator,
    *,
    is_new: bool,
    clean_slate: bool = False,
) -> Plan:
    """Append the user's message to the shown path; after a `clean_slate` it begins a segment.

    A last exchange without a reply takes the message in (its question is grouped with this one),
    unless it belongs to the segment before; otherwise a new exchange follows it.
    """
    last = shown[-1] if shown else None
    at = allocate.now()
    message = _user_message(conversation, path[-1].id if path else None, blocks, allocate, at)
    grouped = (
        last is not None
        and not clean_slate
        and last.status is not ExchangeStatus.RUNNING
        and not _has_reply(last, path)
    )
    exchange = Exchange(
        id=last.id if last and grouped else allocate.exchange(),
        conversation_id=conversation.id,
        parent_id=(last.parent_id if grouped else last.id) if last else None,
        turn_number=(last.turn_number if grouped else last.turn_number + 1) if last else 0,
        segment_number=last.segment_number + clean_slate if last else 0,
        status=ExchangeStatus.RUNNING,
        message_ids=(*(last.message_ids if last and grouped else ()), message.id),
        started_at=last.started_at if last and grouped else at,
        model=model,
    )
    if is_new:
        conversation = replace(conversation, title=title_from(blocks), visible_leaf_id=message.id)
    changes = (
        ConversationPut(conversation)
        if is_new
        else replace(_shows(conversation, message.id, at), model=conversation.model),
        MessagesAdded((message,)),
        ExchangePut(exchange),
        DraftPut(None if is_new else conversation.id, "", at),
    )
    return Plan(conversation, exchange, (*path, message), changes)


def plan_edit(
    conversation: Conversation,
    edited: Exchange,
    path: Sequence[Message],
    message_id: MessageId,
    blocks: tuple[Block, ...],
    model: str,
    allocate: Allocator,
) -> Plan:
    """Put another user message in the place of `message_id`, on a branch of its own.

    `path` ends with the exchange `edited`, which holds that message.
    """
    at = allocate.now()
    before = path[: next(i for i, each in enumerate(path) if each.id == message_id)]
    message = _user_message(conversation, before[-1].id if before else None, blocks, allocate, at)
    own = edited.message_ids[: edited.message_ids.index(message_id)]
    exchange = _sibling(edited, (*own, message.id), model, allocate, at)
    shows = _shows(conversation, message.id, at)
    changes = (shows, MessagesAdded((message,)), ExchangePut(exchange))
    return Plan(conversation, exchange, (*before, message), changes)


def plan_regenerate(
    conversation: Conversation,
    answered: Exchange,
    path: Sequence[Message],
    model: str,
    allocate: Allocator,
) -> Plan:
    """Answer the question of `answered` once more, on a branch that shares it."""
    at = allocate.now()
    asked = _until_last_question(answered, path)
    exchange = _sibling(answered, tuple(message.id for message in asked), model, allocate, at)
    before = path[: len(path) - len(answered.message_ids)]
    changes = (_shows(conversation, exchange.message_ids[-1], at), ExchangePut(exchange))
    return Plan(conversation, exchange, (*before, *asked), changes)


def plan_retry(
    conversation: Conversation,
    failed: Exchange,
    path: Sequence[Message],
    model: str,
    allocate: Allocator,
    *,
    continues: bool = False,
) -> Plan:
    """Run the same exchange again: from its question, or (`continues`) from where it broke off.

    Tools that were called and never answered get a result that says so.
    """
    at = allocate.now()
    added = _broken_off(conversation, path[-1], allocate, at)
    message_ids = (*failed.message_ids, *(message.id for message in added))
    exchange = replace(
        failed,
        status=ExchangeStatus.RUNNING,
        message_ids=message_ids,
        model=model,
        problem=None,
        completed_at=None,
    )
    changes: list[Change] = [MessagesAdded(added)] if added else []
    changes += [_shows(conversation, message_ids[-1], at), ExchangePut(exchange)]
    return Plan(conversation, exchange, (*path, *added), tuple(changes), continues)


def title_from(blocks: tuple[Block, ...]) -> str:
    """Return the first words of a message as a title."""
    return one_line(plain_text(blocks), TITLE_LIMIT_CHARS) or UNTITLED


def new_conversation(
    conversation_id: int,
    at: datetime,
    *,
    private: bool = False,
    model: str | None = None,
    recalls: bool = True,
) -> Conversation:
    """Return a conversation not yet begun."""
    return Conversation(
        id=ConversationId(conversation_id),
        uid=new_uid(),
        title=UNTITLED,
        title_origin=TitleOrigin.FIRST_WORDS,
        source="commonplace",
        created_at=at,
        updated_at=at,
        private=private,
        recalls=recalls,
        model=model,
    )


def _shows(conversation: Conversation, leaf: MessageId, at: datetime) -> ConversationEdited:
    return ConversationEdited(conversation.id, visible_leaf_id=leaf, updated_at=at)


def _sibling(
    of: Exchange,
    message_ids: tuple[MessageId, ...],
    model: str,
    allocate: Allocator,
    at: datetime,
) -> Exchange:
    return Exchange(
        id=allocate.exchange(),
        conversation_id=of.conversation_id,
        parent_id=of.parent_id,
        turn_number=of.turn_number,
        segment_number=of.segment_number,
        status=ExchangeStatus.RUNNING,
        message_ids=message_ids,
        started_at=at,
        model=model,
    )


def _user_message(
    conversation: Conversation,
    parent_id: MessageId | None,
    blocks: tuple[Block, ...],
    allocate: Allocator,
    at: datetime,
) -> Message:
    return Message(allocate.message(), new_uid(), conversation.id, parent_id, Role.USER, blocks, at)


def _broken_off(
    conversation: Conversation, last: Message, allocate: Allocator, at: datetime
) -> tuple[Message, ...]:
    """Return the message that answers the calls a path ends with; none when it ends otherwise."""
    results = tuple(unfinished_result(each) for each in last.blocks if isinstance(each, ToolCall))
    if not results:
        return ()
    message_id = allocate.message()
    return (Message(message_id, new_uid(), conversation.id, last.id, Role.TOOL, results, at),)


def _until_last_question(exchange: Exchange, path: Sequence[Message]) -> tuple[Message, ...]:
    own = [message for message in path if message.id in set(exchange.message_ids)]
    questions = [index for index, message in enumerate(own) if message.opens_turn]
    return tuple(own[: questions[-1] + 1]) if questions else tuple(own[:1])


def _has_reply(exchange: Exchange, path: Sequence[Message]) -> bool:
    own = set(exchange.message_ids)
    return any(message.id in own and is_reply(message) for message in path)

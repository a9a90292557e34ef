"""Where turns begin and end: a tree of messages in, exchanges out. Pure.

A turn begins with a real user message once the turn before it has a reply; a user message without
a reply is grouped with the next one, and what stands before the first user message belongs to
turn 0. Where the tree branches inside a turn (a regenerated reply), the branches are sibling
exchanges that share their first messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.domain.conversations import (
    Exchange,
    ExchangeStatus,
    Image,
    Message,
    Role,
    Text,
    ToolCall,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId


@dataclass(slots=True)
class _Draft:
    """An exchange being put together; `key` is its place among the drafts."""

    key: int
    parent: int | None
    turn_number: int
    messages: list[Message]
    asked: bool
    answered: bool

    def takes(self, message: Message) -> None:
        self.messages.append(message)
        if message.opens_turn:
            self.asked = True
        elif self.asked and is_reply(message):
            self.answered = True

    def fork_before(self, message: Message, key: int) -> "_Draft":
        """Return a sibling that shares the messages up to and including `message`'s parent."""
        end = next(
            index + 1 for index, each in enumerate(self.messages) if each.id == message.parent_id
        )
        fork = _Draft(key, self.parent, self.turn_number, [], asked=False, answered=False)
        for shared in self.messages[:end]:
            fork.takes(shared)
        return fork


def is_reply(message: Message) -> bool:
    """Return whether a message answers: an assistant's, with words, an image or a tool call."""
    return message.role is Role.ASSISTANT and any(
        isinstance(block, ToolCall | Image) or (isinstance(block, Text) and block.text.strip())
        for block in message.blocks
    )


def calculate_exchanges(
    messages: Sequence[Message],
    new_id: Callable[[], ExchangeId],
    known: Sequence[Exchange] = (),
) -> tuple[Exchange, ...]:
    """Return the exchanges of a conversation's whole tree, parents first.

    `messages` are all of one conversation, every message after its parent. A result that
    continues or equals one of the `known` exchanges keeps its id, so that a conversation can
    grow; the others get ids from `new_id`. A turn without a reply is `interrupted`.
    """
    drafts = _drafts(messages)
    ids = _identities(drafts, known, new_id)
    before = {exchange.id: exchange for exchange in known}
    return tuple(_exchange(draft, ids, before) for draft in drafts)


def _drafts(messages: Sequence[Message]) -> list[_Draft]:
    drafts: list[_Draft] = []
    draft_of: dict[MessageId, _Draft] = {}
    for message in messages:
        at = draft_of.get(message.parent_id) if message.parent_id is not None else None
        draft = _draft_for(message, at, drafts)
        draft.takes(message)
        draft_of[message.id] = draft
    return drafts


def _draft_for(message: Message, at: _Draft | None, drafts: list[_Draft]) -> _Draft:
    """Return the draft that `message` goes into, given the one its parent is in."""
    key = len(drafts)
    if at is None:
        draft = _Draft(key, None, 0, [], asked=False, answered=False)
    elif at.messages[-1].id == message.parent_id:
        if not (message.opens_turn and at.answered):
            return at
        draft = _Draft(key, at.key, at.turn_number + 1, [], asked=False, answered=False)
    else:
        fork = at.fork_before(message, key)
        if message.opens_turn and fork.answered:
            # The parent is inside a turn that went on otherwise: its first part is a turn here.
            drafts.append(fork)
            draft = _Draft(key + 1, key, at.turn_number + 1, [], asked=False, answered=False)
        else:
            draft = fork
    drafts.append(draft)
    return draft


def _identities(
    drafts: Sequence[_Draft], known: Sequence[Exchange], new_id: Callable[[], ExchangeId]
) -> list[ExchangeId]:
    """Give each draft the id of the known exchange it continues, else a new one."""
    by_first: dict[MessageId, list[Exchange]] = {}
    for exchange in known:
        if exchange.message_ids:
            by_first.setdefault(exchange.message_ids[0], []).append(exchange)
    taken: set[ExchangeId] = set()
    ids = []
    for draft in drafts:
        own = tuple(message.id for message in draft.messages)
        fits = [
            exchange
            for exchange in by_first.get(own[0], ())
            if exchange.id not in taken and exchange.message_ids == own[: len(exchange.message_ids)]
        ]
        best = max(fits, key=lambda exchange: len(exchange.message_ids), default=None)
        chosen = new_id() if best is None else best.id
        taken.add(chosen)
        ids.append(chosen)
    return ids


def _exchange(
    draft: _Draft, ids: Sequence[ExchangeId], known: dict[ExchangeId, Exchange]
) -> Exchange:
    first, last = draft.messages[0], draft.messages[-1]
    done = draft.answered or not draft.asked
    models = [message.model for message in draft.messages if message.model]
    exchange = Exchange(
        id=ids[draft.key],
        conversation_id=ConversationId(first.conversation_id),
        parent_id=None if draft.parent is None else ids[draft.parent],
        turn_number=draft.turn_number,
        segment_number=0,
        status=ExchangeStatus.COMPLETED if done else ExchangeStatus.INTERRUPTED,
        message_ids=tuple(message.id for message in draft.messages),
        started_at=first.created_at,
        completed_at=last.created_at,
        model=models[-1] if models else None,
    )
    same = known.get(exchange.id)
    if same is None:
        return exchange
    if same.message_ids == exchange.message_ids:
        return replace(same, parent_id=exchange.parent_id, turn_number=exchange.turn_number)
    return replace(exchange, segment_number=same.segment_number, usage=same.usage)

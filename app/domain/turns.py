"""Turn calculation: from a tree of messages to exchanges, as pure functions.

A turn begins with a real user message once the turn before it has a reply; a user message without a reply
is grouped with the next one, and messages before the first user message belong to turn 0. A message's
turn depends only on the path that leads to it, and an exchange is the part of one path from the first
message of a turn to its end: a leaf, or a message before the next turn. Where the tree branches inside a
turn (a regenerated reply), the branches are sibling exchanges that share their first messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.domain.conversations import (
    Exchange,
    ExchangeStatus,
    Forgotten,
    Image,
    Message,
    Role,
    Text,
    ToolCall,
)
from app.domain.ids import ExchangeId, MessageId, derived_uid, milliseconds


@dataclass(frozen=True, slots=True)
class _Node:
    """A message with the state of the path that leads to it.

    `turn` is the turn number; `begins_turn` is true for the first message of the turn. `has_question`
    and `has_reply` describe the turn up to and including this message.
    """

    message: Message
    parent: "_Node | None"
    turn: int
    begins_turn: bool
    has_question: bool
    has_reply: bool


def is_reply(message: Message) -> bool:
    """Return whether a message is a reply: from the assistant, with text, an image or a tool call.

    A forgotten one remains a reply.
    """
    return message.role is Role.ASSISTANT and any(
        isinstance(block, ToolCall | Image | Forgotten)
        or (isinstance(block, Text) and block.text and not block.text.isspace())
        for block in message.blocks
    )


def calculate_exchanges(
    messages: Sequence[Message], new_id: Callable[[], ExchangeId], known: Sequence[Exchange] = ()
) -> tuple[Exchange, ...]:
    """Return the exchanges of a conversation's whole tree, parents first.

    `messages` are all messages of the conversation, each after its parent. An exchange that equals or
    extends one of the `known` exchanges keeps its id; the others get ids from `new_id`. A turn without
    a reply is `interrupted`.
    """
    nodes: dict[MessageId, _Node] = {}
    for message in messages:
        parent = nodes.get(message.parent_id) if message.parent_id is not None else None
        nodes[message.id] = _node(message, parent)
    turns = [_turn(end) for end in _ends(nodes)]
    ids = _identities(turns, known, new_id)
    by_end = {turn[-1].message.id: chosen for turn, chosen in zip(turns, ids, strict=True)}
    before = {exchange.id: exchange for exchange in known}
    return tuple(
        _exchange(turn, chosen, by_end, before.get(chosen))
        for turn, chosen in zip(turns, ids, strict=True)
    )


def _node(message: Message, parent: _Node | None) -> _Node:
    opens_turn = message.opens_turn
    if parent is None or (opens_turn and parent.has_reply):
        turn = 0 if parent is None else parent.turn + 1
        return _Node(message, parent, turn, True, opens_turn, False)
    has_question = parent.has_question or opens_turn
    has_reply = parent.has_reply or (parent.has_question and is_reply(message))
    return _Node(message, parent, parent.turn, False, has_question, has_reply)


def _ends(nodes: dict[MessageId, _Node]) -> list[_Node]:
    """Return the last messages of all turns in message order, so parents first."""
    has_children: set[MessageId] = set()
    before_a_turn: set[MessageId] = set()
    for node in nodes.values():
        if node.parent is not None:
            has_children.add(node.parent.message.id)
            if node.begins_turn:
                before_a_turn.add(node.parent.message.id)
    return [
        node
        for message_id, node in nodes.items()
        if message_id not in has_children or message_id in before_a_turn
    ]


def _turn(end: _Node) -> list[_Node]:
    """Return the path from the first message of the turn to its last."""
    path = [end]
    while not path[-1].begins_turn and path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]


def _identities(
    turns: Sequence[Sequence[_Node]], known: Sequence[Exchange], new_id: Callable[[], ExchangeId]
) -> list[ExchangeId]:
    """Return an id for each turn: of the known exchange that it equals or extends, else a new one."""
    by_first: dict[MessageId, list[Exchange]] = {}
    for exchange in known:
        if exchange.message_ids:
            by_first.setdefault(exchange.message_ids[0], []).append(exchange)
    owns = [tuple(node.message.id for node in turn) for turn in turns]
    chosen: dict[tuple[MessageId, ...], ExchangeId] = {}
    for extends in (False, True):
        for own in owns:
            candidates = [
                each
                for each in by_first.get(own[0], ())
                if each.message_ids == (own[: len(each.message_ids)] if extends else own)
            ]
            if own not in chosen and candidates:
                best = max(candidates, key=lambda exchange: len(exchange.message_ids))
                by_first[own[0]].remove(best)
                chosen[own] = best.id
    return [chosen[own] if own in chosen else new_id() for own in owns]


def _exchange(
    turn: Sequence[_Node],
    exchange_id: ExchangeId,
    by_end: dict[MessageId, ExchangeId],
    same: Exchange | None,
) -> Exchange:
    first, last = turn[0], turn[-1]
    done = last.has_reply or not last.has_question
    models = [node.message.model for node in turn if node.message.model]
    exchange = Exchange(
        id=exchange_id,
        conversation_id=first.message.conversation_id,
        parent_id=None if first.parent is None else by_end[first.parent.message.id],
        turn_number=first.turn,
        segment_number=0,
        status=ExchangeStatus.COMPLETED if done else ExchangeStatus.INTERRUPTED,
        message_ids=tuple(node.message.id for node in turn),
        started_at=first.message.created_at,
        completed_at=last.message.created_at,
        model=models[-1] if models else None,
        uid=derived_uid(f"turn/{last.message.uid}", milliseconds(first.message.created_at)),
    )
    if same is None:
        return exchange
    if same.message_ids == exchange.message_ids:
        return replace(same, parent_id=exchange.parent_id, turn_number=exchange.turn_number)
    return replace(exchange, segment_number=same.segment_number, usage=same.usage, uid=same.uid)

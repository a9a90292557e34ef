"""Where turns begin and end: a tree of messages in, exchanges out. Pure.

A turn begins with a real user message once the turn before it has a reply; a user message without
a reply is grouped with the next one, and what stands before the first user message belongs to
turn 0. So every message has its turn by the path that leads to it, and an exchange is a stretch of
one path, from where a turn begins to where it ends: at a leaf, or before a message that begins the
next turn. Where the tree branches inside a turn (a regenerated reply), the branches are sibling
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
from app.domain.ids import ExchangeId, MessageId


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a message stands on the one path that leads to it.

    `turn` is the turn's number; `begins_turn` is true for the turn's first message. `asked` and
    `answered` say what the turn holds up to and including this message.
    """

    message: Message
    parent: "_Place | None"
    turn: int
    begins_turn: bool
    asked: bool
    answered: bool


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
    places: dict[MessageId, _Place] = {}
    for message in messages:
        parent = places.get(message.parent_id) if message.parent_id is not None else None
        places[message.id] = _place(message, parent)
    turns = [_turn(end) for end in _ends(places)]
    ids = _identities(turns, known, new_id)
    by_end = {turn[-1].message.id: chosen for turn, chosen in zip(turns, ids, strict=True)}
    before = {exchange.id: exchange for exchange in known}
    return tuple(
        _exchange(turn, chosen, by_end, before.get(chosen))
        for turn, chosen in zip(turns, ids, strict=True)
    )


def _place(message: Message, parent: _Place | None) -> _Place:
    if parent is None or (message.opens_turn and parent.answered):
        turn = 0 if parent is None else parent.turn + 1
        return _Place(message, parent, turn, True, message.opens_turn, False)
    asked = parent.asked or message.opens_turn
    answered = parent.answered or (parent.asked and is_reply(message))
    return _Place(message, parent, parent.turn, False, asked, answered)


def _ends(places: dict[MessageId, _Place]) -> list[_Place]:
    """Return where turns end, in the order of the messages: so parents come first."""
    has_children: set[MessageId] = set()
    before_a_turn: set[MessageId] = set()
    for place in places.values():
        if place.parent is not None:
            has_children.add(place.parent.message.id)
            if place.begins_turn:
                before_a_turn.add(place.parent.message.id)
    return [
        place
        for message_id, place in places.items()
        if message_id not in has_children or message_id in before_a_turn
    ]


def _turn(end: _Place) -> list[_Place]:
    """Return the stretch of the path from where the turn begins to its end."""
    stretch = [end]
    while not stretch[-1].begins_turn and stretch[-1].parent is not None:
        stretch.append(stretch[-1].parent)
    return stretch[::-1]


def _identities(
    turns: Sequence[Sequence[_Place]], known: Sequence[Exchange], new_id: Callable[[], ExchangeId]
) -> list[ExchangeId]:
    """Give each turn the id of the known exchange it equals or continues, else a new one."""
    by_first: dict[MessageId, list[Exchange]] = {}
    for exchange in known:
        if exchange.message_ids:
            by_first.setdefault(exchange.message_ids[0], []).append(exchange)
    owns = [tuple(place.message.id for place in turn) for turn in turns]
    chosen: dict[tuple[MessageId, ...], ExchangeId] = {}
    for is_the_one in (_equals, _continues):
        for own in owns:
            fits = [each for each in by_first.get(own[0], ()) if is_the_one(own, each)]
            if own not in chosen and fits:
                best = max(fits, key=lambda exchange: len(exchange.message_ids))
                by_first[own[0]].remove(best)
                chosen[own] = best.id
    return [chosen[own] if own in chosen else new_id() for own in owns]


def _equals(own: tuple[MessageId, ...], exchange: Exchange) -> bool:
    return exchange.message_ids == own


def _continues(own: tuple[MessageId, ...], exchange: Exchange) -> bool:
    return exchange.message_ids == own[: len(exchange.message_ids)]


def _exchange(
    turn: Sequence[_Place],
    exchange_id: ExchangeId,
    by_end: dict[MessageId, ExchangeId],
    same: Exchange | None,
) -> Exchange:
    first, last = turn[0], turn[-1]
    done = last.answered or not last.asked
    models = [place.message.model for place in turn if place.message.model]
    exchange = Exchange(
        id=exchange_id,
        conversation_id=first.message.conversation_id,
        parent_id=None if first.parent is None else by_end[first.parent.message.id],
        turn_number=first.turn,
        segment_number=0,
        status=ExchangeStatus.COMPLETED if done else ExchangeStatus.INTERRUPTED,
        message_ids=tuple(place.message.id for place in turn),
        started_at=first.message.created_at,
        completed_at=last.message.created_at,
        model=models[-1] if models else None,
    )
    if same is None:
        return exchange
    if same.message_ids == exchange.message_ids:
        return replace(same, parent_id=exchange.parent_id, turn_number=exchange.turn_number)
    return replace(exchange, segment_number=same.segment_number, usage=same.usage)

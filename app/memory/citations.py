"""Which recalled items an answer cites: by link, or by naming the id it was quoted with. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

from app.domain.ids import ExchangeId
from app.domain.links import Link, links_in
from app.domain.recalls import RecalledItem, RecallLayer

_NAMED = re.compile(
    r"\b(conversation|exchange|message|fact|memory)s?\s*(?:id\s*)?[:#]?\s*(\d{1,18})\b",
    re.IGNORECASE,
)


def cited(
    answer: str, items: Iterable[RecalledItem], turn_numbers: Mapping[ExchangeId, int]
) -> tuple[RecalledItem, ...]:
    """Return the injected items that an answer cites, in their order.

    A link to a turn cites what is of that turn, and the conversation it was quoted under where
    nothing else is; a link to a conversation cites all that was quoted of it. `turn_numbers` are
    those of the items' exchanges, as far as the shown paths hold them.
    """
    injected = [item for item in items if item.injected]
    turns, talks = _linked(answer)
    named = {(kind.casefold(), int(number)) for kind, number in _NAMED.findall(answer)}
    chosen = [
        item
        for item in injected
        if _is_linked(item, turns, turn_numbers)
        or item.conversation_id in talks
        or _is_named(item, named)
    ]
    return tuple(item for item in injected if item in chosen or _stands_for(item, turns, chosen))


def _linked(answer: str) -> tuple[set[Link], set[int]]:
    """Return the turns and the whole conversations that an answer links to."""
    turns: set[Link] = set()
    talks: set[int] = set()
    for link in links_in(answer):
        if link.turn_number is None:
            talks.add(link.conversation_id)
        else:
            turns.add(link)
    return turns, talks


def _is_linked(
    item: RecalledItem, turns: set[Link], turn_numbers: Mapping[ExchangeId, int]
) -> bool:
    """Return whether a link means an item: its exchange where it names one, else its number."""
    if item.exchange_id is None:
        return False
    number = turn_numbers.get(item.exchange_id)
    return any(
        link.exchange_id == item.exchange_id
        or (link.exchange_id is None and link.turn_number == number)
        for link in turns
        if link.conversation_id == item.conversation_id
    )


def _is_named(item: RecalledItem, named: set[tuple[str, int]]) -> bool:
    names: set[tuple[str, int | None]] = {
        ("exchange", item.exchange_id),
        ("message", item.message_id),
        (item.kind.value, item.passage_id),
    }
    if item.layer is RecallLayer.CONVERSATION:
        names = {("conversation", item.conversation_id)}
    elif item.layer is RecallLayer.FACT:
        names = {(item.kind.value, item.passage_id)}
    return any(number is not None and (kind, number) in named for kind, number in names)


def _stands_for(item: RecalledItem, turns: set[Link], chosen: Sequence[RecalledItem]) -> bool:
    """Return whether a link into a conversation can mean nothing that was quoted but its head."""
    if item.layer is not RecallLayer.CONVERSATION or item.conversation_id is None:
        return False
    links = [turn for turn in turns if turn.conversation_id == item.conversation_id]
    return bool(links) and not any(each.conversation_id == item.conversation_id for each in chosen)

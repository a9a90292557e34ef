"""Links to turns: `commonplace://ID/TURN`, with `?exchange=EXCHANGE` where the turn is not shown.

A turn's number names it on the path that is shown; on a hidden branch its exchange does.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.domain.ids import ConversationId, ExchangeId

SCHEME = "commonplace://"
_LINK = re.compile(
    rf"{SCHEME}(\d{{1,18}})(?:/(\d{{1,9}})(?:\?exchange=(\d{{1,18}}))?)?", re.IGNORECASE
)


class Link(NamedTuple):
    """A conversation, a turn of its shown path if any, or the very exchange."""

    conversation_id: ConversationId
    turn_number: int | None
    exchange_id: ExchangeId | None = None


def link_to(
    conversation_id: int,
    turn_number: int | None,
    exchange_id: ExchangeId | None = None,
    *,
    is_shown: bool = True,
) -> str:
    """Return the link to a turn, by its exchange where the shown path does not hold it."""
    turn = "" if turn_number is None else f"/{turn_number}"
    exchange = "" if is_shown or not turn or exchange_id is None else f"?exchange={exchange_id}"
    return f"{SCHEME}{conversation_id}{turn}{exchange}"


def link_of(text: str) -> Link | None:
    """Return what a text links to that is a link of ours and nothing else."""
    match = _LINK.fullmatch(text.removesuffix("/"))
    return None if match is None else _read(match)


def links_in(text: str) -> Iterator[Link]:
    """Yield the links of ours in a text."""
    return map(_read, _LINK.finditer(text))


def _read(match: re.Match[str]) -> Link:
    turn, exchange = match[2], match[3]
    return Link(
        ConversationId(int(match[1])),
        None if turn is None else int(turn),
        None if exchange is None else ExchangeId(int(exchange)),
    )

"""Links to turns: `commonplace://ID/TURN`, with `?exchange=EXCHANGE` when the turn is on a hidden branch.

A turn number identifies a turn on the visible path; on a hidden branch the exchange id does.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId
from app.domain.text import parse_whole_number

SCHEME = "commonplace://"
_MANUAL = "man:"
_DOCUMENT = "document:"
_DOCUMENT_LINK = f"{SCHEME}document/"
_LINK = re.compile(
    rf"{SCHEME}(\d{{1,18}})(?:/(\d{{1,9}})(?:\?exchange=(\d{{1,18}}))?)?", re.IGNORECASE
)

_LABELED = re.compile(rf"\[((?:\\.|[^\\\[\]]){{1,300}})\]\(({SCHEME}[^()\s]{{1,80}})\)")
_ESCAPED = re.compile(r"\\(.)")


class Link(NamedTuple):
    """A link target: a conversation, optionally a turn of its visible path or an exchange."""

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
    """Return the link to a turn; it names the exchange when the turn is not on the visible path."""
    turn = "" if turn_number is None else f"/{turn_number}"
    exchange = "" if is_shown or not turn or exchange_id is None else f"?exchange={exchange_id}"
    return f"{SCHEME}{conversation_id}{turn}{exchange}"


def parse_commonplace_link(text: str) -> Link | None:
    """Return the target of a text that is exactly one link, else None."""
    match = _LINK.fullmatch(text.removesuffix("/"))
    return None if match is None else _read(match)


def find_links(text: str) -> Iterator[Link]:
    """Yield the targets of all links in a text."""
    return map(_read, _LINK.finditer(text))


def labeled_links(text: str) -> tuple[tuple[str, str], ...]:
    """Return (label, target) of the links of a Markdown text that lead somewhere here, each target once."""
    found: dict[str, str] = {}
    for label, target in _LABELED.findall(text):
        found.setdefault(target, _ESCAPED.sub(r"\1", label))
    return tuple((label, target) for target, label in found.items())


def _read(match: re.Match[str]) -> Link:
    turn, exchange = match[2], match[3]
    return Link(
        ConversationId(int(match[1])),
        None if turn is None else int(turn),
        None if exchange is None else ExchangeId(int(exchange)),
    )


def parse_place(text: str) -> tuple[ConversationId, int | None]:
    """Return (conversation, turn number or None) of ID, ID:TURN or a link; raise InvalidInput."""
    link = parse_link(text)
    if link.exchange_id is not None:
        raise InvalidInput(
            f"'{text}' is on a branch that is not shown", "Open the link in the window."
        )
    return link.conversation_id, link.turn_number


def parse_link(text: str) -> Link:
    """Return the target of a link, ID or ID:TURN; raise InvalidInput for anything else."""
    if (link := parse_commonplace_link(text.strip())) is not None:
        return link
    words = text.strip().removeprefix(SCHEME).replace("/", ":").strip(":")
    number, _, turn = words.partition(":")
    conversation_id, turn_number = parse_whole_number(number), parse_whole_number(turn)
    if conversation_id is None or (turn and turn_number is None):
        raise InvalidInput(f"'{text}' is not a turn", "Write ID or ID:TURN, such as 12:3.")
    return Link(ConversationId(conversation_id), turn_number)


def parse_page(text: str) -> str | None:
    """Return the name of a manual page (grep.1) from man:grep.1; None for any other text."""
    words = text.strip()
    return words.removeprefix(_MANUAL) if words.startswith(_MANUAL) else None


def name_of_page(source: str) -> str:
    """Return the reference of a manual page: man:grep.1."""
    return f"{_MANUAL}{source}"


def parse_document(text: str) -> int | None:
    """Return the passage of document:12 or its link; None for any other text."""
    words = text.strip().removeprefix(_DOCUMENT_LINK).removeprefix(_DOCUMENT)
    return parse_whole_number(words) if words != text.strip() else None


def document_link(passage_id: int) -> str:
    return f"{_DOCUMENT_LINK}{passage_id}"


def find_document_links(text: str) -> Iterator[int]:
    """Yield the passages of all links to documents in a text."""
    return (int(each) for each in re.findall(rf"{_DOCUMENT_LINK}(\d{{1,18}})", text))


def name_of_document(passage_id: int) -> str:
    """Return the reference of a document's passage: document:12."""
    return f"{_DOCUMENT}{passage_id}"

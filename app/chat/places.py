"""Places people can name: `ID`, `ID:TURN`, `commonplace://ID/TURN`, `man:PAGE.SECTION`."""

from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId
from app.domain.links import SCHEME, Link, link_of
from app.domain.text import whole_number

_MANUAL = "man:"


def parse_place(text: str) -> tuple[ConversationId, int | None]:
    """Return (conversation, turn number or None); raise InvalidInput for anything else."""
    link = parse_link(text)
    if link.exchange_id is not None:
        raise InvalidInput(f"'{text}' is on a branch that is not shown", "Open it in the window.")
    return link.conversation_id, link.turn_number


def parse_link(text: str) -> Link:
    """Return what a link, ID or ID:TURN names; raise InvalidInput for anything else."""
    if (link := link_of(text.strip())) is not None:
        return link
    words = text.strip().removeprefix(SCHEME).replace("/", ":").strip(":")
    number, _, turn = words.partition(":")
    conversation_id, turn_number = whole_number(number), whole_number(turn)
    if conversation_id is None or (turn and turn_number is None):
        raise InvalidInput(f"'{text}' names no turn", "Write ID or ID:TURN, such as 12:3.")
    return Link(ConversationId(conversation_id), turn_number)


def parse_page(text: str) -> str | None:
    """Return what a manual page is called, grep.1; None when `text` names something else."""
    words = text.strip()
    return words.removeprefix(_MANUAL) if words.startswith(_MANUAL) else None


def name_of_page(source: str) -> str:
    """Return how people name a manual page among other places."""
    return f"{_MANUAL}{source}"

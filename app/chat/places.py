"""Places people can name: `ID`, `ID:TURN`, `commonplace://ID/TURN`, `man:PAGE.SECTION`."""

from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId

_SCHEME = "commonplace://"
_MANUAL = "man:"


def parse_place(text: str) -> tuple[ConversationId, int | None]:
    """Return (conversation, turn number or None); raise InvalidInput for anything else."""
    words = text.strip().removeprefix(_SCHEME).replace("/", ":").strip(":")
    number, _, turn = words.partition(":")
    if not number.isdecimal() or (turn and not turn.isdecimal()):
        raise InvalidInput(f"'{text}' names no turn", "Write ID or ID:TURN, such as 12:3.")
    return ConversationId(int(number)), int(turn) if turn else None


def link_to(conversation_id: int, turn_number: int) -> str:
    """Return the link to a turn of the shown path."""
    return f"{_SCHEME}{conversation_id}/{turn_number}"


def parse_page(text: str) -> str | None:
    """Return what a manual page is called, grep.1; None when `text` names something else."""
    words = text.strip()
    return words.removeprefix(_MANUAL) if words.startswith(_MANUAL) else None


def name_of_page(source: str) -> str:
    """Return how people name a manual page among other places."""
    return f"{_MANUAL}{source}"

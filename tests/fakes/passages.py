"""Words of passages as the indexes take them, without a database behind them."""

from datetime import UTC, datetime

from app.domain.conversations import Role
from app.domain.ids import ConversationId, PassageId, part_id
from app.domain.passages import PassageKind, PassagePart, PassageText


def said(
    passage: int, number: int, text: str, role: Role = Role.USER, results: str = ""
) -> PassagePart:
    """Return a message: the words of one side, and what its tools answered."""
    return PassagePart(part_id(passage, number), role, text, results=results)


def turn(
    number: int,
    user: str = "",
    assistant: str = "",
    *,
    tools: str = "",
    title: str = "",
    month: int = 5,
    before: tuple[PassagePart, ...] = (),
    after: tuple[PassagePart, ...] = (),
) -> PassageText:
    """Return the turn's words: a part for the user (0), one for the assistant (1) if it has any."""
    parts = [said(number, 0, user)]
    if assistant or tools:
        parts.append(said(number, 1, assistant, Role.ASSISTANT, tools))
    return _turn(number, tuple(parts), title, month, before, after)


def talk(number: int, *texts: str) -> PassageText:
    """Return a turn of several messages, user and assistant taking turns."""
    roles = (Role.USER, Role.ASSISTANT)
    parts = tuple(said(number, at, text, roles[at % 2]) for at, text in enumerate(texts))
    return _turn(number, parts)


def _turn(
    number: int,
    parts: tuple[PassagePart, ...],
    title: str = "",
    month: int = 5,
    before: tuple[PassagePart, ...] = (),
    after: tuple[PassagePart, ...] = (),
) -> PassageText:
    return PassageText(
        PassageId(number), PassageKind.TURN, ConversationId(1), title, parts,
        datetime(2024, month, 6, tzinfo=UTC), before, after,
    )  # fmt: skip

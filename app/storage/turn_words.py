"""An exchange's words as a summariser reads them; what it makes of them is not known here."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.conversations import Role
from app.domain.turn_text import QUOTING_MODEL, turn_text
from app.storage.database import Connection
from app.storage.rows import blocks_of


@dataclass(frozen=True, slots=True)
class Words:
    """An exchange's two sides as text, each message cut to its head and tail."""

    asked: str
    answered: str


SILENCE = Words("", "")


def words_of(cursor: Connection, exchange_ids: Sequence[int], limit_chars: int) -> dict[int, Words]:
    """Return both sides of exchanges; where nobody wrote text, what attachments and tools say."""
    half = limit_chars // 2
    rows = cursor.execute(
        "SELECT l.exchange_id, m.role, CASE WHEN length(m.text) <= $2 THEN m.text "
        "ELSE left(m.text, $3) || chr(10) || chr(10) || right(m.text, $3) END "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE l.exchange_id IN (SELECT unnest($1)) AND m.role IN ('user', 'assistant') "
        "AND NOT (m.role = 'assistant' AND m.model IS NOT DISTINCT FROM $4) "
        "ORDER BY l.exchange_id, l.place",
        [list(exchange_ids), limit_chars, half, QUOTING_MODEL],
    ).fetchall()
    sides: dict[int, tuple[list[str], list[str]]] = {}
    for exchange_id, role, text in rows:
        asked, answered = sides.setdefault(exchange_id, ([], []))
        if text:
            (asked if role == Role.USER else answered).append(text)
    words = {each: Words(*("\n\n".join(side) for side in both)) for each, both in sides.items()}
    mute = [each for each in exchange_ids if words.get(each, SILENCE) == SILENCE]
    return words | (_words_of_blocks(cursor, mute, limit_chars) if mute else {})


def _words_of_blocks(
    cursor: Connection, exchange_ids: list[int], limit_chars: int
) -> dict[int, Words]:
    rows = cursor.execute(
        "SELECT l.exchange_id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "ORDER BY l.exchange_id, l.place",
        [exchange_ids],
    ).fetchall()
    messages: dict[int, list[tuple[Role, str, str | None]]] = {}
    for exchange_id, role, text, blocks in rows:
        messages.setdefault(exchange_id, []).append((Role(role), text, blocks))
    words = {}
    for exchange_id, own in messages.items():
        turn = turn_text((role, blocks_of(text, blocks)) for role, text, blocks in own)
        words[exchange_id] = Words(
            turn.user[:limit_chars], (turn.assistant or turn.calls)[:limit_chars]
        )
    return words

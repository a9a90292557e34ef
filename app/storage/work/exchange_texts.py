"""Exchange texts as the summarizers read them."""

from collections.abc import Sequence

from app.domain.conversations import Role
from app.domain.turns import RECALL_MODEL, TurnMarkdown, turn_text
from app.storage.engine.connection import Connection
from app.storage.tables.exchanges import blocks_of

NO_TEXT = TurnMarkdown("", "")


def exchange_texts(
    cursor: Connection, exchange_ids: Sequence[int], limit_chars: int
) -> dict[int, TurnMarkdown]:
    """Return both sides of exchanges, each message cut to its head and tail.

    Without written text, the text is that of attachments and tools.
    """
    half = limit_chars // 2
    rows = cursor.rows(
        "SELECT l.exchange_id, m.role, CASE WHEN length(m.text) <= $2 THEN m.text "
        "ELSE left(m.text, $3) || chr(10) || chr(10) || right(m.text, $3) END "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE l.exchange_id IN (SELECT unnest($1)) AND m.role IN ('user', 'assistant') "
        "AND NOT (m.role = 'assistant' AND m.model IS NOT DISTINCT FROM $4) "
        "ORDER BY l.exchange_id, l.place",
        [list(exchange_ids), limit_chars, half, RECALL_MODEL],
    )
    sides: dict[int, tuple[list[str], list[str]]] = {}
    for exchange_id, role, text in rows:
        user, assistant = sides.setdefault(exchange_id, ([], []))
        if text:
            (user if role == Role.USER else assistant).append(text)
    texts = {
        each: TurnMarkdown(*("\n\n".join(side) for side in both)) for each, both in sides.items()
    }
    silent = [each for each in exchange_ids if texts.get(each, NO_TEXT) == NO_TEXT]
    return texts | (_texts_of_blocks(cursor, silent, limit_chars) if silent else {})


def _texts_of_blocks(
    cursor: Connection, exchange_ids: list[int], limit_chars: int
) -> dict[int, TurnMarkdown]:
    rows = cursor.rows(
        "SELECT l.exchange_id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "ORDER BY l.exchange_id, l.place",
        [exchange_ids],
    )
    messages: dict[int, list[tuple[Role, str, str | None]]] = {}
    for exchange_id, role, text, blocks in rows:
        messages.setdefault(exchange_id, []).append((Role(role), text, blocks))
    texts = {}
    for exchange_id, own in messages.items():
        turn = turn_text((role, blocks_of(text, blocks)) for role, text, blocks in own)
        texts[exchange_id] = TurnMarkdown(
            turn.user[:limit_chars], (turn.assistant or turn.calls)[:limit_chars]
        )
    return texts

"""Facts as the user sees them, by query, and the passages that stand for what holds.

A conversation that is private or in the trash is as if it were not there: what was said elsewhere too
is shown from there, and what only it has ended holds, until it is back. No fact is rewritten for that.
"""

from collections.abc import Iterable

from app.domain.passages import PassageKind
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage import spaces
from app.storage.database import Connection
from app.storage.rows import PASSAGE_COLUMNS, Row, insert_rows

_HIDDEN = "SELECT id FROM conversation WHERE private OR deleted_at IS NOT NULL"
_SAYS = "text, category, conversation_id, exchange_id, message_id, said_at, model, made_at"
_SHOWN = (
    f"SELECT id, uid, subject, valid_until, superseded_by, pinned, {_SAYS} FROM fact "
    f"WHERE coalesce(conversation_id, 0) NOT IN ({_HIDDEN}) UNION ALL "
    "SELECT f.id, f.uid, f.subject, f.valid_until, f.superseded_by, f.pinned, "
    f"{', '.join(f'v.{each}' for each in _SAYS.split(', '))} FROM fact f "
    f"JOIN (SELECT fact_id, {_SAYS} FROM fact_version "
    f"WHERE fact_id IN (SELECT id FROM fact WHERE conversation_id IN ({_HIDDEN})) "
    f"AND coalesce(conversation_id, 0) NOT IN ({_HIDDEN}) "
    "QUALIFY row_number() OVER (PARTITION BY fact_id ORDER BY made_at DESC) = 1) v "
    f"ON v.fact_id = f.id WHERE f.conversation_id IN ({_HIDDEN})"
)
# Ended by what is not seen, with nothing seen of the same subject that holds or was said later. The
# first condition leaves few to look into.
_STANDING = (
    "SELECT f.id FROM shown f WHERE f.superseded_by IN "
    f"(SELECT id FROM fact WHERE conversation_id IN ({_HIDDEN}) AND id NOT IN "
    "(SELECT id FROM shown)) AND NOT EXISTS (SELECT 1 FROM shown o WHERE f.subject <> '' "
    "AND o.subject = f.subject AND o.id <> f.id AND (o.valid_until IS NULL OR "
    "(o.superseded_by IS NOT NULL AND (o.said_at, o.id) > (f.said_at, f.id))))"
)
SEEN_FACTS = (
    f"(WITH shown AS ({_SHOWN}), standing AS ({_STANDING}) "
    "SELECT shown.* REPLACE (CASE WHEN standing.id IS NULL THEN valid_until END AS valid_until, "
    "CASE WHEN standing.id IS NULL THEN superseded_by END AS superseded_by) "
    "FROM shown LEFT JOIN standing ON standing.id = shown.id)"
)
"""Every fact that is seen, as it is seen: a table with the columns of `fact`."""

FACTS_IN_WORDS = (
    "(SELECT f.id, coalesce(s.text, f.text) AS text, coalesce(s.message_id, f.message_id) AS "
    f"message_id FROM fact f LEFT JOIN {SEEN_FACTS} s ON s.id = f.id)"
)
"""Every fact with the words that its passage has, hidden ones too: a table."""


def seen_facts(cursor: Connection) -> str:
    """Return the cheapest table of the facts that are seen: `fact` itself where none is hidden.

    Measured with 20,000 facts: some are listed in 12 ms, 40 where some are hidden.
    """
    hidden = f"SELECT 1 FROM fact WHERE conversation_id IN ({_HIDDEN}) LIMIT 1"
    return "fact" if cursor.execute(hidden).fetchone() is None else SEEN_FACTS


def settle_hidden(connection: Connection, conversation_ids: Iterable[int], position: int) -> None:
    """Bring passages in line after conversations were hidden or came back."""
    rows = connection.execute(
        "WITH own AS (SELECT id FROM fact WHERE conversation_id IN (SELECT unnest($1)) UNION "
        "SELECT fact_id FROM fact_version WHERE conversation_id IN (SELECT unnest($1))) "
        "SELECT id FROM own UNION SELECT id FROM fact WHERE superseded_by IN (SELECT id FROM own) "
        "UNION SELECT id FROM fact WHERE subject <> '' AND subject IN "
        "(SELECT subject FROM fact WHERE id IN (SELECT id FROM own))",
        [list(conversation_ids)],
    ).fetchall()
    settle(connection, [each for (each,) in rows], position)


def settle_put(connection: Connection, fact_ids: Iterable[int], position: int) -> None:
    """Bring passages in line after facts were put: of those, and of their subjects, that stand in."""
    rows = connection.execute(
        "SELECT id FROM fact WHERE (id IN (SELECT unnest($1)) OR (subject <> '' AND subject IN "
        "(SELECT subject FROM fact WHERE id IN (SELECT unnest($1))))) AND superseded_by IN "
        f"(SELECT id FROM fact WHERE conversation_id IN ({_HIDDEN}))",
        [list(fact_ids)],
    ).fetchall()
    settle(connection, [each for (each,) in rows], position)


def settle(connection: Connection, fact_ids: Iterable[int], position: int) -> None:
    """Have a passage stand for each fact that holds as it is seen, and for none that does not."""
    ids = list(fact_ids)
    if not ids:
        return
    wanted = {row[0]: row for row in _wanted(connection, ids)}
    present = dict(
        connection.execute(
            "SELECT id, [conversation_id::VARCHAR, exchange_id::VARCHAR, content_hash] "
            "FROM passage WHERE id IN (SELECT unnest(?))",
            [ids],
        ).fetchall()
    )
    other = [row for each, row in wanted.items() if present.get(each) != _place(row)]
    leaving = [each for each in present if each not in wanted]
    spaces.remove_passages(connection, [*leaving, *(row[0] for row in other if row[0] in present)])
    connection.execute("DELETE FROM passage WHERE id IN (SELECT unnest(?))", [leaving])
    gone = [(each, position) for each in leaving]
    insert_rows(connection, "passage_gone", "id, position", gone, "INSERT OR REPLACE")
    connection.execute(
        "DELETE FROM passage_gone WHERE id IN (SELECT unnest(?))", [[row[0] for row in other]]
    )
    insert_rows(
        connection, "passage", f"{PASSAGE_COLUMNS}, position",
        [(*row, position) for row in other], "INSERT OR REPLACE",
    )  # fmt: skip


def _wanted(connection: Connection, ids: list[int]) -> list[Row]:
    """Return the passages of those that hold, in the order of `PASSAGE_COLUMNS`."""
    rows = connection.execute(
        "SELECT f.id, coalesce(s.conversation_id, f.conversation_id), "
        "coalesce(s.exchange_id, f.exchange_id), coalesce(s.text, f.text), "
        f"coalesce(s.said_at, f.said_at) FROM fact f LEFT JOIN {SEEN_FACTS} s ON s.id = f.id "
        "WHERE f.id IN (SELECT unnest(?)) AND (f.valid_until IS NULL OR "
        "(s.id IS NOT NULL AND s.valid_until IS NULL))",
        [ids],
    ).fetchall()
    return [
        (
            own, PassageKind.FACT.value, own, conversation_id, exchange_id, content_hash(text),
            said_at, estimate_tokens(text),
        )
        for own, conversation_id, exchange_id, text, said_at in rows
    ]  # fmt: skip


def _place(row: Row) -> list[str | None]:
    return [None if each is None else str(each) for each in row[3:6]]

"""Passage rows: how changes write and remove them, and their integrity rules."""

from collections.abc import Collection

from app.domain.changes import PassagesPut
from app.domain.passages import Passage
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    Table,
    columns_of,
    reference,
)
from app.storage.engine.connection import REPLACE, Connection
from app.storage.tables.passages import spaces

PASSAGE_COLUMNS = columns_of(Passage)
_PASSAGE = Table(
    "passage", f"{PASSAGE_COLUMNS}, position", erased=OF_CONVERSATIONS, counter="passage"
)
# What left the index, until every index has passed that position.
_REMOVED = Table("passage_gone", "id, position")
_HASH = PASSAGE_COLUMNS.split(", ").index("content_hash")
# An edit with a lower title rank counts too: a replay can no longer tell that it had no effect.
_RENEW = """UPDATE passage SET position = greatest(passage.position, titled.position)
    FROM (SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS position) AS titled
    WHERE passage.conversation_id = titled.id"""


# -- changes


def _put(batch: Batch, change: PassagesPut) -> None:
    passages, removed = batch.rows["passage"], batch.rows["passage_gone"]
    for p in change.passages:
        _PASSAGE.put(batch, p, position=batch.position)
        removed.pop(p.id, None)
    for each in change.replaced:
        passages.pop(each, None)
        removed[each] = (each, batch.position)
        batch.mark("replaced_passages")
    batch.mark("passages")


def _write(connection: Connection, batch: Batch, state: State) -> None:
    rows, removed = batch.rows["passage"], batch.rows["passage_gone"]
    present = {key: row[_HASH] for key, row in rows.items() if key <= state.passage}
    if present:
        batch.mark("replaced_passages")
        before = connection.select_in("passage", "id, content_hash", present)
        if stale := [each for each, was in before if present[each] != was]:
            spaces.remove_passages(connection, stale)
    _PASSAGE.write(connection, rows, state)
    if present:
        connection.delete_in("passage_gone", "id", present)
    if removed:
        spaces.remove_passages(connection, list(removed))
        connection.delete_in("passage", "id", removed)
        connection.insert_rows("passage_gone", "id, position", removed.values(), REPLACE)
    if titled := batch.rows["titled"]:
        connection.execute(_RENEW, [list(titled), list(titled.values())])


def _erase(connection: Connection, ids: list[int], position: int) -> None:
    connection.execute(
        f"INSERT OR REPLACE INTO passage_gone SELECT id, $2 FROM passage WHERE {OF_CONVERSATIONS}",
        [ids, position],
    )
    spaces.remove_conversations(connection, ids)


def remove_passages(connection: Connection, ids: list[int], position: int) -> None:
    """Delete passages with their vectors and verdicts; inside the caller's transaction."""
    if ids:
        spaces.remove_passages(connection, ids)
        connection.delete_in("passage", "id", ids)
        connection.delete_in("feedback", "passage_id", ids)
        gone = [(each, position) for each in ids]
        connection.insert_rows("passage_gone", "id, position", gone, REPLACE)


def renew_passages(connection: Connection, ids: list[int], position: int) -> None:
    """Have passages embedded and indexed again; inside the caller's transaction."""
    spaces.remove_passages(connection, ids)
    index_again(connection, "id", ids, position)


def index_again(connection: Connection, key: str, values: Collection[int], position: int) -> None:
    """Have passages indexed again, with their titles and quotes; inside the caller's transaction."""
    if values:
        connection.execute(
            f"UPDATE passage SET position = greatest(position, $2) WHERE {key} IN (SELECT unnest($1))",
            [list(values), position],
        )


def passage_source(kind: str, source: str) -> Rule:
    """Return the rule that each passage of a kind has its record in the table `source`."""
    return Rule(
        f"passage.{kind}",
        f"The passage {{}} belongs to a {kind.replace('_', ' ')} that does not exist or is over.",
        f"SELECT p.id FROM passage p ANTI JOIN {source} o ON o.id = p.id AND o.id = p.source_id "
        f"WHERE p.kind = '{kind}'",
        drops_passages=True,
    )


PASSAGES = Aggregate(
    (_PASSAGE, _REMOVED),
    {PassagesPut: _put},
    _write,
    _erase,
    rules=(
        reference("passage.conversation_id", "conversation", "drop", by_row=True),
        Rule(
            "passage.exchange",
            "The passage {} belongs to an exchange that does not exist or to another conversation.",
            "SELECT p.id FROM passage p ANTI JOIN exchange e "
            "ON e.id = p.source_id AND e.conversation_id = p.conversation_id "
            "WHERE p.kind IN ('turn', 'exchange_summary')",
            drops_passages=True,
        ),
        Rule(
            "passage.private",
            "The passage {} belongs to a private conversation.",
            "SELECT p.id FROM passage p JOIN conversation c ON c.id = p.conversation_id "
            "WHERE c.private",
            drops_passages=True,
        ),
        Rule(
            "passage.duplicate",
            "The passage {} has the same source as a later one.",
            "SELECT p.id FROM passage p JOIN passage later ON later.kind = p.kind "
            "AND later.source_id = p.source_id AND later.id > p.id "
            "WHERE p.kind IN ('turn', 'exchange_summary', 'conversation_summary', 'man_page', 'document')",
            drops_passages=True,
        ),
        Rule(
            "passage_gone.id",
            "The passage {} exists and is listed as removed.",
            "SELECT p.id FROM passage p JOIN passage_gone g ON g.id = p.id",
            "DELETE FROM passage_gone WHERE id IN (SELECT unnest($1))",
        ),
    ),
)

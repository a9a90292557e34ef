"""Embedding spaces: one table of vectors for each, and their integrity rules.

Only the statements, so that other tables can use them; `vectors` reads and writes vectors.
"""

import re
from collections.abc import Sequence

from app.domain.ids import PARTS_PER_PASSAGE
from app.storage.engine.aggregate import Aggregate, Rule
from app.storage.engine.connection import Connection

_INCOMPLETE = (
    "count(*) <> max(chunk_number) + 1 OR min(chunk_number) <> 0 "
    "OR (count(vector) <> count(*) AND count(*) > 1)"
)
_NAME = re.compile(r"[a-z0-9_]{1,100}")


def table_of(space_name: str) -> str:
    """Return the name of a space's table; raise ValueError for a name that is not fit for one."""
    if not _NAME.fullmatch(space_name):
        raise ValueError(f"'{space_name}' cannot name a table")
    return f"embedding_{space_name}"


def bytes_of(dimension: int) -> int:
    """Return the size of one vector as it is stored."""
    return 2 * dimension


def create_table(connection: Connection, space_name: str) -> None:
    """Make the table of a space unless it is there; in a transaction of its own (storage rule 4).

    `vector` is float16, little-endian: of 100,000 x 384, 100 at a time, written in 4.1 ms each and
    loaded in 0.19 s, from 81 MB of file. Measured against it: float32 4.6 ms, 0.29 s, 158 MB;
    FLOAT[384] 45 ms, 0.37 s, 160 MB. Cosines differ by at most 0.00006. A passage without anything
    to embed has one row whose `vector` is NULL.
    """
    # Without NOT NULL, because `check_primary_keys` names such columns, and without quotes.
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table_of(space_name)} (passage_id BIGINT, "
        "chunk_number INTEGER, part BIGINT NOT NULL, start INTEGER NOT NULL, "
        '"end" INTEGER, vector BLOB, indexed_at TIMESTAMP NOT NULL, '
        "PRIMARY KEY (passage_id, chunk_number))"
    )


def drop_table(connection: Connection, space_name: str) -> None:
    """Drop the table of a space, if it is there; in a transaction of its own."""
    connection.execute(f"DROP TABLE IF EXISTS {table_of(space_name)}")


def space_names(connection: Connection) -> list[str]:
    """Return the spaces there are: a name comes after its table and goes before it.

    Not by DuckDB's list of tables: asking for that opens a transaction in every attached database,
    and while a write does so a copy that is being made cannot be checkpointed.
    """
    return connection.column("SELECT name FROM space ORDER BY name")


def forget_lost(connection: Connection) -> None:
    """Delete the names of spaces whose tables are gone: their passages are embedded again.

    The list of tables loads them all, which takes a fifth of the time to open an empty library.
    """
    if space_names(connection):
        connection.execute(
            "DELETE FROM space WHERE 'embedding_' || name NOT IN "
            "(SELECT table_name FROM duckdb_tables() WHERE database_name = current_database())"
        )


def spaces_with_table(cursor: Connection) -> list[str]:
    """Return the spaces whose tables are there, also in a database that is damaged: four times the time."""
    return cursor.column(
        "SELECT s.name FROM space s JOIN duckdb_tables() t ON t.table_name = 'embedding_' || s.name "
        "WHERE t.database_name = current_database() ORDER BY s.name"
    )


def remove_passages(connection: Connection, passage_ids: Sequence[int]) -> None:
    """Delete the vectors of passages from every space."""
    _remove(connection, "SELECT unnest(?)", passage_ids)


def remove_conversations(connection: Connection, conversation_ids: Sequence[int]) -> None:
    """Delete the vectors of conversations' passages, which are there still, from every space."""
    of_them = "SELECT id FROM passage WHERE conversation_id IN (SELECT unnest(?))"
    _remove(connection, of_them, conversation_ids)


def _remove(connection: Connection, wanted: str, values: Sequence[int]) -> None:
    for name in space_names(connection) if values else ():
        connection.execute(
            f"DELETE FROM {table_of(name)} WHERE passage_id IN ({wanted})", [list(values)]
        )


def rules_of_space(name: str, dimension: int) -> tuple[Rule, ...]:
    """Return the rules of a space's vectors; the embedding pipeline makes deleted ones again."""
    table = table_of(name)
    repair = f"DELETE FROM {table} WHERE passage_id IN (SELECT unnest($1))"
    rules = {
        "passage_id": (
            "has vectors of passage {}, which does not exist.",
            "e ANTI JOIN passage p ON p.id = e.passage_id",
        ),
        "dimension": (
            f"has vectors of passage {{}} whose dimension is not {dimension}.",
            f"e WHERE octet_length(vector) <> {bytes_of(dimension)}",
        ),
        "chunk_number": (
            "lacks some vectors of passage {}.",
            f"e GROUP BY passage_id HAVING {_INCOMPLETE}",
        ),
        "part": (
            "assigns vectors of passage {} to parts of another.",
            f"e WHERE part // {PARTS_PER_PASSAGE} <> passage_id",
        ),
    }
    return tuple(
        Rule(
            f"vector.{key}",
            f"The space {name} {problem}",
            f"SELECT DISTINCT e.passage_id FROM {table} {broken}",
            repair,
        )
        for key, (problem, broken) in rules.items()
    )


SPACES = Aggregate(
    (),
    rules=(
        Rule(
            "space.table",
            "The embedding space {} has no table.",
            "SELECT s.name FROM space s ANTI JOIN duckdb_tables() t "
            "ON t.table_name = 'embedding_' || s.name AND t.database_name = current_database()",
            "DELETE FROM space WHERE name IN (SELECT unnest($1))",
        ),
    ),
)

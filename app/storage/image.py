"""A database file as a whole: copied from one snapshot, read to its last value, recognised."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb

from app.domain.errors import Cancelled, DiskFull, StorageError
from app.storage import migrations
from app.storage.database import Connection, connect
from app.storage.faults import of_duckdb

T = TypeVar("T")
_log = logging.getLogger(__name__)
_OTHER = "Choose another backup."
_STILL_HELD = "Unique file handle conflict"  # DuckDB lets go of a file a moment after it is closed
_LET_GO_TRIES = 40
_LET_GO_S = 0.05
# Stand-ins for columns that may not be NULL, so that only the keys are read.
_CONSTANTS = {
    "BIGINT": "0",
    "INTEGER": "0",
    "DOUBLE": "0",
    "BOOLEAN": "false",
    "VARCHAR": "''",
    "TIMESTAMP": "'2000-01-01'",
}


@dataclass(frozen=True, slots=True)
class Image:
    """What a database file says of itself: whose it is, its schema, how far the journal is in it.

    `uid` is "" for a file without our tables.
    """

    uid: str
    version: int
    position: int


def recognised(connection: Connection) -> Image:
    """Return what an open database is; raises duckdb.Error."""
    version = migrations.version_of(connection)
    if version == 0:
        return Image("", 0, 0)
    position = _first(connection, "SELECT position FROM state")
    uid = _first(connection, "SELECT value FROM meta WHERE key = 'database_uid'")
    return Image(str(uid or ""), version, int(str(position)))


def verify(path: Path, counts: dict[str, int] | None = None) -> Image:
    """Read every row of every table of a closed database file, changing nothing.

    Raises StorageError when that fails or a table does not hold as many rows as `counts` says.
    """
    try:
        connection = _once_let_go(lambda: connect(path, path.parent, read_only=True))
        try:
            found = read_everything(connection)
            image = recognised(connection)
        finally:
            connection.close()
    except duckdb.Error as error:
        _log.warning("%s does not verify: %s", path.name, error)
        raise StorageError(f"The file '{path.name}' is damaged", _OTHER) from error
    if image.version == 0:
        raise StorageError(f"The file '{path.name}' is no database of this program", _OTHER)
    if counts is not None and found != counts:
        raise StorageError(f"The copy '{path.name}' is not complete", "It was not kept.")
    return image


def read_everything(connection: Connection) -> dict[str, int]:
    """Return the rows of each table, having read every value; raises duckdb.Error on damage.

    A bit that flipped in a table shows only when that table is read (reliability F5).
    """
    counts: dict[str, int] = {}
    for table in _tables(connection):
        row = connection.execute(
            f'SELECT count(*), bit_xor(hash(t)) FROM "{table}" AS t'
        ).fetchone()
        counts[table] = int(row[0]) if row else 0
    return counts


def find_every_key(connection: Connection) -> None:
    """Look every row up by its primary key, in a transaction that is taken back.

    Reading the rows does not touch the blocks of the index: damage there shows at the next insert.
    36 ms for 100,000 messages. Raises duckdb.Error on damage.
    """
    for table, keys in _primary_keys(connection).items():
        connection.execute("BEGIN")
        try:
            row = connection.execute(_insert_again(connection, table, keys)).fetchone()
        finally:
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")
        if row is None or row[0]:
            raise duckdb.IOException(f"the index of {table} is corrupt: it does not find its rows")


def _primary_keys(connection: Connection) -> dict[str, list[str]]:
    rows = connection.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() "
        "WHERE database_name = current_database() AND constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    return dict(rows)


def _insert_again(connection: Connection, table: str, keys: list[str]) -> str:
    """Return a statement that inserts nothing, as every key is there already."""
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND table_name = ? AND NOT is_nullable",
        [table],
    ).fetchall()
    quoted = {name: f'"{name}"' for name, _ in columns}
    values = (
        quoted[name] if name in keys else _CONSTANTS.get(kind, quoted[name])
        for name, kind in columns
    )
    names = ", ".join(quoted.values())
    return f'INSERT OR IGNORE INTO "{table}" ({names}) SELECT {", ".join(values)} FROM "{table}"'


def copy_into(connection: Connection, target: Path) -> tuple[int, dict[str, int]]:
    """Copy the connection's database into the new file `target`, all from one snapshot.

    Return the journal's position it stands at, and the rows of each table. The target must lie
    in the backups folder. Raises StorageError, Cancelled; then what there is of `target` is worthless.
    """
    quoted = str(target).replace("'", "''")
    try:
        source = _first(connection, "SELECT current_database()")
        _once_let_go(lambda: connection.execute(f"ATTACH '{quoted}' AS backup_target"))
        try:
            connection.execute("BEGIN")
            position = int(str(_first(connection, "SELECT position FROM state")))
            counts = {
                table: int(str(_first(connection, f'SELECT count(*) FROM "{table}"')))
                for table in _tables(connection)
            }
            connection.execute(f'COPY FROM DATABASE "{source}" TO backup_target')
            connection.execute("COMMIT")
            # Detaching may leave it undone. Forced, it waits for whoever reads the list of tables, and
            # so entered the copy too; others go on meanwhile (DuckDB 2.0).
            connection.execute("FORCE CHECKPOINT backup_target")
        finally:
            # After an error nothing may be open any more, nor attached.
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            _detach(connection)
    except duckdb.InterruptException as error:
        raise Cancelled("The copying was broken off") from error
    except duckdb.Error as error:
        raise of_duckdb(error) from error
    if target.with_name(target.name + ".wal").exists():
        # Detaching folds in what is left of the log, and says nothing when there is no room for it.
        raise DiskFull("There is no room on the disk for a copy", "Free some space.")
    return position, counts


def _detach(connection: Connection) -> None:
    """Detach the copy, whoever interrupts that too."""
    for _ in range(_LET_GO_TRIES):
        try:
            connection.execute("DETACH backup_target")
        except duckdb.InterruptException:
            time.sleep(0.001)
        except duckdb.Error:
            return
        else:
            return


def _once_let_go(opens: Callable[[], T]) -> T:
    """Return what `opens` does with a file, tried again while the last one to have it lets go."""
    for _ in range(_LET_GO_TRIES):
        try:
            return opens()
        except duckdb.Error as error:
            if _STILL_HELD not in str(error):
                raise
        time.sleep(_LET_GO_S)
    return opens()


def remove(path: Path) -> None:
    """Delete a database file that nobody has open, with its log."""
    for each in (path, path.with_name(path.name + ".wal")):
        each.unlink(missing_ok=True)


def _tables(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "ORDER BY table_name"
    ).fetchall()
    return [name for (name,) in rows]


def _first(connection: Connection, statement: str) -> object:
    row = connection.execute(statement).fetchone()
    return row[0] if row else None

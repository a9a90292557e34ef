"""Connections to DuckDB, with the statements that all tables share."""

import atexit
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import duckdb

K = TypeVar("K")
V = TypeVar("V")
Row = tuple[Any, ...]
Values = Sequence[object] | Mapping[str, object]

REPLACE = "INSERT OR REPLACE"
IGNORE = "INSERT OR IGNORE"
_APPENDER_ACTIONS: Mapping[str, Literal["insert", "upsert"]] = {
    "INSERT": "insert",
    REPLACE: "upsert",
}
MEMORY_MAX_MB = 1_000
_THREADS = 2
_REPEATED = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK")
_PARSED_MAX = 500
_FEW = 20  # 0.5 ms instead of 1.0 for one, 1.6 instead of 1.2 for a hundred
_ROWS_AT_ONCE = 1_000
_APPENDED_ROWS = 20


_parsed_statements: dict[str, duckdb.Statement] = {}  # by text; execution works on a copy
atexit.register(_parsed_statements.clear)  # DuckDB reports as leaked what outlives it


class Queries:
    """Reads rows by a statement, or of a table by ids. Every method blocks."""

    __slots__ = ()

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        raise NotImplementedError

    def row(self, statement: str, values: Values = ()) -> Row | None:
        found = self.rows(statement, values)
        return found[0] if found else None

    def column(self, statement: str, values: Values = ()) -> list[Any]:
        return [row[0] for row in self.rows(statement, values)]

    def select_in(
        self, table: str, columns: str, ids: Iterable[Any], key: str = "id", rest: str = ""
    ) -> list[Row]:
        """Return columns of the rows whose `key` is one of `ids`; `rest` are further clauses."""
        condition, values = among(ids)
        query = f"SELECT {columns} FROM {table} WHERE {key} {condition} {rest}"
        return self.rows(query, values) if values else []

    def column_in(
        self, table: str, column: str, ids: Iterable[Any], key: str = "id", rest: str = ""
    ) -> set[Any]:
        """Return the values of a column in the rows whose `key` is one of `ids`."""
        return {row[0] for row in self.select_in(table, column, ids, key, rest)}


class Connection(Queries):
    """A connection or a cursor, used by one thread at a time. Raises duckdb.Error."""

    def __init__(self, raw: duckdb.DuckDBPyConnection) -> None:
        self._raw = raw

    def execute(self, statement: str, values: Values = ()) -> duckdb.DuckDBPyConnection:
        """Execute a statement; return what has its rows."""
        return self._raw.execute(self._parsed(statement), values)

    def _parsed(self, statement: str) -> duckdb.Statement | str:
        """Return a statement as parsed before: parsing is a third of the time of the usual query."""
        parsed = _parsed_statements.get(statement)
        if parsed is None:
            if not statement.lstrip().startswith(_REPEATED):
                return statement  # what it means may depend on the connection
            (parsed,) = self._raw.extract_statements(statement)
            if len(_parsed_statements) >= _PARSED_MAX:
                _parsed_statements.clear()
            _parsed_statements[statement] = parsed
        return parsed

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        return self.execute(statement, values).fetchall()

    def insert_rows(
        self, table: str, columns: str, rows: Iterable[Row], how: str = "INSERT"
    ) -> None:
        """Insert rows, a thousand at once; `how` is the verb, such as "INSERT OR REPLACE".

        Measured for a row of `message`: 0.9 ms with an execute for each in one transaction, 0.0070 with a list
        bound to each column, 0.0033 with an appender, which takes longer for few rows. One row alone takes 0.8 ms
        with values and 1.1 with lists. DuckDB keeps the interpreter's lock while it reads the rows.
        """
        left = iter(rows)
        while some := list(islice(left, _ROWS_AT_ONCE)):
            if how in _APPENDER_ACTIONS and len(some) >= _APPENDED_ROWS:
                action = _APPENDER_ACTIONS[how]
                self._raw.complete()  # of an earlier statement, whose rows nobody reads
                names = columns.replace('"', "").split(", ")
                appender = self._raw.appender(table, columns=names, action=action)
                try:
                    appender.append_rows(some)
                    appender.flush()
                finally:
                    appender.clear()
                continue
            lists = list(map(list, zip(*some, strict=True)))
            if len(some) == 1:
                places, given = f"VALUES ({_places(len(lists))})", list(some[0])
            else:
                values = ", ".join(map("unnest(${})".format, range(1, len(lists) + 1)))
                places, given = f"SELECT {values}", lists
            self.execute(f"{how} INTO {table} ({columns}) {places}", given)

    def update_rows(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        """Replace columns of rows that exist, which the first column names.

        Measured: 2 ms for 20 rows, 4 for 400, of which an upsert takes 5 and 7; 1 ms for one row as such.
        """
        key, *changed = columns.split(", ")
        if len(rows) == 1:
            values = ", ".join(f"{each} = ?" for each in changed)
            self.execute(f"UPDATE {table} SET {values} WHERE {key} = ?", [*rows[0][1:], rows[0][0]])
        elif rows:
            values = ", ".join(f"{each} = new.{each}" for each in changed)
            given = ", ".join(map("unnest(?) AS {}".format, (key, *changed)))
            self.execute(
                f"UPDATE {table} SET {values} FROM (SELECT {given}) AS new WHERE {table}.{key} = new.{key}",
                list(map(list, zip(*rows, strict=True))),
            )

    def delete_in(self, table: str, column: str, values: Iterable[Any]) -> None:
        condition, given = among(values)
        if given:
            self.execute(f"DELETE FROM {table} WHERE {column} {condition}", given)

    def existing_ids(self, table: str, just_written: Iterable[int], ids: set[int]) -> set[int]:
        """Return which of `ids` a table holds."""
        known = ids.intersection(just_written)
        rest = ids - known
        return known | self.column_in(table, "id", rest) if rest else known

    def cursor(self) -> "Connection":
        return Connection(self._raw.cursor())

    def interrupt(self) -> None:
        """Cancel what another thread executes on it."""
        self._raw.interrupt()

    def close(self) -> None:
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def connect(path: Path, backups: Path, *, read_only: bool = False) -> Connection:
    """Open a DuckDB file with our settings, locked against changing them but for `memory_limit`.

    It may read and write its own files and the backups folder, nothing else; no extension is
    loaded; checkpoints are made by hand (reliability F2). Raises duckdb.Error.
    """
    if not read_only:
        # A killed process leaves spilled data here, in plain text, which DuckDB does not delete.
        shutil.rmtree(path.with_name(path.name + ".tmp"), ignore_errors=True)
    raw = duckdb.connect(
        str(path),
        read_only=read_only,
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"},
    )
    connection = Connection(raw)
    try:
        folder = str(backups).replace("'", "''")
        for statement in (
            f"SET allowed_directories = ['{folder}/']",
            "SET enable_external_access = false",
            f"SET memory_limit = '{MEMORY_MAX_MB}MB'",
            "SET allowed_configs = ['memory_limit']",
            f"SET threads = {_THREADS}",
            "SET checkpoint_threshold = '1TB'",
            "PRAGMA disable_checkpoint_on_shutdown",
            "SET enable_progress_bar = false",
            "SET lock_configuration = true",
        ):
            connection.execute(statement)
    except duckdb.Error:
        connection.close()
        raise
    return connection


def grouped(values: Iterable[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    """Return values by their key, in their order."""
    groups: dict[K, list[V]] = {}
    for each in values:
        groups.setdefault(key(each), []).append(each)
    return groups


def among(values: Iterable[Any]) -> tuple[str, list[Any]]:
    """Return what follows a column to match any of `values`, and what is bound: few are planned twice as fast."""
    given = list(values)
    if len(given) > _FEW:
        return "IN (SELECT unnest(?))", [given]
    return f"IN ({_places(len(given))})" if given else "IN (NULL)", given


def _places(count: int) -> str:
    return ", ".join("?" * count)

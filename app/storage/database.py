"""The DuckDB connection: how it is opened, a cursor per thread, and reopening after a fatal error.

Writing is the writer thread's alone (`app.storage.store`); this module only gives it the tools.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import duckdb

from app.domain.errors import DiskFull, ReadOnlyStorage, StorageError

T = TypeVar("T")
Connection = duckdb.DuckDBPyConnection

_MEMORY_LIMIT = "1GB"
_THREADS = 2
# A reopening that failed leaves a closed connection, which is found out as the second of these.
_INVALIDATED = (duckdb.FatalException, duckdb.ConnectionException)


class Database:
    """One open DuckDB file.

    `read` may be called from any thread but those named with `forbid_this_thread` (the GUI's).
    """

    def __init__(self, path: Path, backups: Path) -> None:
        self._path = path
        self._backups = backups
        self._forbidden: set[int] = set()
        self._reopening = threading.RLock()
        self._generation = 0
        self._local = threading.local()
        self._connection = connect(path, backups)

    def forbid_this_thread(self) -> None:
        """Make any query on the calling thread a bug that is raised, not a stall."""
        self._forbidden.add(threading.get_ident())

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return what `query` makes of this thread's cursor; blocking.

        The cursor must be drained before `query` returns. A fatal error reopens the database and
        asks once more. Raises StorageError.
        """
        if threading.get_ident() in self._forbidden:
            raise RuntimeError("a query on a thread that must never wait")
        cursor, generation = self._cursor()
        try:
            return query(cursor)
        except _INVALIDATED:
            self.reopen(generation)
            cursor, _ = self._cursor()
            return query(cursor)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction on the writing connection; only the writer thread calls it.

        Raises DiskFull, ReadOnlyStorage, StorageError for what the disk did, after rolling back
        and, where the instance has become invalid, reopening.
        """
        generation = self._generation
        connection = self._connection
        try:
            connection.execute("BEGIN")
            try:
                outcome = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
        except _INVALIDATED as error:
            self.reopen(generation)
            raise translated(error) from error
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            raise translated(error) from error
        return outcome

    def checkpoint(self) -> bool:
        """Fold the write-ahead log into the file; False when an open result stood in the way."""
        generation = self._generation
        try:
            self._connection.execute("CHECKPOINT")
        except duckdb.FatalException:
            self.reopen(generation)
            return False
        except (duckdb.TransactionException, duckdb.IOException):
            return False
        return True

    def snapshot_cursor(self) -> Connection:
        """Return a cursor of its own for a long read, such as a backup; the caller closes it."""
        with self._reopening:
            return self._connection.cursor()

    def interrupt(self) -> None:
        """Break off what this thread's sibling cursors are running, where DuckDB allows it."""
        self._connection.interrupt()

    def reopen(self, seen_generation: int) -> None:
        """Close and open again, unless another thread has done so since `seen_generation`."""
        with self._reopening:
            if self._generation != seen_generation:
                return
            # An invalidated instance may refuse even that; dropping it is enough.
            with suppress(duckdb.Error):
                self._connection.close()
            self._connection = connect(self._path, self._backups)
            self._generation += 1

    def close(self) -> None:
        """Close; cursors of other threads become invalid."""
        with self._reopening:
            self._connection.close()

    def _cursor(self) -> tuple[Connection, int]:
        if getattr(self._local, "generation", None) != self._generation:
            with self._reopening:
                self._local.cursor = self._connection.cursor()
                self._local.generation = self._generation
        cursor: Connection = self._local.cursor
        return cursor, self._local.generation

    @staticmethod
    def _roll_back(connection: Connection) -> None:
        # Nothing may be open any more: the error itself can have ended the transaction.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")


def connect(path: Path, backups: Path) -> Connection:
    """Open a DuckDB file with our settings, locked against changing them.

    It may read and write its own files and the backups folder, nothing else; no extension is
    loaded; checkpoints are made by hand (reliability F2). Raises duckdb.Error.
    """
    connection = duckdb.connect(
        str(path),
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"},
    )
    try:
        folder = str(backups).replace("'", "''")
        for statement in (
            f"SET allowed_directories = ['{folder}/']",
            "SET enable_external_access = false",
            f"SET memory_limit = '{_MEMORY_LIMIT}'",
            f"SET threads = {_THREADS}",
            "SET checkpoint_threshold = '1TB'",
            "SET enable_progress_bar = false",
            "SET lock_configuration = true",
        ):
            connection.execute(statement)
    except duckdb.Error:
        connection.close()
        raise
    return connection


def translated(error: duckdb.Error) -> StorageError:
    """Return DuckDB's complaint about the disk as ours."""
    words = str(error)
    if any(sign in words for sign in ("No space left", "disk full", "File too large", "quota")):
        return DiskFull("There is no room on the disk to save this", "Free some space, then retry.")
    if "Read-only file system" in words or "Permission denied" in words:
        return ReadOnlyStorage("The database cannot be written", "Make its folder writable.")
    return StorageError(f"The database failed: {words.splitlines()[0]}", "Restart the program.")

"""The DuckDB connection: how it is opened, a cursor per thread, and reopening after a fatal error.

Writing is the writer thread's alone (`app.storage.store`); this module only gives it the tools.
"""

import shutil
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import duckdb

from app.domain.errors import Cancelled, DatabaseDamaged, StorageError
from app.storage.faults import OURS, leaves_keys, of_duckdb
from app.storage.gate import Gate

T = TypeVar("T")
Connection = duckdb.DuckDBPyConnection

# As a rule the pages of a few queries: what is read again comes from the system's file cache. With
# 1 GB an import of 192 MB grew the process by 318 MB, with 128 MB by 182 MB, as fast. A library for
# which that is too little gets half as much again, until it suffices. But a copy of the whole
# database builds all its indexes at once: of 1,000,000 turns 256 MB did not suffice.
_MEMORY_MB = 64
_MORE_MEMORY = 1.5
_MEMORY_MOST_MB = 1_000
_MEMORY_TO_COPY_MB, _MEMORY_TO_COPY_SHARE = 150, 0.35
_MEMORY_RESTING_MB = 8
_SELDOM = 30  # reads from one `rest` to the next: what workers that look for work ask
_THREADS = 2
# A reopening that failed leaves a closed connection, which is found out as the second of these.
_INVALIDATED = (duckdb.FatalException, duckdb.ConnectionException)


class Database:
    """One open DuckDB file.

    Attributes:
        is_damaged: Whether a part of it could not be read; for the next start to mend.

    `read` may be called from any thread but those named with `forbid_this_thread` (the GUI's).
    """

    def __init__(self, path: Path, backups: Path, connection: Connection | None = None) -> None:
        self._path = path
        self._backups = backups
        self._forbidden: set[int] = set()
        self._gate = Gate()
        self._generation = 0
        self._closed = False
        self.is_damaged = False
        self._local = threading.local()
        # By thread, so that one thread can break off what another one runs.
        self._cursors: weakref.WeakValueDictionary[int, Connection] = weakref.WeakValueDictionary()
        self._snapshots = weakref.WeakValueDictionary[int, Connection]()
        self._widening = threading.Lock()
        self._wide_count = 0
        self._memory_mb = _MEMORY_MB
        self._reads = 0
        self._connection = connection or _opened(path, backups)
        self._limit_memory()

    def forbid_this_thread(self) -> None:
        """Make any query on the calling thread a bug that is raised, not a stall."""
        self._forbidden.add(threading.get_ident())

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return what `query` makes of this thread's cursor; blocking.

        All that one `query` reads comes from one snapshot. The cursor must be drained before it
        returns. After a fatal error the database is reopened and `query` asked once more. Raises
        StorageError, and Cancelled after `interrupt`.
        """
        if threading.get_ident() in self._forbidden:
            raise RuntimeError("a query on a thread that must never wait")
        if self._gate.is_inside:
            return query(self._cursor())
        self._reads += 1
        return self._mending(lambda: self._snapshot(query))

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction on the writing connection; only the writer thread calls it.

        `work` runs a second time when the instance became invalid under it, or memory too small.
        Raises DiskFull, ReadOnlyStorage, StorageError for what the disk did, after rolling back.
        """
        return self._mending(lambda: _transaction(self._connection, work))

    def checkpoint(self) -> bool:
        """Fold the write-ahead log into the file; False when that has to be tried again later."""
        try:
            self._mending(lambda: self._connection.execute("CHECKPOINT"), tries=1)
        except StorageError:
            return False
        return True

    @contextmanager
    def snapshot_cursor(self) -> Iterator[Connection]:
        """Give a cursor of its own for a long read, such as a backup; raises StorageError.

        It may take more memory than other queries, and still more the next time if that was too little.
        """
        with self._gate.passing(), self._wide():
            try:
                cursor = self._connection.cursor()
            except duckdb.Error as error:
                raise of_duckdb(error) from error
            self._snapshots[threading.get_ident()] = cursor
            had_mb = self._limit_mb
            try:
                yield cursor
            except StorageError as error:
                cause = error.__cause__
                if isinstance(cause, duckdb.OutOfMemoryException) or leaves_keys(cause):
                    self._grow(had_mb)
                raise
            finally:
                cursor.close()

    def rest(self) -> None:
        """Give back the memory of pages when hardly anything was read since the last call.

        Whoever reads next finds them in the system's file cache. While anybody reads or writes
        nothing happens: the limit that frees the pages would be too little for them.
        """
        reads, self._reads = self._reads, 0
        if reads > _SELDOM:
            return
        with self._gate.shut_if_empty() as is_alone, self._widening:
            if is_alone:
                self._limit_memory(_MEMORY_RESTING_MB)
                self._limit_memory()

    def interrupt(self, thread_id: int) -> None:
        """Break off what the thread with that ident is reading; its `read` raises Cancelled."""
        for cursors in (self._cursors, self._snapshots):
            cursor = cursors.get(thread_id)
            if cursor is not None:
                with suppress(duckdb.ConnectionException):  # closed meanwhile: it has ended already
                    cursor.interrupt()

    def replace_file(self, coming: Path) -> None:
        """Put the database file `coming` in this one's place, with nobody inside; raises StorageError.

        Both are of one history: what the write-ahead log still holds is in `coming` too.
        """
        with self._gate.shut():
            self._let_go()
            try:
                self._path.with_name(self._path.name + ".wal").unlink(missing_ok=True)
                coming.replace(self._path)
            finally:
                self._connection = _opened(self._path, self._backups)
                self._limit_memory()
                self._generation += 1

    def close(self) -> None:
        """Close for good, once no query is running; raises StorageError for what comes later."""
        with self._gate.shut():
            self._closed = True
            self._let_go()

    def _snapshot(self, query: Callable[[Connection], T]) -> T:
        cursor = self._cursor()
        try:
            cursor.execute("BEGIN READ ONLY")
            outcome = query(cursor)
            cursor.execute("ROLLBACK")
        except BaseException:
            # It may have been broken off anywhere, even in its end; a new cursor is cheap.
            self._local.generation = None
            with suppress(duckdb.Error):
                cursor.close()
            raise
        return outcome

    def _mending(self, work: Callable[[], T], tries: int = 2) -> T:
        """Return what `work` gives; reopen the database whenever it became invalid under it."""
        while True:
            generation, had_mb = self._generation, self._limit_mb
            try:
                with self._gate.passing():
                    return work()
            except duckdb.InterruptException as error:
                raise Cancelled("The query was broken off") from error
            except OURS:
                raise
            except duckdb.OutOfMemoryException as error:
                if had_mb == _MEMORY_MOST_MB:
                    raise of_duckdb(error) from error
                self._grow(had_mb)
                continue
            except duckdb.Error as error:
                if not (isinstance(error, _INVALIDATED) or leaves_keys(error)):
                    raise self._noted(of_duckdb(error)) from error
                tries -= 1
                failure = error
            self._reopen(generation)
            if not tries:
                raise self._noted(of_duckdb(failure)) from failure

    def _noted(self, error: StorageError) -> StorageError:
        self.is_damaged = self.is_damaged or isinstance(error, DatabaseDamaged)
        return error

    def _reopen(self, seen_generation: int) -> None:
        """Close and open again, unless another thread has done so since `seen_generation`."""
        with self._gate.shut():
            if self._closed:
                raise StorageError("The database is closed", "Start the program again.")
            if self._generation == seen_generation:
                self._let_go()
                self._connection = _opened(self._path, self._backups)
                self._memory_mb = _MEMORY_MOST_MB  # that may have been what it failed for
                self._limit_memory()
                self._generation += 1

    @contextmanager
    def _wide(self) -> Iterator[None]:
        """Allow more memory for a block."""
        self._count_wide(1)
        try:
            yield
        finally:
            self._count_wide(-1)

    def _count_wide(self, more: int) -> None:
        with self._widening:
            self._wide_count += more
            self._limit_memory()

    def _grow(self, seen_mb: int) -> None:
        """Allow more memory for good, unless another thread has done so since `seen_mb`."""
        with self._widening:
            if self._limit_mb == seen_mb:
                self._memory_mb = min(int(seen_mb * _MORE_MEMORY), _MEMORY_MOST_MB)
                self._limit_memory()

    @property
    def _limit_mb(self) -> int:
        if not self._wide_count:
            return self._memory_mb
        to_copy = _MEMORY_TO_COPY_MB + int(_MEMORY_TO_COPY_SHARE * _size(self._path) / 1e6)
        return max(self._memory_mb, min(to_copy, _MEMORY_MOST_MB))

    def _limit_memory(self, limit_mb: int | None = None) -> None:
        """Set the limit and give back what is above it; what is in use now cannot be."""
        with suppress(duckdb.Error), self._connection.cursor() as cursor:
            cursor.execute(f"SET memory_limit = '{limit_mb or self._limit_mb}MB'")

    def _let_go(self) -> None:
        # An invalidated instance may refuse even that; dropping it is enough.
        with suppress(duckdb.Error):
            self._connection.close()

    def _cursor(self) -> Connection:
        if getattr(self._local, "generation", None) != self._generation:
            self._local.cursor = self._connection.cursor()
            self._local.generation = self._generation
            self._cursors[threading.get_ident()] = self._local.cursor
        cursor: Connection = self._local.cursor
        return cursor


def connect(path: Path, backups: Path, *, read_only: bool = False) -> Connection:
    """Open a DuckDB file with our settings, locked against changing them but for `memory_limit`.

    It may read and write its own files and the backups folder, nothing else; no extension is
    loaded; checkpoints are made by hand (reliability F2). Raises duckdb.Error.
    """
    if not read_only:
        # What a killed process had set aside: words, which DuckDB would leave there.
        shutil.rmtree(path.with_name(path.name + ".tmp"), ignore_errors=True)
    connection = duckdb.connect(
        str(path),
        read_only=read_only,
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"},
    )
    try:
        folder = str(backups).replace("'", "''")
        for statement in (
            f"SET allowed_directories = ['{folder}/']",
            "SET enable_external_access = false",
            f"SET memory_limit = '{_MEMORY_MOST_MB}MB'",
            "SET allowed_configs = ['memory_limit']",
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


def _opened(path: Path, backups: Path) -> Connection:
    try:
        return connect(path, backups)
    except duckdb.Error as error:
        raise of_duckdb(error) from error


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _transaction(connection: Connection, work: Callable[[Connection], T]) -> T:
    try:
        connection.execute("BEGIN")
    except duckdb.TransactionException:
        # The last one could not even be rolled back.
        connection.execute("ROLLBACK")
        connection.execute("BEGIN")
    try:
        outcome = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        # Nothing may be open any more: the error itself can have ended the transaction.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
    return outcome

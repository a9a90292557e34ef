"""The DuckDB connection: opening, a cursor per thread, memory limits, reopening after fatal errors.

Only the writer thread of `app.storage.engine.store` writes.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import duckdb

from app.domain.errors import Cancelled, DatabaseDamaged, KnownError, StorageError
from app.storage.engine.connection import MEMORY_MAX_MB, Connection, Row, Values, connect
from app.storage.engine.errors import (
    OURS,
    backup_failed,
    database_failed,
    database_is_damaged,
    from_duckdb_error,
    is_sure_damage,
    needs_reopening,
)
from app.storage.engine.full_read import read_everything
from app.storage.engine.gate import Gate

T = TypeVar("T")

_log = logging.getLogger(__name__)
P = ParamSpec("P")

# Enough for the pages of a few queries: repeated reads come from the system's file cache. With 1 GB
# an import of 192 MB grew the process by 318 MB, with 128 MB by 182 MB, at the same speed. A library
# that needs more gets half as much again. A copy builds all indexes: 256 MB were too little for a million turns.
_MEMORY_MB = 64
_MORE_MEMORY = 1.5
_MEMORY_TO_COPY_MB, _MEMORY_TO_COPY_SHARE = 150, 0.35
_MEMORY_IDLE_MB = 8
_FEW_READS = 30  # from one `release_memory` to the next: the polling of workers
# A reopening that failed leaves a closed connection, which raises the second of these; a bug the last.
_INVALIDATED = (duckdb.FatalException, duckdb.ConnectionException, duckdb.InternalException)
_SOUND_FOR_S = 300.0  # after everything could be read: a full read takes seconds


class Database:
    """One open DuckDB file.

    Attributes:
        is_damaged: Whether a part could not be read: nothing more is written, the next start repairs it.
        writer: The ident of the thread for which what the user writes waits, 0 before there is one.
        on_damaged: Called once, by the thread that met or confirmed the damage.
        on_unconfirmed: Called after each confirmation that found no damage.

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
        self.on_damaged: Callable[[DatabaseDamaged], object] = lambda _: None
        self.on_unconfirmed: Callable[[], object] = lambda: None
        self._local = threading.local()
        # By thread, so that one thread can cancel the query of another.
        self._cursors: weakref.WeakValueDictionary[int, Connection] = weakref.WeakValueDictionary()
        self._snapshots = weakref.WeakValueDictionary[int, Connection]()
        self._confirming = threading.RLock()
        self._is_confirming = False
        self._confirmer = threading.Thread()
        self.writer = 0
        self._sound_at = -_SOUND_FOR_S
        self._limits = threading.Lock()
        self._copies = 0
        self._memory_mb = _MEMORY_MB
        self._reads = 0
        self._connection = connection or _opened(path, backups)
        self._limit_memory()

    def forbid_this_thread(self) -> None:
        """Make any query on the calling thread a bug that is raised, not a stall."""
        self._forbidden.add(threading.get_ident())

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Return the result of `query`, run with this thread's cursor and `values`; blocking.

        One `query` reads from one snapshot. It must drain the cursor before it returns. It runs again
        after a fatal error, for which the database is reopened, and with more memory when there was too
        little: iterators among `values` become lists. Raises StorageError, and Cancelled after `interrupt`.
        """
        if self._gate.is_inside:
            return query(self._cursor(), *values, **named)
        snapshot: Callable[..., T] = self._snapshot
        given = [list(each) if isinstance(each, Iterator) else each for each in values]
        return self._outermost(snapshot, query, *given, **named)

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        """Return the rows of one query, as `read` would; without a transaction it is 0.4 ms quicker."""
        if self._gate.is_inside:
            return self._cursor().rows(statement, values)
        return self._outermost(lambda: self._on_cursor(Connection.rows, statement, values))

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction on the writing connection; only the writer thread calls it.

        `work` runs again when the instance became invalid or memory was too small. Raises DiskFull,
        ReadOnlyStorage or StorageError, after rolling back.
        """
        self.refuse_damaged()
        return self._with_reopening(2, self._transaction, work)

    @property
    def is_suspected(self) -> bool:
        """Whether it is damaged, or may be: that is being confirmed."""
        return self.is_damaged or self._confirmer.is_alive()

    def refuse_damaged(self) -> None:
        """Raise DatabaseDamaged if a part could not be read: writing might spread the damage."""
        if self.is_damaged:
            raise database_is_damaged()

    def checkpoint(self) -> bool:
        """Write the write-ahead log into the file; return False when it must be tried again later."""
        try:
            self.refuse_damaged()
            self._with_reopening(1, lambda: self._connection.execute("CHECKPOINT"))
        except StorageError as error:
            _log.info("a checkpoint is put off: %s", error)
            return False
        return True

    @contextmanager
    def snapshot_cursor(self) -> Iterator[Connection]:
        """Yield a separate cursor for a long read, such as a backup; raises StorageError.

        It may use more memory than other queries, and more again the next time if that was too little.
        """
        self.refuse_damaged()
        try:
            with self._copying() as cursor:
                yield cursor
        except DatabaseDamaged as error:
            if not isinstance(cause := error.__cause__, duckdb.Error):
                raise
            raise self._translated(cause, is_copy=True) from cause

    @contextmanager
    def _copying(self) -> Iterator[Connection]:
        with self._gate.passing():
            try:
                cursor = self._connection.cursor()
            except duckdb.Error as error:
                raise from_duckdb_error(error) from error
            self._snapshots[threading.get_ident()] = cursor
            self._count_copies(1)
            had_mb = self._limit_mb
            try:
                yield cursor
            except StorageError as error:
                cause = error.__cause__
                if isinstance(cause, duckdb.OutOfMemoryException) or needs_reopening(cause):
                    self._grow(had_mb)
                raise
            finally:
                cursor.close()
                self._count_copies(-1)

    def release_memory(self) -> None:
        """Release the memory of cached pages when hardly anything was read since the last call.

        Later reads find them in the system's file cache. Nothing happens while a query runs.
        """
        reads, self._reads = self._reads, 0
        if reads > _FEW_READS:
            return
        with self._gate.shut(waits=False) as is_alone, self._limits:
            if is_alone:
                self._limit_memory(_MEMORY_IDLE_MB)
                self._limit_memory()

    def interrupt(self, thread_id: int) -> None:
        """Cancel the query of the thread with that ident; its `read` raises Cancelled."""
        for cursors in (self._cursors, self._snapshots):
            if (cursor := cursors.get(thread_id)) is not None:
                with suppress(duckdb.ConnectionException):  # closed meanwhile, so it has ended
                    cursor.interrupt()

    def replace_file(self, coming: Path) -> None:
        """Replace the database file by one of the same history, while no query runs; raises StorageError."""
        with self._gate.shut():
            self._disconnect()
            try:
                self._path.with_name(self._path.name + ".wal").unlink(missing_ok=True)
                coming.replace(self._path)
            finally:
                self._connection = _opened(self._path, self._backups)
                self._limit_memory()
                self._generation += 1

    def close(self) -> None:
        """Close once no query is running; later queries raise StorageError."""
        if self._confirmer.ident is not None:
            self._confirmer.join()
        with self._gate.shut():
            self._closed = True
            self._disconnect()

    def _outermost(self, work: Callable[P, T], *values: P.args, **named: P.kwargs) -> T:
        if threading.get_ident() in self._forbidden:
            raise RuntimeError("a query on a thread that must never block")
        self._reads += 1
        return self._with_reopening(2, work, *values, **named)

    def _snapshot(
        self, query: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        with self._own_cursor() as cursor:
            cursor.execute("BEGIN READ ONLY")
            outcome = query(cursor, *values, **named)
            cursor.execute("ROLLBACK")
        return outcome

    def _on_cursor(
        self, query: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        with self._own_cursor() as cursor:
            return query(cursor, *values, **named)

    @contextmanager
    def _own_cursor(self) -> Iterator[Connection]:
        """Yield this thread's cursor; after an error the thread gets another."""
        cursor = self._cursor()
        try:
            yield cursor
        except BaseException:
            # It may have been interrupted anywhere, even in the rollback; a new cursor is cheap.
            self._local.generation = None
            with suppress(duckdb.Error):
                cursor.close()
            raise

    def _with_reopening(
        self, tries: int, work: Callable[P, T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Return the result of `work`; reopen the database and repeat it when that became invalid."""
        while True:
            generation, had_mb = self._generation, self._limit_mb
            try:
                with self._gate.passing():
                    return work(*values, **named)
            except duckdb.InterruptException as error:
                raise Cancelled("The query was canceled") from error
            except OURS:
                raise
            except duckdb.OutOfMemoryException as error:
                if had_mb == MEMORY_MAX_MB:
                    raise from_duckdb_error(error) from error
                self._grow(had_mb)
                continue
            except duckdb.Error as error:
                if not (isinstance(error, _INVALIDATED) or needs_reopening(error)):
                    raise self._translated(error) from error
                tries -= 1
                failure = error
            self._reopen(generation)
            if not tries:
                raise self._translated(failure) from failure

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        connection = self._connection
        try:
            connection.execute("BEGIN")
        except duckdb.TransactionException:
            # The previous transaction could not be rolled back.
            connection.execute("ROLLBACK")
            connection.execute("BEGIN")
        try:
            outcome = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):  # the error itself may have ended it
                connection.execute("ROLLBACK")
            raise
        return outcome

    def _translated(self, error: duckdb.Error, *, is_copy: bool = False) -> StorageError:
        """Return an error as ours, having marked the database if that is damage for sure.

        A copy has read everything and written another file, so a checksum says nothing about which.
        """
        problem = from_duckdb_error(error, database=self._path)
        if not isinstance(problem, DatabaseDamaged):
            return problem
        is_sure = is_sure_damage(error, self._path)
        unconfirmed = backup_failed(error) if is_copy else database_failed(error)
        if threading.get_ident() == self.writer and not is_sure:
            # What the user writes waits for this thread, and to read 1 GB takes three seconds.
            if not self._confirmer.is_alive():
                self._confirmer = threading.Thread(target=self._translated, args=(error,))
                self._confirmer.start()
            return unconfirmed
        with self._confirming:
            if self._is_confirming or self.is_damaged:
                return problem
            if (is_copy or not is_sure) and not self._finds_damage(again=is_sure):
                self.on_unconfirmed()
                return unconfirmed
            _log.error("a part of the database cannot be read: %s", error)
            self.is_damaged = True
        self.on_damaged(problem)
        return problem

    def _finds_damage(self, *, again: bool) -> bool:
        """Return whether something cannot be read, looking everywhere, `again` even if that was done lately."""
        if not again and time.monotonic() - self._sound_at < _SOUND_FOR_S:
            return False
        self._is_confirming = True
        try:
            self._with_reopening(2, lambda: self._on_cursor(read_everything))
        except Cancelled:
            return self._finds_damage(again=True)
        except (duckdb.Error, KnownError) as error:
            _log.warning("not everything could be read: %s", error)
            return isinstance(error, DatabaseDamaged)
        finally:
            self._is_confirming = False
        self._sound_at = time.monotonic()
        return False

    def _reopen(self, seen_generation: int) -> None:
        """Close and open again, unless another thread has done so since `seen_generation`."""
        self.interrupt(self._confirmer.ident or 0)  # it begins anew
        with self._gate.shut():
            if self._closed:
                raise StorageError("The database is closed", "Start the program again.")
            if self._generation == seen_generation:
                self._disconnect()
                self._connection = _opened(self._path, self._backups)
                self._memory_mb = MEMORY_MAX_MB  # too little memory may have been the cause
                self._limit_memory()
                self._generation += 1

    def _count_copies(self, more: int) -> None:
        with self._limits:
            self._copies += more
            self._limit_memory()

    def _grow(self, seen_mb: int) -> None:
        """Raise the memory limit permanently, unless another thread did since `seen_mb`."""
        with self._limits:
            if self._limit_mb == seen_mb:
                self._memory_mb = min(int(seen_mb * _MORE_MEMORY), MEMORY_MAX_MB)
                self._limit_memory()

    @property
    def _limit_mb(self) -> int:
        if not self._copies:
            return self._memory_mb
        return max(self._memory_mb, memory_to_copy_mb(self._path))

    def _limit_memory(self, limit_mb: int | None = None) -> None:
        """Set the limit and release what is above it, except what is in use."""
        with suppress(duckdb.Error), self._connection.cursor() as cursor:
            cursor.execute(f"SET memory_limit = '{limit_mb or self._limit_mb}MB'")

    def _disconnect(self) -> None:
        with suppress(duckdb.Error):  # an invalidated one may refuse; dropping it is enough
            self._connection.close()

    def _cursor(self) -> Connection:
        if getattr(self._local, "generation", None) != self._generation:
            self._local.cursor = self._connection.cursor()
            self._local.generation = self._generation
            self._cursors[threading.get_ident()] = self._local.cursor
        cursor: Connection = self._local.cursor
        return cursor


def memory_to_copy_mb(path: Path) -> int:
    """Return the memory that a copy of a database file is allowed at first."""
    size_mb = path.stat().st_size / 1e6 if path.exists() else 0
    return min(_MEMORY_TO_COPY_MB + int(_MEMORY_TO_COPY_SHARE * size_mb), MEMORY_MAX_MB)


def _opened(path: Path, backups: Path) -> Connection:
    try:
        return connect(path, backups)
    except duckdb.Error as error:
        raise from_duckdb_error(error) from error

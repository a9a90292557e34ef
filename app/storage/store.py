"""The door to everything kept: `commit` for changes, `read` for queries, `subscribe` for news.

A commit is durable in the journal before it is applied, and applied before it is acknowledged.
Opening, with all that can be wrong, is `app.storage.recovery`.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from app.domain import codec
from app.domain.changes import Change
from app.domain.errors import StorageError
from app.domain.events import Changed, ChangeListener
from app.storage.apply import apply_records
from app.storage.changed import changed_by
from app.storage.database import Connection, Database
from app.storage.ids import IdAllocator
from app.storage.journal import Journal
from app.system.paths import DataPaths, fsync_folder

T = TypeVar("T")
_log = logging.getLogger(__name__)
_BATCH_LIMIT = 200
_BATCH_LIMIT_BYTES = 16 << 20


@dataclass(slots=True)
class _Write:
    """A wish in the writer's queue: changes to journal, or work of another kind."""

    future: "Future[Any]"
    changes: tuple[Change, ...] = ()
    payload: str = ""
    applies: bool = True
    work: Callable[[], Any] | None = None


@dataclass(slots=True)
class Store:
    """One open data directory.

    Thread-safe. Listeners are called on the writer thread, after the commit and before its
    future resolves; they must return at once.

    Attributes:
        ids: Allocates ids for what is about to be committed.
        notices: What recovery did at start, in words for the user; empty after a clean start.
        generation: Changes when the database was restored: indexes of another one are void.
    """

    paths: DataPaths
    database: Database
    journal: Journal
    ids: IdAllocator
    notices: tuple[str, ...]
    generation: str
    _queue: "queue.SimpleQueue[_Write | None]" = field(default_factory=queue.SimpleQueue)
    _listeners: list[ChangeListener] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _closed: bool = False
    _dirty: bool = False

    def start(self) -> None:
        """Start the writer thread; recovery calls it once everything is in place."""
        self._thread = threading.Thread(target=self._serve, name="writer", daemon=True)
        self._thread.start()

    # -- writing

    def commit(self, *changes: Change) -> "Future[Changed]":
        """Save changes as one: all or none. The future resolves when they are durable and applied.

        Raises (through the future) DiskFull, ReadOnlyStorage or StorageError; then nothing of
        them was saved.
        """
        return self._submit(_Write(Future(), changes, codec.dumps(changes)))

    def save(self, *changes: Change) -> Changed:
        """Like `commit`, but wait for it. Blocking."""
        return self.commit(*changes).result()

    def journal_only(self, *changes: Change) -> "Future[Changed]":
        """Make changes durable that only recovery will read (`ReplyGrew`)."""
        return self._submit(_Write(Future(), changes, codec.dumps(changes), applies=False))

    def write_derived(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Run `work` in a transaction of its own, without the journal.

        Only for what can be made again from the rest, such as a worker's retry times.
        """
        return self._submit(_Write(Future(), work=partial(self.database.write, work)))

    def on_writer(self, work: Callable[[], T]) -> "Future[T]":
        """Run `work` between two writes, on the writer thread: checkpoints, cutting the journal."""
        return self._submit(_Write(Future(), work=work))

    # -- reading

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return what `query` makes of a cursor of this thread; blocking. See `Database.read`."""
        return self.database.read(query)

    def subscribe(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` after every commit; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def checkpoint(self) -> "Future[bool]":
        """Fold the write-ahead log into the file, when something was written since the last time."""
        return self.on_writer(self._checkpoint)

    def close(self) -> None:
        """Finish what is queued, checkpoint, close; safe to call twice. Blocking."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
        self._checkpoint()
        self.journal.close_segment()
        self.database.close()
        self.paths.unclean.unlink(missing_ok=True)
        fsync_folder(self.paths.root)

    # -- the writer thread

    def _submit(self, write: _Write) -> "Future[Any]":
        if self._closed:
            write.future.set_exception(
                StorageError("The program is closing", "Start it again to go on.")
            )
        else:
            self._queue.put(write)
        return write.future

    def _serve(self) -> None:
        held: _Write | None = None
        while True:
            first = held or self._queue.get()
            held = None
            if first is None:
                return
            if first.work is not None:
                _settle(first, first.work)
                continue
            batch, held, ends = self._gather(first)
            self._commit_batch(batch)
            if ends:
                return

    def _gather(self, first: _Write) -> tuple[list[_Write], _Write | None, bool]:
        """Take more commits that wait already: one fsync and one transaction serve them all."""
        batch, size = [first], len(first.payload)
        while len(batch) < _BATCH_LIMIT and size < _BATCH_LIMIT_BYTES:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return batch, None, True
            if following.work is not None:
                return batch, following, False
            batch.append(following)
            size += len(following.payload)
        return batch, None, False

    def _commit_batch(self, batch: list[_Write]) -> None:
        try:
            self._write_batch(batch)
        except Exception as error:  # noqa: BLE001 - the thread must live, the caller gets it
            if len(batch) > 1:
                for write in batch:
                    self._commit_batch([write])
            else:
                batch[0].future.set_exception(error)
            return
        for write in batch:
            changed = changed_by(write.changes) if write.applies else Changed()
            self._tell(changed)
            write.future.set_result(changed)

    def _write_batch(self, batch: list[_Write]) -> None:
        mark = self.journal.mark()
        positions = self.journal.append([write.payload for write in batch])
        records = [
            (position, write.changes)
            for position, write in zip(positions, batch, strict=True)
            if write.applies
        ]
        if not records:
            return
        self._dirty = True
        try:
            self.database.write(lambda connection: apply_records(connection, records))
        except BaseException:
            # The commit may have come through before the instance failed: then it counts.
            if self._applied_position() < records[-1][0]:
                self.journal.rewind(mark)
                raise

    def _applied_position(self) -> int:
        row = self.database.read(
            lambda cursor: cursor.execute("SELECT position FROM state").fetchone()
        )
        return int(row[0]) if row else 0

    def _checkpoint(self) -> bool:
        if not self._dirty:
            return True
        done = self.database.checkpoint()
        if done:
            fsync_folder(self.paths.root)
            self._dirty = False
        return done

    def _tell(self, changed: Changed) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(changed)
            except Exception:  # noqa: BLE001 - what was committed stays committed
                _log.exception("a listener failed")


def _settle(write: _Write, work: Callable[[], Any]) -> None:
    try:
        write.future.set_result(work())
    except Exception as error:  # noqa: BLE001 - the thread must live, the caller gets it
        write.future.set_exception(error)


def read_state(connection: Connection) -> Sequence[int]:
    """Return (position, conversation, exchange, message, passage) of the state row."""
    row = connection.execute(
        "SELECT position, conversation, exchange, message, passage FROM state"
    ).fetchone()
    if row is None:
        raise StorageError("The database has lost its state", "Restore a backup.")
    return row

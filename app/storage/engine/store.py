"""The store: `commit` for changes, `read` for queries, `subscribe` for notifications.

A commit is durable in the journal before it is applied, and applied before it is acknowledged.
`app.storage.safety.recovery` opens a store; `app.storage.apply` turns changes into rows.
"""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from app.domain import codec
from app.domain.change_set import ChangeListener, ChangeSet
from app.domain.changes import Change, DraftPut
from app.domain.deletions import Deletion
from app.domain.errors import DatabaseDamaged, DiskFull, StorageError
from app.storage.engine.aggregate import Batch, read_state
from app.storage.engine.connection import Connection, Queries, Row, Values
from app.storage.engine.database import Database
from app.storage.engine.journal import Journal
from app.storage.engine.space import (
    FOR_DELETING_BYTES,
    disk_is_full,
    fill_reserve,
    has_room_for_checkpoint,
    is_background,
    release_reserve,
)
from app.storage.engine.stamps import IdAllocator
from app.system.paths import DataPaths, fsync_folder

if TYPE_CHECKING:
    from app.storage.apply import Records
    from app.storage.deletion.deletion_set import DeletionSet
    from app.storage.deletion.tombstones import Tombstones

T = TypeVar("T")
_log = logging.getLogger(__name__)
P = ParamSpec("P")
_BATCH_LIMIT = 200
_BATCH_LIMIT_CHARS = 16 << 20


@dataclass(slots=True)
class _Write:
    """A request in the writer's queue: changes to journal, or other work.

    `is_exclusive` when it must not share a transaction: later writes depend on its success.
    """

    future: "Future[Any]"
    changes: tuple[Change, ...] = ()
    payload: tuple[str, ...] = ()
    applies: bool = True
    work: Callable[[], Any] | None = None
    is_exclusive: bool = False


@dataclass(slots=True)
class Store(Queries):
    """One open data directory.

    Thread-safe. Listeners are called on the writer thread, after the commit and before its
    future resolves; they must return at once and must not write.

    Attributes:
        uid: The database's identity, which its journal and its backups carry too.
        generation: Changes when the database was restored: indexes of another one are void.
        ids: Allocates ids for what is about to be committed.
        apply: Writes records inside a transaction: `app.storage.apply.apply_records`.
        tombstones: What was deleted in this run. The writer thread owns it.
        notices: What recovery did at startup, as sentences for the user; empty after a clean start.
        backup_lock: Held while a backup is made or the file is rewritten.
        throttle: Called before each part of long work, on the writer thread and on the committing
            one; it may wait.
        is_dirty: Whether the write-ahead log is not empty, so that a checkpoint has work.
        is_disk_full: Whether background work is refused, to leave the rest of the disk to the user.
        _waiting: Drafts in the journal that could not be applied: that is done with the next write.
    """

    paths: DataPaths
    uid: str
    generation: str
    database: Database
    journal: Journal
    ids: IdAllocator
    apply: "Callable[[Connection, Records, Callable[[], None]], Batch]"
    tombstones: "Tombstones"
    notices: tuple[str, ...] = ()
    backup_lock: "threading.Lock" = field(default_factory=threading.Lock)
    throttle: Callable[[], None] = lambda: None
    is_dirty: bool = False
    is_disk_full: bool = False
    _queue: "queue.SimpleQueue[_Write | None]" = field(default_factory=queue.SimpleQueue)
    _listeners: list[ChangeListener] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _closing: "threading.Lock" = field(default_factory=threading.Lock)
    _closed: bool = False
    _waiting: "Records" = field(default_factory=list)

    def start(self) -> None:
        """Start the writer thread; recovery calls it once everything is in place."""
        self.database.on_unconfirmed = self.checkpoint
        self._thread = threading.Thread(target=self._serve, name="writer", daemon=True)
        self._thread.start()

    # -- writing

    def commit(self, *changes: Change) -> "Future[ChangeSet]":
        """Save changes as one: all or none. The future resolves when they are durable and applied.

        It cannot be cancelled. Raises (through the future) DiskFull, ReadOnlyStorage or
        StorageError; then nothing of them was saved.
        """
        return self._submit(_Write(Future(), changes))

    def save(self, *changes: Change) -> ChangeSet:
        """Like `commit`, but wait for it. Blocking."""
        return self.commit(*changes).result()

    def journal_only(self, *changes: Change) -> "Future[ChangeSet]":
        """Make changes durable that only recovery will read (`ReplyGrew`)."""
        return self._submit(_Write(Future(), changes, applies=False))

    def write_derived(
        self, work: Callable[[Connection], T], news: ChangeSet | None = None
    ) -> "Future[T]":
        """Run `work` in a transaction of its own, without the journal; see `Database.write`.

        Only for what can be derived again, such as a worker's retry times. Listeners are called
        with `news` after the commit; with `news`, it is refused while the disk is full.
        """

        def write() -> T:
            if self.is_disk_full and news is not None:
                raise disk_is_full()
            self.is_dirty = True
            outcome = self.database.write(work)
            if news is not None:
                self._notify(news)
            return outcome

        return self.on_writer(write)

    def on_writer(self, work: Callable[[], T]) -> "Future[T]":
        """Run `work` between two writes, on the writer thread: checkpoints, cutting the journal."""
        return self._submit(_Write(Future(), work=work))

    def commit_now(self, *changes: Change) -> None:
        """Like `save`, for work that is on the writer thread already (`on_writer`)."""
        write = _Write(Future(), changes)
        self._encode(write)
        self._commit_batch([write])
        write.future.result()

    # -- reading

    def read(
        self, query: "Callable[Concatenate[Connection, P], T]", *values: P.args, **named: P.kwargs
    ) -> T:
        """Return what `query` makes of a cursor of this thread and `values`; see `Database.read`."""
        return self.database.read(query, *values, **named)

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        """Return the rows of one query; blocking."""
        return self.database.rows(statement, values)

    def subscribe(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` after every commit; return a function that ends the subscription."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    # -- maintenance

    def checkpoint(self) -> "Future[bool]":
        """Fold the write-ahead log into the file, when something was written since the last time.

        Resolves to False when that could not be done now.
        """
        return self.on_writer(self._checkpoint)

    def fill_reserve(self) -> "Future[bool]":
        """Reserve disk space if there is enough again; resolves to False while the disk is full."""

        def fill() -> bool:
            self.is_disk_full = not fill_reserve(self.paths) and self.is_disk_full
            return not self.is_disk_full

        return self.on_writer(fill)

    def close(self) -> None:
        """Finish what is queued, checkpoint, close; safe to call twice. Blocking."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
        try:
            self._checkpoint()
        finally:
            self.journal.close_segment()
            self.database.close()
        try:
            if not self.database.is_damaged:
                self.paths.mark_closed()
            fsync_folder(self.paths.root)
        except OSError as error:
            _log.warning("the clean end was not recorded: %s", error)

    # -- the writer thread

    def _submit(self, write: _Write) -> "Future[Any]":
        if write.work is None:
            self._encode(write)
        # A running future cannot be cancelled: a submitted write is always done.
        write.future.set_running_or_notify_cancel()
        with self._closing:
            if not self._closed:
                self._queue.put(write)
                return write.future
        write.future.set_exception(
            StorageError("The program is closing", "Start it again to continue.")
        )
        return write.future

    def _encode(self, write: _Write) -> None:
        """Make the text of a record, in pieces."""
        pieces = []
        for piece in codec.iter_json(write.changes):
            self.throttle()
            pieces.append(piece)
        write.payload = tuple(pieces)
        write.is_exclusive = any(isinstance(each, Deletion) for each in write.changes)

    def _serve(self) -> None:
        self.database.writer = threading.get_ident()
        held: _Write | None = None
        while (first := held or self._queue.get()) is not None:
            held = None
            if first.work is not None:
                try:
                    first.future.set_result(first.work())
                except Exception as error:  # noqa: BLE001 - the thread must live, the caller gets it
                    first.future.set_exception(error)
                continue
            batch, held, ends = self._gather(first)
            self._commit_batch(batch)
            if ends:
                return

    def _gather(self, first: _Write) -> tuple[list[_Write], _Write | None, bool]:
        """Take more commits that wait already: one fsync and one transaction for all of them."""
        batch, size = [first], sum(map(len, first.payload))
        while len(batch) < _BATCH_LIMIT and size < _BATCH_LIMIT_CHARS and not first.is_exclusive:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return batch, None, True
            if following.work is not None or following.is_exclusive:
                return batch, following, False
            batch.append(following)
            size += sum(map(len, following.payload))
        return batch, None, False

    def _commit_batch(self, batch: list[_Write]) -> None:
        """Journal and apply a batch, then acknowledge it; after an error each write by itself."""
        try:
            changed = iter(self._write_batch(batch))
        except Exception as error:  # noqa: BLE001 - the thread must live, the caller gets it
            if len(batch) > 1:
                for write in batch:
                    self._commit_batch([write])
            elif isinstance(error, DiskFull) and self._release_reserve(batch[0]):
                self._commit_batch(batch)
            elif self._waiting and not self.database.is_suspected:
                # The library is sound. What waits is given up if the write succeeds without it.
                _log.error("drafts may prevent a write, which is tried without them: %s", error)
                waiting, self._waiting = self._waiting, []
                self._commit_batch(batch)
                if batch[0].future.exception() or self._waiting:
                    self._waiting[:0] = waiting
            else:
                batch[0].future.set_exception(error)
            return
        for write in batch:
            outcome = next(changed) if write.applies else ChangeSet()
            if write.applies:
                self._notify(outcome)
            write.future.set_result(outcome)

    def _release_reserve(self, write: _Write) -> bool:
        """Return whether a write that found the disk full may be tried again."""
        self.is_disk_full = True
        keep_bytes = 0 if write.is_exclusive else FOR_DELETING_BYTES
        return not is_background(write.changes) and release_reserve(self.paths, keep_bytes)

    def _write_batch(self, batch: list[_Write]) -> list[ChangeSet]:
        """Journal and apply a batch; return what each of its applied writes changed."""
        deletions: list[DeletionSet] = []
        payloads: list[tuple[str, ...]] = []
        for write in batch:
            if self.is_disk_full and is_background(write.changes):
                raise disk_is_full()
            kept = self.tombstones.without(write.changes, self.read)
            if kept != write.changes:
                write.changes = kept
                self._encode(write)
            if write.is_exclusive:
                deletions += self.read(self.tombstones.deletions, write.changes)
            payloads.append(write.payload)
        positions = zip(self.journal.append(payloads), batch, strict=True)
        new = [(position, write.changes) for position, write in positions if write.applies]
        if batch and not new:
            return []
        records = self._waiting + new
        self.is_dirty = True
        applied: list[Batch] = []

        def apply(connection: Connection) -> None:
            applied.append(self.apply(connection, records, self.throttle))

        try:
            self.database.write(apply)
        except BaseException as error:
            # The commit may have succeeded before the instance failed: then it counts.
            if not self._is_applied(records[-1][0]):
                if self._may_wait(batch, error):
                    self._waiting = records
                    return [ChangeSet()] * len(new)
                self.journal.rewind()
                raise
        self.tombstones.add(deletions)
        for write in batch:
            self.tombstones.add_values(write.changes)
        self._waiting = []
        return applied[-1].changed()[len(records) - len(new) :]  # a draft that waited is no news

    def _may_wait(self, batch: list[_Write], error: BaseException) -> bool:
        """Return whether the journal keeps a batch, of drafts alone, until the database can take it."""
        changes = (each for write in batch if write.applies for each in write.changes)
        is_unclear = type(error) in (StorageError, DatabaseDamaged)
        is_unclear &= self.database.is_suspected or bool(self._waiting)
        return is_unclear and all(isinstance(each, DraftPut) for each in changes)

    def _is_applied(self, position: int) -> bool:
        try:
            return self.read(read_state).position >= position
        except StorageError:
            return False

    def _checkpoint(self) -> bool:
        if self._waiting:
            with suppress(Exception):
                self._write_batch([])
        if not self.is_dirty:
            return True
        if not has_room_for_checkpoint(self.paths):
            return False
        if done := self.database.checkpoint():
            fsync_folder(self.paths.root)
            self.is_dirty = False
        return done

    def _notify(self, changed: ChangeSet) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(changed)
            except Exception:  # noqa: BLE001 - what was committed stays committed
                _log.exception("a listener failed")


class StoreReader:
    """What reads rows of a store; a subclass has the queries about one kind of record. They block."""

    def __init__(self, store: Store) -> None:
        self._store = store


S = TypeVar("S", bound=StoreReader)


def in_snapshot(
    query: "Callable[Concatenate[S, Connection, P], T]",
) -> "Callable[Concatenate[S, P], T]":
    """Return a method that takes a cursor as one that is called without it, reading from one snapshot."""

    def read(self: S, /, *values: P.args, **named: P.kwargs) -> T:
        return self._store.read(partial(query, self), *values, **named)

    update_wrapper(read, query)
    return read

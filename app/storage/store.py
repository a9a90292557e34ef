"""The door to everything kept: `commit` for changes, `read` for queries, `subscribe` for news.

A commit is durable in the journal before it is applied, and applied before it is acknowledged.
Opening, with all that can be wrong, is `app.storage.recovery`.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from app.domain import codec
from app.domain.changes import Change, ConversationForgotten, FactForgotten, MemoryForgotten
from app.domain.errors import StorageError
from app.domain.events import Changed, ChangeListener
from app.storage.apply import apply_records, read_state
from app.storage.changed import changed_by
from app.storage.database import Connection, Database
from app.storage.gone import Gone
from app.storage.ids import IdAllocator
from app.storage.journal import Journal
from app.storage.leaving import Leaving, conversations_leaving, learned_leaving
from app.system.paths import DataPaths, fsync_folder

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FORGETTING = (ConversationForgotten, FactForgotten, MemoryForgotten)
_BATCH_LIMIT = 200
_BATCH_LIMIT_BYTES = 16 << 20


@dataclass(slots=True)
class _Write:
    """A wish in the writer's queue: changes to journal, or work of another kind."""

    future: "Future[Any]"
    changes: tuple[Change, ...] = ()
    payload: tuple[str, ...] = ()
    applies: bool = True
    work: Callable[[], Any] | None = None

    @property
    def size_chars(self) -> int:
        """How long the payload is."""
        return sum(map(len, self.payload))

    @property
    def stands_alone(self) -> bool:
        """Whether it must not share a transaction: what follows depends on its success."""
        return any(isinstance(change, _FORGETTING) for change in self.changes)


@dataclass(slots=True)
class Store:
    """One open data directory.

    Thread-safe. Listeners are called on the writer thread, after the commit and before its
    future resolves; they must return at once and must not write.

    Attributes:
        uid: The database's identity, which its journal and its backups carry too.
        generation: Changes when the database was restored: indexes of another one are void.
        ids: Allocates ids for what is about to be committed.
        notices: What recovery did at start, in words for the user; empty after a clean start.
        backing_up: Held while a backup is made or the file is rewritten.
        give_way: Called before each part of a long work, on the writer thread and on that of who
            commits; it may rest.
    """

    paths: DataPaths
    uid: str
    generation: str
    database: Database
    journal: Journal
    ids: IdAllocator
    notices: tuple[str, ...] = ()
    backing_up: "threading.Lock" = field(default_factory=threading.Lock)
    give_way: Callable[[], None] = lambda: None
    _queue: "queue.SimpleQueue[_Write | None]" = field(default_factory=queue.SimpleQueue)
    _listeners: list[ChangeListener] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _closing: "threading.Lock" = field(default_factory=threading.Lock)
    _closed: bool = False
    _dirty: bool = False
    _suspect: bool = False
    _gone: Gone = field(default_factory=Gone)

    def start(self) -> None:
        """Start the writer thread; recovery calls it once everything is in place."""
        self._thread = threading.Thread(target=self._serve, name="writer", daemon=True)
        self._thread.start()

    # -- writing

    def commit(self, *changes: Change) -> "Future[Changed]":
        """Save changes as one: all or none. The future resolves when they are durable and applied.

        It cannot be cancelled. Raises (through the future) DiskFull, ReadOnlyStorage or
        StorageError; then nothing of them was saved.
        """
        return self._submit(_Write(Future(), changes, self._text(changes)))

    def save(self, *changes: Change) -> Changed:
        """Like `commit`, but wait for it. Blocking."""
        return self.commit(*changes).result()

    def journal_only(self, *changes: Change) -> "Future[Changed]":
        """Make changes durable that only recovery will read (`ReplyGrew`)."""
        return self._submit(_Write(Future(), changes, self._text(changes), applies=False))

    def write_derived(
        self, work: Callable[[Connection], T], news: Changed | None = None
    ) -> "Future[T]":
        """Run `work` in a transaction of its own, without the journal; see `Database.write`.

        Only for what can be made again from the rest, such as a worker's retry times. Listeners are
        told `news` after the commit.
        """

        def write() -> T:
            self._dirty = True
            outcome = self.database.write(work)
            if news is not None:
                self._tell(news)
            return outcome

        return self.on_writer(write)

    def on_writer(self, work: Callable[[], T]) -> "Future[T]":
        """Run `work` between two writes, on the writer thread: checkpoints, cutting the journal."""
        return self._submit(_Write(Future(), work=work))

    def commit_now(self, *changes: Change) -> Changed:
        """Like `save`, for work that is on the writer thread already (`on_writer`)."""
        write = _Write(Future(), changes, self._text(changes))
        self._commit_batch([write])
        changed: Changed = write.future.result()
        return changed

    # -- reading

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return what `query` makes of a cursor of this thread; blocking. See `Database.read`."""
        return self.database.read(query)

    def subscribe(self, listener: ChangeListener) -> Callable[[], None]:
        """Call `listener` after every commit; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    # -- keeping

    def checkpoint(self) -> "Future[bool]":
        """Fold the write-ahead log into the file, when something was written since the last time.

        Resolves to False when that could not be done now.
        """
        return self.on_writer(self._checkpoint)

    def note_write(self) -> None:
        """Say that the write-ahead log holds something, so that a checkpoint has work."""
        self._dirty = True

    def suspect_damage(self) -> None:
        """Make the next start look at everything, as after an unclean end."""
        self._suspect = True

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
            if not (self._suspect or self.database.is_damaged):
                self.paths.unclean.unlink(missing_ok=True)
            fsync_folder(self.paths.root)
        except OSError as error:
            _log.warning("the end was not noted: %s", error)

    # -- the writer thread

    def _submit(self, write: _Write) -> "Future[Any]":
        # A running future refuses to be cancelled: what is asked for here is always done.
        write.future.set_running_or_notify_cancel()
        with self._closing:
            if not self._closed:
                self._queue.put(write)
                return write.future
        write.future.set_exception(
            StorageError("The program is closing", "Start it again to go on.")
        )
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
        batch, size = [first], first.size_chars
        while len(batch) < _BATCH_LIMIT and size < _BATCH_LIMIT_BYTES and not first.stands_alone:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return batch, None, True
            if following.work is not None or following.stands_alone:
                return batch, following, False
            batch.append(following)
            size += following.size_chars
        return batch, None, False

    def _commit_batch(self, batch: list[_Write]) -> None:
        try:
            if self._gone:
                self._drop_what_is_gone(batch)
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
            if write.applies:
                self._tell(changed)
            write.future.set_result(changed)

    def _drop_what_is_gone(self, batch: list[_Write]) -> None:
        for write in batch:
            kept = self._gone.without(write.changes)
            if kept != write.changes:
                write.changes, write.payload = kept, self._text(kept)

    def _write_batch(self, batch: list[_Write]) -> None:
        leaving = self._leaving([change for write in batch for change in write.changes])
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
            self.database.write(
                lambda connection: apply_records(connection, self._politely(records))
            )
        except BaseException:
            # The commit may have come through before the instance failed: then it counts.
            if not self._is_applied(records[-1][0]):
                self.journal.rewind(mark)
                raise
        self._gone.add(leaving)

    def _text(self, changes: tuple[Change, ...]) -> tuple[str, ...]:
        """Return the text of a record, in pieces."""
        return tuple(self._politely(codec.pieces(changes)))

    def _politely(self, parts: Iterable[T]) -> Iterator[T]:
        """Yield parts of some work, giving way before each."""
        for part in parts:
            self.give_way()
            yield part

    def _leaving(self, changes: list[Change]) -> list[Leaving]:
        """Return what the changes forget, read while it is there."""
        conversations = [c.conversation_id for c in changes if isinstance(c, ConversationForgotten)]
        learned = {
            "fact": [c.fact_id for c in changes if isinstance(c, FactForgotten)],
            "memory": [c.memory_id for c in changes if isinstance(c, MemoryForgotten)],
        }

        def read(cursor: Connection) -> list[Leaving]:
            said = [conversations_leaving(cursor, conversations)] if conversations else []
            known = (learned_leaving(cursor, name, ids) for name, ids in learned.items() if ids)
            return [*said, *known]

        return self.read(read) if conversations or any(learned.values()) else []

    def _is_applied(self, position: int) -> bool:
        try:
            return int(self.read(read_state)[0]) >= position
        except StorageError:
            return False

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

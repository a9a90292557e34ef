"""Erasure: removing the bytes of what was forgotten from the database file, the journal and the backups.

Deleting rows leaves their text in the file (reliability F6); only copying a database into a new file removes
it. That costs as much as the library is large, so it waits for a quiet time: each forgetting adds a row to the
table `erasure` in its own transaction, and `erase_bytes` does the work of all rows together. Backups keep their
dates: what was forgotten since is forgotten in each of them too, one after the other. A kill may come after any
step; the rows are deleted last.
"""

import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

import duckdb

from app.domain import codec
from app.domain.changes import Change, ExchangePut
from app.domain.deletions import (
    ConversationForgotten,
    CoreMemoryForgotten,
    DocumentsForgotten,
    FactForgotten,
    MemoryForgotten,
    MessagesForgotten,
    ValueForgotten,
)
from app.domain.errors import Cancelled, DiskFull, ReadOnlyStorage, StorageError
from app.storage.apply import apply_records
from app.storage.deletion.values import value_counts
from app.storage.engine import migrations
from app.storage.engine.connection import Connection, connect
from app.storage.engine.database import Database, memory_to_copy_mb
from app.storage.engine.errors import from_duckdb_error, from_os_error
from app.storage.engine.stamps import to_db
from app.storage.engine.store import Store
from app.storage.safety import image
from app.storage.safety.attachments import keep_for_backups
from app.storage.safety.backup import KEEP_ALWAYS, Backup, backups_of, list_backups, name_backup
from app.storage.safety.image import fsync_path
from app.storage.safety.interrupted import grown_since, running_exchanges
from app.storage.safety.replay import replay
from app.system.paths import fsync_folder

_log = logging.getLogger(__name__)
_REWRITTEN, _COPIED, _CLEANED = "rewritten.duckdb", "copied.duckdb", "cleaned.duckdb"

Changes = tuple[Change, ...]
Owed = Sequence[tuple[int, Changes | None]]
"""(journal position, what was forgotten), in order; None when only an earlier version knew that."""


def deletions_owed(store: Store) -> int:
    """Return how many deletions of the user still have bytes in the files. Blocking."""
    (count,) = store.column("SELECT count(*) FROM erasure WHERE changes IS DISTINCT FROM ''")
    return int(count)


def owe_superseded(store: Store, before: datetime) -> None:
    """Have the bytes removed that edited and deleted documents left, if they were there `before`. Blocking.

    No backup is cleaned of them: their text is in these as long as they are kept.
    """
    if store.column(
        "SELECT 1 FROM meta WHERE key = 'superseded_at' AND value < ?", [str(to_db(before))]
    ):
        store.write_derived(_owe_superseded).result()


def _owe_superseded(connection: Connection) -> None:
    connection.execute("INSERT OR IGNORE INTO erasure SELECT position, '' FROM state")
    connection.execute("INSERT OR REPLACE INTO meta SELECT 'unindexed_at', position FROM state")
    connection.execute("DELETE FROM meta WHERE key = 'superseded_at'")


def erase_bytes(store: Store, is_cancelled: Callable[[], bool] = lambda: False) -> bool:
    """Remove the bytes of all that was forgotten until now; return whether there was anything.

    Blocking, for as long as a copy of the database takes, and one of each backup that contains some of it;
    others read and write meanwhile. `is_cancelled` is called between backups. Raises Cancelled, StorageError;
    then the next call continues.
    """
    (pending,) = store.column("SELECT max(position) FROM erasure")
    if pending is None:
        return False
    clean: set[Path] = set()
    while True:
        if is_cancelled():
            raise Cancelled("Forgotten text is removed from the files later")
        with store.backup_lock:
            backups = backups_of(store.paths.backups, store.uid)
            uncleaned = (each for each in backups if each.path not in clean)
            if (backup := next(uncleaned, None)) is None:
                _replace_database(store, pending)
                return True
            try:
                _clean_backup(store, backup, store.read(_owed))
            except OSError as error:
                raise from_os_error(error, "A backup") from error
            clean.add(backup.path)


def forget_again(connection: Connection, position: int, owed: Owed) -> None:
    """Forget in an older database, which is at `position`, what is owed and it still contains.

    The bytes are still in its file then. Raises duckdb.Error.
    """
    if there := _contained(connection, owed):
        migrations.migrate(connection)
        connection.execute("BEGIN")
        apply_records(connection, [(position, there)])
        connection.execute("COMMIT")


def owed_in(path: Path, backups: Path, database_uid: str) -> Owed:
    """Return what is owed in a closed database with that uid; nothing if it cannot be read."""
    if not path.exists():
        return ()
    try:
        with connect(path, backups, read_only=True) as connection:
            return _owed(connection) if image.identify(connection).uid == database_uid else ()
    except duckdb.Error:
        return ()


# -- backups


def _owed(cursor: Connection) -> Owed:
    rows = cursor.rows(
        "SELECT position, changes FROM erasure WHERE changes IS NULL OR changes <> '' ORDER BY position"
    )
    return [
        (at, None if changes is None else codec.loads(Changes, changes)) for at, changes in rows
    ]


def _contained(connection: Connection, owed: Owed) -> Changes:
    """Return what is owed and still in a database of any version."""
    return tuple(
        each for _, changes in owed for each in changes or () if _contains(connection, each)
    )


def _contains(connection: Connection, change: Change) -> bool:
    match change:
        case ConversationForgotten(conversation_id=each):
            return bool(_found(connection, "conversation", "id", [each]))
        case MessagesForgotten(message_ids=ids):
            there = _found(connection, "message", "id", ids)
            return bool(there - _found(connection, "forgotten_message", "message_id", ids))
        case FactForgotten(fact_id=each):
            return bool(_found(connection, "fact", "id", [each]))
        case MemoryForgotten(memory_id=each):
            return bool(_found(connection, "memory", "id", [each]))
        case DocumentsForgotten(document_ids=ids):
            return bool(_found(connection, "document", "id", ids))
        case CoreMemoryForgotten(made_at=times):
            return bool(_found(connection, "core_memory", "made_at", map(to_db, times)))
        case ValueForgotten(value=value):
            return bool(value_counts(connection, value))
        case _:
            return True


def _found(connection: Connection, table: str, key: str, keys: Iterable[object]) -> set[object]:
    try:
        return connection.column_in(table, key, keys, key)
    except duckdb.CatalogException:
        return set()  # it is older than the table


def _clean_backup(store: Store, backup: Backup, owed: Owed) -> None:
    """Replace a backup by one without what was forgotten since; delete it if that is impossible.

    Raises OSError, DiskFull, ReadOnlyStorage, Cancelled.
    """
    if any(changes is None and at > backup.position for at, changes in owed):
        backup.path.unlink()
        return
    folder = store.paths.backups
    copied, cleaned = folder / _COPIED, folder / _CLEANED
    try:
        with connect(backup.path, folder, read_only=True) as connection:
            if not _contained(connection, owed):
                return
        _remove(folder, _COPIED, _CLEANED)
        shutil.copyfile(backup.path, copied)
        copied.chmod(0o600)
        with connect(copied, folder) as connection:
            forget_again(connection, backup.position, owed)
            connection.execute("DELETE FROM erasure")
            connection.execute("CHECKPOINT")
        with image.once_released(lambda: connect(copied, folder)) as connection:
            # The open library takes memory too; with half as much a copy takes half as long again.
            limit_mb = memory_to_copy_mb(copied) // 2
            counts = image.with_little_memory(
                connection, limit_mb, lambda: _copied(connection, cleaned)
            )
        image.verify(cleaned, counts)
        fsync_path(cleaned)
        cleaned.replace(backup.path)
    except (duckdb.Error, StorageError) as error:
        problem = from_duckdb_error(error) if isinstance(error, duckdb.Error) else error
        if isinstance(problem, DiskFull | ReadOnlyStorage):
            raise problem from error
        _log.warning("the backup %s cannot be cleaned and is deleted: %s", backup.path.name, error)
        backup.path.unlink(missing_ok=True)
    finally:
        _remove(folder, _COPIED, _CLEANED)
        fsync_folder(folder)


def _copied(connection: Connection, target: Path) -> dict[str, int]:
    image.remove(target)  # of a copy that had too little memory
    _, counts = image.copy_into(connection, target)
    return counts


def _remove(folder: Path, *names: str) -> None:
    for name in names:
        image.remove(folder / name)


# -- the database and its journal


def _replace_database(store: Store, pending: int) -> None:
    """Replace file, journal and the newest backups by copies without what was forgotten."""
    store.write_derived(lambda connection: _begin_replacing(connection, pending)).result()
    last = store.on_writer(lambda: _begin_clean_segment(store)).result()
    _rewrite(store)
    store.on_writer(lambda: store.journal.cut_behind(last)).result()
    store.write_derived(lambda connection: _record_erased(connection, pending)).result()
    store.on_writer(lambda: _release_texts(store)).result()


def _begin_replacing(connection: Connection, pending: int) -> None:
    """Record that the backups are clean; what documents leave behind from now on may be in the copy."""
    done = "UPDATE erasure SET changes = '[]' WHERE position <= ? AND changes IS DISTINCT FROM ''"
    connection.execute(done, [pending])
    connection.execute("DELETE FROM meta WHERE key = 'superseded_at'")


def _record_erased(connection: Connection, pending: int) -> None:
    connection.execute("DELETE FROM erasure WHERE position <= ?", [pending])


def _release_texts(store: Store) -> None:
    """Free what recognizes forgotten text, unless a reply that runs may still quote it."""
    if not running_exchanges(store):
        store.tombstones.release_texts()


def _begin_clean_segment(store: Store) -> int:
    """Start a segment that does not need the earlier ones; return the last position of those.

    Running replies, which recovery would still need, are written once more.
    """
    running = running_exchanges(store)
    grown = grown_since(store, running) if running else {}
    store.journal.begin_segment()
    last = store.journal.last_position
    for exchange, _ in running:
        store.commit_now(ExchangePut(exchange), *grown[exchange.id])
    return last


def _rewrite(store: Store) -> None:
    """Make a copy of the database and replace the file by it; two more are the newest backups.

    They are two because the journal, which leads from an older one to the present, is cut.
    """
    folder = store.paths.backups
    target = folder / _REWRITTEN
    try:
        _remove(folder, _REWRITTEN)
        with store.database.snapshot_cursor() as cursor:
            position, counts = image.copy_into(cursor, target)
            image.verify(target, counts)
            keep_for_backups(store.paths, cursor)
        first = _copied_as_backup(store, target, position)
        store.on_writer(lambda: _swap(store, target)).result()
        for _ in range(KEEP_ALWAYS - 1):
            _copied_as_backup(store, first.path, position)
    except OSError as error:
        raise from_os_error(error, "The backup") from error
    finally:
        _remove_unfinished(folder)


def _copied_as_backup(store: Store, source: Path, position: int) -> Backup:
    copied = store.paths.backups / _COPIED
    shutil.copyfile(source, copied)
    copied.chmod(0o600)
    return name_backup(copied, position, store.uid)


def _swap(store: Store, target: Path) -> None:
    """On the writer thread: replay what was written since the copy was made, then replace the file."""
    coming = Database(target, store.paths.backups)
    try:
        replay(coming, store.paths, store.uid)
        coming.checkpoint()
    finally:
        coming.close()
    if target.with_name(target.name + ".wal").exists():
        raise DiskFull("There is not enough disk space for a copy", "Free some space.")
    fsync_path(target)
    store.database.replace_file(target)
    fsync_folder(store.paths.root)


def _remove_unfinished(folder: Path) -> None:
    """Delete the copies that a kill has left in the folder of backups."""
    finished = {each.path for each in list_backups(folder)}
    for path in folder.glob("*.duckdb*"):
        if path.is_file() and path not in finished:
            path.unlink()
    fsync_folder(folder)

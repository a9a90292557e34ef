"""Opening a data directory, whatever is found in it: a ladder, each step only when needed.

1. Open the file. A failure that names the write-ahead log: set the log aside, open again.
2. Refuse a newer schema, untouched. After an unclean end, or once a day, read every table.
3. What cannot be read is set aside (never deleted) and the newest verified backup takes its place;
   without one, an empty database.
4. Bring the schema up to date, with a backup first.
5. Replay the journal past the image's position; end the replies that were running.
What was done is told in `Store.notices`.
"""

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from app.domain import codec
from app.domain.changes import Change
from app.domain.errors import (
    AlreadyOpen,
    DatabaseTooNew,
    DiskFull,
    ReadOnlyStorage,
    StorageError,
)
from app.domain.ids import new_uid
from app.storage import migrations
from app.storage.apply import apply_records
from app.storage.backup import Backup, copy_into, list_backups, read_everything, verify
from app.storage.database import Connection, Database, connect, translated
from app.storage.ids import IdAllocator
from app.storage.interrupted import end_running_replies
from app.storage.journal import Journal, JournalReader, first_position, journal_owner
from app.storage.store import Store, read_state
from app.storage.times import now
from app.system.paths import DataPaths, fsync_folder

_log = logging.getLogger(__name__)
_FULL_READ_EVERY_S = 24 * 3600
_REPLAY_BATCH = 500


@dataclass(slots=True)
class _Opening:
    """What the ladder has found out so far."""

    paths: DataPaths
    notices: list[str] = field(default_factory=list)
    restored: bool = False


def open_store(paths: DataPaths) -> Store:
    """Return the opened store of `paths`, its writer running; the caller holds the lock.

    Blocking: a second for an ordinary library, longer after damage. Raises DatabaseTooNew,
    ReadOnlyStorage, DiskFull, AlreadyOpen, or StorageError when no step of the ladder holds.
    """
    opening = _Opening(paths)
    unclean = paths.unclean.exists()
    if not paths.database.exists():
        _begin_without_database(opening)
    database_uid, generation = _make_readable(opening, unclean)
    if opening.restored:
        generation = new_uid()
    try:
        database = Database(paths.database, paths.backups)
    except duckdb.Error as error:
        raise translated(error) from error
    try:
        if opening.restored:
            database.write(lambda connection: _put_meta(connection, "generation", generation))
        last = _replay(opening, database, database_uid)
        journal = Journal(paths.journal, database_uid, last)
        position, *highest = database.read(read_state)
        journal.last_position = max(last, position)
        store = Store(
            paths, database, journal, IdAllocator(*highest), tuple(opening.notices), generation
        )
        paths.unclean.touch(0o600)
        fsync_folder(paths.root)
        store.start()
    except BaseException:
        database.close()
        raise
    ended = end_running_replies(store, database_uid)
    if ended:
        words = "A reply was" if ended == 1 else f"{ended} replies were"
        notice = f"{words} interrupted when the program ended; what had arrived is kept."
        store.notices = (*store.notices, notice)
    return store


def _begin_without_database(opening: _Opening) -> None:
    """There is no file: a first start, unless backups or a journal remember one."""
    paths = opening.paths
    if list_backups(paths.backups) or first_position(paths.journal) is not None:
        opening.notices.append("The database file was missing.")
        _restore(opening)


def _make_readable(opening: _Opening, unclean: bool) -> tuple[str, str]:
    """Climb until the file opens, is ours, and is current; return its uid and generation."""
    paths = opening.paths
    steps: tuple[Callable[[], None], ...] = (
        lambda: None,
        lambda: _set_wal_aside(opening),
        lambda: _restore_instead(opening),
        lambda: _restore_instead(opening),
    )
    failure: Exception | None = None
    for step in steps:
        step()
        try:
            return _prepare(opening, full_read=unclean or _full_read_is_due(paths))
        except (duckdb.ParserException, duckdb.BinderException):
            raise  # ours, not the file's
        except duckdb.Error as error:
            _refuse_what_is_not_damage(paths, error)
            failure = error
            _log.warning("the database does not open: %s", error)
    raise StorageError(
        f"The database in '{paths.root}' cannot be opened or restored: {failure}",
        "Its files were kept in the folder 'damaged'.",
    )


def _prepare(opening: _Opening, full_read: bool) -> tuple[str, str]:
    """Open, check and migrate; raises duckdb.Error for damage."""
    paths = opening.paths
    connection = connect(paths.database, paths.backups)
    try:
        version = migrations.version_of(connection)
        if version > migrations.CURRENT_VERSION:
            raise DatabaseTooNew(
                f"The database in '{paths.root}' was written by a newer version of the program",
                "Update the program, or choose another folder with --data-dir.",
            )
        if version == 0 and _holds_tables(connection):
            raise duckdb.InvalidInputException("not a database of this program")
        if version == 0 or full_read:
            read_everything(connection)
            _note_full_read(paths)
        if 0 < version < migrations.CURRENT_VERSION:
            _back_up_before_migration(paths, connection)
        migrations.migrate(connection)
        uid, generation = (_meta(connection, key) for key in ("database_uid", "generation"))
        if uid is None or generation is None:
            owner = journal_owner(paths.journal)
            uid, generation = owner or new_uid(), new_uid()
            _put_meta(connection, "database_uid", uid)
            _put_meta(connection, "generation", generation)
        connection.execute("CHECKPOINT")
        fsync_folder(paths.root)
    finally:
        connection.close()
    return uid, generation


def _refuse_what_is_not_damage(paths: DataPaths, error: duckdb.Error) -> None:
    words = str(error)
    if "Could not set lock" in words or "being used by another process" in words:
        raise AlreadyOpen(
            f"Another program has the database in '{paths.root}' open", "Close it first."
        ) from error
    if "newer version" in words or "newer DuckDB version" in words:
        raise DatabaseTooNew(
            f"The database in '{paths.root}' was written by a newer version of DuckDB",
            "Update the program, or choose another folder with --data-dir.",
        ) from error
    problem = translated(error)
    if isinstance(problem, DiskFull | ReadOnlyStorage):
        raise problem from error


def _set_wal_aside(opening: _Opening) -> None:
    """A stale log (its deletion was never synced) stops DuckDB; the journal knows what it held."""
    paths = opening.paths
    if paths.wal.exists():
        _set_aside(paths, [paths.wal])
        opening.notices.append(
            "The database's log did not fit it and was set aside; its changes come from the journal."
        )


def _restore_instead(opening: _Opening) -> None:
    paths = opening.paths
    _set_aside(paths, [path for path in (paths.database, paths.wal) if path.exists()])
    opening.notices.append(
        "The database could not be read; the damaged file is kept in the folder 'damaged'."
    )
    _restore(opening)


def _restore(opening: _Opening) -> None:
    """Put the newest backup that verifies in the database's place; without one, nothing."""
    paths = opening.paths
    opening.restored = True
    for backup in list_backups(paths.backups):
        if _copy_verified(backup, paths):
            local = f"{backup.made_at.astimezone():%d %B %Y, %H:%M}"
            opening.notices.append(f"The backup of {local} was restored.")
            return
    opening.notices.append("There was no backup to restore; the journal was read instead.")


def _copy_verified(backup: Backup, paths: DataPaths) -> bool:
    coming = paths.backups / "restoring.duckdb"
    try:
        verify(backup.path)
        shutil.copyfile(backup.path, coming)
        coming.replace(paths.database)
        fsync_folder(paths.root)
    except StorageError:
        _log.warning("the backup %s is damaged", backup.path.name)
        return False
    return True


def _replay(opening: _Opening, database: Database, database_uid: str) -> int:
    """Apply what the journal holds past the image; return the last position it holds."""
    position = int(database.read(read_state)[0])
    reader = JournalReader(opening.paths.journal, position, database_uid)
    last, replayed = position, 0
    batch: list[tuple[int, tuple[Change, ...]]] = []
    for record in reader:
        batch.append((record.position, codec.loads(tuple[Change, ...], record.payload)))
        last = record.position
        if len(batch) >= _REPLAY_BATCH:
            replayed += _apply(database, batch)
    replayed += _apply(database, batch)
    lost = sum(end - start + 1 for start, end in reader.gaps)
    if lost:
        opening.notices.append(
            f"{lost} changes could not be read from the journal, which is damaged."
        )
    if replayed and opening.restored:
        opening.notices.append(f"{replayed} later changes were taken from the journal.")
    _log.info("replayed %d records of the journal past %d", replayed, position)
    return last


def _apply(database: Database, batch: list[tuple[int, tuple[Change, ...]]]) -> int:
    records = list(batch)
    batch.clear()
    if records:
        database.write(lambda connection: apply_records(connection, records))
    return len(records)


def _back_up_before_migration(paths: DataPaths, connection: Connection) -> None:
    unfinished = paths.backups / "unfinished.duckdb"
    unfinished.unlink(missing_ok=True)
    position, counts = copy_into(connection, unfinished)
    verify(unfinished, counts)
    stamp = now().strftime("%Y%m%dT%H%M%SZ")
    unfinished.rename(paths.backups / f"commonplace-{stamp}-p{position}.duckdb")
    fsync_folder(paths.backups)


def _set_aside(paths: DataPaths, files: list[Path]) -> None:
    folder = paths.damaged / f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
    folder.mkdir(mode=0o700, parents=True)
    for file in files:
        file.replace(folder / file.name)
    fsync_folder(paths.root)


def _full_read_is_due(paths: DataPaths) -> bool:
    stamp = paths.root / "checked"
    return stamp.exists() and time.time() - stamp.stat().st_mtime > _FULL_READ_EVERY_S


def _note_full_read(paths: DataPaths) -> None:
    (paths.root / "checked").touch(0o600)


def _holds_tables(connection: Connection) -> bool:
    row = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
    return bool(row and row[0])


def _meta(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()
    return str(row[0]) if row else None


def _put_meta(connection: Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])

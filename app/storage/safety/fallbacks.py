"""Opening with fallbacks: the database as it is, without its log, from a backup, or a new one.

A step that fails leaves the next one everything it needs; nothing is deleted. The journal is replayed
afterwards (`app.storage.safety.replay`).
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import duckdb

from app.domain.errors import (
    AlreadyOpen,
    DatabaseDamaged,
    DatabaseTooNew,
    DatabaseUnreadable,
    DiskFull,
    ReadOnlyStorage,
    StorageError,
)
from app.domain.ids import new_uid
from app.domain.translation import format_moment, tr
from app.storage.engine import migrations
from app.storage.engine.connection import Connection, connect
from app.storage.engine.errors import from_duckdb_error, from_os_error
from app.storage.engine.full_read import read_everything
from app.storage.engine.journal import first_position, journal_owner
from app.storage.engine.space import has_room_for_checkpoint
from app.storage.safety import image
from app.storage.safety.backup import Backup, backup_from, backups_of, list_backups
from app.storage.safety.image import quarantine
from app.system.paths import DataPaths, fsync_folder

T = TypeVar("T")
_log = logging.getLogger(__name__)
# Maintenance reads daily, when idle; this is for programs that never are.
_FULL_READ_EVERY_S = 7 * 24 * 3600
_LOG_QUARANTINED = tr(
    "The database's log was damaged and moved to the folder 'damaged'; its changes come from the journal."
)
_UNREADABLE = tr(
    "The database could not be read; the damaged file is kept in the folder 'damaged'."
)


class _Unusable(Exception):
    """The file opens but must not be used; the message says why, for the user."""


@dataclass(slots=True)
class OpeningState:
    """The state of opening a data directory.

    Attributes:
        notices: What was done, as sentences for the user.
        restored: Whether the file is another one than was found.
        has_log: Whether the log could not be folded into the file, because the disk is full.
    """

    paths: DataPaths
    notices: list[str] = field(default_factory=list)
    restored: bool = False
    has_log: bool = False


@dataclass(slots=True)
class OpenedDatabase:
    """A usable database: its schema is up to date, its rows are not yet."""

    connection: Connection
    uid: str
    generation: str


def open_with_fallbacks(opening: OpeningState, use: Callable[[OpenedDatabase], T]) -> T:
    """Return the result of `use` with the first database that can be used. Blocking.

    `use` owns the connection, and may find damage too. Raises DatabaseTooNew, ReadOnlyStorage,
    DiskFull, AlreadyOpen, DatabaseUnreadable.
    """
    paths = opening.paths
    failure: list[Exception] = []
    for full_read in _recovery_steps(opening, failure):
        try:
            return use(_open_checked(opening, full_read))
        except (duckdb.Error, DatabaseDamaged, _Unusable) as error:
            if isinstance(error, duckdb.Error):
                _refuse_what_is_not_damage(paths, error)
            _log.warning("this database cannot be used: %s", error)
            failure.append(error)
    raise DatabaseUnreadable(
        f"The database in '{paths.root}' cannot be opened or restored: {failure[-1]}",
        "Its files are kept in the folder 'damaged'.",
    )


def _recovery_steps(opening: OpeningState, failure: list[Exception]) -> Iterator[bool]:
    """Prepare one recovery step after the other; yield whether to read the database in full."""
    paths = opening.paths
    known = _has_history(paths)
    if paths.database.exists():
        read_at = paths.checked.stat().st_mtime if paths.checked.exists() else time.time()
        yield not paths.is_as_closed() or time.time() - read_at > _FULL_READ_EVERY_S
        if quarantine(paths, [paths.wal]):
            opening.notices.append(_LOG_QUARANTINED)
            yield True
            # The log was not the cause, or not the only one.
            opening.notices.remove(_LOG_QUARANTINED)
        last = failure[-1]
        opening.notices.append(str(last) if isinstance(last, _Unusable) else _UNREADABLE)
    else:
        quarantine(paths, [paths.wal])  # DuckDB would delete it
        if known:
            opening.notices.append(tr("The database file was missing."))
    # Only those of the journal's database, if it has any.
    owner = journal_owner(paths.journal)
    own = backups_of(paths.backups, owner) if owner is not None else []
    for backup in own or list_backups(paths.backups):
        if _put_in_place(opening, backup):
            made_at = format_moment(backup.made_at)
            notice = tr("The backup of {moment} was restored.").format(moment=made_at)
            opening.notices.append(notice)
            yield True
            opening.notices.remove(notice)
    quarantine(paths, [paths.database, paths.wal])
    if known:
        opening.restored = True
        opening.notices.append(tr("There was no backup to restore; the journal was read instead."))
    elif opening.notices:
        opening.notices.append(tr("There is nothing to restore: starting with an empty library."))
    yield False


def _open_checked(opening: OpeningState, full_read: bool) -> OpenedDatabase:
    """Open, check and migrate; raises duckdb.Error and _Unusable."""
    paths = opening.paths
    has_wal = paths.wal.exists()
    if has_wal:
        # Closing a file that was opened for writing changes it, so a newer one is opened read-only first.
        with connect(paths.database, paths.backups, read_only=True) as connection:
            _refuse_newer(paths, image.identify(connection).version)
    is_new = not paths.database.exists()
    connection = connect(paths.database, paths.backups)
    try:
        found = image.identify(connection)
        _refuse_newer(paths, found.version)
        _refuse_foreign(opening, connection, found, is_new)
        behind = found.version < migrations.CURRENT_VERSION
        if full_read or (behind and found.version):
            read_everything(connection)
        if full_read or is_new:
            paths.checked.touch(0o600)
        if behind:
            if found.version:
                backup_from(connection, paths.backups, found.uid)
                paths.migrated.touch(0o600)
            try:
                migrations.migrate(connection)
            except duckdb.Error as error:
                # It was just read in full: another step would only fail the same way.
                raise from_duckdb_error(error) from error
        uid, generation = _identity(paths, connection)
        if has_wal or behind:
            connection = _checkpointed(opening, connection)
    except BaseException:
        connection.close()
        raise
    return OpenedDatabase(connection, uid, generation)


def _checkpointed(opening: OpeningState, connection: Connection) -> Connection:
    """Fold the log into the file, if the disk has room; return the connection, or another one.

    A failed checkpoint invalidates the instance (reliability F4). Then the log stays, and maintenance
    tries again.
    """
    paths = opening.paths
    opening.has_log = not has_room_for_checkpoint(paths)
    if opening.has_log:
        return connection
    try:
        connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        if not isinstance(from_duckdb_error(error), DiskFull):
            raise
        with suppress(duckdb.Error):
            connection.close()
        opening.has_log = True
        return connect(paths.database, paths.backups)
    fsync_folder(paths.root)
    return connection


def _refuse_newer(paths: DataPaths, version: int) -> None:
    if version > migrations.CURRENT_VERSION:
        raise DatabaseTooNew(
            f"The database in '{paths.root}' was written by a newer version of the program",
            "Update the program, or choose another folder with --data-dir.",
        )


def _refuse_foreign(
    opening: OpeningState, connection: Connection, found: image.DatabaseIdentity, is_new: bool
) -> None:
    """Raise _Unusable for a file that is not ours, or is older than its backups and journal."""
    if found.version == 0:
        (tables,) = connection.column("SELECT count(*) FROM duckdb_tables()")
        # A first start that was killed leaves only a file without tables.
        if tables or (not is_new and _has_history(opening.paths)):
            raise _Unusable(
                tr(
                    "The database file was not created by this program; it was moved to the folder 'damaged'."
                )
            )
        return
    if opening.restored:
        return
    backups = backups_of(opening.paths.backups, found.uid)
    first = first_position(opening.paths.journal)
    reaches_back = first is not None and first <= found.position + 1
    if backups and backups[0].position > found.position and not reaches_back:
        raise _Unusable(
            tr("The database was older than its newest backup; it is kept in the folder 'damaged'.")
        )


def _identity(paths: DataPaths, connection: Connection) -> tuple[str, str]:
    """Return (uid, generation), created with the database; the uid is the journal's if there is one."""
    known = dict(connection.select_in("meta", "key, value", ["database_uid", "generation"], "key"))
    for key, value in (
        ("database_uid", journal_owner(paths.journal) or new_uid()),
        ("generation", new_uid()),
    ):
        if key not in known:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])
            known[key] = value
    return known["database_uid"], known["generation"]


def _refuse_what_is_not_damage(paths: DataPaths, error: duckdb.Error) -> None:
    message = str(error)
    if "Could not set lock" in message or "being used by another process" in message:
        raise AlreadyOpen(
            f"Another program has the database in '{paths.root}' open", "Close it first."
        ) from error
    if "newer version" in message or "newer DuckDB version" in message:
        raise DatabaseTooNew(
            f"The database in '{paths.root}' was written by a newer version of DuckDB",
            "Update the program, or choose another folder with --data-dir.",
        ) from error
    if isinstance(error, duckdb.ParserException | duckdb.BinderException):
        raise error  # a bug of ours, not damage
    problem = from_duckdb_error(error)
    is_machine = isinstance(error, duckdb.OutOfMemoryException) or "Too many open files" in message
    if is_machine or isinstance(problem, DiskFull | ReadOnlyStorage):
        raise problem from error


def _has_history(paths: DataPaths) -> bool:
    return bool(list_backups(paths.backups)) or first_position(paths.journal) is not None


def _put_in_place(opening: OpeningState, backup: Backup) -> bool:
    """Restore a backup unless it is damaged; what was there before goes into quarantine."""
    paths = opening.paths
    coming = paths.backups / "restoring.duckdb"
    try:
        if image.verify(backup.path).version > migrations.CURRENT_VERSION:
            return False
    except StorageError:
        _log.warning("the backup %s is damaged", backup.path.name)
        return False
    try:
        image.restore_into(coming, backup.path)
    except OSError as error:
        raise from_os_error(error, "The restored database") from error
    image.replace_database(paths, coming)
    opening.restored = True
    return True

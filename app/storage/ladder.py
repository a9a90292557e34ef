"""The rungs by which a database file becomes usable: as it is, without its log, from a backup, new.

A rung that fails leaves the next one everything it needs; nothing is deleted. Replaying the
journal afterwards is `app.storage.replay`.
"""

import logging
import shutil
import time
from collections.abc import Callable, Iterator
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
from app.storage import image, migrations
from app.storage.aside import set_aside
from app.storage.backup import Backup, backup_from, backups_of, fsync_path, list_backups
from app.storage.database import Connection, connect
from app.storage.faults import of_duckdb, of_system
from app.storage.journal import first_position, journal_owner
from app.system.paths import DataPaths, fsync_folder

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FULL_READ_EVERY_S = 7 * 24 * 3600  # the caretaker reads daily, when idle; this is the backstop
_LOG_ASIDE = (
    "The database's log did not fit it and was set aside; its changes come from the journal."
)
_UNREADABLE = "The database could not be read; the damaged file is kept in the folder 'damaged'."


class _Unusable(Exception):
    """The file opens, and still is not the one to go on with; says why, in words for the user."""


@dataclass(slots=True)
class Opening:
    """What has been found out so far.

    Attributes:
        notices: What was done, in words for the user.
        restored: Whether the file is not the one that was found.
    """

    paths: DataPaths
    notices: list[str] = field(default_factory=list)
    restored: bool = False


@dataclass(slots=True)
class Opened:
    """A usable database: up to date in its schema, not yet in its rows."""

    connection: Connection
    uid: str
    generation: str


def climb(opening: Opening, use: Callable[[Opened], T]) -> T:
    """Return what `use` makes of the database on the first rung that holds. Blocking.

    `use` owns the connection, and may find damage too. Raises DatabaseTooNew, ReadOnlyStorage,
    DiskFull, AlreadyOpen, DatabaseUnreadable.
    """
    paths = opening.paths
    failure: list[Exception] = []
    for full_read in _rungs(opening, failure):
        try:
            return use(_look_at(opening, full_read))
        except (duckdb.Error, DatabaseDamaged, _Unusable) as error:
            if isinstance(error, duckdb.Error):
                _refuse_what_is_not_damage(paths, error)
            _log.warning("this database cannot be used: %s", error)
            failure.append(error)
    raise DatabaseUnreadable(
        f"The database in '{paths.root}' cannot be opened or restored: {failure[-1]}",
        "Its files were kept in the folder 'damaged'.",
    )


def _rungs(opening: Opening, failure: list[Exception]) -> Iterator[bool]:
    """Prepare one rung after the other; yield whether it needs to be read in full."""
    paths = opening.paths
    known = _remembers_anything(paths)
    if paths.database.exists():
        full_read = paths.unclean.exists() or _full_read_is_due(paths)
        yield full_read
        if set_aside(paths, [paths.wal]):
            opening.notices.append(_LOG_ASIDE)
            yield True
            opening.notices.remove(_LOG_ASIDE)  # it was not to blame, or not alone
        last = failure[-1]
        opening.notices.append(str(last) if isinstance(last, _Unusable) else _UNREADABLE)
    else:
        set_aside(paths, [paths.wal])  # DuckDB would delete it
        if known:
            opening.notices.append("The database file was missing.")
    for backup in _candidates(paths):
        if _put_in_place(opening, backup):
            local = f"{backup.made_at.astimezone():%d %B %Y, %H:%M}"
            notice = f"The backup of {local} was restored."
            opening.notices.append(notice)
            yield True
            opening.notices.remove(notice)
    set_aside(paths, [paths.database, paths.wal])
    if known:
        opening.restored = True
        opening.notices.append("There was no backup to restore; the journal was read instead.")
    elif opening.notices:
        opening.notices.append("Nothing was left to restore it from: the book begins empty.")
    yield False


def _look_at(opening: Opening, full_read: bool) -> Opened:
    """Open, check and migrate; raises duckdb.Error and _Unusable."""
    paths = opening.paths
    has_wal = paths.wal.exists()
    if has_wal:
        # Closing a file that was opened for writing folds its log in, even if it is not ours to.
        with connect(paths.database, paths.backups, read_only=True) as connection:
            _refuse_newer(paths, image.recognised(connection).version)
    is_new = not paths.database.exists()
    connection = connect(paths.database, paths.backups)
    try:
        found = image.recognised(connection)
        _refuse_newer(paths, found.version)
        _refuse_stranger(opening, connection, found, is_new)
        behind = found.version < migrations.CURRENT_VERSION
        if full_read or (behind and found.version):
            image.read_everything(connection)
            image.find_every_key(connection)
        if full_read or is_new:
            paths.checked.touch(0o600)
        if behind:
            _migrate(paths, connection, found)
        uid, generation = _identity(paths, connection)
        if has_wal or behind:
            connection.execute("CHECKPOINT")
            fsync_folder(paths.root)
    except BaseException:
        connection.close()
        raise
    return Opened(connection, uid, generation)


def _refuse_newer(paths: DataPaths, version: int) -> None:
    if version > migrations.CURRENT_VERSION:
        raise DatabaseTooNew(
            f"The database in '{paths.root}' was written by a newer version of the program",
            "Update the program, or choose another folder with --data-dir.",
        )


def _refuse_stranger(
    opening: Opening, connection: Connection, found: image.Image, is_new: bool
) -> None:
    """Raise _Unusable for a file that is not ours, or is older than what we have of it."""
    if found.version == 0:
        row = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
        # A first start that was killed leaves a file without tables and nothing else.
        if (row and row[0]) or (not is_new and _remembers_anything(opening.paths)):
            raise _Unusable(
                "The database file was not one of this program; it is kept in the folder 'damaged'."
            )
        return
    if opening.restored:
        return
    backups = backups_of(opening.paths.backups, found.uid)
    first = first_position(opening.paths.journal)
    reaches_back = first is not None and first <= found.position + 1
    if backups and backups[0].position > found.position and not reaches_back:
        raise _Unusable(
            "The database was older than its newest backup; it is kept in the folder 'damaged'."
        )


def _migrate(paths: DataPaths, connection: Connection, found: image.Image) -> None:
    if found.version:
        backup_from(connection, paths.backups, found.uid)
    try:
        migrations.migrate(connection)
    except duckdb.Error as error:
        # It was read in full just now: another rung would only meet the same failure.
        raise of_duckdb(error) from error


def _identity(paths: DataPaths, connection: Connection) -> tuple[str, str]:
    """Return (uid, generation), given at birth: the uid is the journal's where there is one."""
    rows = connection.execute(
        "SELECT key, value FROM meta WHERE key IN ('database_uid', 'generation')"
    ).fetchall()
    known = dict(rows)
    for key, value in (
        ("database_uid", journal_owner(paths.journal) or new_uid()),
        ("generation", new_uid()),
    ):
        if key not in known:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])
            known[key] = value
    return known["database_uid"], known["generation"]


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
    if isinstance(error, duckdb.ParserException | duckdb.BinderException):
        raise error  # ours, not the file's
    problem = of_duckdb(error)
    is_machine = isinstance(error, duckdb.OutOfMemoryException) or "Too many open files" in words
    if is_machine or isinstance(problem, DiskFull | ReadOnlyStorage):
        raise problem from error


def _remembers_anything(paths: DataPaths) -> bool:
    return bool(list_backups(paths.backups)) or first_position(paths.journal) is not None


def _candidates(paths: DataPaths) -> list[Backup]:
    """Return the backups to try, best first: those of the journal's own database, if there are."""
    owner = journal_owner(paths.journal)
    own = backups_of(paths.backups, owner) if owner is not None else []
    return own or list_backups(paths.backups)


def _put_in_place(opening: Opening, backup: Backup) -> bool:
    """Restore a backup unless it is damaged; what was there before is set aside."""
    paths = opening.paths
    coming = paths.backups / "restoring.duckdb"
    image.remove(coming)
    try:
        if image.verify(backup.path).version > migrations.CURRENT_VERSION:
            return False
    except StorageError:
        _log.warning("the backup %s is damaged", backup.path.name)
        return False
    try:
        shutil.copyfile(backup.path, coming)
        with connect(coming, paths.backups) as connection:
            # What was built from another state of the database is void.
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('generation', ?)", [new_uid()])
            connection.execute("CHECKPOINT")
        fsync_path(coming)
        set_aside(paths, [paths.database, paths.wal])
        coming.replace(paths.database)
        fsync_folder(paths.root)
    except OSError as error:
        raise of_system(error, "The restored database") from error
    opening.restored = True
    return True


def _full_read_is_due(paths: DataPaths) -> bool:
    stamp = paths.checked
    return stamp.exists() and time.time() - stamp.stat().st_mtime > _FULL_READ_EVERY_S

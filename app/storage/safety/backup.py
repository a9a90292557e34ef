"""Backups: making verified copies of the database, listing, exporting and retaining them.

A backup is made by copying the database into a new file from one snapshot (never by copying the
live file: storage rule 3), then opened and counted, fsynced and renamed. Its name contains
the time, the journal's position and the database, so that recovery needs only the folder.
"""

import logging
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.domain.errors import KnownError, StorageError
from app.storage.engine.aggregate import read_state
from app.storage.engine.connection import Connection
from app.storage.engine.errors import from_os_error
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.safety import image
from app.storage.safety.attachments import copy_kept_to, keep_for_backups
from app.storage.safety.image import fsync_path
from app.system.paths import DataPaths, fsync_folder, refuse_data_directory

_log = logging.getLogger(__name__)
_NAME = re.compile(r"commonplace-(\d{8}T\d{6}Z)-p(\d+)-([0-9a-f]{12})\.duckdb")
_STAMP = "%Y%m%dT%H%M%SZ"
_UNFINISHED = "unfinished.duckdb"
KEEP_ALWAYS = 2
SIZE_CAP_BYTES = 4 << 30
_KEEP_ALL_FOR = timedelta(days=1)
_DAILY = 7
_WEEKLY = 4


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup: when it was made (UTC), and its journal position.

    `owner` are the last twelve digits of the database's uid.
    """

    path: Path
    made_at: datetime
    position: int
    owner: str
    size_bytes: int = field(compare=False)  # another one after a deletion


def list_backups(folder: Path) -> list[Backup]:
    """Return the finished backups in `folder`, of every database, last made first."""
    found = []
    for path in folder.glob("commonplace-*.duckdb"):
        if match := _NAME.fullmatch(path.name):
            made_at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
            with suppress(FileNotFoundError):  # one that expired
                size_bytes = path.stat().st_size
                found.append(Backup(path, made_at, int(match[2]), match[3], size_bytes))
    return sorted(found, key=lambda backup: (backup.made_at, backup.position), reverse=True)


def backups_of(folder: Path, database_uid: str) -> list[Backup]:
    """Return one database's backups, newest first: by position, since clocks may be set back."""
    own = [backup for backup in list_backups(folder) if backup.owner == _owner(database_uid)]
    return sorted(own, key=lambda backup: (backup.position, backup.made_at), reverse=True)


def newest_backup(store: Store) -> Backup | None:
    """Return the newest backup of a store's database."""
    return next(iter(backups_of(store.paths.backups, store.uid)), None)


def make_backup(store: Store) -> Backup:
    """Make a backup, delete expired ones and cut the journal behind the second-newest. Blocking.

    Call from any thread but the writer's and the GUI's. Raises StorageError; then the earlier
    backups are unchanged.
    """
    with store.backup_lock:
        # After a checkpoint nothing depends on the log when the journal is cut.
        store.checkpoint().result()
        try:
            with store.database.snapshot_cursor() as cursor:
                made = backup_from(cursor, store.paths.backups, store.uid)
            delete_expired(store.paths.backups, store.uid)
        except OSError as error:
            raise from_os_error(error, "The backup") from error
        store.on_writer(lambda: _cut_journal(store)).result()
    return made


def complete_backup(store: Store) -> Backup:
    """Return a verified backup of everything: the newest, read again, if nothing was written since. Blocking.

    What is derived may be missing there, such as vectors. Otherwise like `make_backup`.
    """
    newest = newest_backup(store)
    if newest is not None and newest.position == store.read(read_state).position:
        with suppress(StorageError):
            image.verify(newest.path)
            return newest
    return make_backup(store)


def try_backup(store: Store) -> Backup | None:
    """Make a backup if possible; a failure is logged, so that other work can continue."""
    try:
        return make_backup(store)
    except KnownError as error:
        _log.warning("no backup: %s", error)
        return None


def back_up_first(store: Store) -> Backup | None:
    """Make sure of a backup before a large change, such as an import or a bulk delete. Blocking.

    Return the newest one, made now unless nothing was written since; None when none can be made.
    """
    newest = newest_backup(store)
    if newest is not None and newest.position == store.read(read_state).position:
        return newest
    return try_backup(store)


def backup_from(connection: Connection, folder: Path, database_uid: str) -> Backup:
    """Make a backup of an open database and of its files; none is deleted. Raises StorageError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    unfinished = folder / _UNFINISHED
    image.remove(unfinished)
    try:
        position, counts = image.copy_into(connection, unfinished)
        image.verify(unfinished, counts)
        keep_for_backups(DataPaths(folder.parent), connection)
        return name_backup(unfinished, position, database_uid)
    except BaseException:
        image.remove(unfinished)
        raise


def name_backup(verified: Path, position: int, database_uid: str) -> Backup:
    """Make a verified file in the backups folder durable under a backup's name."""
    made_at = now()
    while True:
        stamp = made_at.strftime(_STAMP)
        name = f"commonplace-{stamp}-p{position}-{_owner(database_uid)}.duckdb"
        finished = verified.with_name(name)
        if not finished.exists():
            break
        made_at += timedelta(seconds=1)
    fsync_path(verified)
    verified.rename(finished)
    fsync_folder(finished.parent)
    size_bytes = finished.stat().st_size
    return Backup(
        finished, made_at.replace(microsecond=0), position, _owner(database_uid), size_bytes
    )


def copy_backup(backup: Backup, target: Path) -> int:
    """Copy a finished backup to where the user wants it; raises StorageError, InvalidInput.

    Attached files go into a folder beside it; return how many are missing or altered. Nothing in the
    data directory is overwritten.
    """
    paths = DataPaths(backup.path.parent.parent)
    refuse_data_directory(paths.root, target)
    coming = target.with_name(target.name + ".part")
    try:
        shutil.copyfile(backup.path, coming)
        fsync_path(coming)
        coming.replace(target)
        return copy_kept_to(paths, target)
    except OSError as error:
        with suppress(OSError):
            coming.unlink(missing_ok=True)
        raise StorageError(
            f"'{target}' cannot be written: {error.strerror or error}", "Choose another place."
        ) from error


def delete_expired(folder: Path, database_uid: str, cap_bytes: int = SIZE_CAP_BYTES) -> None:
    """Delete the backups of a database that `backups_to_keep` does not return."""
    backups = backups_of(folder, database_uid)
    kept = backups_to_keep(backups, [backup.size_bytes for backup in backups], cap_bytes)
    for backup in backups:
        if backup.path not in kept:
            image.remove(backup.path)
    fsync_folder(folder)


def _cut_journal(store: Store) -> None:
    backups = backups_of(store.paths.backups, store.uid)
    if len(backups) < KEEP_ALWAYS:
        return
    running = store.row("SELECT min(position) FROM exchange WHERE status = 'running'")
    behind = backups[KEEP_ALWAYS - 1].position
    if running and running[0] is not None:
        behind = min(behind, int(running[0]) - 1)
    store.journal.cut_behind(behind)


def _owner(database_uid: str) -> str:
    return database_uid[-12:]


# -- retention


def backups_to_keep(backups: Sequence[Backup], sizes: Iterable[int], cap_bytes: int) -> set[Path]:
    """Return which of `backups` (newest first) stay, given their sizes in bytes.

    All of the last day, the newest of each of seven days and four weeks before; the oldest go
    when the cap is passed; never fewer than two stay.
    """
    kept = _by_age(backups)
    kept += [backup for backup in backups if backup not in kept][: max(0, KEEP_ALWAYS - len(kept))]
    size_of = dict(zip((backup.path for backup in backups), sizes, strict=True))
    while len(kept) > KEEP_ALWAYS and sum(size_of[each.path] for each in kept) > cap_bytes:
        kept.pop()
    return {backup.path for backup in kept}


def _by_age(backups: Sequence[Backup]) -> list[Backup]:
    kept: list[Backup] = []
    days: set[object] = set()
    weeks: set[object] = set()
    for backup in backups:
        age = backups[0].made_at - backup.made_at
        day, week = backup.made_at.date(), backup.made_at.isocalendar()[:2]
        fresh = age <= _KEEP_ALL_FOR
        daily = age <= timedelta(days=_DAILY) and day not in days
        weekly = age <= timedelta(weeks=_WEEKLY) and week not in weeks
        if fresh or daily or weekly:
            kept.append(backup)
            days.add(day)
            weeks.add(week)
    return kept

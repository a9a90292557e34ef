"""Verified copies of the database, and which of them are kept.

A backup is made by copying the database into a new file from one snapshot (never by copying the
live file: reliability, storage rule 3), then opened and counted, fsynced and renamed. Its name
holds the time and the journal's position, so that recovery needs nothing but the folder.
"""

import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from app.domain.errors import KnownError, StorageError
from app.storage.database import Connection, connect, translated
from app.storage.store import Store, read_state
from app.storage.times import now
from app.system.paths import fsync_folder

_log = logging.getLogger(__name__)
_NAME = re.compile(r"commonplace-(\d{8}T\d{6}Z)-p(\d+)\.duckdb")
_STAMP = "%Y%m%dT%H%M%SZ"
_KEEP_ALWAYS = 2
_KEEP_ALL_FOR = timedelta(days=1)
_DAILY = 7
_WEEKLY = 4
SIZE_CAP_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup: when it was made (UTC), and the journal's position it stands at."""

    path: Path
    made_at: datetime
    position: int


def list_backups(folder: Path) -> list[Backup]:
    """Return the finished backups in `folder`, newest first."""
    found = []
    for path in folder.glob("commonplace-*.duckdb"):
        if match := _NAME.fullmatch(path.name):
            made_at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
            found.append(Backup(path, made_at, int(match[2])))
    return sorted(found, key=lambda backup: (backup.made_at, backup.position), reverse=True)


def make_backup(store: Store) -> Backup:
    """Copy, verify, name, thin; then cut the journal behind the second-newest backup. Blocking.

    Call from any thread but the writer's and the GUI's. Raises StorageError; then the earlier
    backups stand as they were.
    """
    folder = store.paths.backups
    unfinished = folder / "unfinished.duckdb"
    _remove(unfinished)
    try:
        position, counts = _copy(store, unfinished)
        verify(unfinished, counts)
    except duckdb.Error as error:
        _remove(unfinished)
        raise translated(error) from error
    except BaseException:
        _remove(unfinished)
        raise
    made_at = now()
    finished = folder / f"commonplace-{made_at.strftime(_STAMP)}-p{position}.duckdb"
    _fsync(unfinished)
    unfinished.rename(finished)
    fsync_folder(folder)
    thin(folder)
    store.on_writer(lambda: _cut_journal(store)).result()
    return Backup(finished, made_at, position)


def copy_backup(backup: Backup, target: Path) -> None:
    """Copy a finished backup to where the user wants it; raises StorageError."""
    import shutil

    try:
        shutil.copyfile(backup.path, target)
        _fsync(target)
    except OSError as error:
        raise StorageError(
            f"The backup cannot be written to '{target}': {error.strerror}",
            "Choose another place.",
        ) from error


def verify(path: Path, counts: dict[str, int] | None = None) -> None:
    """Read every row of every table of a closed database file.

    Raises StorageError when that fails or a table does not hold as many rows as `counts` says.
    """
    try:
        connection = connect(path, path.parent)
        try:
            found = read_everything(connection)
            read_state(connection)
        finally:
            connection.close()
    except duckdb.Error as error:
        raise StorageError(f"The file '{path.name}' is damaged") from error
    if counts is not None and found != counts:
        raise StorageError(f"The copy '{path.name}' is not complete", "It was not kept.")


def read_everything(connection: Connection) -> dict[str, int]:
    """Return the rows of each table, having read every value; raises duckdb.Error on damage.

    A bit that flipped in a table shows only when that table is read (reliability F5).
    """
    counts: dict[str, int] = {}
    for table in _tables(connection):
        row = connection.execute(
            f'SELECT count(*), bit_xor(hash(t)) FROM "{table}" AS t'
        ).fetchone()
        counts[table] = int(row[0]) if row else 0
    return counts


def to_keep(backups: Sequence[Backup], sizes: Iterable[int], cap_bytes: int) -> set[Path]:
    """Return which of `backups` (newest first) stay, given their sizes in bytes.

    All of the last day, the newest of each of seven days and four weeks before; the oldest go
    when the cap is passed; never fewer than two stay.
    """
    if not backups:
        return set()
    newest = backups[0].made_at
    kept: list[Backup] = []
    seen: set[tuple[str, int, int]] = set()
    for backup in backups:
        age = newest - backup.made_at
        year, week, _ = backup.made_at.isocalendar()
        day_slot = ("day", backup.made_at.year, backup.made_at.timetuple().tm_yday)
        week_slot = ("week", year, week)
        fresh = age <= _KEEP_ALL_FOR
        daily = age <= timedelta(days=_DAILY) and day_slot not in seen
        weekly = age <= timedelta(weeks=_WEEKLY) and week_slot not in seen
        if fresh or daily or weekly:
            kept.append(backup)
            seen |= {day_slot, week_slot}
    for backup in backups:
        if len(kept) < _KEEP_ALWAYS and backup not in kept:
            kept.append(backup)
    size_of = dict(zip((backup.path for backup in backups), sizes, strict=True))
    while len(kept) > _KEEP_ALWAYS and sum(size_of[each.path] for each in kept) > cap_bytes:
        kept.pop()
    return {backup.path for backup in kept}


def thin(folder: Path, cap_bytes: int = SIZE_CAP_BYTES) -> None:
    """Delete the backups that `to_keep` does not keep."""
    backups = list_backups(folder)
    kept = to_keep(backups, [backup.path.stat().st_size for backup in backups], cap_bytes)
    for backup in backups:
        if backup.path not in kept:
            _remove(backup.path)
    fsync_folder(folder)


def copy_into(connection: Connection, target: Path) -> tuple[int, dict[str, int]]:
    """Copy the connection's database into the new file `target`, all from one snapshot.

    Return the journal's position it stands at, and the rows of each table. The target must lie
    in the backups folder. Raises duckdb.Error.
    """
    source = _first(connection, "SELECT current_database()")
    quoted = str(target).replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS backup_target")
    try:
        connection.execute("BEGIN")
        position = int(str(_first(connection, "SELECT position FROM state")))
        counts = {
            table: int(str(_first(connection, f'SELECT count(*) FROM "{table}"')))
            for table in _tables(connection)
        }
        connection.execute(f'COPY FROM DATABASE "{source}" TO backup_target')
        connection.execute("COMMIT")
    finally:
        connection.execute("DETACH backup_target")
    return position, counts


def _copy(store: Store, target: Path) -> tuple[int, dict[str, int]]:
    cursor = store.database.snapshot_cursor()
    try:
        return copy_into(cursor, target)
    finally:
        cursor.close()


def _cut_journal(store: Store) -> None:
    backups = list_backups(store.paths.backups)
    if len(backups) < _KEEP_ALWAYS:
        return
    running = store.database.read(
        lambda cursor: _first(cursor, "SELECT min(position) FROM exchange WHERE status = 'running'")
    )
    behind = backups[1].position
    store.journal.cut_behind(min(behind, int(str(running)) - 1) if running else behind)


def _tables(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "ORDER BY table_name"
    ).fetchall()
    return [name for (name,) in rows]


def _first(connection: Connection, statement: str) -> object:
    row = connection.execute(statement).fetchone()
    return row[0] if row else None


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    for each in (path, path.with_name(path.name + ".wal")):
        each.unlink(missing_ok=True)


def try_backup(store: Store) -> Backup | None:
    """Make a backup if it can be made; a failure goes to the log, for work that must go on."""
    try:
        return make_backup(store)
    except KnownError as error:
        _log.warning("no backup: %s", error)
        return None

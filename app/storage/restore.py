"""Going back to a backup because the user wants to: what came after it is set aside with the rest.

Unlike recovery, which brings back everything the journal knows, this leaves the time line at the
backup: its later journal and the backups made after it belong to another one. From the moment the
copy stands in the data directory it is decided: what a kill leaves undone the next start does.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import duckdb

from app.domain.errors import DatabaseTooNew, InvalidInput, StorageError
from app.domain.ids import new_uid
from app.storage import image, migrations
from app.storage.aside import set_aside
from app.storage.backup import backups_of, fsync_path
from app.storage.database import connect
from app.storage.faults import of_duckdb, of_system
from app.system.paths import DataPaths, fsync_folder


def restore_backup(paths: DataPaths, chosen: Path) -> Path | None:
    """Put a backup in the database's place; return the folder that holds what was there.

    The caller holds the lock, and no database is open. Blocking. Raises StorageError for a file
    that is damaged or no backup, InvalidInput for the database itself; then nothing was changed.
    """
    if paths.database.exists() and chosen.samefile(paths.database):
        raise InvalidInput(f"'{chosen}' is the database itself", "Name a backup to restore.")
    if image.verify(chosen).version > migrations.CURRENT_VERSION:
        raise DatabaseTooNew(
            f"The backup '{chosen.name}' was written by a newer version of the program",
            "Update the program to restore it.",
        )
    copy = paths.backups / _decided(paths).name
    image.remove(copy)
    try:
        shutil.copyfile(chosen, copy)
        copy.chmod(0o600)
        _renew(paths, copy)
        fsync_path(copy)
        copy.replace(_decided(paths))
        fsync_folder(paths.root)
    except OSError as error:
        raise of_system(error, "The restored database") from error
    finally:
        with suppress(OSError):
            image.remove(copy)
    return finish_restoring(paths)


def finish_restoring(paths: DataPaths) -> Path | None:
    """Put the copy that stands ready in the database's place; return where that went, if it was.

    Without such a copy nothing is done, so recovery calls this at every start. One that cannot be
    read any more is set aside. Blocking; raises StorageError.
    """
    coming = _decided(paths)
    if not coming.exists():
        return None
    try:
        found = _recognised(paths, coming)
    except StorageError:
        set_aside(paths, [coming])
        return None
    later = [
        backup.path
        for backup in backups_of(paths.backups, found.uid)
        if backup.position > found.position
    ]
    folder = set_aside(
        paths, [paths.wal, paths.database, *sorted(paths.journal.glob("*.journal")), *later]
    )
    try:
        coming.replace(paths.database)
        fsync_folder(paths.root)
    except OSError as error:
        raise of_system(error, "The restored database") from error
    return folder


def _decided(paths: DataPaths) -> Path:
    """Return where the copy stands once it is decided that it will be the database."""
    return paths.root / "restoring.duckdb"


def _renew(paths: DataPaths, copy: Path) -> None:
    """Give the copy a generation of its own: what was built from another state is void."""
    try:
        with connect(copy, paths.backups) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('generation', ?)", [new_uid()])
            connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        raise of_duckdb(error) from error


def _recognised(paths: DataPaths, coming: Path) -> image.Image:
    try:
        with connect(coming, paths.backups, read_only=True) as connection:
            return image.recognised(connection)
    except duckdb.Error as error:
        raise of_duckdb(error) from error

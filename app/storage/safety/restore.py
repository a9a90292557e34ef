"""Restoring a backup that the user chose; everything later goes into quarantine.

Unlike recovery, which replays the journal, this returns to the state of the backup: the later journal
and backups made after it no longer belong to the database. Once the copy is in the data directory the
restore is decided: the next start completes it after a kill.
"""

from contextlib import suppress
from pathlib import Path

import duckdb

from app.domain.errors import DatabaseTooNew, InvalidInput
from app.storage.deletion.erasure import forget_again, owed_in
from app.storage.engine import migrations
from app.storage.engine.connection import connect
from app.storage.engine.errors import from_duckdb_error, from_os_error
from app.storage.safety import image
from app.storage.safety.attachments import restore_files
from app.storage.safety.backup import backups_of
from app.storage.safety.image import quarantine
from app.system.paths import DataPaths, fsync_folder


def restore_backup(paths: DataPaths, chosen: Path) -> Path | None:
    """Put a backup in the database's place; return the quarantine folder of what was there.

    The caller holds the lock, and no database is open. Blocking. Raises StorageError for a file
    that is damaged or not a backup, InvalidInput for the database itself; then nothing was changed.
    """
    if paths.database.exists() and chosen.samefile(paths.database):
        raise InvalidInput(f"'{chosen}' is the database itself", "Name a backup to restore.")
    if image.verify(chosen).version > migrations.CURRENT_VERSION:
        raise DatabaseTooNew(
            f"The backup '{chosen.name}' was written by a newer version of the program",
            "Update the program to restore it.",
        )
    copy = paths.backups / _pending(paths).name
    try:
        image.restore_into(copy, chosen)
        with connect(copy, paths.backups) as connection:
            found = image.identify(connection)
            if owed := owed_in(paths.database, paths.backups, found.uid):
                forget_again(connection, found.position, owed)
                connection.execute("CHECKPOINT")
            restore_files(paths, connection, chosen)
        copy.replace(_pending(paths))
        fsync_folder(paths.root)
    except OSError as error:
        raise from_os_error(error, "The restored database") from error
    except duckdb.Error as error:
        raise from_duckdb_error(error) from error
    finally:
        with suppress(OSError):
            image.remove(copy)
    return finish_restoring(paths)


def finish_restoring(paths: DataPaths) -> Path | None:
    """Replace the database by a pending copy; return the quarantine folder, None without one.

    Recovery calls this at every start. A copy that cannot be read goes into quarantine. Blocking; raises StorageError.
    """
    coming = _pending(paths)
    if not coming.exists():
        return None
    try:
        with connect(coming, paths.backups, read_only=True) as connection:
            found = image.identify(connection)
    except duckdb.Error:
        quarantine(paths, [coming])
        return None
    later = [
        backup.path
        for backup in backups_of(paths.backups, found.uid)
        if backup.position > found.position
    ]
    journal = sorted(paths.journal.glob("*.journal"))
    return image.replace_database(paths, coming, [*journal, *later])


def _pending(paths: DataPaths) -> Path:
    """Return the path of a copy that is to become the database."""
    return paths.root / "restoring.duckdb"

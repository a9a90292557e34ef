"""Going back to a backup because the user wants to: what came after it is set aside with the rest.

Unlike recovery, which brings back everything the journal knows, this leaves the time line at the
backup: its later journal and the backups made after it belong to another one.
"""

import shutil
from pathlib import Path

from app.domain.errors import DatabaseTooNew
from app.domain.ids import new_uid
from app.storage import image, migrations
from app.storage.aside import set_aside
from app.storage.backup import list_backups
from app.storage.database import connect
from app.storage.faults import of_system
from app.system.paths import DataPaths, fsync_folder


def restore_backup(paths: DataPaths, chosen: Path) -> Path | None:
    """Put a backup in the database's place; return the folder that holds what was there.

    The caller holds the lock, and no database is open. Blocking. Raises StorageError for a file
    that is damaged or no backup; then nothing was changed.
    """
    found = image.verify(chosen)
    if found.version > migrations.CURRENT_VERSION:
        raise DatabaseTooNew(
            f"The backup '{chosen.name}' was written by a newer version of the program",
            "Update the program to restore it.",
        )
    coming = paths.backups / "restoring.duckdb"
    image.remove(coming)
    try:
        shutil.copyfile(chosen, coming)
        with connect(coming, paths.backups) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('generation', ?)", [new_uid()])
            connection.execute("CHECKPOINT")
        later = [
            backup.path
            for backup in list_backups(paths.backups)
            if backup.position > found.position
        ]
        folder = set_aside(
            paths, [paths.database, paths.wal, *paths.journal.glob("*.journal"), *later]
        )
        coming.replace(paths.database)
        fsync_folder(paths.root)
    except OSError as error:
        raise of_system(error, "The restored database") from error
    return folder

"""Database files as a whole: copying, verification, identification, restoring, quarantine."""

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from app.domain.errors import Cancelled, DiskFull, StorageError
from app.domain.ids import new_uid
from app.storage.engine import migrations
from app.storage.engine.connection import Connection, connect
from app.storage.engine.errors import from_duckdb_error, from_os_error
from app.storage.engine.full_read import read_all_tables, row_counts
from app.system.paths import DataPaths, fsync_file, fsync_folder

T = TypeVar("T")
_log = logging.getLogger(__name__)
_CHOOSE_ANOTHER = "Choose another backup."
_HANDLE_IN_USE = "Unique file handle conflict"  # DuckDB releases a file a moment after it is closed
_MEMORY_TO_VERIFY_MB = 96  # pages are read once; a limit of 1 GB keeps those of 450 MB: 300 MB more
_RELEASE_TRIES = 40
_RELEASE_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class DatabaseIdentity:
    """The identity of a database file: its uid, schema version and journal position.

    `uid` is "" for a file without our tables.
    """

    uid: str
    version: int
    position: int


def identify(connection: Connection) -> DatabaseIdentity:
    """Return the identity of an open database; raises duckdb.Error."""
    version = migrations.version_of(connection)
    if version == 0:
        return DatabaseIdentity("", 0, 0)
    position = _first(connection, "SELECT position FROM state")
    uid = _first(connection, "SELECT value FROM meta WHERE key = 'database_uid'")
    return DatabaseIdentity(uid or "", version, position)


def verify(path: Path, counts: dict[str, int] | None = None) -> DatabaseIdentity:
    """Read every row of every table of a closed database file, changing nothing.

    Raises StorageError when that fails or a table does not hold as many rows as `counts` says.
    """
    try:
        connection = once_released(lambda: connect(path, path.parent, read_only=True))
        try:
            image = identify(connection)
            if image.version == 0:
                raise _foreign(path)
            found = with_little_memory(
                connection, _MEMORY_TO_VERIFY_MB, lambda: read_all_tables(connection)
            )
        finally:
            connection.close()
    except duckdb.Error as error:
        _log.warning("%s does not verify: %s", path.name, error)
        if not _is_database(path):
            raise _foreign(path) from error
        raise StorageError(f"The file '{path.name}' is damaged", _CHOOSE_ANOTHER) from error
    if counts is not None and found != counts:
        raise StorageError(f"The copy '{path.name}' is incomplete", "It was deleted.")
    return image


def _is_database(path: Path) -> bool:
    """Return whether a file begins as one of DuckDB, or cannot be read at all."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"  # duckdb.org/docs/stable/internals/storage
    except OSError:
        return True


def _foreign(path: Path) -> StorageError:
    return StorageError(
        f"The file '{path.name}' is not a database of this program", _CHOOSE_ANOTHER
    )


def with_little_memory(connection: Connection, limit_mb: int, work: Callable[[], T]) -> T:
    """Return the result of `work`, which is repeated with more memory only where `limit_mb` is too little."""
    limit = _first(connection, "SELECT current_setting('memory_limit')")
    try:
        connection.execute(f"SET memory_limit = '{limit_mb}MB'")
        return work()
    except (duckdb.Error, StorageError) as error:
        if not isinstance(error.__cause__ or error, duckdb.OutOfMemoryException):
            raise
    finally:
        connection.execute(f"SET memory_limit = '{limit}'")
    return work()


def copy_into(connection: Connection, target: Path) -> tuple[int, dict[str, int]]:
    """Copy the connection's database into the new file `target`, all from one snapshot.

    Return its journal position and the rows of each table. The target must be in the backups folder.
    Raises StorageError, Cancelled; then `target` is unusable.
    """
    quoted = str(target).replace("'", "''")
    try:
        source = _first(connection, "SELECT current_database()")
        once_released(lambda: connection.execute(f"ATTACH '{quoted}' AS backup_target"))
        try:
            connection.execute("BEGIN")
            position: int = _first(connection, "SELECT position FROM state")
            counts = row_counts(connection)
            connection.execute(f'COPY FROM DATABASE "{source}" TO backup_target')
            connection.execute("COMMIT")
            # Detaching may skip the checkpoint. A forced one waits for transactions that list the
            # tables, and so entered the copy too; others continue meanwhile (DuckDB 2.0).
            connection.execute("FORCE CHECKPOINT backup_target")
        finally:
            # After an error there may be no transaction and nothing attached.
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            _detach(connection)
    except duckdb.InterruptException as error:
        raise Cancelled("The copy was canceled") from error
    except duckdb.Error as error:
        raise from_duckdb_error(error, target=target) from error
    if target.with_name(target.name + ".wal").exists():
        # Detaching writes the rest of the log, and reports nothing when the disk is full.
        raise DiskFull("There is not enough disk space for a copy", "Free some space.")
    return position, counts


def _detach(connection: Connection) -> None:
    """Detach the copy, even when that is interrupted."""
    for _ in range(_RELEASE_TRIES):
        try:
            connection.execute("DETACH backup_target")
        except duckdb.InterruptException:
            time.sleep(0.001)
        except duckdb.Error:
            return
        else:
            return


def once_released(opens: Callable[[], T]) -> T:
    """Return the result of `opens`, tried again while the file is still being released."""
    for _ in range(_RELEASE_TRIES):
        try:
            return opens()
        except duckdb.Error as error:
            if _HANDLE_IN_USE not in str(error):
                raise
        time.sleep(_RELEASE_WAIT_S)
    return opens()


def restore_into(target: Path, backup: Path) -> None:
    """Copy a verified backup, durably, with a new generation: indexes of another state are invalid.

    The target must be in the backups folder. Raises OSError, duckdb.Error.
    """
    remove(target)
    shutil.copyfile(backup, target)
    target.chmod(0o600)
    with connect(target, target.parent) as connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('generation', ?)", [new_uid()])
        connection.execute("CHECKPOINT")
    fsync_path(target)


def replace_database(paths: DataPaths, coming: Path, others: Iterable[Path] = ()) -> Path | None:
    """Move a copy to the database's place; return the quarantine folder of what was there.

    The database, its log and `others` go there. Raises StorageError.
    """
    folder = quarantine(paths, [paths.wal, paths.database, *others])
    try:
        coming.replace(paths.database)
        fsync_folder(paths.root)
    except OSError as error:
        raise from_os_error(error, "The restored database") from error
    return folder


def fsync_path(path: Path) -> None:
    """Make a closed file durable; never the live database (storage rule 3)."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fsync_file(descriptor)
    finally:
        os.close(descriptor)


def quarantine(paths: DataPaths, files: Iterable[Path]) -> Path | None:
    """Move those of `files` that exist into a new folder in `damaged`; return it, if any did.

    They are never deleted: they may be the only evidence. Raises StorageError.
    """
    present = [file for file in files if file.exists()]
    if not present:
        return None
    folder = paths.damaged / f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
    try:
        folder.mkdir(mode=0o700, parents=True)
        for file in present:
            file.replace(folder / file.name)
        for changed in {folder, paths.damaged, paths.root, *(file.parent for file in present)}:
            fsync_folder(changed)
    except OSError as error:
        raise from_os_error(error, f"The folder '{folder}'") from error
    return folder


def remove(path: Path) -> None:
    """Delete a database file that nobody has open, with its log."""
    for each in (path, path.with_name(path.name + ".wal")):
        each.unlink(missing_ok=True)


def _first(connection: Connection, statement: str) -> Any:
    return next(iter(connection.column(statement)), None)

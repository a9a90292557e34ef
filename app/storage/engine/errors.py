"""Error translation: errors of the operating system and of DuckDB become `StorageError`s."""

import errno
import logging
from pathlib import Path

import duckdb

from app.domain.errors import DatabaseDamaged, DiskFull, ReadOnlyStorage, StorageError

_log = logging.getLogger(__name__)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_ROOM_SIGNS = ("No space left", "disk full", "File too large", "quota")
_NOT_WRITABLE_SIGNS = ("Read-only file system", "Permission denied", "read-only mode")
# Errors in our statements; whatever else DuckDB raises comes from the disk or the machine.
OURS = (duckdb.DataError, duckdb.IntegrityError, duckdb.ProgrammingError, duckdb.NotSupportedError)
# A wrong checksum is raised as the bare Error in 2.0.0.
_DAMAGE = (duckdb.IOException, duckdb.SerializationException, duckdb.InternalException)
_DAMAGE_SIGNS = ("orrupt", "checksum")
_MACHINE_SIGN = "Too many open files"
_COMMIT_FAILED_SIGN = "Failed to commit"


def from_os_error(error: OSError, what: str) -> StorageError:
    """Return an error of the operating system as ours; `what` names what failed."""
    if error.errno in _NO_ROOM:
        return _disk_full()
    if error.errno in _NOT_WRITABLE:
        return _read_only(what)
    return StorageError(
        f"{what} cannot be written: {error.strerror or error}", "Check the disk, then try again."
    )


def directory_is_gone(root: Path) -> StorageError:
    """Return the error of a data directory that was moved, or whose drive was removed."""
    return StorageError(
        f"The data directory '{root}' is no longer there",
        "Connect its drive, or move it back, then start Commonplace again.",
    )


def from_duckdb_error(error: duckdb.Error) -> StorageError:
    message = str(error)
    if any(sign in message for sign in _NO_ROOM_SIGNS):
        return _disk_full()
    if any(sign in message for sign in _NOT_WRITABLE_SIGNS):
        return _read_only("The database")
    is_named = any(sign in message for sign in _DAMAGE_SIGNS)
    is_io = isinstance(error, _DAMAGE) and _MACHINE_SIGN not in message
    if is_named or type(error) is duckdb.Error or is_io:
        _log.error("a part of the database cannot be read: %s", message.splitlines()[0])
        return database_is_damaged()
    return StorageError(f"The database failed: {message.splitlines()[0]}", "Restart the program.")


def database_is_damaged() -> DatabaseDamaged:
    """Return the error of a database of which a part cannot be read."""
    return DatabaseDamaged(
        "A part of the database cannot be read",
        "Start Commonplace again to repair it. Until then nothing is saved.",
    )


def needs_reopening(error: BaseException | None) -> bool:
    """Return whether a commit failed in a way that requires the database to be opened again.

    When DuckDB 2.0.0 runs out of memory, the rows are rolled back but not their keys, so that nothing
    can be inserted under these from then on. When the disk is full, both are rolled back.
    """
    if not isinstance(error, duckdb.TransactionException):
        return False
    is_of_disk = isinstance(from_duckdb_error(error), DiskFull | ReadOnlyStorage)
    return _COMMIT_FAILED_SIGN in str(error) and not is_of_disk


def _disk_full() -> DiskFull:
    return DiskFull(
        "There is not enough disk space to save this", "Free some space, then try again."
    )


def _read_only(what: str) -> ReadOnlyStorage:
    return ReadOnlyStorage(f"{what} cannot be written", "Make the data directory writable.")

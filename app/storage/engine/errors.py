"""Error translation: errors of the operating system and of DuckDB become `StorageError`s."""

import errno
import re
from pathlib import Path

import duckdb

from app.domain.errors import DatabaseDamaged, DiskFull, ReadOnlyStorage, StorageError

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
_CONCERNED = re.compile(r'(?:file|directory) "([^"]+)"')
_OPENING_SIGN = "Cannot open file"
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


def from_duckdb_error(
    error: duckdb.Error, *, database: Path | None = None, target: Path | None = None
) -> StorageError:
    """Return an error of DuckDB as ours; DatabaseDamaged where it may be damage.

    An error about another file than `database`, such as one for spilled data, is none; nor is one about the
    backup `target`.
    """
    message = str(error)
    is_of_target = target is not None and target.name in message
    if any(sign in message for sign in _NO_ROOM_SIGNS):
        return _disk_full()
    if any(sign in message for sign in _NOT_WRITABLE_SIGNS):
        return _read_only("The backup" if is_of_target else "The database")
    if is_of_target:
        return backup_failed(error)
    if database is not None and not _concerned_files(error) <= _names(database):
        return database_failed(error)
    is_named = any(sign in message for sign in _DAMAGE_SIGNS)
    is_io = isinstance(error, _DAMAGE) and _MACHINE_SIGN not in message
    if is_named or type(error) is duckdb.Error or is_io:
        return database_is_damaged()
    return database_failed(error)


def is_sure_damage(error: duckdb.Error, database: Path) -> bool:
    """Return whether an error that may be damage needs no confirmation: a checksum, or the open file by name."""
    if _OPENING_SIGN in str(error):  # its drive may be gone
        return False
    named = _concerned_files(error) & _names(database)
    return bool(named) or any(sign in str(error) for sign in _DAMAGE_SIGNS)


def _concerned_files(error: duckdb.Error) -> set[str]:
    return {Path(each).name for each in _CONCERNED.findall(str(error))}


def _names(database: Path) -> set[str]:
    return {database.name, database.name + ".wal"}


def database_failed(error: duckdb.Error) -> StorageError:
    return StorageError(f"The database failed: {_first_line(error)}", "Restart the program.")


def backup_failed(error: duckdb.Error) -> StorageError:
    """Return the error of a copy that cannot be written."""
    return StorageError(
        f"The backup cannot be written: {_first_line(error)}", "Check the disk, then try again."
    )


def _first_line(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0]


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

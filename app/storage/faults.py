"""What the disk does, in the words of the user: errors of the system and of DuckDB become ours."""

import errno

import duckdb

from app.domain.errors import DatabaseDamaged, DiskFull, ReadOnlyStorage, StorageError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_ROOM_WORDS = ("No space left", "disk full", "File too large", "quota")
_NOT_WRITABLE_WORDS = ("Read-only file system", "Permission denied", "read-only mode")
# A statement of ours gone wrong; whatever else DuckDB raises comes from the disk or the machine.
OURS = (
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.ProgrammingError,
    duckdb.NotSupportedError,
)
# A checksum that does not match is raised as the bare Error in 2.0.0, which is no kind of its own.
_DAMAGE = (duckdb.IOException, duckdb.SerializationException, duckdb.InternalException)
_DAMAGE_WORDS = ("orrupt", "checksum")
_COMMIT_FAILED_WORDS = "Failed to commit"


def of_system(error: OSError, what: str) -> StorageError:
    """Return an error of the operating system as ours; `what` is the thing that failed."""
    if error.errno in _NO_ROOM:
        return _disk_full()
    if error.errno in _NOT_WRITABLE:
        return _read_only(what)
    return StorageError(
        f"{what} cannot be written: {error.strerror or error}", "Check the disk, then try again."
    )


def of_duckdb(error: duckdb.Error) -> StorageError:
    """Return DuckDB's complaint about the disk as ours."""
    words = str(error)
    if any(sign in words for sign in _NO_ROOM_WORDS):
        return _disk_full()
    if any(sign in words for sign in _NOT_WRITABLE_WORDS):
        return _read_only("The database")
    said_so = any(sign in words for sign in _DAMAGE_WORDS)
    if said_so or type(error) is duckdb.Error or isinstance(error, _DAMAGE):
        return DatabaseDamaged(
            f"The database is damaged: {words.splitlines()[0]}",
            "Start the program again: it will mend itself.",
        )
    return StorageError(f"The database failed: {words.splitlines()[0]}", "Restart the program.")


def leaves_keys(error: BaseException | None) -> bool:
    """Return whether a commit failed so that the database must be opened again.

    DuckDB 2.0.0, where memory was too little: the rows are rolled back but not their keys, which
    nothing can be inserted under from then on. Where the disk was full both are.
    """
    if not isinstance(error, duckdb.TransactionException):
        return False
    is_of_disk = isinstance(of_duckdb(error), DiskFull | ReadOnlyStorage)
    return _COMMIT_FAILED_WORDS in str(error) and not is_of_disk


def _disk_full() -> DiskFull:
    return DiskFull("There is no room on the disk to save this", "Free some space, then try again.")


def _read_only(what: str) -> ReadOnlyStorage:
    return ReadOnlyStorage(f"{what} cannot be written", "Make the data directory writable.")

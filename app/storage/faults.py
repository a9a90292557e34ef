"""What the disk does, in the words of the user: errors of the system and of DuckDB become ours."""

import errno

import duckdb

from app.domain.errors import DiskFull, ReadOnlyStorage, StorageError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_ROOM_WORDS = ("No space left", "disk full", "File too large", "quota")
_NOT_WRITABLE_WORDS = ("Read-only file system", "Permission denied", "read-only mode")


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
    return StorageError(f"The database failed: {words.splitlines()[0]}", "Restart the program.")


def _disk_full() -> DiskFull:
    return DiskFull("There is no room on the disk to save this", "Free some space, then try again.")


def _read_only(what: str) -> ReadOnlyStorage:
    return ReadOnlyStorage(f"{what} cannot be written", "Make the data directory writable.")

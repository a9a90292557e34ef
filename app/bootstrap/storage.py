"""The storage part: the data directory held, the log begun, the database open."""

from contextlib import ExitStack
from dataclasses import dataclass

from app.storage.faults import of_system
from app.storage.recovery import open_store
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.lock import InstanceLock
from app.system.logs import start_log
from app.system.paths import DataPaths


@dataclass(frozen=True, slots=True)
class StoragePart:
    """What everything else rests on."""

    lock: InstanceLock
    store: Store
    settings: Settings


def open_storage(paths: DataPaths, undo: ExitStack) -> StoragePart:
    """Open a data directory. Blocking; what lets go of it again is put on `undo`.

    Raises AlreadyOpen, DatabaseTooNew, ReadOnlyStorage, DiskFull, StorageError.
    """
    lock = locked(paths)
    undo.callback(lock.release)
    start_log(paths)
    store = open_store(paths)
    undo.callback(store.close)
    return StoragePart(lock, store, Settings(store))


def locked(paths: DataPaths) -> InstanceLock:
    """Return the hold on a data directory, made if there is none; no database is opened.

    Raises AlreadyOpen, ReadOnlyStorage, StorageError.
    """
    paths.make()
    try:
        return InstanceLock(paths)
    except OSError as error:
        raise of_system(error, f"The data directory '{paths.root}'") from error

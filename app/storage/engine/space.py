"""Disk space: the room that a checkpoint needs, and a reserve that a full disk leaves to the user."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress

from app.domain.changes import (
    Change,
    ExtractionDone,
    OriginsAdded,
    PassagesPut,
    SummaryPut,
    ToolSummaryPut,
)
from app.domain.errors import DiskFull
from app.system.paths import DataPaths

RESERVE_BYTES = 16 << 20
FOR_DELETING_BYTES = 4 << 20
"""The part of the reserve that only deletions use."""

_ENOUGH_FREE_BYTES = 4 * RESERVE_BYTES
_CHECKPOINT_SHARE = 0.5  # of the log: texts are compressed in the file; noise takes all of it
_CHECKPOINT_EXTRA_BYTES = 2 << 20
_BY_BACKGROUND: frozenset[type] = frozenset(
    (ExtractionDone, OriginsAdded, SummaryPut, ToolSummaryPut)
)


def disk_is_full() -> DiskFull:
    """Return the error of work that waits for disk space."""
    return DiskFull(
        "The disk is full: only what you write and delete yourself is saved, as long as there is room",
        "Free some space; background work then continues by itself.",
    )


def has_room_for_checkpoint(paths: DataPaths) -> bool:
    """Return whether a checkpoint may be tried: one that fails takes all the free space there is."""
    try:
        needed = paths.wal.stat().st_size * _CHECKPOINT_SHARE + _CHECKPOINT_EXTRA_BYTES
        return shutil.disk_usage(paths.root).free >= needed
    except OSError:
        return True  # the checkpoint itself will tell


def fill_reserve(paths: DataPaths) -> bool:
    """Reserve disk space while there is plenty; return whether the reserve is whole. Blocking."""
    try:
        has = _reserved_bytes(paths)
        if has < RESERVE_BYTES and shutil.disk_usage(paths.root).free >= _ENOUGH_FREE_BYTES:
            _allocate(paths)
            has = RESERVE_BYTES
    except OSError:
        return False
    return has == RESERVE_BYTES


def release_reserve(paths: DataPaths, keep_bytes: int = 0) -> bool:
    """Give reserved space back to the disk, all but `keep_bytes`; return whether there was any."""
    if _reserved_bytes(paths) <= keep_bytes:
        return False
    try:
        os.truncate(paths.reserve, keep_bytes)
    except OSError:
        return False
    return True


def _reserved_bytes(paths: DataPaths) -> int:
    with suppress(OSError):
        return paths.reserve.stat().st_size
    return 0


def _allocate(paths: DataPaths) -> None:
    with paths.reserve.open("wb") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
            else:
                for _ in range(RESERVE_BYTES >> 20):
                    file.write(bytes(1 << 20))
        except OSError:
            file.truncate(0)
            raise


def is_background(changes: Iterable[Change]) -> bool:
    """Return whether changes come from a worker or an import, which can wait."""
    kinds = set(map(type, changes))
    return kinds == {PassagesPut} or not kinds.isdisjoint(_BY_BACKGROUND)

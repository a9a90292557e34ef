"""Files that cannot be used are set aside, never deleted: they may be all the evidence there is."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from app.storage.faults import of_system
from app.system.paths import DataPaths, fsync_folder


def set_aside(paths: DataPaths, files: Iterable[Path]) -> Path | None:
    """Move those of `files` that exist into a new folder in `damaged`; return it, if any did.

    Raises StorageError.
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
        raise of_system(error, f"The folder '{folder}'") from error
    return folder

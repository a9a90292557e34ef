"""The export cache: what a preview read of small files, so that the import need not read it again."""

from collections.abc import Callable, Iterator
from pathlib import Path

from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers import read_export

_KEPT_BYTES = 48 << 20  # of files; what is read of them takes about three times as much memory

_Stamp = tuple[int, int]
Found = ImportedConversation | Skipped


class ExportCache:
    """Reads files and keeps the result for the next reading, if the file is the same then.

    One thread at a time. Folders, and what exceeds the limit, are read again.
    """

    def __init__(self, limit_bytes: int = _KEPT_BYTES) -> None:
        self._left_bytes = limit_bytes
        self._kept: dict[Path, tuple[_Stamp, list[Found]]] = {}

    def read(
        self, path: Path, *, cancelled: Callable[[], bool], on_bytes: Callable[[int, int], None]
    ) -> Iterator[Found]:
        """Yield what `read_export` does. Raises as it does, and nothing for what was kept."""
        stamp = _stamp_of(path)
        before, kept = self._kept.pop(path, (None, []))
        if stamp is not None and stamp == before:
            on_bytes(stamp[0], stamp[0])
            yield from kept
            return
        found: list[Found] = []
        keeps = stamp is not None and stamp[0] <= self._left_bytes
        for each in read_export(path, cancelled=cancelled, on_bytes=on_bytes):
            if keeps:
                found.append(each)
            yield each
        if keeps and stamp is not None:
            self._kept[path] = (stamp, found)
            self._left_bytes -= stamp[0]


def _stamp_of(path: Path) -> _Stamp | None:
    """Return the size and the time of the last change of a file; None for anything else."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns) if path.is_file() else None

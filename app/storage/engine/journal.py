"""The journal: an append-only record of every change, fsynced before it counts as saved.

A segment is a file named after its first position; `app.storage.engine.frames` describes its bytes.
Nothing that was acknowledged is ever rewritten; a new process starts a new segment and leaves a torn
end as it is.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from app.domain.errors import StorageError
from app.storage.engine.errors import directory_is_gone, from_os_error
from app.storage.engine.frames import HEADER_BYTES, Record, TooLong, frame, frames, header, owner
from app.system.paths import fsync_file, fsync_folder

SEGMENT_LIMIT_BYTES = 32 << 20
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Journal:
    """The journal of one database. Not thread-safe: the writer thread owns it.

    Attributes:
        last_position: The newest position appended or found.
    """

    def __init__(self, folder: Path, database_uid: str, last_position: int) -> None:
        self._folder = folder
        self._header = header(database_uid)
        self.last_position = last_position
        self._path = folder  # of the last segment, once there is one
        self._descriptor = -1
        self._size_bytes = 0
        self._before = 0, last_position  # the size and the position before the last append
        self._has_excess = False  # a truncation that failed; it is repeated before the next write

    def append(self, payloads: Sequence[str | tuple[str, ...]]) -> Sequence[int]:
        """Make records durable, in order, with one fsync; return their positions.

        The text of a record may come in pieces, so that a long one is never handled at once.
        Raises DiskFull, ReadOnlyStorage or StorageError; then none is saved and the file is as before.
        A folder that was moved, or whose drive was removed, is refused: an open file is still written to.
        """
        positions = range(self.last_position + 1, self.last_position + 1 + len(payloads))
        try:
            content = b"".join(map(frame, positions, payloads))
        except TooLong as error:
            raise StorageError(
                f"This is too large to be saved at once: {error}", "Save it in parts."
            ) from error
        self._prepare()
        self._before = self._size_bytes, self.last_position
        try:
            _write_all(self._descriptor, content)
            fsync_file(self._descriptor)
        except OSError as error:
            self._truncate(self._size_bytes)
            raise from_os_error(error, "The journal") from error
        self._size_bytes += len(content)
        self.last_position += len(positions)
        return positions

    def rewind(self) -> None:
        """Remove what the last `append` added, because it could not be applied."""
        self._size_bytes, self.last_position = self._before
        self._truncate(self._size_bytes)

    def close_segment(self) -> None:
        """End the current segment; the next append starts a new one."""
        if self._descriptor >= 0:
            if self._has_excess:
                self._truncate(self._size_bytes)
                self._has_excess = False
            os.close(self._descriptor)
            self._descriptor = -1

    def begin_segment(self) -> None:
        """Start a new segment, so that the earlier ones can be deleted; raises as `append` does."""
        self.close_segment()
        self._prepare()

    def cut_behind(self, position: int) -> None:
        """Delete segments that hold only positions up to and including `position`."""
        for (_, path), (next_first, _) in pairwise(segments(self._folder)):
            if next_first <= position + 1:
                path.unlink()
        fsync_folder(self._folder)

    def _prepare(self) -> None:
        if self._has_excess:
            self._truncate(self._size_bytes)
            if self._has_excess:
                raise StorageError(
                    "The journal cannot be repaired", "Check the disk, then try again."
                )
        if not self._is_in_place():
            raise directory_is_gone(self._folder.parent)
        if self._descriptor < 0 or self._size_bytes > SEGMENT_LIMIT_BYTES:
            self.close_segment()
            try:
                self._start_segment()
            except OSError as error:
                self.close_segment()
                raise from_os_error(error, "The journal") from error

    def _is_in_place(self) -> bool:
        try:
            place = self._path.stat()
            return self._descriptor < 0 or os.path.samestat(place, os.fstat(self._descriptor))
        except OSError:
            return False

    def _start_segment(self) -> None:
        if journal_owner(self._folder) not in (None, owner(self._header)):  # another library's
            raise directory_is_gone(self._folder.parent)
        path = self._folder / f"{self.last_position + 1:020d}.journal"
        self._descriptor = os.open(path, _OPEN_FLAGS, 0o600)
        self._path = path
        # A killed process may have left a segment of this name without one whole record.
        if os.read(self._descriptor, HEADER_BYTES) != self._header:
            if any(record is not None for record in frames(path.read_bytes())):
                raise FileExistsError(errno.EEXIST, f"'{path.name}' holds another journal")
            os.ftruncate(self._descriptor, 0)
            _write_all(self._descriptor, self._header)
        self._size_bytes = os.fstat(self._descriptor).st_size
        fsync_file(self._descriptor)
        fsync_folder(self._folder)

    def _truncate(self, size_bytes: int) -> None:
        """Shorten the segment; if that fails, it is tried again before the next write."""
        try:
            os.ftruncate(self._descriptor, size_bytes)
            fsync_file(self._descriptor)
            self._has_excess = False
        except OSError:
            self._has_excess = True


class JournalReader:
    """The records past a position, oldest first, two segments in memory at a time. Blocking.

    Attributes:
        gaps: (first, last) positions missing between records; complete when iteration has ended.
    """

    def __init__(self, folder: Path, after: int, database_uid: str | None = None) -> None:
        """Segments of another database are skipped when `database_uid` is given."""
        self._folder = folder
        self._after = after
        self._database_uid = database_uid
        self.gaps: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[Record]:
        last = self._after
        for records in self._by_segment():
            for position, record in sorted(records.items()):
                if position <= last:
                    continue
                if position != last + 1:
                    self.gaps.append((last + 1, position - 1))
                last = position
                yield record

    def _by_segment(self) -> Iterator[dict[int, Record]]:
        """Yield the records of each segment; of two with the same position the later one counts."""
        earlier: dict[int, Record] = {}
        found = segments(self._folder)
        old = sum(1 for next_first, _ in found[1:] if next_first <= self._after + 1)
        for _, path in found[old:]:
            later = self._checked(path)
            for position in later.keys() & earlier.keys():
                del earlier[position]
            yield earlier
            earlier = later
        yield earlier

    def _checked(self, path: Path) -> dict[int, Record]:
        content = path.read_bytes()
        named = owner(content)
        if named is not None and self._database_uid not in (None, named):
            return {}
        return {each.position: each for each in frames(content, self._after) if each is not None}


def journal_owner(folder: Path) -> str | None:
    """Return the uid of the database that the newest readable segment belongs to, if any."""
    owners = (segment_owner(path) for _, path in reversed(segments(folder)))
    return next((uid for uid in owners if uid is not None), None)


def segment_owner(path: Path) -> str | None:
    """Return the uid of the database a segment belongs to; None when its header is damaged."""
    with path.open("rb") as file:
        return owner(file.read(HEADER_BYTES))


def first_position(folder: Path) -> int | None:
    """Return the first position the journal reaches back to; None when there is no segment."""
    found = segments(folder)
    return found[0][0] if found else None


def segments(folder: Path) -> list[tuple[int, Path]]:
    """Return (first position, file) of every segment, oldest first."""
    return sorted(
        (int(path.stem), path) for path in folder.glob("*.journal") if path.stem.isdigit()
    )


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]

"""The journal: an append-only record of every change, fsynced before it counts as saved.

A segment is a file named after its first position. It starts with a header naming the database,
then come frames: magic, length, CRC-32, position, payload. A frame that does not check is passed
over by looking for the next magic, so that one damaged sector costs one record. Nothing is ever
rewritten in place; a new process starts a new segment, which leaves a torn end as it is.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from app.domain.errors import DiskFull, ReadOnlyStorage, StorageError
from app.system.paths import fsync_folder

_HEADER = struct.Struct("<8s36s")
_HEADER_MAGIC = b"CPJOURN1"
_FRAME = struct.Struct("<4sIIQ")
_MAGIC = b"\xc0\x9bJ1"
_COMPRESS_ABOVE_BYTES = 512
_SEGMENT_LIMIT_BYTES = 32 << 20
_FRAME_LIMIT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Record:
    """One acknowledged write: its position (1 for the first ever) and its payload, JSON text."""

    position: int
    payload: str


class Journal:
    """The journal of one database. Not thread-safe: the writer thread owns it.

    Attributes:
        last_position: The newest position appended or found.
    """

    def __init__(self, folder: Path, database_uid: str, last_position: int) -> None:
        self._folder = folder
        self._header = _HEADER.pack(_HEADER_MAGIC, database_uid.encode("ascii"))
        self.last_position = last_position
        self._descriptor = -1
        self._size_bytes = 0

    def append(self, payloads: Sequence[str]) -> list[int]:
        """Make records durable, in order, with one fsync; return their positions.

        Raises DiskFull or StorageError; then none of them counts and the file is as before.
        """
        if self._descriptor < 0 or self._size_bytes > _SEGMENT_LIMIT_BYTES:
            self._start_segment()
        positions = list(range(self.last_position + 1, self.last_position + 1 + len(payloads)))
        frames = b"".join(map(_frame, positions, payloads))
        try:
            _write_all(self._descriptor, frames)
            os.fsync(self._descriptor)
        except OSError as error:
            self._cut_back(self._size_bytes)
            raise _translated(error) from error
        self._size_bytes += len(frames)
        if positions:
            self.last_position = positions[-1]
        return positions

    def mark(self) -> tuple[int, int]:
        """Return a point to which `rewind` can go back, as long as nothing else was appended."""
        if self._descriptor < 0 or self._size_bytes > _SEGMENT_LIMIT_BYTES:
            self._start_segment()
        return self._size_bytes, self.last_position

    def rewind(self, mark: tuple[int, int]) -> None:
        """Take back what was appended since `mark`: it could not be applied."""
        self._cut_back(mark[0])
        self._size_bytes, self.last_position = mark

    def close_segment(self) -> None:
        """End the current segment; the next append starts a new one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def cut_behind(self, position: int) -> None:
        """Delete segments that hold only positions up to and including `position`."""
        segments = _segments(self._folder)
        for (_, path), (next_first, _) in pairwise(segments):
            if next_first <= position + 1:
                path.unlink()
        fsync_folder(self._folder)

    def _start_segment(self) -> None:
        self.close_segment()
        path = self._folder / f"{self.last_position + 1:020d}.journal"
        try:
            # A killed process may have left a segment of this name without one whole record.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._size_bytes = os.fstat(descriptor).st_size
            if self._size_bytes == 0:
                _write_all(descriptor, self._header)
                self._size_bytes = len(self._header)
            os.fsync(descriptor)
            fsync_folder(self._folder)
        except OSError as error:
            raise _translated(error) from error
        self._descriptor = descriptor

    def _cut_back(self, size_bytes: int) -> None:
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, size_bytes)
            os.fsync(self._descriptor)


class JournalReader:
    """The records past a position, oldest first, a segment in memory at a time.

    Segments of another database are passed over when `database_uid` is given. Blocking.

    Attributes:
        gaps: (first, last) positions missing between records; complete when iteration has ended.
        damaged_frames: Places that did not check, a torn end included; likewise.
    """

    def __init__(self, folder: Path, after: int, database_uid: str | None = None) -> None:
        self._folder = folder
        self._after = after
        self._database_uid = database_uid
        self.gaps: list[tuple[int, int]] = []
        self.damaged_frames = 0

    def __iter__(self) -> Iterator[Record]:
        last = self._after
        for path in self._wanted_segments():
            for record in self._checked_records(path):
                if record.position <= last:
                    continue
                if record.position != last + 1:
                    self.gaps.append((last + 1, record.position - 1))
                last = record.position
                yield record

    def _wanted_segments(self) -> list[Path]:
        segments = _segments(self._folder)
        ends = [first for first, _ in segments[1:]]
        old = sum(1 for end in ends if end <= self._after + 1)
        return [path for _, path in segments[old:]]

    def _checked_records(self, path: Path) -> list[Record]:
        """Return a segment's records by position; of two with the same one the later counts."""
        records: dict[int, Record] = {}
        for found in _frames(path, self._database_uid):
            if found is None:
                self.damaged_frames += 1
            else:
                records[found.position] = found
        return [records[position] for position in sorted(records)]


def journal_owner(folder: Path) -> str | None:
    """Return the uid of the database that the newest readable segment belongs to, if any."""
    for _, path in reversed(_segments(folder)):
        header = _read_head(path)
        if header is not None:
            return header
    return None


def first_position(folder: Path) -> int | None:
    """Return the first position the journal reaches back to; None when there is no segment."""
    segments = _segments(folder)
    return segments[0][0] if segments else None


def _segments(folder: Path) -> list[tuple[int, Path]]:
    return sorted(
        (int(path.stem), path) for path in folder.glob("*.journal") if path.stem.isdigit()
    )


def _read_head(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return None
    magic, uid = _HEADER.unpack(head)
    return uid.decode("ascii", "replace") if magic == _HEADER_MAGIC else None


def _frames(path: Path, database_uid: str | None) -> Iterator[Record | None]:
    """Yield records as they stand, and None for each place that does not check."""
    owner = _read_head(path)
    if database_uid is not None and owner is not None and owner != database_uid:
        return
    content = path.read_bytes()
    offset = _HEADER.size if owner is not None else 0
    while offset < len(content):
        record, end = _frame_at(content, offset)
        if record is not None:
            yield record
            offset = end
            continue
        yield None
        offset = content.find(_MAGIC, offset + 1)
        if offset < 0:
            return


def _frame_at(content: bytes, offset: int) -> tuple[Record | None, int]:
    start = offset + _FRAME.size
    if start > len(content):
        return None, offset
    magic, length, crc, position = _FRAME.unpack_from(content, offset)
    if magic != _MAGIC or length > _FRAME_LIMIT_BYTES or start + length > len(content):
        return None, offset
    body = content[start : start + length]
    if zlib.crc32(body, position & 0xFFFFFFFF) != crc:
        return None, offset
    text = zlib.decompress(body[1:]) if body[:1] == b"z" else body[1:]
    return Record(position, text.decode("utf-8")), start + length


def _frame(position: int, payload: str) -> bytes:
    text = payload.encode("utf-8")
    body = b"z" + zlib.compress(text, 1) if len(text) > _COMPRESS_ABOVE_BYTES else b"t" + text
    return _FRAME.pack(_MAGIC, len(body), zlib.crc32(body, position & 0xFFFFFFFF), position) + body


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _translated(error: OSError) -> StorageError:
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(
            "There is no room on the disk to save this", "Free some space and try again."
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ReadOnlyStorage(
            f"The journal cannot be written: {error.strerror}", "Make the data directory writable."
        )
    return StorageError(
        f"The journal cannot be written: {error.strerror}", "Check the disk, then try again."
    )

"""Export archives: a file, a zip or a folder as named streams, detected by content and never unpacked to disk.

Names of members are only shown and never used as paths; names that point outside are still refused.
`app.transfer.importers` reads the streams, `app.transfer.zip_reader` the zip format.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZipFile, ZipInfo

from backports.zstd import ZstdError, ZstdFile

from app.domain.errors import Cancelled, ImportRefused, NotFound
from app.domain.text import clean, one_line
from app.domain.transfer import Skipped
from app.transfer.zip_reader import (
    DAMAGE,
    ENTRIES_MAX,
    DamagedArchive,
    PackedFile,
    entry_problem,
    open_entry,
    open_zip,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TOTAL_MAX_BYTES = 20 << 30
PEEK_BYTES = 1 << 20
"""The number of bytes of a stream that can be peeked at."""

_PIECE_BYTES = 64 << 10
_LISTED_REFUSALS_MAX = 50
_ZSTD_MARK = b"\x28\xb5\x2f\xfd"
_ZIP_MARKS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08")
_NO_CONVERSATIONS = re.compile(
    r"\.(aac|avif|bmp|css|csv|dat|docx|epub|flac|gif|heic|(?<!MyActivity\.)html?|ico|jpe?g|js|m4a|md|mov|mp3|mp4|odt"
    r"|ogg|opus|pdf|png|pptx|svg|tiff?|wav|webm|webp|xlsx)$",
    re.IGNORECASE,
)
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class NamedStream:
    """A file to read once, before the next one is requested; `peek` returns up to `PEEK_BYTES`.

    `path` is None for a file in an archive. `changed_at` is when it was changed last, None if unknown.
    """

    name: str
    stream: io.BufferedReader[Any]
    path: Path | None = None
    changed_at: datetime | None = None


class Meter:
    """Counts bytes for progress and limits, and raises Cancelled.

    Attributes:
        read_bytes: Bytes of the outermost files read so far; packed bytes of archives.
        total_bytes: Their total; it grows when an archive inside an archive is opened.
    """

    def __init__(self, cancelled: Callable[[], bool], on_bytes: Callable[[int, int], None]) -> None:
        self.read_bytes = 0
        self.total_bytes = 0
        self._unpacked_bytes = 0
        self._cancelled = cancelled
        self._on_bytes = on_bytes

    def consumed(self, count_bytes: int) -> None:
        """Count bytes that were read; raise Cancelled when the user stopped the import."""
        if self._cancelled():
            raise Cancelled("The import was stopped")
        self.read_bytes = min(self.read_bytes + count_bytes, self.total_bytes)
        self._on_bytes(self.read_bytes, self.total_bytes)

    def finished(self) -> None:
        """Report that everything was read, including what was skipped."""
        self._on_bytes(self.total_bytes, self.total_bytes)

    def unpacked(self, count_bytes: int) -> None:
        """Count unpacked bytes; raise ImportRefused above `TOTAL_MAX_BYTES`."""
        self._unpacked_bytes += count_bytes
        if self._unpacked_bytes > TOTAL_MAX_BYTES:
            raise _too_large()


class _Counted(io.RawIOBase):
    """A file, whose bytes are progress, or a member of a zip, which has `member_bytes`.

    Fills buffers completely, so that peeking sees enough. Reading raises DamagedArchive when size or
    checksum of a member differ from the archive's directory, after the valid data.
    """

    def __init__(self, stream: IO[bytes], meter: Meter, member_bytes: int | None = None) -> None:
        self._stream = stream
        self._meter = meter
        self._left_bytes = member_bytes
        self._failure: DamagedArchive | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(view) and self._failure is None:
            try:
                data = self._stream.read(min(len(view) - filled, _PIECE_BYTES))
                if not data and self._left_bytes:
                    raise EOFError
            except DAMAGE as error:
                self._failure = DamagedArchive(
                    "It is damaged: its size or checksum is not that of the archive's directory"
                )
                self._failure.__cause__ = error
                break
            if not data:
                break
            view[filled : filled + len(data)] = data
            filled += len(data)
            self._meter.unpacked(len(data))
            if self._left_bytes is None:
                self._meter.consumed(len(data))
            else:
                self._left_bytes -= len(data)
        if self._failure is not None and not filled:
            raise self._failure
        return filled


class _Unpacked(io.RawIOBase):
    """A file that Zstandard packed, within the limit of all unpacked bytes."""

    def __init__(self, packed: ZstdFile, meter: Meter) -> None:
        self._packed = packed
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        filled = 0
        try:
            while filled < len(view) and (count := self._packed.readinto(view[filled:])):
                filled += count
                self._meter.unpacked(count)
        except (ZstdError, EOFError):
            pass  # another program may still be writing it; the lines so far are valid
        return filled


def open_export(path: Path, meter: Meter) -> Iterator[NamedStream | Skipped]:
    """Yield the files in `path`, sorted by name; each stream is valid until the next is requested.

    Files with extensions of images, audio, web pages or office documents are skipped and counted in
    one `Skipped` at the end. Raises NotFound, ImportRefused, Cancelled; reading a stream raises
    `DamagedArchive` when only that stream is damaged.
    """
    try:
        status = path.stat()
        with path.open("rb") if stat.S_ISREG(status.st_mode) else nullcontext():
            pass
    except FileNotFoundError as error:
        raise NotFound(f"There is no file or folder '{path}'") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ImportRefused(f"'{path}' cannot be read: {why}") from error
    if stat.S_ISDIR(status.st_mode):
        yield from _folder(path, meter)
    elif stat.S_ISREG(status.st_mode):
        meter.total_bytes = status.st_size
        yield from _file(path, path.name, meter)
    else:
        raise ImportRefused(f"'{path}' is neither a file nor a folder")
    meter.finished()


def _file(path: Path, shown: str, meter: Meter) -> Iterator[NamedStream | Skipped]:
    with path.open("rb") as file:
        is_zip = file.read(4) in _ZIP_MARKS
        file.seek(0)
        if is_zip:
            size_bytes = os.fstat(file.fileno()).st_size
            yield from _zip(PackedFile(file), size_bytes, shown, meter, is_nested=False)
        else:
            stream = io.BufferedReader(_Counted(file, meter), PEEK_BYTES)
            changed_at = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            yield NamedStream(shown, _unpacked(stream, meter), path, changed_at)


def _unpacked(stream: io.BufferedReader[Any], meter: Meter) -> io.BufferedReader[Any]:
    """Return a stream as it is, or that of the file which it packs by Zstandard."""
    if stream.peek(4)[:4] != _ZSTD_MARK:
        return stream
    return io.BufferedReader(_Unpacked(ZstdFile(stream), meter), PEEK_BYTES)


def _folder(path: Path, meter: Meter) -> Iterator[NamedStream | Skipped]:
    skipped = _SkippedFiles(str(path))
    files: list[tuple[str, Path]] = []
    for number, (shown, entry) in enumerate(_walk(path, skipped)):
        if number == ENTRIES_MAX:
            raise ImportRefused(f"'{path}' has more than {ENTRIES_MAX:,} files")
        try:
            status = entry.lstat()
        except OSError as error:
            skipped.refuse(shown, f"it cannot be read: {error.strerror or error}")
            continue
        if skipped.skips(shown, _kind_problem(status.st_mode)):
            continue
        files.append((shown, entry))
        meter.total_bytes += status.st_size
    if meter.total_bytes > TOTAL_MAX_BYTES:
        raise _too_large()
    for shown, entry in files:
        try:
            yield from _file(entry, shown, meter)
        except DamagedArchive as error:
            yield Skipped(shown, str(error))
        except OSError as error:
            yield Skipped(shown, f"it cannot be read: {error.strerror or error}")
    yield from skipped.reports()


def _walk(path: Path, skipped: _SkippedFiles) -> Iterator[tuple[str, Path]]:
    """Yield files, links and special files below `path`, sorted, with their display names."""

    def unreadable(error: OSError) -> None:
        skipped.refuse(str(error.filename), f"it cannot be read: {error.strerror or error}")

    for folder, folders, files in os.walk(path, onerror=unreadable, followlinks=False):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links) - {"__MACOSX"})
        for name in sorted(files + links):
            entry = Path(folder, name)
            yield entry.relative_to(path).as_posix(), entry


def _kind_problem(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "it is a link, and links are not followed"
    return "" if stat.S_ISREG(mode) else "it is not a regular file"


def _zip(
    file: PackedFile, counted_bytes: int, shown: str, meter: Meter, *, is_nested: bool
) -> Iterator[NamedStream | Skipped]:
    """Yield the files in a zip, of which `counted_bytes` are part of the meter's total."""
    archive, junk_bytes = open_zip(file)
    if junk_bytes:
        yield Skipped(shown, f"{junk_bytes:,} bytes after the end of the archive were ignored")
    skipped = _SkippedFiles(shown)
    wanted = [
        entry
        for entry in archive.infolist()
        if not (entry.orig_filename.endswith(("/", "\\")) and not entry.file_size)
        and not skipped.skips(
            entry.orig_filename, _name_problem(entry.orig_filename) or entry_problem(entry)
        )
    ]
    if sum(entry.file_size for entry in wanted) > TOTAL_MAX_BYTES:
        raise _too_large()
    meter.total_bytes += sum(entry.compress_size for entry in wanted) - counted_bytes
    # Going back in a packed member means to unpack it again.
    wanted.sort(key=lambda each: each.header_offset if is_nested else each.orig_filename)
    for entry in wanted:
        name = f"{shown}/{_shown(entry.orig_filename)}"
        file.on_bytes = meter.consumed
        try:
            yield from _member(file, archive, entry, name, meter, is_nested)
        except DamagedArchive as error:
            yield Skipped(name, str(error))
    yield from skipped.reports()


def _member(
    file: PackedFile, archive: ZipFile, entry: ZipInfo, shown: str, meter: Meter, is_nested: bool
) -> Iterator[NamedStream | Skipped]:
    before_bytes = meter.read_bytes
    member = _Counted(open_entry(archive, entry), meter, entry.file_size)
    stream = io.BufferedReader(member, PEEK_BYTES)
    if stream.peek(4)[:4] not in _ZIP_MARKS:
        yield NamedStream(shown, _unpacked(stream, meter), changed_at=_packed_at(entry))
    elif is_nested:
        yield Skipped(shown, "it is an archive in an archive in an archive")
    else:
        left_bytes = entry.compress_size - (meter.read_bytes - before_bytes)
        file.on_bytes = lambda _count_bytes: meter.consumed(0)
        inner = PackedFile(open_entry(archive, entry))
        yield from _zip(inner, left_bytes, shown, meter, is_nested=True)


def _packed_at(entry: ZipInfo) -> datetime | None:
    """Return the time of a member, which is in the time zone of who packed it; None if it has none."""
    with suppress(ValueError):
        at = datetime(*entry.date_time).astimezone(UTC)
        return at if at.year > 1980 else None  # the first year that can be written
    return None


def _too_large() -> ImportRefused:
    return ImportRefused(
        f"It contains more than {TOTAL_MAX_BYTES >> 30} GB of text",
        "Unpack it and import the files one by one.",
    )


def _name_problem(name: str) -> str:
    """Return why a member's name is refused; "" when it is a valid relative path."""
    if not name or any(ord(character) < 0x20 for character in name):
        return "its name contains control characters"
    path = name.replace("\\", "/")
    if path.startswith("/") or _DRIVE.match(path):
        return "its name is an absolute path"
    if ".." in path.split("/"):
        return "its name points outside the archive"
    return ""


def _is_system_file(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return "__MACOSX" in parts or parts[-1].startswith("._") or parts[-1] == ".DS_Store"


def _shown(name: str) -> str:
    return one_line(clean(name), 200)


class _SkippedFiles:
    """Files that are not read: system files ignored, images and the like counted, others listed."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._refused: list[Skipped] = []
        self._refused_count = 0
        self._other_count = 0

    def skips(self, name: str, problem: str) -> bool:
        """Return whether the entry is skipped, and record why."""
        if _is_system_file(name):
            return True
        if problem:
            self.refuse(name, problem)
            return True
        if _NO_CONVERSATIONS.search(name):
            self._other_count += 1
            return True
        return False

    def refuse(self, name: str, why: str) -> None:
        """Record a refused entry; the first ones are listed by name."""
        self._refused_count += 1
        if len(self._refused) < _LISTED_REFUSALS_MAX:
            self._refused.append(Skipped(f"{self._shown}/{_shown(name)}", why))

    def reports(self) -> Iterator[Skipped]:
        """Yield the recorded entries."""
        yield from self._refused
        if (more := self._refused_count - len(self._refused)) > 0:
            yield Skipped(self._shown, f"{more:,} more entries were refused for similar reasons")
        if count := self._other_count:
            files = "1 other file" if count == 1 else f"{count:,} other files"
            yield Skipped(
                self._shown, f"{files} with no conversations (images, audio, web pages, documents)"
            )

"""A zip's table of contents and its members as streams, trusting nothing the file says of itself.

The standard library's `zipfile` is not used: it builds one object per entry before anyone can
count them (a million entries took over 500 MB), and how it reads contradictory archives differs
between patch releases of Python. Which names are acceptable is `app.transfer.archive`'s business.

Source of the layout: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 (records), 4.4 (fields), 4.5 (extra).
"""

from __future__ import annotations

import io
import stat
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from app.domain.errors import ImportRefused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ENTRIES_MAX = 200_000
RATIO_MAX = 200
"""A member may unpack to this many times its size in the archive; text reaches about 30."""

_CONTENTS_MAX_BYTES = 64 << 20
_RATIO_FREE_BYTES = 1 << 20
_INPUT_BYTES = 64 << 10
_COMMENT_MAX_BYTES = 0xFFFF
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s4B4HL2L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_END_MARK, _END64_LOCATOR_MARK, _END64_MARK = b"PK\5\6", b"PK\6\7", b"PK\6\6"
_CENTRAL_MARK, _LOCAL_MARK = b"PK\1\2", b"PK\3\4"
_STORED, _DEFLATED = 0, 8
_METHODS = {1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard",
            95: "XZ", 98: "PPMd", 99: "AES encryption"}  # fmt: skip
_UNIX = 3


class Seekable(Protocol):
    """What an archive is read from: a file, or a member of another archive."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to `offset`; return where that is."""
        ...

    def read(self, count_bytes: int, /) -> bytes:
        """Return so many bytes, fewer only at the end."""
        ...


class DamagedArchive(ImportRefused):
    """The zip, or the member being read, contradicts itself or ends too early."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A line of the table of contents. `offset` is of the local header, from the file's start."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed_bytes: int
    size_bytes: int
    offset: int
    mode: int

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder's own line, which holds nothing."""
        return self.name.endswith(("/", "\\")) and not self.size_bytes

    @property
    def problem(self) -> str:
        """Why this member cannot be read, in words for the user; empty when it can."""
        if self.mode and stat.S_ISLNK(self.mode):
            return "it is a link, and links are not followed"
        if self.flags & 0x2041:
            return "it is encrypted; unpack the archive with its password and import the folder"
        if self.method not in (_STORED, _DEFLATED):
            name = _METHODS.get(self.method, f"method {self.method}")
            return f"it is packed with {name}; unpack the archive and import the folder"
        if self.size_bytes > self.packed_bytes * RATIO_MAX + _RATIO_FREE_BYTES:
            return f"it would unpack to more than {RATIO_MAX} times its size, as no export does"
        return ""


class _Contents(NamedTuple):
    """Where the table of contents lies; `shift` is what was put before the archive."""

    start: int
    size_bytes: int
    shift: int
    end: int


def read_entries(file: Seekable, size_bytes: int) -> tuple[list[ZipEntry], int]:
    """Return the entries in the order they lie in the file, and how much junk follows the archive.

    Raises DamagedArchive when there is no table of contents, it is longer than `ENTRIES_MAX`, or
    entries overlap (as in bombs that use the same bytes many times).
    """
    contents, junk_bytes = _find_contents(file, size_bytes)
    if contents.size_bytes > _CONTENTS_MAX_BYTES:
        raise DamagedArchive(f"Its table of contents is longer than {ENTRIES_MAX:,} entries need")
    file.seek(contents.start)
    table = io.BytesIO(file.read(contents.size_bytes))
    entries: list[ZipEntry] = []
    while table.tell() < contents.size_bytes:
        if len(entries) == ENTRIES_MAX:
            raise DamagedArchive(f"It has more than {ENTRIES_MAX:,} entries")
        entries.append(_read_entry(table, contents.shift))
    entries.sort(key=lambda entry: entry.offset)
    _refuse_overlaps(entries, contents.start)
    return entries, junk_bytes


def open_entry(file: Seekable, entry: ZipEntry, on_packed: Callable[[int], None]) -> io.RawIOBase:
    """Return the member's bytes as a stream; `on_packed` hears of every packed byte consumed.

    Reading raises DamagedArchive when size or checksum are not what the table of contents says.
    Only one stream of a file may be read at a time.
    """
    file.seek(entry.offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != _LOCAL_MARK:
        raise DamagedArchive("It does not begin where the table of contents says")
    *_, name_bytes, extra_bytes = _LOCAL.unpack(header)
    if file.read(name_bytes) != entry.raw_name:
        raise DamagedArchive("It has another name inside than in the table of contents")
    file.seek(extra_bytes, io.SEEK_CUR)
    return _Member(file, entry, on_packed)


def _find_contents(file: Seekable, size_bytes: int) -> tuple[_Contents, int]:
    tail_bytes = min(size_bytes, _END.size + _COMMENT_MAX_BYTES)
    file.seek(size_bytes - tail_bytes)
    tail = file.read(tail_bytes)
    at = tail.rfind(_END_MARK)
    while at >= 0:
        if at + _END.size <= len(tail):
            end = size_bytes - tail_bytes + at
            comment_bytes = _END.unpack_from(tail, at)[-1]
            junk_bytes = size_bytes - end - _END.size - comment_bytes
            if junk_bytes >= 0 and (found := _contents_at(file, end, tail[at:])) is not None:
                return found, junk_bytes
        at = tail.rfind(_END_MARK, 0, at)
    raise DamagedArchive(
        "The zip archive is cut off: its table of contents, at the end, is missing",
        "Download the export once more.",
    )


def _contents_at(file: Seekable, end: int, record: bytes) -> _Contents | None:
    _, _, _, _, count, size_bytes, start, _ = _END.unpack_from(record)
    if count == 0xFFFF or size_bytes == 0xFFFFFFFF or start == 0xFFFFFFFF:
        found = _end64(file, end)
        if found is not None:
            end, size_bytes, start = found
    shift = end - size_bytes - start
    if shift < 0:
        return None
    file.seek(start + shift)
    if size_bytes and file.read(4) != _CENTRAL_MARK:
        return None
    return _Contents(start + shift, size_bytes, shift, end)


def _end64(file: Seekable, end: int) -> tuple[int, int, int] | None:
    """Return where the Zip64 end record lies, and the size and start it gives for the contents."""
    if end < _END64_LOCATOR.size + _END64.size:
        return None
    file.seek(end - _END64_LOCATOR.size)
    mark, _, where, _ = _END64_LOCATOR.unpack(file.read(_END64_LOCATOR.size))
    if mark != _END64_LOCATOR_MARK:
        return None
    for at in (where, end - _END64_LOCATOR.size - _END64.size):
        if at + _END64.size > end:
            continue
        file.seek(at)
        fields = _END64.unpack(file.read(_END64.size))
        if fields[0] == _END64_MARK:
            return at, fields[8], fields[9]
    return None


def _read_entry(table: io.BytesIO, shift: int) -> ZipEntry:
    record = table.read(_CENTRAL.size)
    if len(record) < _CENTRAL.size or record[:4] != _CENTRAL_MARK:
        raise DamagedArchive("Its table of contents is damaged", "Download the export once more.")
    (_, _, system, _, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes,
     comment_bytes, _, _, attributes, offset) = _CENTRAL.unpack(record)  # fmt: skip
    raw_name, extra = table.read(name_bytes), table.read(extra_bytes)
    table.seek(comment_bytes, io.SEEK_CUR)
    size, packed, offset = _widened(extra, size, packed, offset)
    name = raw_name.decode("utf-8" if flags & 0x800 or _is_utf8(raw_name) else "cp437", "replace")
    mode = attributes >> 16 if system == _UNIX else 0
    return ZipEntry(name, raw_name, flags, method, crc, packed, size, offset + shift, mode)


def _widened(extra: bytes, *narrow: int) -> tuple[int, int, int]:
    """Return size, packed size and offset, taken from the Zip64 extra field where they overflow."""
    wide: list[int] = list(narrow)
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            values = iter(
                struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4)
            )
            wide = [next(values, each) if each == 0xFFFFFFFF else each for each in wide]
            break
        at += 4 + length
    return wide[0], wide[1], wide[2]


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_overlaps(entries: list[ZipEntry], contents_start: int) -> None:
    for entry, following in pairwise(entries):
        if entry.offset + _LOCAL.size + len(entry.raw_name) + entry.packed_bytes > following.offset:
            raise DamagedArchive(
                "Its entries overlap, as in archives made to exhaust a computer",
                "Export your conversations anew and import that file.",
            )
    if entries and entries[-1].offset + entries[-1].packed_bytes > contents_start:
        raise DamagedArchive("Its last entry reaches beyond where it may lie")


class _Member(io.RawIOBase):
    """The unpacked bytes of one member; fills what it is asked for, so that peeking sees enough."""

    def __init__(self, file: Seekable, entry: ZipEntry, on_packed: Callable[[int], None]) -> None:
        self._file = file
        self._entry = entry
        self._on_packed = on_packed
        self._at = file.seek(0, io.SEEK_CUR)
        self._packed_left = entry.packed_bytes
        self._inflater = zlib.decompressobj(-15) if entry.method == _DEFLATED else None
        self._pending = b""
        self._produced_bytes = 0
        self._crc = 0
        self._checked = False
        self._failure: DamagedArchive | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self._failure is not None:
            raise self._failure
        view = memoryview(buffer).cast("B")
        filled = 0
        try:
            while filled < len(view) and (piece := self._next_piece(len(view) - filled)):
                view[filled : filled + len(piece)] = piece
                filled += len(piece)
            if filled < len(view):
                self._check_end()
        except DamagedArchive as error:
            if not filled:
                raise
            self._failure = error  # what is whole is given first
        return filled

    def _next_piece(self, limit_bytes: int) -> bytes:
        """Return up to `limit_bytes` unpacked bytes, empty at the end."""
        piece = b""
        while not piece:
            packed = self._pending or self._read_packed(limit_bytes)
            piece = packed if self._inflater is None else self._inflate(packed, limit_bytes)
            if not packed and not piece:
                return b""
        self._produced_bytes += len(piece)
        if self._produced_bytes > self._entry.size_bytes:
            raise DamagedArchive("It is larger than the archive says")
        self._crc = zlib.crc32(piece, self._crc)
        return piece

    def _inflate(self, packed: bytes, limit_bytes: int) -> bytes:
        assert self._inflater is not None
        if self._inflater.eof:
            self._pending = b""
            return b""
        try:
            piece = self._inflater.decompress(packed, limit_bytes)
        except zlib.error as error:
            raise DamagedArchive("It is damaged and cannot be unpacked any further") from error
        self._pending = self._inflater.unconsumed_tail
        return piece

    def _read_packed(self, limit_bytes: int) -> bytes:
        most = _INPUT_BYTES if self._inflater else min(limit_bytes, _INPUT_BYTES)
        self._file.seek(self._at)
        packed = self._file.read(min(self._packed_left, most))
        if not packed and self._packed_left:
            raise DamagedArchive("The archive ends in the middle of it")
        self._at += len(packed)
        self._packed_left -= len(packed)
        self._on_packed(len(packed))
        return packed

    def _check_end(self) -> None:
        if self._checked:
            return
        self._checked = True
        if self._produced_bytes != self._entry.size_bytes:
            raise DamagedArchive("It is shorter than the archive says")
        if self._crc != self._entry.crc:
            raise DamagedArchive("Its checksum is wrong, so some of it may have been altered")

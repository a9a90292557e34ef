"""Zip archives on top of `zipfile`: limited directories, checked entries, members as streams.

`zipfile` builds an object for each entry before they can be counted (a million entries took over
500 MB), trusts declared sizes and, in some patch releases of Python, reads overlapping entries; all of
that is checked here. `app.transfer.archive` decides which names are acceptable.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import IO, cast

from app.domain.errors import ImportRefused

ENTRIES_MAX = 200_000
RATIO_MAX = 200
"""The maximum ratio of a member's size to its packed size; text reaches about 30."""

_DIRECTORY_MAX_BYTES = 64 << 20
_RATIO_FREE_BYTES = 1 << 20
_COMMENT_MAX_BYTES = 0xFFFF
_END = struct.Struct("<4s4H2LH")  # the end record; its last field is the length of the comment
_LOCAL_HEADER_BYTES = 30
_END_MARK, _CENTRAL_MARK = b"PK\5\6", b"PK\1\2"
_METHODS = {1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard",
            95: "XZ", 98: "PPMd", 99: "AES encryption"}  # fmt: skip
_UNIX = 3
DAMAGE = (  # what `zipfile` raises for invalid archives
    zipfile.BadZipFile, zlib.error, EOFError, struct.error, ValueError, OverflowError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


class DamagedArchive(ImportRefused):
    """The archive or the member is contradictory or truncated."""


class PackedFile:
    """The file of an archive, or a member of another archive, as `zipfile` reads it.

    Attributes:
        on_bytes: Receives the number of packed bytes read; None while the directory is read.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.on_bytes: Callable[[int], None] | None = None
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self._file = file

    def read(self, count_bytes: int = -1, /) -> bytes:
        """Return that many bytes, fewer only at the end; raise DamagedArchive for a huge directory."""
        if self.on_bytes is not None:
            data = self._file.read(count_bytes)
            self.on_bytes(len(data))
            return data
        data = self._file.read(min(count_bytes, _DIRECTORY_MAX_BYTES + 1))
        if len(data) > _DIRECTORY_MAX_BYTES or data.count(_CENTRAL_MARK) > ENTRIES_MAX:
            raise DamagedArchive(f"It has more than {ENTRIES_MAX:,} entries")
        return data


def open_zip(file: PackedFile) -> tuple[zipfile.ZipFile, int]:
    """Return the archive and the number of bytes after its end.

    Raises DamagedArchive when there is no central directory, it has more than `ENTRIES_MAX` entries,
    or entries overlap (as in zip bombs).
    """
    try:
        size_bytes = file.seek(0, io.SEEK_END)
        file.seek(max(0, size_bytes - _END.size - _COMMENT_MAX_BYTES))
        tail = file.read(_END.size + _COMMENT_MAX_BYTES)
    except DAMAGE as error:  # of the archive that contains this one
        raise DamagedArchive("It is damaged and cannot be unpacked") from error
    at = tail.rfind(_END_MARK)
    if at < 0 or at + _END.size > len(tail):
        raise DamagedArchive(
            "The zip archive is truncated: its directory, at the end, is missing",
            "Download the export again.",
        )
    try:
        archive = _directory(cast(IO[bytes], file))
    except DAMAGE as error:
        raise DamagedArchive("Its directory is damaged", "Download the export again.") from error
    entries = sorted(archive.infolist(), key=lambda each: each.header_offset)
    for entry, following in pairwise(entries):
        if (
            entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size
            > following.header_offset
        ):
            raise DamagedArchive(
                "Its entries overlap, as in archives that exhaust a computer",
                "Export your conversations again and import that file.",
            )
    if entries and entries[-1].header_offset + entries[-1].compress_size > archive.start_dir:
        raise DamagedArchive("Its last entry overlaps its directory")
    comment_bytes = _END.unpack_from(tail, at)[-1]
    return archive, max(0, len(tail) - at - _END.size - comment_bytes)


def _directory(file: IO[bytes]) -> zipfile.ZipFile:
    """Open with names that have no flag as UTF-8, as many programs write them, else as cp437."""
    try:
        return zipfile.ZipFile(file, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(file)


def entry_problem(entry: zipfile.ZipInfo) -> str:
    """Return the reason why a member cannot be read, as text for the user; "" when it can."""
    if entry.create_system == _UNIX and stat.S_ISLNK(entry.external_attr >> 16):
        return "it is a link, and links are not followed"
    if entry.flag_bits & 0x2041:
        return "it is encrypted; unpack the archive with its password and import the folder"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        name = _METHODS.get(entry.compress_type, f"method {entry.compress_type}")
        return f"it is packed with {name}; unpack the archive and import the folder"
    if entry.file_size > entry.compress_size * RATIO_MAX + _RATIO_FREE_BYTES:
        return f"it would unpack to more than {RATIO_MAX} times its size, unlike any export"
    return ""


def open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    """Return a seekable stream of the member's content; raise DamagedArchive for a wrong header."""
    try:
        return archive.open(entry)
    except DAMAGE as error:
        raise DamagedArchive(
            "It does not begin where the archive's directory says, or its name differs there"
        ) from error

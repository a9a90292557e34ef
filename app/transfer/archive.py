"""A file, a zip or a folder as named streams, told apart by content; nothing is ever unpacked.

Names inside are only shown, never used as paths, and still refused when they are made to escape.
What the streams hold is `app.transfer.importers`' business; the zip format is `zip_reader`'s.
"""

import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from app.domain.errors import ImportRefused, NotFound
from app.domain.text import clean, one_line
from app.domain.transfer import Skipped
from app.transfer.streams import (
    PEEK_BYTES,
    TOTAL_MAX_BYTES,
    Counted,
    Meter,
    Rewindable,
    too_large,
)
from app.transfer.zip_reader import (
    ENTRIES_MAX,
    DamagedArchive,
    Seekable,
    ZipEntry,
    open_entry,
    read_entries,
)

_NAMED_REFUSALS_MAX = 50
_ZIP_MARKS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08")
_NO_CONVERSATIONS = re.compile(
    r"\.(aac|avif|bmp|css|csv|dat|docx|epub|flac|gif|heic|html?|ico|jpe?g|js|m4a|md|mov|mp3|mp4|odt"
    r"|ogg|opus|pdf|png|pptx|svg|tiff?|txt|wav|webm|webp|xlsx)$",
    re.IGNORECASE,
)
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class NamedStream:
    """A file to be read once, before the next one is asked for; `peek` sees `PEEK_BYTES`."""

    name: str
    stream: "io.BufferedReader[Counted]"


def open_export(path: Path, meter: Meter) -> Iterator[NamedStream | Skipped]:
    """Yield what `path` holds, in the order of its names; each stream is valid until the next.

    Files that by their names are pictures, sounds, web pages or office documents are passed over
    and counted in one `Skipped` at the end. Raises NotFound, ImportRefused, Cancelled; reading a
    stream raises `DamagedArchive` when only that stream is at fault.
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
        size_bytes = os.fstat(file.fileno()).st_size
        is_zip = file.read(4) in _ZIP_MARKS
        file.seek(0)
        if is_zip:
            yield from _zip(file, size_bytes, shown, meter)
        else:
            yield NamedStream(shown, io.BufferedReader(Counted(file, meter, True), PEEK_BYTES))


def _folder(path: Path, meter: Meter) -> Iterator[NamedStream | Skipped]:
    aside = _SetAside(str(path))
    files: list[tuple[str, Path]] = []
    for number, (shown, entry) in enumerate(_walk(path, aside)):
        if number == ENTRIES_MAX:
            raise ImportRefused(f"'{path}' has more than {ENTRIES_MAX:,} files")
        try:
            status = entry.lstat()
        except OSError as error:
            aside.refuse(shown, f"it cannot be read: {error.strerror or error}")
            continue
        if aside.takes(shown, _kind_problem(status.st_mode)):
            continue
        files.append((shown, entry))
        meter.total_bytes += status.st_size
    if meter.total_bytes > TOTAL_MAX_BYTES:
        raise too_large()
    for shown, entry in files:
        try:
            yield from _file(entry, shown, meter)
        except DamagedArchive as error:
            yield Skipped(shown, str(error))
        except OSError as error:
            yield Skipped(shown, f"it cannot be read: {error.strerror or error}")
    yield from aside.told()


def _walk(path: Path, aside: "_SetAside") -> Iterator[tuple[str, Path]]:
    """Yield files, links and oddities below `path`, sorted, with the name they are shown under."""

    def unreadable(error: OSError) -> None:
        aside.refuse(str(error.filename), f"it cannot be read: {error.strerror or error}")

    for folder, folders, files in os.walk(path, onerror=unreadable, followlinks=False):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links) - {"__MACOSX"})
        for name in sorted(files + links):
            entry = Path(folder, name)
            yield entry.relative_to(path).as_posix(), entry


def _kind_problem(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "it is a link, and links are not followed"
    return "" if stat.S_ISREG(mode) else "it is no ordinary file"


def _zip(
    file: Seekable, size_bytes: int, shown: str, meter: Meter, nested_bytes: int | None = None
) -> Iterator[NamedStream | Skipped]:
    """Yield what a zip holds; `nested_bytes` is how many packed bytes it stands for in another."""
    nested = nested_bytes is not None
    entries, junk_bytes = read_entries(file, size_bytes)
    if junk_bytes:
        yield Skipped(shown, f"{junk_bytes:,} bytes after the end of the archive were ignored")
    aside = _SetAside(shown)
    wanted = [
        entry
        for entry in entries
        if not entry.is_folder
        and not aside.takes(entry.name, _name_problem(entry.name) or entry.problem)
    ]
    if sum(entry.size_bytes for entry in wanted) > TOTAL_MAX_BYTES:
        raise too_large()
    meter.total_bytes += sum(entry.packed_bytes for entry in wanted)
    meter.total_bytes -= size_bytes if nested_bytes is None else nested_bytes
    for entry in wanted if nested else sorted(wanted, key=lambda each: each.name):
        yield from _member(file, entry, f"{shown}/{_shown(entry.name)}", meter, nested)
    yield from aside.told()


def _member(
    file: Seekable, entry: ZipEntry, shown: str, meter: Meter, nested: bool
) -> Iterator[NamedStream | Skipped]:
    def reopened() -> io.RawIOBase:
        return open_entry(file, entry, lambda _packed_bytes: meter.consumed(0))

    try:
        before_bytes = meter.read_bytes
        stream = io.BufferedReader(
            Counted(open_entry(file, entry, meter.consumed), meter), PEEK_BYTES
        )
        if stream.peek(4)[:4] not in _ZIP_MARKS:
            yield NamedStream(shown, stream)
        elif nested:
            yield Skipped(shown, "it is an archive in an archive in an archive")
        else:
            inner = Rewindable(reopened)
            left_bytes = entry.packed_bytes - (meter.read_bytes - before_bytes)
            yield from _zip(inner, entry.size_bytes, shown, meter, left_bytes)
    except DamagedArchive as error:
        yield Skipped(shown, str(error))


def _name_problem(name: str) -> str:
    """Why a member's name is refused; empty when it is an honest relative path."""
    if not name or any(ord(character) < 0x20 for character in name):
        return "its name holds control characters"
    path = name.replace("\\", "/")
    if path.startswith("/") or _DRIVE.match(path):
        return "its name is an absolute path"
    if ".." in path.split("/"):
        return "its name points outside the archive"
    return ""


def _is_noise(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return "__MACOSX" in parts or parts[-1].startswith("._") or parts[-1] == ".DS_Store"


def _shown(name: str) -> str:
    return one_line(clean(name), 200)


class _SetAside:
    """What is not read: noise in silence, pictures and the like counted, the rest named."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._refused: list[Skipped] = []
        self._refused_count = 0
        self._passed_over_count = 0

    def takes(self, name: str, problem: str) -> bool:
        """Return whether the entry stays out, having noted why."""
        if _is_noise(name):
            return True
        if problem:
            self.refuse(name, problem)
            return True
        if _NO_CONVERSATIONS.search(name):
            self._passed_over_count += 1
            return True
        return False

    def refuse(self, name: str, why: str) -> None:
        """Note a refusal; only the first ones by name."""
        self._refused_count += 1
        if len(self._refused) < _NAMED_REFUSALS_MAX:
            self._refused.append(Skipped(f"{self._shown}/{_shown(name)}", why))

    def told(self) -> Iterator[Skipped]:
        """Yield all that was noted."""
        yield from self._refused
        if (more := self._refused_count - len(self._refused)) > 0:
            yield Skipped(self._shown, f"{more:,} more entries were refused for such reasons")
        if count := self._passed_over_count:
            what = "1 file that is" if count == 1 else f"{count:,} files that are"
            yield Skipped(
                self._shown, f"{what} no conversation (pictures, sounds, pages) stayed out"
            )

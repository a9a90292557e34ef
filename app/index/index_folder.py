"""Files of the text index: the manifest, file checks, and segment files held open.

    index/text/seal.json        the manifest, written after each commit
    index/text/words-1f3a.../   tantivy's files; a new name whenever the index starts over

tantivy ends every segment file with a checksum but does not verify it on opening. Verifying all
files takes 70 ms for 100,000 passages of 170 words and turns silent corruption into a rebuild.
"""

import json
import os
import shutil
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.domain.codec import dumps, loads
from app.system.paths import fsync_folder

_MANIFEST = "seal.json"
_SEGMENT_SUFFIXES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_FOOTER_MAGIC = (1337).to_bytes(4, "little")  # tantivy/src/directory/footer.rs
_BLOCK_BYTES = 1 << 20
_MOST_HELD = 256  # files; usually some 60 exist, and a process may open 1,024


class InvalidIndex(Exception):
    """The folder has no usable index; the message says why."""


@dataclass(frozen=True, slots=True)
class IndexManifest:
    """The state of the files beside it.

    `position` is the journal position the index goes up to. `opstamp` is tantivy's operation count
    at that commit. `languages` counts the passages by the language of their words. `clean` is the
    journal position up to which no words of forgotten passages are in the files, None for
    `position`.
    """

    format: str
    generation: str
    files: str
    position: int = 0
    opstamp: int = 0
    languages: tuple[tuple[str, int], ...] = ()
    clean: int | None = None


class OpenSegments:
    """Holds segment files open as long as a commit that maps them may be read.

    tantivy deletes merged files while an older commit still maps them. Whoever closes them last
    frees the blocks: 14 to 45 ms, 280 on a busy disk, in a destructor that holds the GIL. Closing a
    file descriptor last does the same without the GIL. Linux only: Windows does not delete open
    files, macOS allows 256 open files. For one thread at a time.
    """

    def __init__(self) -> None:
        self._open: dict[Path, int] = {}
        self._deleted: list[int] = []

    def follow(self, folder: Path) -> None:
        """Open new files in `folder`, and close those that were deleted before the previous call.

        A search may still have read the files deleted since.
        """
        if not sys.platform.startswith("linux"):
            return
        self._close_deleted()
        present = {each for each in folder.iterdir() if each.suffix[1:] in _SEGMENT_SUFFIXES}
        self._deleted = [self._open.pop(each) for each in self._open.keys() - present]
        for each in islice(present - self._open.keys(), _MOST_HELD - len(self._open)):
            with suppress(OSError):  # merged and deleted meanwhile
                self._open[each] = os.open(each, os.O_RDONLY)

    def close(self) -> None:
        self._deleted += self._open.values()
        self._open.clear()
        self._close_deleted()

    def _close_deleted(self) -> None:
        while self._deleted:
            os.close(self._deleted.pop())


def read_manifest(folder: Path) -> IndexManifest | None:
    """Return the folder's manifest, None without one; raise InvalidIndex when it cannot be read."""
    try:
        text = (folder / _MANIFEST).read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidIndex(str(error)) from error
    try:
        return loads(IndexManifest, text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidIndex(f"{_MANIFEST}: {error}") from error


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Replace the folder's manifest durably and atomically."""
    new = folder / f"{_MANIFEST}.new"
    with new.open("w", encoding="utf-8") as file:
        file.write(dumps(manifest))
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / _MANIFEST)
    fsync_folder(folder)


def clear_folder(folder: Path) -> None:
    """Create or empty `folder`, the manifest first, so that a partial index is never used."""
    if folder.exists() and not folder.is_dir():
        folder.unlink()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (folder / _MANIFEST, *folder.iterdir()):
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink(missing_ok=True)
        fsync_folder(folder)


def remove_files(folder: Path, kept: str) -> None:
    """Remove what is in `folder` besides the manifest and the files named `kept`."""
    for each in folder.iterdir():
        if each.is_dir() and each.name != kept:
            shutil.rmtree(each)
            fsync_folder(folder)


def check_files(files: Path, opstamp: int) -> None:
    """Raise InvalidIndex unless the files are complete, intact and not older than `opstamp`."""
    try:
        meta = json.loads((files / "meta.json").read_bytes())
        segments = [each["segment_id"].replace("-", "") for each in meta["segments"]]
        deletions = {
            f"{each['segment_id'].replace('-', '')}.{each['deletes']['opstamp']}.del"
            for each in meta["segments"]
            if each.get("deletes")
        }
        if meta["opstamp"] < opstamp:
            raise InvalidIndex("meta.json is older than the manifest")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidIndex(f"meta.json: {error}") from error
    wanted = {f"{segment}.{suffix}" for segment in segments for suffix in _SEGMENT_SUFFIXES}
    for name in sorted(wanted | deletions):
        _check_file(files / name)


def _check_file(path: Path) -> None:
    """Verify a file's checksum in its footer: JSON, its length (4 bytes), a magic number (4)."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            tail = file.read()
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != _FOOTER_MAGIC or length > size - 8:
                raise InvalidIndex(f"{path.name} has no footer")
            body_bytes = size - 8 - length
            file.seek(body_bytes)
            expected = json.loads(file.read(length))["crc"]
            file.seek(0)
            found, left = 0, body_bytes
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                found = zlib.crc32(block, found)
                left -= len(block)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidIndex(f"{path.name}: {error}") from error
    if found != expected:
        raise InvalidIndex(f"{path.name} does not match its checksum")

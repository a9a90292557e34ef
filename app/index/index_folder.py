"""The text index's folder: which files are in use, up to where they go, and whether they are whole.

    index/text/seal.json        what follows, written after each commit
    index/text/words-1f3a.../   tantivy's own files; a fresh name whenever the index starts anew

tantivy ends every segment file with a checksum but does not compare it when it opens one; reading
all of them here takes 70 ms for 100,000 passages of 170 words and turns silent nonsense into a rebuild.
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

_SEAL = "seal.json"
_SEGMENT_SUFFIXES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_FOOTER_MAGIC = (1337).to_bytes(4, "little")  # tantivy/src/directory/footer.rs
_BLOCK_BYTES = 1 << 20
_MOST_HELD = 256  # files; as a rule some 60 are there, and a process may open 1,024


class Unsealed(Exception):
    """The folder holds no index that could be used; says why."""


@dataclass(frozen=True, slots=True)
class Seal:
    """What is known of the files beside them.

    `position` is the journal's up to which the index goes, None while it is being rebuilt.
    `opstamp` is tantivy's own count of operations at that commit. `languages` counts the passages
    put, by the language of their words in Latin script.
    """

    format: str
    generation: str
    files: str
    position: int | None = None
    opstamp: int = 0
    languages: tuple[tuple[str, int], ...] = ()


class HeldFiles:
    """The segments' files, kept open for as long as a commit may be read that maps them.

    tantivy deletes what it has merged while an older commit still maps it. The last to let go has
    the blocks freed: 14 to 45 ms, 280 on a busy disk, in a destructor that keeps the interpreter's
    lock all the while. Closing a file does the same without the lock. On Linux alone: Windows does
    not delete what is open, macOS lets a program open 256 files. Used by one thread at a time.
    """

    def __init__(self) -> None:
        self._open: dict[Path, int] = {}
        self._gone: list[int] = []

    def follow(self, folder: Path) -> None:
        """Open what is new in `folder`, once no new reader begins with what is gone from it.

        What had gone at the last call is closed: a search may have read it a moment longer.
        """
        if not sys.platform.startswith("linux"):
            return
        self._close_gone()
        present = {each for each in folder.iterdir() if each.suffix[1:] in _SEGMENT_SUFFIXES}
        self._gone = [self._open.pop(each) for each in self._open.keys() - present]
        for each in islice(present - self._open.keys(), _MOST_HELD - len(self._open)):
            with suppress(OSError):  # merged and deleted meanwhile
                self._open[each] = os.open(each, os.O_RDONLY)

    def let_go(self) -> None:
        """Close them all."""
        self._gone += self._open.values()
        self._open.clear()
        self._close_gone()

    def _close_gone(self) -> None:
        while self._gone:
            os.close(self._gone.pop())


def read_seal(folder: Path) -> Seal | None:
    """Return the folder's seal, None without one; raise Unsealed when it makes no sense."""
    try:
        text = (folder / _SEAL).read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Unsealed(str(error)) from error
    try:
        return loads(Seal, text)
    except (ValueError, TypeError, RecursionError) as error:
        raise Unsealed(f"{_SEAL}: {error}") from error


def write_seal(folder: Path, seal: Seal) -> None:
    """Replace the folder's seal, durably and whole or not at all."""
    new = folder / f"{_SEAL}.new"
    with new.open("w", encoding="utf-8") as file:
        file.write(dumps(seal))
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / _SEAL)
    fsync_folder(folder)


def clear(folder: Path) -> None:
    """Make `folder` exist and be empty. The seal goes first, so that no half is taken for whole."""
    if folder.exists() and not folder.is_dir():
        folder.unlink()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (folder / _SEAL, *folder.iterdir()):
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink(missing_ok=True)
        fsync_folder(folder)


def check_files(files: Path, opstamp: int) -> None:
    """Raise Unsealed unless tantivy's files are all there, whole, and as new as `opstamp`."""
    try:
        meta = json.loads((files / "meta.json").read_bytes())
        segments = [each["segment_id"].replace("-", "") for each in meta["segments"]]
        deletions = {
            f"{each['segment_id'].replace('-', '')}.{each['deletes']['opstamp']}.del"
            for each in meta["segments"]
            if each.get("deletes")
        }
        if meta["opstamp"] < opstamp:
            raise Unsealed("meta.json is older than the seal")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unsealed(f"meta.json: {error}") from error
    wanted = {f"{segment}.{suffix}" for segment in segments for suffix in _SEGMENT_SUFFIXES}
    for name in sorted(wanted | deletions):
        _check_file(files / name)


def _check_file(path: Path) -> None:
    """Compare a file's checksum with its footer: body, JSON, its length (4), a magic number (4)."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            tail = file.read()
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != _FOOTER_MAGIC or length > size - 8:
                raise Unsealed(f"{path.name} has no footer")
            body_bytes = size - 8 - length
            file.seek(body_bytes)
            expected = json.loads(file.read(length))["crc"]
            file.seek(0)
            found, left = 0, body_bytes
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                found = zlib.crc32(block, found)
                left -= len(block)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unsealed(f"{path.name}: {error}") from error
    if found != expected:
        raise Unsealed(f"{path.name} does not match its checksum")

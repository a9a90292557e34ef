"""Files of followed sources: which exist, which changed since they were read, and which are gone.

What was read is noted in a cache. Without it every file is read again, which adds nothing twice: messages
are known by their ids in the source.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from app.domain.records.sources import SOURCES, SourceName, SourcePlace, SourceSpec
from app.domain.transfer import ImportedConversation
from app.system.paths import DataPaths
from app.transfer.importers import read_export

LIST_EVERY_S = 60.0
"""How often folders are listed again; new files are found then."""

ACTIVE_S = 86_400.0
"""Files that changed within this time are looked at whenever the source is polled."""

_READ_SHARE = 20  # a file is read again after this many times what reading it took
_DATABASE_LAG_S = 10.0
_COUNTED_BYTES = 16 << 20  # 0.1 s
_NOTE = "sources.json"
_DATABASES = frozenset((".db", ".sqlite", ".vscdb"))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source, as it is now; `id` is derived from its path. `changed_ns` is a file time.

    Size and time of a database include its write-ahead log.
    """

    source: SourceName
    path: Path
    size_bytes: int
    changed_ns: int

    @property
    def id(self) -> int:
        """A number of 62 bits."""
        digest = blake2b(os.fsencode(self.path), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 2

    @property
    def stamp(self) -> tuple[int, int]:
        """What changes when the file is written."""
        return self.size_bytes, self.changed_ns


@dataclass(frozen=True, slots=True)
class FileRead:
    """The conversations of a file; reading took `took_s`.

    It is to be read again after `again_s` although it does not change, if that is not 0.
    """

    file: SourceFile
    conversations: tuple[ImportedConversation, ...]
    took_s: float
    again_s: float = 0.0


def folders_of(spec: SourceSpec) -> list[tuple[Path, SourcePlace]]:
    """Return the folders of a source that exist on this computer. Blocking."""
    found = []
    for place in spec.places:
        given = os.environ.get(place.variable) if place.variable else None
        candidates = [Path(each).expanduser() for each in ((given,) if given else place.folders)]
        found += [(each, place) for each in candidates if each.is_dir()][:1]
    return found


def estimated_messages(spec: SourceSpec, files: Iterable[SourceFile]) -> int:
    """Return about how many messages the logs of a source have, from the first megabytes. Blocking."""
    logs = [each for each in files if spec.message and each.path.suffix.startswith(".json")]
    pattern, found, read_bytes = re.compile(spec.message.encode()), 0, 0
    for file in logs:
        if read_bytes >= _COUNTED_BYTES:
            break
        with suppress(OSError), file.path.open("rb") as stream:
            data = stream.read(_COUNTED_BYTES - read_bytes)
            found += len(pattern.findall(data))
            read_bytes += len(data)
    total_bytes = sum(each.size_bytes for each in logs)
    return round(found * total_bytes / read_bytes) if read_bytes else 0


def read_file(file: SourceFile) -> FileRead:
    """Return the content of a file as it is now. Blocking; raises ImportRefused and NotFound."""
    started = time.monotonic()
    found = (each for each in read_export(file.path) if isinstance(each, ImportedConversation))
    return FileRead(file, tuple(found), time.monotonic() - started)


class SourceFiles:
    """The files of all sources, and the notes of what was read. One thread may change it.

    Attributes:
        files: The files that exist, by path.
    """

    def __init__(self, paths: DataPaths) -> None:
        self._note = paths.index / _NOTE
        self._empty: set[str] = set()  # of what was read: files without conversations
        self._read: dict[str, tuple[int, int]] = self._load()
        self._wait_until: dict[str, float] = {}
        self._again: dict[str, tuple[tuple[int, int], float]] = {}
        self._listed: dict[SourceName, float] = {}
        self._is_dirty = False
        self.files: dict[str, SourceFile] = {}

    def look(self, sources: Collection[SourceName]) -> None:
        """Find the files of `sources` as they are now: all once a minute, the active ones always."""
        now, clock = time.time(), time.monotonic()
        for path, file in list(self.files.items()):
            if file.source not in sources:
                del self.files[path]
                self._listed.pop(file.source, None)
            elif now - file.changed_ns / 1e9 < ACTIVE_S:
                self._stat(file.source, file.path)
        for source in sources:
            if clock - self._listed.get(source, -LIST_EVERY_S) >= LIST_EVERY_S:
                self._listed[source] = clock
                listed = set()
                for found in _listed(SOURCES[source]):
                    listed.add(str(found))
                    self._stat(source, found)
                for known in [p for p, file in self.files.items() if file.source is source]:
                    if known not in listed:
                        del self.files[known]

    def changed(self) -> list[SourceFile]:
        """Return the files that are not read as they are now, newest first.

        Databases come first: what a program also logs elsewhere is in them as a whole, and is known then.
        """
        clock = time.monotonic()
        databases = [
            each
            for each in self.files.values()
            if each.source is SourceName.CURSOR and each.path.suffix in _DATABASES
        ]
        found = [
            file
            for path, file in self.files.items()
            if self._read.get(path) != file.stamp
            and clock >= self._wait_until.get(path, 0.0)
            and not self._is_postponed(path, file, clock)
            and not (file.source is SourceName.CURSOR and self._is_ahead(file, databases))
        ]
        return sorted(
            found, key=lambda file: (file.path.suffix not in _DATABASES, -file.changed_ns)
        )

    def _is_postponed(self, path: str, file: SourceFile, clock: float) -> bool:
        stamp, at = self._again.get(path, (None, 0.0))
        return stamp == file.stamp and clock < at

    def _is_ahead(self, log: SourceFile, databases: Iterable[SourceFile]) -> bool:
        """Return whether a log of Cursor may have what is not read from its databases yet.

        Of a session that both have only what is read first is kept, and the log has less.
        """
        is_fresh = time.time() - log.changed_ns / 1e9 < _DATABASE_LAG_S
        read = ((each, self._read.get(str(each.path), (0, 0))) for each in databases)
        return log.path.suffix not in _DATABASES and any(
            stamp[1] <= log.changed_ns and (is_fresh or stamp != each.stamp) for each, stamp in read
        )

    def note_read(self, made: FileRead) -> None:
        """Note that a file was read as it was when it was looked at."""
        path, now = str(made.file.path), time.monotonic()
        self._wait_until[path] = now + _READ_SHARE * made.took_s
        self._again.pop(path, None)
        if made.again_s:
            self._again[path] = made.file.stamp, now + made.again_s
        else:
            if made.conversations:
                self._empty.discard(path)
            elif path not in self._read:  # one that is damaged since has conversations here
                self._empty.add(path)
            self._read[path] = made.file.stamp
            self._is_dirty = True

    def counts(self, source: SourceName) -> tuple[int, int]:
        """Return the numbers of files that were read as they are now, and of all files."""
        own = [file for file in list(self.files.values()) if file.source is source]
        return sum(self._read.get(str(file.path)) == file.stamp for file in own), len(own)

    def kept_only_here(self, source: SourceName) -> int:
        """Return the number of files whose conversations were read, and that exist no longer. Blocking."""
        folders = [folder for folder, _ in folders_of(SOURCES[source])]
        return sum(
            path not in self.files and not Path(path).exists()
            for path in self._read.keys() - self._empty
            if any(map(Path(path).is_relative_to, folders))
        )

    def save(self) -> None:
        """Write the notes if they changed; failing to is harmless."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        with suppress(OSError):
            part = self._note.with_suffix(".part")
            noted = {path: (*stamp, path not in self._empty) for path, stamp in self._read.items()}
            part.write_text(json.dumps(noted), encoding="utf-8")
            part.replace(self._note)

    def _stat(self, source: SourceName, path: Path) -> None:
        try:
            status = path.stat()
        except OSError:
            self.files.pop(str(path), None)
            return
        size_bytes, changed_ns = status.st_size, status.st_mtime_ns
        if path.suffix in _DATABASES:  # SQLite writes beside the file first
            with suppress(OSError):
                beside = path.with_name(f"{path.name}-wal").stat()
                if beside.st_size:  # reading creates an empty one
                    size_bytes += beside.st_size
                    changed_ns = max(changed_ns, beside.st_mtime_ns)
        self.files[str(path)] = SourceFile(source, path, size_bytes, changed_ns)

    def _load(self) -> dict[str, tuple[int, int]]:
        try:
            stored = json.loads(self._note.read_text(encoding="utf-8"))
            self._empty = {path for path, (_, _, *kept) in stored.items() if kept == [False]}
            return {str(path): (int(each[0]), int(each[1])) for path, each in stored.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}


def _listed(spec: SourceSpec) -> Iterator[Path]:
    for folder, place in folders_of(spec):
        for pattern in place.patterns:
            with suppress(OSError):
                yield from (path for path in folder.glob(pattern) if path.is_file())

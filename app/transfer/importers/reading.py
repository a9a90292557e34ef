"""A path to conversations: opens what was given, finds what reads it, names what nobody reads."""

from collections.abc import Callable, Iterator
from pathlib import Path

from app.domain.errors import ImportRefused
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream, open_export
from app.transfer.importers.detect import KNOWN_FORMATS, Found, detect
from app.transfer.streams import PEEK_BYTES, Meter
from app.transfer.zip_reader import DamagedArchive

_NAMED_MAX = 100


def _never() -> bool:
    return False


def _unheard(_read_bytes: int, _total_bytes: int) -> None:
    """Nobody wants to know."""


def read_export(
    path: Path,
    *,
    cancelled: Callable[[], bool] = _never,
    on_bytes: Callable[[int, int], None] = _unheard,
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of an export, in its order, and what in it could not be taken.

    `path` is a file, a zip or a folder of any format known. At most a conversation is in memory;
    one that stands in two files comes twice. `on_bytes` hears how many bytes of how many were
    read, often; the total may change on the way. Blocking: meant for a worker thread.

    Raises NotFound, Cancelled once `cancelled()` is true, and ImportRefused, at once or after
    some conversations: the path cannot be read, is no export, or is broken as a whole.
    """
    seen = _Seen()
    for found in open_export(path, Meter(cancelled, on_bytes)):
        if isinstance(found, Skipped):
            seen.note(found)
            continue
        try:
            what = detect(found.stream.peek(PEEK_BYTES), found.name)
        except (DamagedArchive, OSError) as error:
            seen.note(_broken_off(found.name, error))
            continue
        if what.read is not None:
            seen.recognised = True
            yield from _read(what.read, found)
        elif what.aside is not None:
            seen.aside(found.name, what.aside)
        else:
            seen.strange(found.name, what)
    if not seen.recognised:
        raise seen.refusal(path)
    yield from seen.told(path)


class _Seen:
    """What was met that no importer reads, told at the end, when it is known what it is beside."""

    def __init__(self) -> None:
        self.recognised = False
        self._others: list[Skipped] = []
        self._other_files: list[Skipped] = []
        self._unnamed_count = 0

    def note(self, skipped: Skipped) -> None:
        """Note what stays out; after the first hundred it is only counted."""
        if len(self._others) < _NAMED_MAX:
            self._others.append(skipped)
        else:
            self._unnamed_count += 1

    def aside(self, name: str, why: str) -> None:
        """Note a side file of an export; in silence without a reason."""
        if why:
            self.recognised = True
            self.note(Skipped(name, why))

    def strange(self, name: str, what: Found) -> None:
        """Note a file of no known form."""
        skipped = Skipped(name, f"it is {what.instead}")
        if what.is_json:
            self.note(skipped)
        else:
            self._other_files.append(skipped)

    def told(self, path: Path) -> Iterator[Skipped]:
        """Yield what stayed out; files that are not even JSON are only counted."""
        yield from self._others
        if self._unnamed_count:
            yield Skipped(path.name, f"{self._unnamed_count:,} more like these stayed out")
        if count := len(self._other_files):
            files = "1 more file is" if count == 1 else f"{count:,} more files are"
            yield Skipped(path.name, f"{files} no conversations and stayed out")

    def refusal(self, path: Path) -> ImportRefused:
        """Return why nothing can be imported, naming what was found instead."""
        met = self._others + self._other_files
        if not met:
            return ImportRefused(f"'{path}' holds no files that could be imported", KNOWN_FORMATS)
        first, more = met[0], len(met) - 1 + self._unnamed_count
        if not more and first.where == path.name:
            return ImportRefused(
                f"'{path}' is no export of conversations: {first.why}", KNOWN_FORMATS
            )
        count = f" (and {more:,} more)" if more else ""
        return ImportRefused(
            f"'{path}' holds no conversations: {first.where}: {first.why}{count}", KNOWN_FORMATS
        )


def _read(
    read: Callable[..., Iterator[ImportedConversation | Skipped]], found: NamedStream
) -> Iterator[ImportedConversation | Skipped]:
    try:
        yield from read(found.stream, found.name)
    except (DamagedArchive, OSError) as error:
        yield _broken_off(found.name, error)


def _broken_off(name: str, error: DamagedArchive | OSError) -> Skipped:
    if isinstance(error, DamagedArchive):
        return Skipped(name, f"{error.title}; only what came before was taken")
    return Skipped(name, f"reading it failed: {error.strerror or error}")

"""Exports that lie in a folder, recognized by how their conversations begin."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO

from app.domain.errors import KnownError
from app.transfer.zip_reader import DAMAGE, PackedFile, open_zip

_log = logging.getLogger(__name__)
_MOST_FILES = 300  # of the folder, the newest
_SIGNATURE_BYTES = 16_384
_KEYS = {b'"chat_messages"': "Claude", b'"mapping"': "ChatGPT"}


@dataclass(frozen=True, slots=True)
class FoundExport:
    """An export of `program`."""

    path: Path
    program: str
    modified_at: datetime
    size_bytes: int


def find_exports(folder: Path) -> Sequence[FoundExport]:
    """Return the newest export of ChatGPT and of Claude directly in a folder, newest first.

    Of each, the first 16 KB of its conversations are read. Blocking; never raises.
    """
    try:
        files = [each for each in folder.iterdir() if each.suffix.casefold() in (".zip", ".json")]
        dated = sorted(((each.stat().st_mtime, each) for each in files), reverse=True)
    except OSError as error:
        _log.info("the folder of downloads could not be read: %s", error)
        return ()
    found: dict[str, FoundExport] = {}
    for modified, path in dated[:_MOST_FILES]:
        if (program := _program_of(path)) is not None and program not in found:
            at = datetime.fromtimestamp(modified, UTC)
            found[program] = FoundExport(path, program, at, path.stat().st_size)
    return [*found.values()]


def _program_of(path: Path) -> str | None:
    """Return which program wrote an export; None for any other file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            if path.suffix.casefold() == ".json":
                return _by_signature(file) if _holds_conversations(path.name) else None
            archive, _ = open_zip(PackedFile(file))
            with archive:
                name = next(filter(_holds_conversations, sorted(archive.namelist())))
                with archive.open(name) as member:
                    return _by_signature(member)
    except (OSError, KnownError, StopIteration, *DAMAGE):
        return None


def _holds_conversations(name: str) -> bool:
    """Return whether a name is that of a file of conversations, whole or one of several."""
    return fnmatch(PurePosixPath(name).name, "conversations*.json")


def _by_signature(file: IO[bytes]) -> str | None:
    start = file.read(_SIGNATURE_BYTES)
    return next((program for key, program in _KEYS.items() if key in start), None)

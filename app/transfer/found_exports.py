"""Exports that lie in a folder, recognized by the names in them; no conversation is read."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from app.domain.errors import KnownError
from app.transfer.zip_reader import DAMAGE, PackedFile, open_zip

_log = logging.getLogger(__name__)
_MOST_FILES = 300  # of the folder, the newest
_SIGNATURE_BYTES = 4_096
_CHATGPT, _CLAUDE = "ChatGPT", "Claude"
_CONVERSATIONS = "conversations.json"
_MEMBERS = {"chat.html": _CHATGPT, "users.json": _CLAUDE, "projects.json": _CLAUDE}
_KEYS = {b'"chat_messages"': _CLAUDE, b'"mapping"': _CHATGPT}


@dataclass(frozen=True, slots=True)
class FoundExport:
    """An export of `program`."""

    path: Path
    program: str
    modified_at: datetime
    size_bytes: int


def find_exports(folder: Path) -> Sequence[FoundExport]:
    """Return the newest export of ChatGPT and of Claude directly in a folder, newest first.

    Of a zip archive the list of names is read, of another file the first 4 KB. Blocking; never raises.
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
        if path.suffix.casefold() == ".json":
            return _by_signature(path)
        with path.open("rb") as file:
            archive, _ = open_zip(PackedFile(file))
            with archive:
                names = {PurePosixPath(each).name for each in archive.namelist()}
    except (OSError, KnownError, *DAMAGE):
        return None
    if _CONVERSATIONS not in names:
        return None
    return next((program for name, program in _MEMBERS.items() if name in names), None)


def _by_signature(path: Path) -> str | None:
    if not path.name.startswith("conversations"):
        return None
    with path.open("rb") as file:
        start = file.read(_SIGNATURE_BYTES)
    if not start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"["):
        return None
    return next((program for key, program in _KEYS.items() if key in start), None)

"""Files of attachments: stored by content hash, copied for backups, verified, removed when unreferenced.

A file is durable before the change that refers to it is committed; a kill in between leaves a file that
nothing refers to, which maintenance removes. Backups share one copy of each file.
"""

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.domain import codec
from app.domain.attachments import files_of, hashes_of
from app.domain.conversations import File
from app.domain.errors import NotFound, StorageError
from app.domain.ids import new_uid
from app.storage.engine.connection import Connection
from app.storage.engine.errors import from_os_error
from app.storage.engine.store import Store
from app.storage.tables.exchanges import blocks_of
from app.system.paths import DataPaths, fsync_file, fsync_folder

_log = logging.getLogger(__name__)
_PART = ".part"
_WANTED = "Attach it again, or restore a backup."
UNREFERENCED_FOR_S = 3600.0
"""A file that only the composer has is touched each minute, and may go so long after."""

_COPY_WHILE_FREE_BYTES = 1 << 30
"""With less free space backups link files: a link costs none, but what alters a file alters it too."""


class AttachmentFiles:
    """The attached files of a data directory. Thread-safe; every method blocks."""

    def __init__(self, paths: DataPaths) -> None:
        self._folder = paths.attachments
        self._kept = paths.kept_attachments

    def put(self, data: bytes) -> str:
        """Make a file durable; return its content hash, SHA-256 in hexadecimal. Raises StorageError.

        A file that was altered outside the program is replaced, in backups too.
        """
        content_hash = hashlib.sha256(data).hexdigest()
        target = self._folder / content_hash
        try:
            if _is_intact(target):
                os.utime(target)
            else:
                _make(self._folder)
                _write(data, target)
                kept = self._kept / content_hash
                if kept.exists() and not _is_intact(kept):
                    _write(data, kept)
        except OSError as error:
            raise from_os_error(error, "The attached file") from error
        return content_hash

    def touch(self, content_hash: str) -> bool:
        """Return whether a file is here, and count it as used just now."""
        with suppress(OSError):
            os.utime(self._folder / content_hash)
            return True
        return False

    def path(self, content_hash: str) -> Path:
        return self._folder / content_hash

    def read(self, content_hash: str) -> bytes:
        """Return a file's content, from the backups if need be.

        Raises NotFound for a missing file, StorageError for one that was altered.
        """
        is_altered = False
        for folder in (self._folder, self._kept):
            try:
                data = (folder / content_hash).read_bytes()
            except OSError:
                continue
            if hashlib.sha256(data).hexdigest() == content_hash:
                return data
            is_altered = True
        if is_altered:
            raise StorageError("An attached file was altered outside the program", _WANTED)
        raise NotFound("An attached file is missing", _WANTED)


def referenced_hashes(cursor: Connection) -> set[str]:
    """Return the hashes of all files that messages and drafts refer to."""
    hashes = cursor.column("SELECT DISTINCT content_hash FROM message_file")
    return _hashes_of_drafts(cursor.column("SELECT files FROM draft")).union(hashes)


def hashes_in(cursor: Connection, conversation_ids: Iterable[int]) -> set[str]:
    """Return the hashes of the files in the messages of conversations."""
    files = "message_file f JOIN message m ON m.id = f.message_id"
    return cursor.column_in(files, "f.content_hash", conversation_ids, "m.conversation_id")


def hashes_to_forget(cursor: Connection, conversation_ids: Iterable[int]) -> set[str]:
    """Return the hashes of the files in the messages and drafts of conversations."""
    ids = list(conversation_ids)
    drafts = cursor.column_in("draft", "files", ids, "conversation_id")
    return hashes_in(cursor, ids) | _hashes_of_drafts(drafts)


def count_as_unused(paths: DataPaths, hashes: Iterable[str]) -> None:
    """Let maintenance remove files as soon as nothing refers to them, also after a kill. Blocking."""
    for content_hash in hashes:
        for folder in (paths.attachments, paths.kept_attachments):
            with suppress(OSError):
                os.utime(folder / content_hash, (0, 0))


def remove_unreferenced(store: Store, among: Collection[str] | None = None) -> int:
    """Delete the files that nothing refers to, from backups too; return their number. Blocking.

    `among` limits it to some hashes, of any age. Otherwise files that were used within the hour stay,
    and all while a quarantined database may refer to them.
    """
    paths = store.paths
    if among is None and paths.damaged.exists() and any(paths.damaged.iterdir()):
        return 0

    def remove() -> int:
        referenced = store.read(referenced_hashes)
        count = 0
        for folder in filter(Path.exists, (paths.attachments, paths.kept_attachments)):
            for path in tuple(folder.iterdir()):
                is_chosen = _is_old(path) if among is None else path.name in among
                if is_chosen and path.name not in referenced:
                    path.unlink(missing_ok=True)
                    count += folder == paths.attachments
            fsync_folder(folder)
        return count

    try:
        return store.on_writer(remove).result()  # no message can be committed meanwhile
    except OSError as error:
        raise from_os_error(error, "The attached files") from error


def keep_for_backups(paths: DataPaths, cursor: Connection) -> None:
    """Copy every file that a database refers to into the backups folder, verified. Blocking.

    A file that is missing or altered is logged: `check` names it.
    """
    is_short = shutil.disk_usage(paths.root).free < _COPY_WHILE_FREE_BYTES
    for content_hash in _hashes_of_any(cursor):
        if not _is_kept(paths.kept_attachments / content_hash, is_short) and not copy_file(
            content_hash, paths.attachments, paths.kept_attachments, links=is_short
        ):
            _log.warning("the attached file %s is not in the backup", content_hash)


def copy_file(content_hash: str, source: Path, target: Path, *, links: bool = False) -> bool:
    """Bring a verified file into another folder, by a link if wanted and possible; return whether.

    Raises StorageError when it cannot be written.
    """
    try:
        data = (source / content_hash).read_bytes()
    except OSError:
        return False
    if hashlib.sha256(data).hexdigest() != content_hash:
        return False
    path = target / content_hash
    try:
        _make(target)
        if links:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                os.link(source / content_hash, path)
                fsync_folder(target)
                return True
        _write(data, path)
    except OSError as error:
        raise from_os_error(error, f"The folder '{target}'") from error
    return True


def copy_files(hashes: Iterable[str], sources: Sequence[Path], target: Path) -> tuple[str, ...]:
    """Bring files into a folder, each from the first source that has it unaltered; return the others.

    Blocking; raises StorageError when one cannot be written.
    """
    return tuple(
        each
        for each in hashes
        if not _is_intact(target / each)
        and not any(copy_file(each, source, target) for source in sources)
    )


def copy_kept_to(paths: DataPaths, backup: Path) -> int:
    """Copy the files of backups beside a copy of one; return how many are missing or altered."""
    kept = paths.kept_attachments
    names = [path.name for path in kept.iterdir()] if kept.exists() else []
    hashes = (each for each in names if not each.endswith(_PART))
    sources = (paths.kept_attachments, paths.attachments)
    return len(copy_files(hashes, sources, _folder_beside(backup)))


def restore_files(paths: DataPaths, cursor: Connection, backup: Path) -> None:
    """Bring back the files that a restored database refers to, from beside its backup. Blocking."""
    sources = (_folder_beside(backup), backup.parent / "attachments", paths.kept_attachments)
    for each in copy_files(_hashes_of_any(cursor), sources, paths.attachments):
        _log.warning("the attached file %s is not in the backup", each)


def names_of(cursor: Connection, hashes: Collection[str]) -> tuple[str, ...]:
    """Return the names of files in messages, sorted; a file and its smaller copy have one name."""
    columns = "content_hash, min(message_id)"
    rows = cursor.select_in("message_file", columns, hashes, "content_hash", "GROUP BY ALL")
    return tuple(sorted({_name_of(cursor, *row) for row in rows}))


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file that a message refers to and that is missing or altered; `text` is for the user."""

    content_hash: str
    text: str
    is_repairable: bool


def file_problems(store: Store) -> Iterator[FileProblem]:
    """Yield what is wrong with the files of messages. Reads every file; blocking."""
    paths = store.paths
    rows = store.rows(
        "SELECT content_hash, min(message_id) FROM message_file GROUP BY ALL ORDER BY ALL"
    )
    for content_hash, message_id in rows:
        path = paths.attachments / content_hash
        if _is_intact(path):
            continue
        state = "was altered" if path.exists() else "is missing"
        name = store.read(_name_of, content_hash, message_id)
        yield FileProblem(
            content_hash,
            f"The file '{name}' attached to message {message_id} {state}.",
            _is_intact(paths.kept_attachments / content_hash),
        )


def repair_file(store: Store, problem: FileProblem) -> bool:
    """Replace a file by the backup's; return False where that is impossible. Blocking."""
    paths = store.paths
    return copy_file(problem.content_hash, paths.kept_attachments, paths.attachments)


def _name_of(cursor: Connection, content_hash: str, message_id: int) -> str:
    row = cursor.execute("SELECT text, blocks FROM message WHERE id = ?", [message_id]).fetchone()
    files = files_of(blocks_of(row[0], row[1])) if row else ()
    return next((each.name for each in files if content_hash in hashes_of([each])), content_hash)


def _folder_beside(backup: Path) -> Path:
    return backup.with_name(f"{backup.name}.attachments")


def _hashes_of_drafts(drafts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for text in drafts:
        files: tuple[File, ...] = codec.loads(tuple[File, ...], text)
        found.update(hashes_of(files))
    return found


def _hashes_of_any(cursor: Connection) -> set[str]:
    """Return `referenced_hashes` of a database that may be older than attachments."""
    names = cursor.column("SELECT table_name FROM duckdb_tables()")
    return referenced_hashes(cursor) if "message_file" in names else set()


def _make(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        fsync_folder(folder.parent)


def _is_kept(path: Path, is_link_enough: bool) -> bool:
    with suppress(OSError):
        return path.stat().st_nlink == 1 or is_link_enough
    return False


def _is_intact(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == path.name
    except OSError:
        return False


def _is_old(path: Path) -> bool:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > UNREFERENCED_FOR_S
    return False


def _write(data: bytes, target: Path) -> None:
    """Write a file durably under its name; raises OSError."""
    coming = target.with_name(f"{new_uid()}{_PART}")
    try:
        descriptor = os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            fsync_file(file.fileno())
        coming.replace(target)
        fsync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            coming.unlink(missing_ok=True)
        raise

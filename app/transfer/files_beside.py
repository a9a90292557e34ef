"""Files of messages beside the conversations of an export: written by exports, found again by imports.

Our own exports have them in a folder `NAME.attachments`, named by content hash; ChatGPT's are in the zip or
folder itself, their names begin with an id. Names only select files, they are never used as paths.
"""

import base64
import os
import stat
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.domain.attachments import FILE_MAX_BYTES, files_of, hashes_of, is_whole_image
from app.domain.conversations import Block, File, Image
from app.domain.errors import ImportRefused, InvalidInput
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped
from app.storage.safety.attachments import AttachmentFiles, copy_files
from app.system.paths import DataPaths
from app.transfer.attaching import attach
from app.transfer.zip_reader import DAMAGE, PackedFile, entry_problem, open_entry, open_zip

FOLDER_SUFFIX = ".attachments"
_LEAST_ID_CHARS = 8
_AFTER_ID = ("-", "_", ".")

Read = Callable[[], bytes]


def write_files_beside(paths: DataPaths, export: Path, hashes: Iterable[str]) -> tuple[str, ...]:
    """Copy attached files into the folder beside an export; return those that are missing or altered.

    Blocking; raises StorageError.
    """
    folder = export.with_name(export.name + FOLDER_SUFFIX)
    return copy_files(hashes, (paths.attachments, paths.kept_attachments), folder)


class FilesBeside:
    """The files in the paths of one import; `close` it. They are listed on first use."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._open = ExitStack()
        self._found: dict[str, list[Read]] | None = None

    def read(self, key: str) -> bytes | None:
        """Return the only file of that name, or whose name begins with that id; None for none.

        A `data:` URL is the content itself.
        """
        if key.startswith("data:"):
            return _inline(key)
        if self._found is None:
            self._found = {}
            for path in self._paths:
                with suppress(OSError, ImportRefused):
                    self._list(path)
        matches = self._found.get(key, [])
        if not matches and len(key) >= _LEAST_ID_CHARS:
            starts = tuple(key + each for each in _AFTER_ID)
            named = (reads for name, reads in self._found.items() if name.startswith(starts))
            matches = [read for reads in named for read in reads]
        if len(matches) != 1:
            return None
        with suppress(OSError, ImportRefused, *DAMAGE):
            data = matches[0]()
            return data if len(data) <= FILE_MAX_BYTES else None
        return None

    def close(self) -> None:
        self._open.close()

    def _list(self, path: Path) -> None:
        if path.is_dir():
            self._list_folder(path)
            return
        self._list_folder(path.with_name(path.name + FOLDER_SUFFIX))
        if zipfile.is_zipfile(path):
            archive, _ = open_zip(PackedFile(self._open.enter_context(path.open("rb"))))
            for entry in archive.infolist():
                if not entry.is_dir() and not entry_problem(entry):
                    name = entry.orig_filename.replace("\\", "/").rpartition("/")[2]
                    self._add(name, partial(_read_entry, archive, entry))

    def _list_folder(self, path: Path) -> None:
        for folder, _, names in os.walk(path, followlinks=False):
            for name in names:
                file = Path(folder, name)
                if stat.S_ISREG(file.lstat().st_mode):
                    self._add(name, partial(_read_file, file))

    def _add(self, name: str, read: Read) -> None:
        assert self._found is not None
        self._found.setdefault(name, []).append(read)


def _inline(url: str) -> bytes | None:
    kind, _, data = url.partition(",")
    if not kind.endswith(";base64") or len(data) > FILE_MAX_BYTES * 4 // 3 + 4:
        return None
    with suppress(ValueError):
        return base64.b64decode(data)
    return None


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_MAX_BYTES + 1)


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with open_entry(archive, entry) as member:
        return member.read(FILE_MAX_BYTES + 1)


def with_files(
    found: ImportedConversation, beside: FilesBeside, files: AttachmentFiles | None
) -> ImportedConversation:
    """Return a conversation whose files are stored, as far as the export has them; None stores none.

    Others keep their name. Blocking; raises StorageError.
    """
    if not any(files_of(message.blocks) for message in found.messages):
        return found
    skipped: list[Skipped] = []

    def stored(message: ImportedMessage) -> ImportedMessage:
        keys = iter(message.file_keys)
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, File):
                try:
                    blocks.append(_stored(block, next(keys, ""), beside, files))
                except InvalidInput as error:
                    skipped.append(Skipped(f"{found.title}: {block.name}", str(error)))
                    blocks.append(_without_file(block))
            else:
                blocks.append(block)
        return replace(message, blocks=tuple(blocks), file_keys=())

    messages = tuple(map(stored, found.messages))
    return replace(found, messages=messages, skipped=(*found.skipped, *skipped))


def _stored(file: File, key: str, beside: FilesBeside, files: AttachmentFiles | None) -> File:
    if files is None:
        return _without_file(file)
    own = list(hashes_of([file]))
    data = {each: beside.read(each) for each in own}
    if isinstance(file, Image) and not all(is_whole_image(each) for each in data.values() if each):
        raise InvalidInput(f"'{file.name}' is a damaged image", "Its name is kept.")
    if own and all(
        content is not None and files.put(content) == each for each, content in data.items()
    ):
        return file
    content = data[own[0]] if own else beside.read(key or file.name)
    if content is None:
        return _without_file(file)
    attached = attach(files, content, file.name, decodes=False).file
    # What a provider extracted is what its model read.
    text = getattr(file, "text", "")
    return replace(attached, text=text) if text and not isinstance(attached, Image) else attached


def _without_file(file: File) -> File:
    if isinstance(file, Image):
        return replace(file, content_hash=None, sent_hash=None)
    return replace(file, content_hash=None)

"""Attaching files to a message: checked by content, stored, and prepared for models.

Images that no vendor would accept as they are get a smaller copy; the text of PDF and text files is
extracted. Nothing here trusts a file's name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.domain.attachments import (
    FILE_MAX_BYTES,
    IMAGE_MAX_BYTES,
    SENT_MAX_BYTES,
    SENT_MAX_PX,
    SENT_TYPES,
    TEXT_MAX_CHARS,
    decoded_text,
    image_size,
    is_animated,
    is_text,
    is_whole_image,
    media_type_of,
)
from app.domain.conversations import Attachment, File, Image
from app.domain.errors import InvalidInput, NotFound
from app.domain.text import clean, one_line
from app.domain.translation import format_size
from app.storage.safety.attachments import AttachmentFiles
from app.system.file_programs import UnreadableFile, pdf_text, scaled_image

_NAME_CHARS = 200
_CONVERTED = frozenset(("image/bmp", "image/tiff"))


@dataclass(frozen=True, slots=True)
class Attached:
    """A stored file as a block; `notice` says what models will not get of it, "" for nothing."""

    file: File
    notice: str = ""


def attach_path(
    files: AttachmentFiles, path: Path, is_cancelled: Callable[[], bool] = lambda: False
) -> Attached:
    """Attach a file. Blocking, up to 30 s; raises NotFound, InvalidInput, StorageError, Cancelled."""
    try:
        if not path.is_file():
            if path.exists():
                raise InvalidInput(f"'{path}' is not a file", "Attach its files one by one.")
            raise NotFound(f"There is no file '{path}'", "Check the spelling of the path.")
        with path.open("rb") as source:
            data = source.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidInput(f"'{path}' cannot be read: {why}", "Choose another file.") from error
    return attach(files, data, path.name, is_cancelled)


def attach(
    files: AttachmentFiles,
    data: bytes,
    name: str,
    is_cancelled: Callable[[], bool] = lambda: False,
    *,
    decodes: bool = True,
) -> Attached:
    """Attach content under a name; like `attach_path`.

    With `decodes`, every image is decoded once: a damaged one would make servers refuse the
    conversation from then on.
    """
    shown = one_line(clean(name), _NAME_CHARS) or "file"
    if not data:
        raise InvalidInput(f"'{shown}' is empty", "Attach a file with content.")
    kind = media_type_of(data, shown)
    is_image = kind in SENT_TYPES or kind in _CONVERTED
    limit_bytes = IMAGE_MAX_BYTES if is_image else FILE_MAX_BYTES
    if len(data) > limit_bytes:
        what = "An image" if is_image else "A file"
        raise InvalidInput(
            f"'{shown}' is too large", f"{what} can have at most {format_size(limit_bytes)}."
        )
    if is_image:
        return _image(files, data, shown, kind, is_cancelled, decodes=decodes)
    return _file(files, data, shown, kind, is_cancelled)


def _image(
    files: AttachmentFiles,
    data: bytes,
    name: str,
    kind: str,
    is_cancelled: Callable[[], bool],
    *,
    decodes: bool,
) -> Attached:
    content_hash = files.put(data)
    size, animated = image_size(data), is_animated(data)
    is_sendable = (
        kind in SENT_TYPES
        and size is not None
        and max(size) <= SENT_MAX_PX
        and len(data) <= SENT_MAX_BYTES
        and not animated
    )
    if kind in SENT_TYPES and (size is None or not is_whole_image(data)):
        raise InvalidInput(f"'{name}' is damaged or too large an image", "Attach another copy.")
    copy = b""
    if decodes or not is_sendable:
        try:
            copy = scaled_image(files.path(content_hash), SENT_MAX_PX, SENT_MAX_BYTES, is_cancelled)
        except UnreadableFile as error:
            raise InvalidInput(f"'{name}' cannot be decoded", "Attach another copy.") from error
        copied = image_size(copy)
        is_turned = size is not None and copied == (size[1], size[0]) != size
        size = copied if size is None or is_turned else size
        is_sendable = is_sendable and not is_turned
    width_px, height_px = size or (None, None)
    sent_hash = None if is_sendable else files.put(copy)
    image = Image(name, kind, content_hash, len(data), width_px, height_px, sent_hash)
    return Attached(image, f"Models see the first frame of '{name}'." if animated else "")


def _file(
    files: AttachmentFiles, data: bytes, name: str, kind: str, is_cancelled: Callable[[], bool]
) -> Attached:
    content_hash = files.put(data)
    text, notice = "", f"'{name}' is neither text, PDF nor an image: models get only its name."
    if kind == "application/pdf":
        notice = f"No text was found in '{name}', as in scans: models get only its name."
        try:
            text = pdf_text(files.path(content_hash), TEXT_MAX_CHARS + 1, is_cancelled)
        except UnreadableFile:
            notice = f"'{name}' cannot be read, it may be protected: models get only its name."
    elif is_text(kind):
        text, notice = decoded_text(data) or "", ""
    text = clean(text.replace("\r\n", "\n"))
    if text.strip():
        notice = ""
    if len(text) > TEXT_MAX_CHARS:
        text = text[:TEXT_MAX_CHARS]
        notice = f"Models get the first {TEXT_MAX_CHARS:,} characters of '{name}'."
    return Attached(Attachment(name, kind, len(data), text, content_hash), notice)

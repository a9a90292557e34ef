"""Images of a request: the files that a model gets, within what servers accept."""

import logging
from collections.abc import Callable, Mapping, Sequence

from app.domain.attachments import files_of
from app.domain.chat import ModelRef
from app.domain.conversations import Image, Message, Role
from app.domain.errors import KnownError
from app.storage.safety.attachments import AttachmentFiles

_log = logging.getLogger(__name__)
_MAX_BYTES = 20 << 20  # 27 MB in base64; Anthropic accepts requests of 32 MB
_MAX_IMAGES = 100  # Anthropic's limit for models with a context of 200,000 tokens

SeesImages = Callable[[ModelRef], bool | None]
"""Whether a model reads images; None if unknown, so that it is tried."""


class AttachedImages:
    """Loads the images of messages. Thread-safe; blocking."""

    def __init__(self, files: AttachmentFiles, sees_images: SeesImages) -> None:
        self._files = files
        self._sees_images = sees_images

    def __call__(self, ref: ModelRef, messages: Sequence[Message]) -> Mapping[str, bytes]:
        """Return `ChatRequest.images`: none for a model without vision, the newest if too many.

        When one more would be too many, the oldest are left out until half of what fits is free, so
        that the requests after it begin with the same images again. A file that is missing is left
        out, so that its name is sent.
        """
        if self._sees_images(ref) is False:
            return {}
        kept: dict[str, int] = {}
        for content_hash in _in_order(messages):
            if content_hash in kept or (size_bytes := self._size_bytes(content_hash)) is None:
                continue
            is_full = len(kept) == _MAX_IMAGES or sum(kept.values()) + size_bytes > _MAX_BYTES
            while kept and is_full and not _is_half_free(kept, size_bytes):
                del kept[next(iter(kept))]
            kept[content_hash] = size_bytes
        return {each: data for each in kept if (data := self._read(each)) is not None}

    def _size_bytes(self, content_hash: str) -> int | None:
        try:
            return self._files.path(content_hash).stat().st_size
        except OSError:
            data = self._read(content_hash)  # from a backup
            return None if data is None else len(data)

    def _read(self, content_hash: str) -> bytes | None:
        try:
            return self._files.read(content_hash)
        except KnownError as error:
            _log.warning("an image is sent as its name: %s", error)
            return None


def _is_half_free(kept: Mapping[str, int], more_bytes: int) -> bool:
    return len(kept) <= _MAX_IMAGES // 2 and sum(kept.values()) + more_bytes <= _MAX_BYTES // 2


def _in_order(messages: Sequence[Message]) -> list[str]:
    return [
        content_hash
        for message in messages
        if message.role is Role.USER
        for file in files_of(message.blocks)
        if isinstance(file, Image) and (content_hash := file.sent_hash or file.content_hash)
    ]

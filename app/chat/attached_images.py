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
        """Return `ChatRequest.images`: none for a model without vision; the newest ones if too many.

        A file that is missing is left out, so that its name is sent.
        """
        found: dict[str, bytes] = {}
        if self._sees_images(ref) is False:
            return found
        size_bytes = 0
        for content_hash in _newest_first(messages):
            if content_hash in found:
                continue
            try:
                data = self._files.read(content_hash)
            except KnownError as error:
                _log.warning("an image is sent as its name: %s", error)
                continue
            size_bytes += len(data)
            if size_bytes > _MAX_BYTES or len(found) == _MAX_IMAGES:
                break
            found[content_hash] = data
        return found


def _newest_first(messages: Sequence[Message]) -> list[str]:
    return [
        content_hash
        for message in reversed(messages)
        if message.role is Role.USER
        for file in reversed(files_of(message.blocks))
        if isinstance(file, Image) and (content_hash := file.sent_hash or file.content_hash)
    ]

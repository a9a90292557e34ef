"""Attached files: media type and pixel size by content, limits, and the tokens that an image takes.

Only headers are read here; images are decoded by other programs and by the window.
"""

import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from app.domain.conversations import Attachment, Block, File, Image

IMAGE_MAX_BYTES = 20 << 20
FILE_MAX_BYTES = 30 << 20
FILES_MAX = 20
"""The files of one message."""

SENT_MAX_PX = 2_000
"""The longest edge of an image in a request: Anthropic's limit for requests with over 20 images
(platform.claude.com/docs/en/build-with-claude/vision); OpenAI scales to 2,048 by itself."""

SENT_MAX_BYTES = 3_750_000
"""The size of an image in a request: 5 MB in base64, the lowest limit of the vendors."""

TEXT_MAX_CHARS = 400_000
"""The text of a file that is kept and sent, some 100,000 tokens."""

SENT_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""The images that all vendors read; others are sent as a copy in PNG or JPEG."""

_PIXELS_MAX = 1 << 27
_PLAIN, _BINARY = "text/plain", "application/octet-stream"
_MARKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\3\4", "application/zip"),
)
_TEXT_TYPES = {
    "css": "text/css", "csv": "text/csv", "html": "text/html", "js": "text/javascript",
    "json": "application/json", "md": "text/markdown", "py": "text/x-python",
    "svg": "image/svg+xml", "xml": "application/xml",
}  # fmt: skip
_TEXT_HEAD_BYTES = 64 << 10
_PATCH_PX, _PATCHES_MAX = 28, 4_784
_TILE_PX, _SHORT_PX, _TILE_TOKENS, _BASE_TOKENS = 512, 768, 170, 85


def media_type_of(data: bytes, name: str) -> str:
    """Return the media type that the content has; a name only tells kinds of text apart."""
    for mark, kind in _MARKS:
        if data.startswith(mark) and (kind != "image/bmp" or image_size(data) is not None):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if decoded_text(data[:_TEXT_HEAD_BYTES], is_head=len(data) > _TEXT_HEAD_BYTES) is None:
        return _BINARY
    return _TEXT_TYPES.get(PurePath(name).suffix[1:].casefold(), _PLAIN)


def is_text(media_type: str) -> bool:
    """Return whether files of a media type that `media_type_of` returned are text."""
    return media_type.startswith("text/") or media_type in _TEXT_TYPES.values()


def decoded_text(data: bytes, *, is_head: bool = False) -> str | None:
    """Return a file's text in UTF-8, or in UTF-16 with its mark; None when it is neither.

    Of a head, an incomplete last character is left out.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    for cut in range(4 if is_head else 1):
        try:
            text = data[: len(data) - cut].decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text
    return None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in pixels that an image's header states; None when it has none.

    Formats: W3C PNG 11.2.2, ITU T.81 B.2.2, GIF89a 18, RFC 9649 2.5-2.7, BITMAPINFOHEADER. Not for TIFF.
    """
    try:
        size = _stated_size(data)
    except (struct.error, IndexError):
        return None
    if size is None or min(size) < 1 or size[0] * size[1] > _PIXELS_MAX:
        return None
    return size


def _stated_size(data: bytes) -> tuple[int, int] | None:
    match data[:2]:
        case b"\x89P":
            width, height = struct.unpack_from(">II", data, 16)
        case b"GI":
            width, height = struct.unpack_from("<HH", data, 6)
        case b"BM":
            width, height = struct.unpack_from("<ii", data, 18)
            height = abs(height)
        case b"RI":
            return _webp_size(data)
        case b"\xff\xd8":
            return _jpeg_size(data)
        case _:
            return None
    return width, height


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return width, height
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD9 or marker == 0x01:  # no length follows
            at += 1 if marker == 0xFF else 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def is_whole_image(data: bytes) -> bool:
    """Return whether a PNG, JPEG, GIF or WebP file has its end; other files count as whole.

    Servers refuse a truncated image, and with it the conversation. The pixels are not decoded.
    """
    match data[:2]:
        case b"\x89P":
            return _is_whole_png(data)
        case b"GI":
            return data.rstrip(b"\0").endswith(b";")
        case b"RI":
            return int.from_bytes(data[4:8], "little") + 8 <= len(data)
        case b"\xff\xd8":
            scan = data.find(b"\xff\xda")
            return 0 < scan < data.rfind(b"\xff\xd9")
    return True


def _is_whole_png(data: bytes) -> bool:
    """Return whether the chunks with the pixels are as their checksums say, up to the end."""
    at = 8
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4])
        kind, checksum = data[at + 4 : at + 8], data[end : end + 4]
        if kind.isupper() and zlib.crc32(data[at + 4 : end]) != int.from_bytes(checksum):
            return False
        if kind == b"IEND":
            return True
        at = end + 4
    return False


def is_animated(data: bytes) -> bool:
    """Return whether a GIF, WebP or PNG may have several frames; some servers refuse those."""
    head = data[:_TEXT_HEAD_BYTES]
    return (
        (head[:3] == b"GIF" and data.count(b"\x21\xf9\x04") > 1)
        or (head[12:16] == b"VP8X" and bool(head[20] & 2))
        or (head[:4] == b"\x89PNG" and b"acTL" in head)
    )


def fitting_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return the size of an image in a request: at most `SENT_MAX_PX` at its longer edge."""
    scale = min(1.0, SENT_MAX_PX / max(size))
    width, height = (max(1, round(side * scale)) for side in size)
    return width, height


def image_tokens(image: Image) -> int:
    """Return the tokens that an image takes at most: the larger of two vendors' formulas.

    Anthropic: patches of 28 px, at most 4,784. OpenAI: 85, and 170 for each tile of 512 px once the
    shorter edge is at most 768 (platform.openai.com/docs/guides/images-vision). An image of unknown
    size counts as the largest one.
    """
    size = (image.width_px or SENT_MAX_PX, image.height_px or SENT_MAX_PX)
    width, height = fitting_size(size)
    patches = math.ceil(width / _PATCH_PX) * math.ceil(height / _PATCH_PX)
    scale = min(1.0, _SHORT_PX / min(width, height))
    tiles = math.ceil(width * scale / _TILE_PX) * math.ceil(height * scale / _TILE_PX)
    return max(min(patches, _PATCHES_MAX), _BASE_TOKENS + _TILE_TOKENS * tiles)


def files_of(blocks: Iterable[Block]) -> tuple[File, ...]:
    """Return the images and attachments among blocks, in order."""
    return tuple(each for each in blocks if isinstance(each, Image | Attachment))


def hashes_of(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the content hashes of the stored files that blocks refer to."""
    for file in files_of(blocks):
        if file.content_hash is not None:
            yield file.content_hash
        if isinstance(file, Image) and file.sent_hash is not None:
            yield file.sent_hash

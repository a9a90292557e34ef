"""The bytes of a journal segment: a header naming the database, then frames of one record each.

Header: magic, uid, CRC-32. Frame: magic, length, CRC-32, position, body; the CRC starts from the
position, so that it covers it. The body is a letter and the record's text: "t" plain, "z" zlib.
A frame that does not check is passed over by looking for the next magic, so that one damaged
sector costs one record.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("<8s36sI")
_HEADER_MAGIC = b"CPJOURN1"
_FRAME = struct.Struct("<4sIIQ")
_MAGIC = b"\xc0\x9bJ1"  # 0xC0 is never part of UTF-8: plain text cannot look like a frame
_COMPRESS_ABOVE_BYTES = 512
BODY_LIMIT_BYTES = 1 << 30
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True)
class Record:
    """One acknowledged write: its position (1 for the first ever) and its payload, JSON text."""

    position: int
    payload: str


def header(database_uid: str) -> bytes:
    """Return a segment's first bytes."""
    uid = database_uid.encode("ascii")
    return _HEADER.pack(_HEADER_MAGIC, uid, zlib.crc32(uid))


def owner(content: bytes) -> str | None:
    """Return the uid in a segment's first bytes; None when they are short or do not check."""
    if len(content) < HEADER_BYTES:
        return None
    magic, uid, crc = _HEADER.unpack_from(content)
    return uid.decode("ascii") if magic == _HEADER_MAGIC and zlib.crc32(uid) == crc else None


def frame(position: int, payload: str) -> bytes:
    """Return a record as bytes; raise ValueError when it is longer than a frame can be."""
    text = payload.encode("utf-8")
    body = b"z" + zlib.compress(text, 1) if len(text) > _COMPRESS_ABOVE_BYTES else b"t" + text
    if len(body) > BODY_LIMIT_BYTES:
        raise ValueError(f"a record of {len(body)} bytes")
    return _FRAME.pack(_MAGIC, len(body), _crc(body, position), position) + body


def frames(content: bytes) -> Iterator[Record | None]:
    """Yield a segment's records as they stand, and None for each place that does not check."""
    offset = HEADER_BYTES if content.startswith(_HEADER_MAGIC) else 0
    while offset < len(content):
        record, end = _frame_at(content, offset)
        yield record
        if record is None:
            end = content.find(_MAGIC, offset + 1)
            if end < 0:
                return
        offset = end


def _frame_at(content: bytes, offset: int) -> tuple[Record | None, int]:
    start = offset + _FRAME.size
    if start > len(content):
        return None, offset
    magic, length, crc, position = _FRAME.unpack_from(content, offset)
    body = content[start : start + length]
    if magic != _MAGIC or len(body) < length or _crc(body, position) != crc:
        return None, offset
    try:
        text = zlib.decompress(body[1:]) if body[:1] == b"z" else body[1:]
        return Record(position, text.decode("utf-8")), start + length
    except (zlib.error, UnicodeDecodeError):
        return None, offset


def _crc(body: bytes, position: int) -> int:
    return zlib.crc32(body, position & 0xFFFFFFFF)

"""The bytes of a journal segment: a header naming the database, then frames of one record each.

Header: magic, uid, CRC-32. Frame: magic, length, CRC-32, position, body; the CRC starts from the
position, so that it covers it. The body is a letter and the record's text: "t" plain, "z" zlib.
After a frame with a wrong checksum, reading continues at the next magic, so that one damaged sector
costs one record.
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
_AT_ONCE_CHARS = 1 << 20
_CRC_MASK = 0xFFFFFFFF
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
    """Return the uid in a segment's first bytes; None when they are short or damaged."""
    if len(content) < HEADER_BYTES:
        return None
    magic, uid, crc = _HEADER.unpack_from(content)
    return uid.decode("ascii") if magic == _HEADER_MAGIC and zlib.crc32(uid) == crc else None


class TooLong(ValueError):
    """A record is longer than a frame can be."""


def frame(position: int, payload: str | tuple[str, ...]) -> bytes:
    """Return a record as bytes, its text in one piece or several; raise TooLong.

    A long text in pieces is compressed piece by piece: encoding 10,000 turns at once holds the
    interpreter's lock for 23 ms.
    """
    pieces = (payload,) if isinstance(payload, str) else payload
    if sum(map(len, pieces)) <= _AT_ONCE_CHARS:
        text = "".join(pieces).encode("utf-8")
        body = b"z" + zlib.compress(text, 1) if len(text) > _COMPRESS_ABOVE_BYTES else b"t" + text
    else:
        packer = zlib.compressobj(1)
        packed = [packer.compress(piece.encode("utf-8")) for piece in pieces]
        body = b"".join((b"z", *packed, packer.flush()))
    if len(body) > BODY_LIMIT_BYTES:
        raise TooLong(f"a record of {len(body)} bytes")
    crc = zlib.crc32(body, position & _CRC_MASK)
    return _FRAME.pack(_MAGIC, len(body), crc, position) + body


def frames(content: bytes, after: int = 0) -> Iterator[Record | None]:
    """Yield a segment's records in order, and None for each damaged place.

    Records up to and including the position `after` are skipped, which is four times as fast.
    """
    offset = HEADER_BYTES if content.startswith(_HEADER_MAGIC) else 0
    while offset < len(content):
        if (found := _frame_at(content, offset, after)) is None:
            yield None
            offset = content.find(_MAGIC, offset + 1)
            if offset < 0:
                return
            continue
        record, offset = found
        if record is not None:
            yield record


def _frame_at(content: bytes, offset: int, after: int) -> tuple[Record | None, int] | None:
    """Return a frame's record, None up to the position `after`, and its end; None for damage."""
    start = offset + _FRAME.size
    if start > len(content):
        return None
    magic, length, crc, position = _FRAME.unpack_from(content, offset)
    end = start + length
    if magic != _MAGIC or end > len(content):
        return None
    with memoryview(content) as view, view[start:end] as body:
        if zlib.crc32(body, position & _CRC_MASK) != crc:
            return None
    if position <= after:
        return None, end
    packed = content[start + 1 : end]
    try:
        text = zlib.decompress(packed) if content[start : start + 1] == b"z" else packed
        return Record(position, text.decode("utf-8")), end
    except (zlib.error, UnicodeDecodeError):
        return None

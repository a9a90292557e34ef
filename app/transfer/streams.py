"""Streams that count what is read, stop when asked to, and know when it is too much."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.domain.errors import Cancelled, ImportRefused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TOTAL_MAX_BYTES = 20 << 30
PEEK_BYTES = 1 << 20
"""How much of a stream can be looked at before it is read."""


def too_large() -> ImportRefused:
    """Return the refusal of what unpacks to more than `TOTAL_MAX_BYTES`."""
    return ImportRefused(
        f"It holds more than {TOTAL_MAX_BYTES >> 30} GB of text",
        "Unpack it and import the files one by one.",
    )


class Meter:
    """Counts what is consumed, tells about it, and stops everything when asked to.

    Attributes:
        read_bytes: Bytes of the outermost files consumed so far; packed ones where packed.
        total_bytes: How many there are; grows when an archive inside an archive is opened.
    """

    def __init__(self, cancelled: Callable[[], bool], on_bytes: Callable[[int, int], None]) -> None:
        self.read_bytes = 0
        self.total_bytes = 0
        self._unpacked_bytes = 0
        self._cancelled = cancelled
        self._on_bytes = on_bytes

    def consumed(self, count_bytes: int) -> None:
        """Count bytes; raise Cancelled when the user stopped it."""
        if self._cancelled():
            raise Cancelled("The import was stopped")
        self.read_bytes = min(self.read_bytes + count_bytes, self.total_bytes)
        self._on_bytes(self.read_bytes, self.total_bytes)

    def finished(self) -> None:
        """Tell that nothing is left, whatever was passed over."""
        self._on_bytes(self.total_bytes, self.total_bytes)

    def unpacked(self, count_bytes: int) -> None:
        """Count bytes handed out; raise ImportRefused past `TOTAL_MAX_BYTES`."""
        self._unpacked_bytes += count_bytes
        if self._unpacked_bytes > TOTAL_MAX_BYTES:
            raise too_large()


class Counted(io.RawIOBase):
    """A stream whose bytes count against `TOTAL_MAX_BYTES`, and as progress if `is_outermost`."""

    def __init__(
        self, raw: io.RawIOBase | io.BufferedReader, meter: Meter, is_outermost: bool = False
    ) -> None:
        self._raw = raw
        self._meter = meter
        self._is_outermost = is_outermost

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill `buffer`; raise Cancelled, ImportRefused past the limit, or what `raw` raises."""
        count_bytes = self._raw.readinto(buffer) or 0
        self._meter.unpacked(count_bytes)
        self._meter.consumed(count_bytes if self._is_outermost else 0)
        return count_bytes


class Rewindable:
    """A member as a file that can be searched: going back means unpacking it again.

    Reading an archive inside it takes three passes (its end, its table of contents, its members
    in the order they lie), never more, because members are taken in that order.
    """

    def __init__(self, reopen: Callable[[], io.RawIOBase]) -> None:
        self._reopen = reopen
        self._stream: io.BufferedReader | None = None
        self._stream_at = 0
        self._at = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to `offset`, from the start or from here; nothing is read yet."""
        self._at = offset + (self._at if whence == io.SEEK_CUR else 0)
        return self._at

    def read(self, count_bytes: int, /) -> bytes:
        """Return so many bytes, fewer only at the end."""
        if self._stream is None or self._at < self._stream_at:
            self._stream = io.BufferedReader(self._reopen(), PEEK_BYTES)
            self._stream_at = 0
        while self._stream_at < self._at:
            passed = len(self._stream.read(min(self._at - self._stream_at, PEEK_BYTES)))
            if not passed:
                return b""
            self._stream_at += passed
        piece = self._stream.read(count_bytes)
        self._at += len(piece)
        self._stream_at = self._at
        return piece

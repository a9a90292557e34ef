"""A JSON scanner that tracks only brackets and strings, so that invalid JSON cannot stop it."""

import codecs
import re
from collections.abc import Callable
from typing import Any, Protocol

from app.transfer.importers.parsing.values import MESSAGE_MAX_CHARS

_CHUNK_BYTES = 256 << 10
_CHUNK_MAX_BYTES = 4 << 20
_BRACKETS_MAX = 500_000
# Bounded repeats, since the regex engine stores backtracking state for every unbounded one.
_TO_BRACKET = re.compile(r'[^"{}\[\]]*(?:"[^"\\]*"[^"{}\[\]]*){0,64}')
_IN_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*){0,256}', re.DOTALL)
_TO_VALUE = re.compile(r'[\s,]*(?:"([^"\\]*)"\s*:\s*)?(?=[{\[])')
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


class Readable(Protocol):
    """A binary stream."""

    def read(self, count_bytes: int, /) -> bytes:
        """Return at most that many bytes, none at the end."""
        ...


class Scanner:
    """Moves over JSON from bracket to bracket and keeps the text since a mark.

    Attributes:
        is_exhausted: Whether the stream has ended.
        at_byte: The number of bytes read from the stream.
    """

    def __init__(self, stream: Readable) -> None:
        self.is_exhausted = False
        self.at_byte = 0
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._buffer = ""
        self._at = 0
        self._mark: int | None = None
        self._too_large = False
        self._is_dirty = False

    @property
    def kept_chars(self) -> int:
        """The number of characters since the mark; 0 when they exceed the limit."""
        return 0 if self._mark is None else self._at - self._mark

    def keep(self, last_chars: int) -> None:
        """Set the mark before the last `last_chars` characters."""
        self._mark = self._at - last_chars
        self._too_large = False

    def kept(self) -> str | None:
        """Return the text since the mark; None when it exceeds the limit of a message."""
        if self._mark is None or self._too_large:
            return None
        return self._buffer[self._mark : self._at]

    def has_replaced(self, text: str | None) -> bool:
        """Return whether `text` contains bytes that were not UTF-8, as lone surrogates."""
        return self._is_dirty and text is not None and bool(_NOT_UTF8.search(text))

    def key(self, from_kept: int) -> str:
        """Return the member name before the bracket just passed; "" in an array.

        Only text from `from_kept` characters after the mark is searched.
        """
        if self._mark is None:
            return ""
        gap = self._buffer[self._mark + from_kept : self._at - 1].rstrip()
        if not gap.endswith(":"):
            return ""
        gap = gap[:-1].rstrip()
        start = gap.rfind('"', 0, -1)
        while start > 0 and gap[start - 1] == "\\":
            start = gap.rfind('"', 0, start)
        return gap[start + 1 : -1] if start >= 0 else ""

    def quick_value(
        self, decode: Callable[[str, int], tuple[Any, int] | None]
    ) -> tuple[str, Any, int, bool] | None:
        """Pass the next member or element if it is completely in the buffer and valid.

        Returns its key, value, length and whether it contained invalid bytes; else None, without
        passing anything. `decode` returns the value at an offset and its end.
        """
        match = _TO_VALUE.match(self._buffer, self._at)
        if match is None or (found := decode(self._buffer, match.end())) is None:
            return None
        value, end = found
        replaced = self._is_dirty and bool(_NOT_UTF8.search(self._buffer, self._at, end))
        chars = end - self._at
        self._at = end
        self._mark = None
        return match[1] or "", value, chars, replaced

    def next_bracket(self) -> str:
        """Pass the next bracket outside strings and return it; "" at the end of the stream."""
        while True:
            self._at = _end(_TO_BRACKET, self._buffer, self._at)
            if self._at == len(self._buffer):
                if not self._read_more():
                    return ""
            elif (character := self._buffer[self._at]) != '"':
                self._at += 1
                return character
            elif not self._pass_string():
                return ""

    def skip(self) -> None:
        """Pass everything up to the bracket that closes the one just passed, or to the end."""
        depth, brackets = 1, 0
        while depth and (bracket := self.next_bracket()):
            depth += 1 if bracket in "{[" else -1
            brackets += 1
        self._too_large |= brackets > _BRACKETS_MAX

    def _pass_string(self) -> bool:
        self._at += 1
        while True:
            self._at = _end(_IN_STRING, self._buffer, self._at)
            if self._at < len(self._buffer) and self._buffer[self._at] == '"':
                self._at += 1
                return True
            if self._at + 1 >= len(self._buffer) and not self._read_more():
                return False

    def _read_more(self) -> bool:
        """Append the next chunk to the buffer and drop the text before the mark."""
        if self._mark is not None and self._at - self._mark > MESSAGE_MAX_CHARS:
            self._mark, self._too_large = None, True
        start = self._at if self._mark is None else self._mark
        kept = len(self._buffer) - start
        text = ""
        while not text:
            chunk = self._stream.read(min(max(_CHUNK_BYTES, kept), _CHUNK_MAX_BYTES))
            text = self._decoder.decode(chunk, final=not chunk)
            self.at_byte += len(chunk)
            if not chunk and not text:
                self.is_exhausted = True
                return False
        self._is_dirty = self._is_dirty or (not text.isascii() and bool(_NOT_UTF8.search(text)))
        self._buffer = self._buffer[start:] + text
        self._at -= start
        self._mark = None if self._mark is None else 0
        return True


def _end(pattern: re.Pattern[str], buffer: str, start: int) -> int:
    match = pattern.match(buffer, start)
    assert match is not None  # both patterns match the empty text
    return match.end()

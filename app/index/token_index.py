"""Token index: the token vectors of passages in one space, in a file that is mapped into memory.

    tokens-000001   32 bytes a token: the projected vector as 8-bit integers, 127 at length 1
    directory       32 bytes a part: its place in that file; appended only, the last row of a part
        counts

The first row of the directory identifies library and format and names the file of tokens; mark rows
carry the journal position up to which removals are applied. Token vectors can be inverted to text,
so those of removed passages are overwritten at once. Rows whose check or place is wrong end the
directory: what follows is made again. One process at a time uses the folder: the holder of the data
directory's lock.
"""

import hashlib
import logging
import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_PER_PASSAGE, PartId, PassageId, part_id
from app.index.id_set import Int64
from app.system.paths import fsync_file, fsync_folder

_log = logging.getLogger(__name__)

Float = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]
Int8 = npt.NDArray[np.int8]
Rows = npt.NDArray[Any]

TOKEN_DIMENSIONS = 32
MAX_PART_TOKENS = 512
_SCALE = 127
_HALF_WINDOW = 32  # tokens; windows overlap by half
_ROW = np.dtype(
    [("part", "<i8"), ("stamp", "<u8"), ("first", "<u8"), ("count", "<u4"), ("check", "<u4")]
)
_HEADER, _MARK = -0x746F6B656E31, -1  # parts of rows that are none; the first names the format
_REMOVED = 0xFFFFFFFF  # the count of a part's last row
_DIRECTORY = "directory"
_BLOCK_TOKENS = 256  # more at once and BLAS starts threads, which takes 20 ms on a busy machine
_COPIED_TOKENS = 1 << 16
_LEAST_DEAD_TOKENS = 1 << 15


@dataclass(frozen=True, slots=True)
class TokenizedPassage:
    """The token vectors of a passage: float32 (n, 32), rows of unit length, by part.

    `content_hash` is the passage's when they were made. Parts without tokens may be absent.
    """

    id: PassageId
    content_hash: str
    parts: Mapping[PartId, Float]


@dataclass(frozen=True, slots=True)
class _TokenSnapshot:
    """The state that a search sees from start to end.

    `rows` are the present parts in order, `parts` their ids; `tokens` is the file, int8 (n, 32),
    `mapped` its memory.
    """

    rows: Rows
    parts: Int64
    tokens: Int8
    mapped: mmap.mmap | None


class TokenIndex:
    """The token vectors of one space. Searches take no lock; changes are serialized. Thread-safe.

    Attributes:
        position: The journal position up to which removals are applied, 0 in a new index.
    """

    def __init__(self, folder: Path, library: str) -> None:
        """Open the index in `folder`; empty if missing, damaged or of another library.

        Raises OSError.
        """
        self._folder = folder
        self._library = stamp_of(library)
        self._changing = threading.Lock()
        self.position = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open()

    @property
    def part_count(self) -> int:
        return len(self._snapshot.parts)

    @property
    def passages(self) -> Int64:
        """The passages, (n,), in order."""
        return np.unique(self._snapshot.parts // PARTS_PER_PASSAGE)

    def window_scores(
        self, query_tokens: Float, weights: Numbers, parts: Sequence[int] | Int64
    ) -> Numbers:
        """Return the score of each part's best window of neighboring tokens, (len(parts),).

        The score of a window is the weighted mean, over the question's tokens, of the cosine of the
        nearest token in the window. `query_tokens` is float32 (q, 32), rows of unit length;
        `weights` are (q,), with a positive sum. Parts without tokens are NaN.
        """
        snapshot = self._snapshot
        wanted = np.asarray(parts, np.int64)
        result = np.full(len(wanted), np.nan)
        at = np.searchsorted(snapshot.parts, wanted)
        at[at == len(snapshot.parts)] = 0
        is_held = snapshot.parts[at] == wanted if len(snapshot.parts) else np.zeros(len(at), bool)
        is_held[is_held] &= snapshot.rows["count"][at[is_held]] > 0
        rows = snapshot.rows[at[is_held]]
        if not len(rows) or not len(query_tokens):
            return result
        _prefetch(snapshot.mapped, rows)
        numbers, starts = _numbers(rows)
        factor = np.ascontiguousarray(query_tokens.T, np.float32) / np.float32(_SCALE)
        products = np.empty((len(numbers), len(query_tokens)), np.float32)
        for first in range(0, len(numbers), _BLOCK_TOKENS):
            some = slice(first, first + _BLOCK_TOKENS)
            tokens = snapshot.tokens.take(numbers[some], axis=0)
            np.dot(tokens.astype(np.float32), factor, out=products[some])
        result[is_held] = _best_windows(products, starts, weights / weights.sum())
        return result

    def tokens_of(self, passage: PassageId) -> dict[PartId, Float] | None:
        """Return the token vectors of a passage by part; None if it has not been put."""
        snapshot = self._snapshot
        rows = snapshot.rows[_rows_of(snapshot.parts, np.array([passage], np.int64))]
        if not len(rows):
            return None
        found = {}
        for row in rows:
            first, count = int(row["first"]), int(row["count"])
            codes = snapshot.tokens[first : first + count].astype(np.float32)
            found[PartId(int(row["part"]))] = codes / np.float32(_SCALE)
        return found

    def stamps(self, passages: Int64) -> dict[PassageId, int]:
        rows = self._snapshot.rows[_rows_of(self._snapshot.parts, np.unique(passages))]
        return {PassageId(int(row["part"]) // PARTS_PER_PASSAGE): int(row["stamp"]) for row in rows}

    def put(self, passages: Sequence[TokenizedPassage]) -> None:
        """Add passages, replacing what they had; durable on return. Raises OSError."""
        if not passages:
            return
        made: list[tuple[int, int, int, int, int]] = []
        codes: list[Int8] = [_NO_TOKENS]
        for each in passages:
            stamp = stamp_of(each.content_hash)
            for part, vectors in (each.parts or {part_id(each.id, 0): _NO_VECTORS}).items():
                codes.append(np.rint(vectors[:MAX_PART_TOKENS] * _SCALE).astype(np.int8))
                made.append((part, stamp, 0, len(codes[-1]), 0))
        rows = np.array(made, _ROW)
        with self._changing:
            self._remove(np.unique([each.id for each in passages]))
            rows["first"] = self._end + np.cumsum(rows["count"]) - rows["count"]
            self._write_tokens({self._end: np.concatenate(codes).tobytes()})
            self._end += int(rows["count"].sum(dtype=np.int64))
            self._append(rows)
            rows = np.sort(rows, order="part")
            at = np.searchsorted(self._snapshot.parts, rows["part"])
            self._show(np.insert(self._snapshot.rows, at, rows))
            self._compact_if_due()

    def remove(self, passages: Sequence[int] | Int64) -> None:
        """Remove passages and overwrite their tokens; durable on return. Raises OSError."""
        with self._changing:
            self._remove(np.unique(np.asarray(passages, np.int64)))
            self._compact_if_due()

    def mark(self) -> None:
        """Store `position`, for the next start. Raises OSError."""
        with self._changing:
            self._append(_one_row(_MARK, 0, self.position))

    def close(self) -> None:
        """Close the files; searches that run still see them."""
        with self._changing:
            self._close_files()

    # -- files

    def _close_files(self) -> None:
        self._tokens_file.close()
        self._directory_file.close()

    def _open(self) -> None:
        rows = self._read_directory()
        if rows is None:
            for each in self._folder.iterdir():
                each.unlink()
            rows = _one_row(_HEADER, self._library, 1)
            with (self._folder / _DIRECTORY).open("wb") as file:
                file.write(_checked(rows).tobytes())
        self._serial = int(rows[0]["first"])
        self._tokens_path = self._folder / _tokens_name(self._serial)
        for each in self._folder.iterdir():
            if each.name not in (_DIRECTORY, self._tokens_path.name):
                with suppress(OSError):  # Windows keeps a file that is mapped
                    each.unlink()
        self._tokens_path.touch()
        self._tokens_file = self._tokens_path.open("rb+")
        self._directory_file = (self._folder / _DIRECTORY).open("rb+")
        size = self._tokens_file.seek(0, os.SEEK_END) // TOKEN_DIMENSIONS
        is_whole = (rows["count"] == _REMOVED) | (rows["first"] + rows["count"] <= size)
        is_whole[rows["part"] < 0] = True
        if not is_whole.all():
            rows = rows[: int(is_whole.argmin())]
        self._row_count = len(rows)
        self._directory_file.truncate(len(rows) * _ROW.itemsize)
        marks = rows[rows["part"] == _MARK]
        self.position = int(marks["first"][-1]) if len(marks) else 0
        placed = rows[(rows["part"] >= 0) & (rows["count"] != _REMOVED)]
        self._end = int((placed["first"] + placed["count"]).max()) if len(placed) else 0
        self._tokens_file.truncate(self._end * TOKEN_DIMENSIONS)  # what no row names
        rows = rows[rows["part"] >= 0]
        rows = rows[np.argsort(rows["part"], kind="stable")]
        is_last = np.append(rows["part"][1:] != rows["part"][:-1], np.ones(min(1, len(rows)), bool))
        self._show(rows[is_last & (rows["count"] != _REMOVED)])

    def _read_directory(self) -> Rows | None:
        """Return the rows up to the first damaged one; None when they are not of this library."""
        try:
            content = (self._folder / _DIRECTORY).read_bytes()
        except FileNotFoundError:
            return None
        rows = np.frombuffer(content[: len(content) // _ROW.itemsize * _ROW.itemsize], _ROW)
        is_intact = rows["check"] == _checks(rows)
        if not is_intact.all():
            rows = rows[: int(is_intact.argmin())]
        if not len(rows) or rows[0]["part"] != _HEADER or rows[0]["stamp"] != self._library:
            return None
        return rows

    def _write_tokens(self, pieces: Mapping[int, bytes]) -> None:
        for first, content in pieces.items():
            self._tokens_file.seek(first * TOKEN_DIMENSIONS)
            self._tokens_file.write(content)
        self._tokens_file.flush()
        fsync_file(self._tokens_file.fileno())

    def _append(self, rows: Rows) -> None:
        self._directory_file.seek(self._row_count * _ROW.itemsize)  # a failed write may precede
        self._directory_file.write(_checked(rows).tobytes())
        self._directory_file.flush()
        fsync_file(self._directory_file.fileno())
        self._row_count += len(rows)

    def _show(self, rows: Rows) -> None:
        """Let searches see these rows, the present parts in order."""
        self._dead = self._end - int(rows["count"].sum(dtype=np.int64))
        tokens, mapped = _NO_TOKENS, None
        if self._end:
            size = self._end * TOKEN_DIMENSIONS
            mapped = mmap.mmap(self._tokens_file.fileno(), size, access=mmap.ACCESS_READ)
            if hasattr(mmap, "MADV_RANDOM"):
                mapped.madvise(mmap.MADV_RANDOM)  # otherwise each part reads 128 KB from the disk
            tokens = np.frombuffer(mapped, np.int8).reshape(-1, TOKEN_DIMENSIONS)
        self._snapshot = _TokenSnapshot(rows, np.ascontiguousarray(rows["part"]), tokens, mapped)

    def _remove(self, passages: Int64) -> None:
        """Overwrite first: after a crash in between, the rows still say what is to be removed."""
        removed = _rows_of(self._snapshot.parts, passages)
        rows = self._snapshot.rows[removed].copy()
        if not len(rows):
            return
        zeros: dict[int, int] = {}  # tokens by the number of the first
        last = -1
        for row in np.sort(rows, order="first"):
            first, count = int(row["first"]), int(row["count"])
            if last < 0 or last + zeros[last] != first:
                last, zeros[first] = first, 0
            zeros[last] += count
        self._write_tokens({at: bytes(n * TOKEN_DIMENSIONS) for at, n in zeros.items()})
        rows["count"] = _REMOVED
        self._append(rows)
        self._show(np.delete(self._snapshot.rows, removed))

    def _compact_if_due(self) -> None:
        """Copy what is present into new files if more than half is dead."""
        if self._dead <= max(_LEAST_DEAD_TOKENS, self._end // 2):
            return
        new = self._folder / f"{_DIRECTORY}.new"
        try:
            self._write_compact(new)
        except OSError as error:
            _log.warning("the token index is not compacted: %s", error)
            return
        self._close_files()
        try:
            new.replace(self._folder / _DIRECTORY)  # from here on the new files count
            fsync_folder(self._folder)
        finally:
            self._open()

    def _write_compact(self, directory: Path) -> None:
        old, serial = self._snapshot, self._serial + 1
        rows = old.rows[np.argsort(old.rows["first"], kind="stable")]
        numbers, rows["first"] = _numbers(rows)
        with (self._folder / _tokens_name(serial)).open("wb") as file:
            for first in range(0, len(numbers), _COPIED_TOKENS):
                file.write(old.tokens.take(numbers[first : first + _COPIED_TOKENS], axis=0).data)
            file.flush()
            fsync_file(file.fileno())
        head = [_one_row(_HEADER, self._library, serial), _one_row(_MARK, 0, self.position)]
        with directory.open("wb") as file:
            file.write(_checked(np.concatenate([*head, rows])).tobytes())
            file.flush()
            fsync_file(file.fileno())


_NO_TOKENS: Int8 = np.empty((0, TOKEN_DIMENSIONS), np.int8)
_NO_VECTORS: Float = np.empty((0, TOKEN_DIMENSIONS), np.float32)


def stamp_of(text: str) -> int:
    """Return 64 bits that identify a text, such as a content hash."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _best_windows(products: Float, starts: Int64, weights: Numbers) -> Numbers:
    """Return each row's best weighted window; a window is two neighboring halves."""
    counts = np.diff(starts, append=len(products))
    halves = -(-counts // _HALF_WINDOW)
    row = np.repeat(np.arange(len(starts)), halves)
    firsts = np.cumsum(halves) - halves
    begins = starts[row] + (np.arange(len(row)) - firsts[row]) * _HALF_WINDOW
    nearest = np.maximum.reduceat(products, begins, axis=0)
    has_next = row[1:] == row[:-1]
    nearest[:-1][has_next] = np.maximum(nearest[:-1], nearest[1:])[has_next]
    best: Numbers = np.maximum.reduceat(nearest @ weights, firsts)
    return best


def _prefetch(mapped: mmap.mmap | None, rows: Rows) -> None:
    """Let the system read parts from the disk at the same time, not one after the other."""
    if mapped is None or not hasattr(mmap, "MADV_WILLNEED"):
        return
    starts = rows["first"].astype(np.int64) * TOKEN_DIMENSIONS
    ends = starts + rows["count"].astype(np.int64) * TOKEN_DIMENSIONS
    starts -= starts % mmap.PAGESIZE
    for start, length in zip(starts.tolist(), (ends - starts).tolist(), strict=True):
        mapped.madvise(mmap.MADV_WILLNEED, start, length)


def _numbers(rows: Rows) -> tuple[Int64, Int64]:
    """Return the token numbers of rows, one row after the other, and each row's start."""
    counts = rows["count"].astype(np.int64)
    ends = np.cumsum(counts)
    starts: Int64 = ends - counts
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(rows["first"].astype(np.int64) - starts, counts) + np.arange(total), starts


def _rows_of(parts: Int64, passages: Int64) -> Int64:
    """Return the numbers of the rows of passages, in order; `parts` are sorted."""
    starts = np.searchsorted(parts, passages * PARTS_PER_PASSAGE)
    counts = np.searchsorted(parts, (passages + 1) * PARTS_PER_PASSAGE) - starts
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def _one_row(part: int, stamp: int, first: int) -> Rows:
    return np.array([(part, stamp, first, 0, 0)], _ROW)


def _tokens_name(serial: int) -> str:
    return f"tokens-{serial:06}"


def _checked(rows: Rows) -> Rows:
    rows = rows.copy()
    rows["check"] = _checks(rows)
    return rows


def _checks(rows: Rows) -> npt.NDArray[np.uint32]:
    """Return a checksum of each row: multiplicative hashing (Knuth, TAOCP 3, 6.4)."""
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for name in ("part", "stamp", "first", "count"):
        mixed = (mixed ^ rows[name].astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(32)).astype(np.uint32)

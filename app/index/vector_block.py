"""Vector blocks: quantized vectors of chunks, and their cosines with a query.

A row stores its vector as 8-bit integers, the largest component at 127, and the inverse length of
the rounded vector, so that a scaled product is a true cosine. A query has 15 bits in two halves,
multiplied in one pass; the remaining error is the rounding of the rows, .0004 (.0021 at worst) at
384 dimensions. The signs of the components are stored as bits: the number that differ from the
query's selects rows at a sixth of the cost. Figures and alternatives:
packaging/decisions/0031-vector-index.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numkong
import numpy as np
import numpy.typing as npt

from app.domain.errors import IndexUnavailable
from app.domain.ids import PARTS_PER_PASSAGE
from app.index.id_set import IdSet, Int64, Mask

Float = npt.NDArray[np.float32]
Half = npt.NDArray[np.float16]
Int8 = npt.NDArray[np.int8]
Bits = npt.NDArray[np.uint8]
Int16 = npt.NDArray[np.int16]

BLOCK_BYTES = 8 << 20  # of codes; pages without rows take no memory
_FINE = 128  # the fine half of a query counts 1/128 of the coarse one
_AT_ONCE = 256  # rows that are quantized
_SMALLEST, _LARGEST = 1e-12, 1e12  # bounds of the largest component of a unit vector
_GATHERED_SHARE = 8  # below 1 in 8 rows, copying the rows is faster than computing all


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of chunks, inside or outside a block.

    `codes` is (n, dim); `scales` turn a product of codes into a cosine; `parts` and `passages` are
    ids.
    """

    codes: Int8
    scales: Float
    parts: Int64
    passages: Int64

    def __len__(self) -> int:
        return len(self.parts)

    def at(self, chosen: "slice | Mask | Int64") -> "Rows":
        """Return some of the rows: views for a slice, otherwise copies."""
        return Rows(*(getattr(self, name)[chosen] for name in self.__slots__))


class _Signs:
    """The signs of a block's codes as bits; computed on first use, from any thread."""

    def __init__(self, room: int, dimension: int) -> None:
        self._bits = np.empty((room, -(-dimension // 8)), np.uint8)
        self._filled = 0

    def of(self, codes: Int8) -> Bits:
        """Return the signs of the block's first codes, (n, dim): (n, dim / 8)."""
        start, end = self._filled, len(codes)
        if start < end:
            self._bits[start:end] = _signs_of(codes[start:])  # two threads write the same values
            self._filled = end
        return self._bits[:end]


@dataclass(frozen=True, slots=True)
class Block:
    """An immutable set of rows: adding and dropping return a new block.

    Only the first `count` rows are valid. A grown block shares its arrays with the previous one,
    which ignores rows beyond its own count; so a block may grow only once, from one thread.
    `living` marks rows that are not dropped, `living_count` of them. Passage ids are between `low`
    and `high`, and sorted if it `ascends`.
    """

    rows: Rows
    living: Mask
    _signs: _Signs
    count: int = 0
    living_count: int = 0
    low: int = 0
    high: int = -1
    ascends: bool = True

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another row."""
        return self.count == len(self.living)

    @property
    def signs(self) -> Bits:
        """The signs of all rows, (count, dim / 8), also dropped ones; allocated on first use."""
        return self._signs.of(self.rows.codes[: self.count])

    @property
    def passages(self) -> Int64:
        """The passage of each row, (count,), also of dropped ones."""
        return self.rows.passages[: self.count]

    def grown(self, more: Rows) -> "Block":
        """Return the block with rows added; there must be room for them."""
        start, end = self.count, self.count + len(more)
        for name in Rows.__slots__:
            getattr(self.rows, name)[start:end] = getattr(more, name)
        self.living[start:end] = True
        low, high = int(more.passages.min()), int(more.passages.max())
        return replace(
            self,
            count=end,
            living_count=self.living_count + len(more),
            low=min(low, self.low) if start else low,
            high=max(high, self.high) if start else high,
            ascends=self.ascends
            and (not start or int(more.passages[0]) >= self.high)
            and bool((np.diff(more.passages) >= 0).all()),
        )

    def dropped(self, dropped: Mask) -> "Block":
        """Return the block without the rows marked in `dropped`, (count,)."""
        living = self.living.copy()
        living[: self.count] &= ~dropped
        return replace(self, living=living, living_count=int(living[: self.count].sum()))

    def rows_living(self) -> Rows:
        """Return a copy of the rows that are not dropped."""
        return self.rows.at(np.flatnonzero(self.living[: self.count]))

    def chosen(self, allowed: IdSet | None, excluded: IdSet | None) -> Int64 | None:
        """Return the numbers of the rows to search, in order; None for all."""
        if allowed is None and excluded is None and self.living_count == self.count:
            return None
        mask = self.living[: self.count]
        if allowed is not None:
            mask = mask & allowed.holds(self.passages)
        if excluded is not None:
            mask = mask & ~excluded.holds(self.passages)
        return np.flatnonzero(mask)

    def rows_of(self, passages: Int64) -> Int64:
        """Return the numbers of the rows of a few passages, given sorted and unique."""
        start, end = np.searchsorted(passages, [self.low, self.high + 1])
        few = passages[start:end]
        if not len(few):
            return few
        if self.ascends:
            first = np.searchsorted(self.passages, few, "left")
            counts = np.searchsorted(self.passages, few, "right") - first
            steps = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
            rows = np.repeat(first, counts) + steps
        else:
            rows = np.flatnonzero(IdSet(few).holds(self.passages))
        return self.answering(rows, None)

    def answering(self, rows: Int64, excluded: IdSet | None) -> Int64:
        """Return the rows that are neither dropped nor `excluded`, in the same order."""
        kept: Int64 = rows[self.living[rows]]
        return kept if excluded is None else kept[~excluded.holds(self.passages[kept])]

    def cosines(self, question: "QuantizedQuery", chosen: Int64 | None) -> Float:
        """Return the cosines with the rows `chosen` (None: all), in order, -1 to 1."""
        if chosen is None:
            return question.cosines(self.rows.codes[: self.count], self.rows.scales[: self.count])
        if len(chosen) * _GATHERED_SHARE < self.count:
            return question.cosines(self.rows.codes[chosen], self.rows.scales[chosen])
        return self.cosines(question, None)[chosen]


def new_block(dimension: int) -> Block:
    """Return an empty block with room for BLOCK_BYTES of codes."""
    room = max(1, BLOCK_BYTES // dimension)
    rows = Rows(
        np.empty((room, dimension), np.int8),
        np.empty(room, np.float32),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    return Block(rows, np.zeros(room, np.bool_), _Signs(room, dimension))


def quantize(parts: Int64, vectors: Float | Half) -> Rows:
    """Return the quantized rows of chunks, in order; raises IndexUnavailable as `largest_components`.

    A few at a time, which stay in the processor's cache: half the time.
    """
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        some = vectors[rows].astype(np.float32)
        some *= (127 / largest_components(some))[:, None]
        codes[rows] = np.rint(some, out=some)
        scales[rows] = 1 / np.sqrt(np.einsum("ij,ij->i", some, some))
    return Rows(codes, scales, parts, parts // PARTS_PER_PASSAGE)


def largest_components(vectors: Float) -> Float:
    """Return the largest component of each vector; raises IndexUnavailable if one is zero or not finite."""
    largest: Float = np.maximum(vectors.max(axis=-1), -vectors.min(axis=-1))
    if not ((largest > _SMALLEST) & (largest < _LARGEST)).all():
        raise IndexUnavailable(
            "The embedder returned a zero or invalid vector",
            "Choose another embedder in the settings.",
        )
    return largest


def _signs_of(codes: Int8) -> Bits:
    return np.packbits(codes > 0, axis=-1)


class QuantizedQuery:
    """A query vector, prepared for comparison with rows of the same dimension; immutable."""

    def __init__(self, vector: Float) -> None:
        """Prepare a vector, (dim,), finite and not zero, of any length."""
        wide = vector.astype(np.float64)
        whole = np.rint(wide * (127 * _FINE / np.abs(wide).max()))
        coarse = np.rint(whole / _FINE)
        halves = np.stack([coarse, whole - coarse * _FINE])
        # The fine half is -64 to 64. Packed once, it is read for every row without conversion.
        self._packed = numkong.dots_pack(halves.astype(np.int8))
        self._scale = np.float32(1 / np.linalg.norm(whole))
        self._signs = _signs_of(coarse.astype(np.int8))[None]

    def cosines(self, codes: Int8, scales: Float) -> Float:
        """Return the cosines, (n,), -1 to 1. Equal codes give equal cosines at any position."""
        products = np.asarray(numkong.dots_packed(codes, self._packed)).astype(np.float32)
        cosines: Float = (products[:, 0] * _FINE + products[:, 1]) * (scales * self._scale)
        return np.clip(cosines, -1, 1, out=cosines)

    def distances(self, signs: Bits) -> Int16:
        """Return the number of components, (n,), whose sign differs from the query's."""
        found = numkong.cdist(self._signs, signs, metric="hamming", dtype="uint1")
        distances: Int16 = np.asarray(found)[0].astype(np.int16)
        return distances


def append_rows(blocks: Sequence[Block], more: Rows, dimension: int) -> list[Block]:
    """Return the blocks with rows added to the last one and, when it is full, to new ones."""
    grown = list(blocks)
    start = 0
    while start < len(more):
        if not grown or grown[-1].is_full:
            grown.append(new_block(dimension))
        room = len(grown[-1].living) - grown[-1].count
        grown[-1] = grown[-1].grown(more.at(slice(start, start + room)))
        start += room
    return grown

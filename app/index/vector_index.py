"""Vector index: exact search over the vectors of one space, in memory.

Blocks of quantized vectors (`vector_block`) form one index that many threads search while one
changes it. In a large index the signs of the components select the rows whose cosines are computed.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from app.domain.errors import IndexUnavailable
from app.domain.ids import PartId, PassageId, passage_id_of
from app.domain.passages import VectorHit
from app.index.id_set import IdSet, Int64, Mask
from app.index.vector_block import (
    Block,
    Float,
    Half,
    Int16,
    QuantizedQuery,
    append_rows,
    largest_components,
    quantize,
)

_ROWS_PER_THREAD = 150_000  # about 7 ms of work; with less, a second thread gains nothing
_COARSE_FROM = 300_000  # rows; below, selecting by signs would save less than 5 ms
_SELECTED_SHARE = 0.04  # of the rows; they contain .997 of the nearest thousandth
_MERGE_AT = 2048
_SPARE = 8  # rows per part to keep, enough for the nearest parts
_SAMPLED = 300  # chunks
_NOTHING = IdSet()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _VectorSnapshot:
    """The state that a search sees from start to end."""

    blocks: tuple[Block, ...] = ()
    passage_count: int = 0

    @property
    def row_count(self) -> int:
        return sum(block.count for block in self.blocks)


class ExactVectorIndex:
    """All vectors of one space.

    Searches are thread-safe and take no lock: each sees the state between two changes. Changes are
    serialized. A search takes 2 ms for 100,000 chunks of 384 dimensions on one core, 16 ms for
    1,000,000 on two; memory is 21 bytes a chunk and 8 bits a dimension, 9 in a large index.
    """

    def __init__(self, dimension: int, threads: int = 2) -> None:
        """Start empty; a large index is searched by up to `threads` threads."""
        self._dimension = dimension
        self._threads = threads
        self._changing = threading.Lock()
        self._snapshot = _VectorSnapshot()

    @property
    def passage_count(self) -> int:
        return self._snapshot.passage_count

    def put(self, part_ids: Int64, vectors: Float | Half) -> None:
        """Add chunks, replacing those of the same passages.

        `part_ids` is (n,), with all chunks of a passage in one call; `vectors` (n, dim).
        Visible at once, all or nothing. Raises IndexUnavailable for another dimension and for
        vectors that are not finite or zero; then nothing is added.
        """
        self._check_shape(vectors, 2)
        if len(part_ids) != len(vectors):
            raise IndexUnavailable(f"{len(part_ids)} parts cannot have {len(vectors)} vectors")
        if not len(vectors):
            return
        more = quantize(part_ids, vectors)
        passages = np.unique(more.passages)
        with self._changing:
            blocks, removed = _without(self._snapshot.blocks, passages)
            blocks = append_rows(blocks, more, self._dimension)
            count = self._snapshot.passage_count - removed + len(passages)
            self._snapshot = _VectorSnapshot(tuple(self._tidy(blocks)), count)
            if self._is_coarse(self._snapshot):
                for block in self._snapshot.blocks:
                    _ = block.signs  # computed here rather than during a search

    def remove(self, passage_ids: Collection[PassageId]) -> None:
        """Remove passages; unknown ids are ignored; visible at once."""
        passages = np.unique(np.fromiter(passage_ids, np.int64, len(passage_ids)))
        with self._changing:
            blocks, removed = _without(self._snapshot.blocks, passages)
            if removed:
                count = self._snapshot.passage_count - removed
                self._snapshot = _VectorSnapshot(tuple(self._tidy(blocks)), count)

    def search(
        self, vector: Float, limit: int, allowed: IdSet | None = None, excluded: IdSet = _NOTHING
    ) -> Sequence[VectorHit]:
        """Return the parts nearest to `vector`, (dim,), by their best chunk, best first.

        The newer (higher id) of equals comes first. `allowed` restricts the passages (None: all),
        `excluded` removes some. Raises IndexUnavailable for another dimension or a zero vector.
        """
        question = self._question(vector)
        snapshot = self._snapshot
        if limit < 1 or (allowed is not None and not len(allowed)):
            return []
        left_out = excluded if len(excluded) else None
        near = None
        if allowed is None and self._is_coarse(snapshot):
            near = self._near(question, snapshot)

        def best_of(numbers: range) -> _Nearest:
            best = _Best(limit)
            for number in numbers:
                block = snapshot.blocks[number]
                if near is None:
                    chosen = block.chosen(allowed, left_out)
                else:
                    chosen = block.answering(near(number), left_out)
                if chosen is None or len(chosen):
                    best.take(block, chosen, block.cosines(question, chosen))
            return best.merged()

        best = _Best(limit)
        for found in self._on_threads(snapshot, best_of):
            best.add(found)
        return best.hits()

    def cosines(self, vector: Float, parts: Collection[PartId]) -> Mapping[PartId, float]:
        """Return the cosine of each part's best chunk; parts that are not indexed are absent.

        Raises as `search`.
        """
        question = self._question(vector)
        if not parts:
            return {}
        wanted = frozenset(parts)
        passages = np.unique(np.fromiter(map(passage_id_of, parts), np.int64, len(parts)))
        best: dict[PartId, float] = {}
        for block in self._snapshot.blocks:
            chosen = block.rows_of(passages)
            if not len(chosen):
                continue
            held = block.rows.parts[chosen].tolist()
            for part, cosine in zip(held, block.cosines(question, chosen).tolist(), strict=True):
                if part in wanted:
                    best[part] = max(cosine, best.get(part, -1.0))
        return best

    def sampled_cosines(self, vector: Float) -> Float:
        """Return the cosines of some hundred chunks of all the index, (n,); raises as `search`."""
        question, snapshot = self._question(vector), self._snapshot
        step = max(1, snapshot.row_count // _SAMPLED)
        found = [np.empty(0, np.float32)]
        for block in snapshot.blocks:
            chosen = block.answering(np.arange(0, block.count, step), None)
            found.append(block.cosines(question, chosen))
        return np.concatenate(found)

    @staticmethod
    def _is_coarse(snapshot: _VectorSnapshot) -> bool:
        """Whether a search over everything selects rows by signs first."""
        return snapshot.row_count > _COARSE_FROM

    def _near(self, question: QuantizedQuery, snapshot: _VectorSnapshot) -> Callable[[int], Int64]:
        """Return the function that selects the rows of a block by their signs."""
        distances: dict[int, Int16] = {}

        def measured(numbers: range) -> Int64:
            counts = np.zeros(self._dimension + 1, np.int64)
            for number in numbers:
                distances[number] = question.distances(snapshot.blocks[number].signs)
                counts += np.bincount(distances[number], minlength=len(counts))
            return counts

        reached = np.sum(self._on_threads(snapshot, measured), axis=0).cumsum()
        most = int(np.searchsorted(reached, reached[-1] * _SELECTED_SHARE))
        return lambda number: np.flatnonzero(distances[number] <= most)

    def _on_threads(self, snapshot: _VectorSnapshot, work: Callable[[range], T]) -> list[T]:
        """Return the results of `work` over the block numbers, split among threads."""
        threads = min(self._threads, 1 + snapshot.row_count // _ROWS_PER_THREAD)
        shares = [range(start, len(snapshot.blocks), threads) for start in range(threads)]
        if threads == 1:
            return [work(shares[0])]
        # Created per search: starting a thread takes 0.1 ms, and none has to be stopped later.
        with ThreadPoolExecutor(threads - 1, thread_name_prefix="vectors") as pool:
            others = [pool.submit(work, share) for share in shares[1:]]
            return [work(shares[0]), *(other.result() for other in others)]

    def _tidy(self, blocks: list[Block]) -> list[Block]:
        """Move the rows of full blocks that are half empty to the end, and drop those blocks."""
        kept = [b for b in blocks if not b.is_full or b.living_count * 2 > b.count]
        for block in blocks:
            if block.is_full and 0 < block.living_count * 2 <= block.count:
                kept = append_rows(kept, block.rows_living(), self._dimension)
        return kept

    def _question(self, vector: Float) -> QuantizedQuery:
        self._check_shape(vector, 1)
        largest_components(vector)
        return QuantizedQuery(vector)

    def _check_shape(self, vectors: Float | Half, axes: int) -> None:
        if vectors.ndim != axes or vectors.shape[-1] != self._dimension:
            raise IndexUnavailable(
                f"Vectors of shape {vectors.shape} cannot be searched with those of "
                f"{self._dimension} dimensions",
                "Select the embedder again in the settings, so that its own vectors are used.",
            )


class _Best:
    """Collects the nearest row of each part, at most `limit` parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._floor = np.float32(-2)  # lower cosines cannot be among the nearest any more
        self._found = [_Nearest(np.empty(0, np.float32), np.empty(0, np.int64))]
        self._count = 0

    def take(self, block: Block, chosen: Int64 | None, cosines: Float) -> None:
        """Add the rows of a block, all or those `chosen`, with their cosines."""
        near = np.flatnonzero(cosines >= self._floor)
        if len(near):
            at = near if chosen is None else chosen[near]
            self.add(_Nearest(cosines[near], block.rows.parts[at]))

    def add(self, found: "_Nearest") -> None:
        self._found.append(found)
        self._count += len(found.parts)
        if self._count > max(_MERGE_AT, 4 * self._limit):
            self.merged()

    def merged(self) -> "_Nearest":
        found = _Nearest(
            np.concatenate([each.cosines for each in self._found]),
            np.concatenate([each.parts for each in self._found]),
        )
        best = _nearest(found, self._limit)
        self._found, self._count = [best], len(best.parts)
        if self._count == self._limit:
            self._floor = best.cosines[-1]
        return best

    def hits(self) -> list[VectorHit]:
        """Return the best as hits, best first."""
        best = self.merged()
        rows = zip(best.parts.tolist(), best.cosines.tolist(), strict=True)
        return [VectorHit(PartId(part), cosine) for part, cosine in rows]


@dataclass(frozen=True, slots=True)
class _Nearest:
    """Rows with their cosines, both (n,)."""

    cosines: Float
    parts: Int64

    def at(self, chosen: "Mask | Int64") -> "_Nearest":
        return _Nearest(self.cosines[chosen], self.parts[chosen])


def _nearest(found: _Nearest, limit: int) -> _Nearest:
    """Return the nearest row of each of the `limit` nearest parts, nearest first, then newest."""
    some = _SPARE * limit
    if len(found.parts) > some:
        # Sorting all is slow; the nearest few rows suffice if they belong to enough parts.
        floor = np.partition(found.cosines, -some)[-some]
        near = found.at(found.cosines >= floor)
        if len(np.unique(near.parts)) >= limit:
            found = near
    order = np.lexsort((-found.parts, -found.cosines))
    _, first = np.unique(found.parts[order], return_index=True)
    return found.at(order[np.sort(first)[:limit]])


def _without(blocks: Sequence[Block], passages: Int64) -> tuple[list[Block], int]:
    """Return the blocks without rows of `passages` (sorted), and how many passages were removed."""
    kept: list[Block] = []
    removed: set[int] = set()
    for block in blocks:
        start, end = np.searchsorted(passages, [block.low, block.high + 1])
        if start < end:
            dropped = np.isin(block.passages, passages[start:end]) & block.living[: block.count]
            if dropped.any():
                removed.update(np.unique(block.passages[dropped]).tolist())
                block = block.dropped(dropped)  # noqa: PLW2901
        kept.append(block)
    return kept, len(removed)

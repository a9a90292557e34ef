"""The vector index: parts of passages by their meaning, all in memory.

Every vector is looked at; of many, most by the signs of their components alone.

How a vector is kept and compared is `vector_block`'s business; here blocks become one index that
many threads may ask while one changes it. It knows nothing of texts, models or the database.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from app.domain.errors import IndexUnavailable
from app.domain.ids import PartId, PassageId, passage_of
from app.domain.passages import VectorHit
from app.index.id_set import IdSet, Int64, Mask
from app.index.vector_block import (
    Block,
    Float,
    Int16,
    Int32,
    Question,
    quantised,
    spread,
)

_ROWS_PER_THREAD = 150_000  # about 7 ms of work; below that a second thread gains nothing
_COARSE_FROM = 300_000  # rows: below that, signs first would save less than 5 ms
_WORTH_A_LOOK = 0.04  # of the rows: by their signs, .997 of the nearest thousandth are among them
_MERGE_AT = 2048
_SPARE = 8  # chunks of a part that are usually nearer than those of the next parts, amply
_SMALLEST, _LARGEST = 1e-12, 1e12  # what a unit vector's largest component cannot be


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What a search sees from its start to its end."""

    blocks: tuple[Block, ...] = ()
    passage_count: int = 0

    @property
    def row_count(self) -> int:
        return sum(block.count for block in self.blocks)


class ExactVectorIndex:
    """All vectors of one space; implements `VectorIndex`.

    Searches may come from any thread and take no lock: each sees the index as it was at some moment
    between two changes. Changes take turns. A search takes 2 ms for 100,000 chunks of 384 numbers
    on one core, 16 ms for 1,000,000 on two; memory is 29 bytes a chunk and 8 bits a dimension, of many
    chunks 9.
    """

    def __init__(self, dimension: int, threads: int = 2) -> None:
        """Begin empty; a large index is searched by up to so many threads at once."""
        self._dimension = dimension
        self._threads = threads
        self._changing = threading.Lock()
        self._snapshot = _Snapshot()

    @property
    def passage_count(self) -> int:
        """How many passages it holds."""
        return self._snapshot.passage_count

    @property
    def memory_bytes(self) -> int:
        """How much memory the vectors and what belongs to them take."""
        signs = self._dimension // 8 if self._is_coarse(self._snapshot) else 0
        return self._snapshot.row_count * (self._dimension + signs + 29)

    def put(self, part_ids: Int64, spans: Int32, vectors: Float) -> None:
        """Add chunks; those of a passage that is held already replace what it held.

        `part_ids` is (n,), all chunks of a passage in one call; `spans` (n, 2); `vectors` float32,
        (n, dim). Visible at once, all or nothing. Raises IndexUnavailable for another dimension and
        for vectors that are no numbers or nothing but zeros; then nothing is added.
        """
        vectors = np.asarray(vectors, np.float32)
        self._check(vectors, 2)
        if not len(part_ids) == len(spans) == len(vectors):
            raise IndexUnavailable(
                f"{len(part_ids)} parts cannot have {len(spans)} places and {len(vectors)} vectors"
            )
        if not len(vectors):
            return
        more = quantised(part_ids, spans, vectors)
        passages = np.unique(more.passages)
        with self._changing:
            blocks, gone = _without(self._snapshot.blocks, passages)
            blocks = spread(blocks, more, self._dimension)
            count = self._snapshot.passage_count - gone + len(passages)
            self._snapshot = _Snapshot(tuple(self._tidy(blocks)), count)
            if self._is_coarse(self._snapshot):
                for block in self._snapshot.blocks:
                    _ = block.signs  # made here rather than under a search

    def remove(self, passage_ids: Collection[PassageId]) -> None:
        """Drop passages; unknown ids are ignored; visible at once."""
        passages = np.unique(np.fromiter(passage_ids, np.int64, len(passage_ids)))
        with self._changing:
            blocks, gone = _without(self._snapshot.blocks, passages)
            if gone:
                count = self._snapshot.passage_count - gone
                self._snapshot = _Snapshot(tuple(self._tidy(blocks)), count)

    def search(
        self,
        vector: Float,
        limit: int,
        allowed: Collection[PassageId] | None = None,
        excluded: Collection[PassageId] = (),
    ) -> Sequence[VectorHit]:
        """Return the parts nearest to `vector`, (dim,), by their best chunk, best first.

        Of equally near ones the newer (the higher id) comes first. `allowed` restricts the passages
        (None: all), `excluded` are left out; both are best `IdSet`s. Raises
        IndexUnavailable for another dimension, and for a vector that points nowhere.
        """
        question = self._question(vector)
        snapshot = self._snapshot
        if limit < 1 or (allowed is not None and not len(allowed)):
            return []
        allowed_set = None if allowed is None else _id_set(allowed)
        excluded_set = _id_set(excluded) if len(excluded) else None

        near = None
        if allowed_set is None and self._is_coarse(snapshot):
            near = self._near(question, snapshot)

        def best_of(numbers: range) -> _Found:
            best = _Best(limit)
            for number in numbers:
                block = snapshot.blocks[number]
                if near is None:
                    chosen = block.chosen(allowed_set, excluded_set)
                else:
                    chosen = block.answering(near.rows(number), excluded_set)
                if chosen is None or len(chosen):
                    best.take(block, chosen, block.cosines(question, chosen))
            return best.merged()

        best = _Best(limit)
        for found in self._on_threads(snapshot, best_of):
            best.add(found)
        return best.hits()

    def cosines(self, vector: Float, parts: Collection[PartId]) -> Mapping[PartId, float]:
        """Return the cosine of each part's best chunk; parts that are not held are absent.

        Raises as `search`.
        """
        question = self._question(vector)
        if not parts:
            return {}
        wanted = frozenset(parts)
        passages = np.unique(np.fromiter(map(passage_of, parts), np.int64, len(parts)))
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

    @staticmethod
    def _is_coarse(snapshot: _Snapshot) -> bool:
        """Whether a search through all looks at the signs first."""
        return snapshot.row_count > _COARSE_FROM

    def _near(self, question: Question, snapshot: _Snapshot) -> "_Near":
        """Find the rows that are worth a look."""
        distances: dict[int, Int16] = {}

        def measured(numbers: range) -> Int64:
            counts = np.zeros(self._dimension + 1, np.int64)
            for number in numbers:
                distances[number] = question.distances(snapshot.blocks[number].signs)
                counts += np.bincount(distances[number], minlength=len(counts))
            return counts

        reached = np.sum(self._on_threads(snapshot, measured), axis=0).cumsum()
        return _Near(distances, int(np.searchsorted(reached, reached[-1] * _WORTH_A_LOOK)))

    def _on_threads(self, snapshot: _Snapshot, work: Callable[[range], T]) -> list[T]:
        """Return what `work` makes of the numbers of all blocks, shared among threads."""
        threads = min(self._threads, 1 + snapshot.row_count // _ROWS_PER_THREAD)
        shares = [range(start, len(snapshot.blocks), threads) for start in range(threads)]
        if threads == 1:
            return [work(shares[0])]
        # Made for the one search: starting a thread takes 0.1 ms, and none is left to be ended.
        with ThreadPoolExecutor(threads - 1, thread_name_prefix="vectors") as pool:
            others = [pool.submit(work, share) for share in shares[1:]]
            return [work(shares[0]), *(other.result() for other in others)]

    def _tidy(self, blocks: list[Block]) -> list[Block]:
        """Move what lives in full blocks that are half empty to the end, so that they can go."""
        kept = [b for b in blocks if not b.is_full or b.living_count * 2 > b.count]
        for block in blocks:
            if block.is_full and 0 < block.living_count * 2 <= block.count:
                kept = spread(kept, block.rows_living(), self._dimension)
        return kept

    def _question(self, vector: Float) -> Question:
        self._check(vector, 1)
        return Question(vector)

    def _check(self, vectors: Float, axes: int) -> None:
        if vectors.ndim != axes or vectors.shape[-1] != self._dimension:
            raise IndexUnavailable(
                f"Vectors of shape {vectors.shape} do not belong among those of "
                f"{self._dimension} numbers",
                "Choose the embedder anew in the settings, so that its own vectors are used.",
            )
        if vectors.size and not _point_somewhere(vectors):
            raise IndexUnavailable(
                "The embedder gave a vector that points nowhere",
                "Choose another embedder in the settings.",
            )


@dataclass(frozen=True, slots=True)
class _Near:
    """Rows by how many signs differ from the question's, by block; up to `most` is worth a look."""

    distances: Mapping[int, Int16]
    most: int

    def rows(self, number: int) -> Int64:
        return np.flatnonzero(self.distances[number] <= self.most)


class _Best:
    """The nearest rows so far, one for each part and so many parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._floor = np.float32(-2)  # what is not as near as this cannot matter any more
        self._found: list[_Found] = []
        self._count = 0

    def take(self, block: Block, chosen: Int64 | None, cosines: Float) -> None:
        """Consider rows of a block, all or those `chosen`, with their cosines."""
        near = np.flatnonzero(cosines >= self._floor)
        if len(near):
            at = near if chosen is None else chosen[near]
            self.add(_Found(cosines[near], block.rows.parts[at], block.rows.spans[at]))

    def add(self, found: "_Found") -> None:
        """Consider rows."""
        self._found.append(found)
        self._count += len(found.parts)
        if self._count > max(_MERGE_AT, 4 * self._limit):
            self.merged()

    def merged(self) -> "_Found":
        """Return the best, best first."""
        best = _nearest(_joined(self._found), self._limit)
        self._found, self._count = [best], len(best.parts)
        if self._count == self._limit:
            self._floor = best.cosines[-1]
        return best

    def hits(self) -> list[VectorHit]:
        """Return the best, best first."""
        best = self.merged()
        rows = zip(best.parts.tolist(), best.cosines.tolist(), best.spans.tolist(), strict=True)
        return [VectorHit(PartId(part), cosine, *span) for part, cosine, span in rows]


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows that were found, each with its cosine: (n,), (n,), (n, 2)."""

    cosines: Float
    parts: Int64
    spans: Int32

    def at(self, chosen: "Mask | Int64") -> "_Found":
        return _Found(self.cosines[chosen], self.parts[chosen], self.spans[chosen])


_NOTHING = _Found(np.empty(0, np.float32), np.empty(0, np.int64), np.empty((0, 2), np.int32))


def _joined(found: Sequence[_Found]) -> _Found:
    if len(found) < 2:
        return found[0] if found else _NOTHING
    return _Found(
        np.concatenate([each.cosines for each in found]),
        np.concatenate([each.parts for each in found]),
        np.concatenate([each.spans for each in found]),
    )


def _nearest(found: _Found, limit: int) -> _Found:
    """The nearest row of each of the `limit` nearest parts, nearest first, then newest."""
    some = _SPARE * limit
    if len(found.parts) > some:
        # Sorting all is slow: the nearest few will do if they are of enough parts.
        floor = np.partition(found.cosines, -some)[-some]
        near = found.at(found.cosines >= floor)
        if len(np.unique(near.parts)) >= limit:
            found = near
    order = np.lexsort((found.spans[:, 0], -found.parts, -found.cosines))
    _, first = np.unique(found.parts[order], return_index=True)
    return found.at(order[np.sort(first)[:limit]])


def _id_set(ids: Collection[PassageId]) -> IdSet:
    return ids if isinstance(ids, IdSet) else IdSet(ids)


def _without(blocks: Sequence[Block], passages: Int64) -> tuple[list[Block], int]:
    """The blocks without the rows of `passages`, which is sorted, and how many of them there were."""
    kept: list[Block] = []
    gone: set[int] = set()
    for block in blocks:
        start, end = np.searchsorted(passages, [block.low, block.high + 1])
        if start < end:
            dropped = np.isin(block.passages, passages[start:end]) & block.living[: block.count]
            if dropped.any():
                gone.update(np.unique(block.passages[dropped]).tolist())
                block = block.dropped(dropped)  # noqa: PLW2901
        kept.append(block)
    return kept, len(gone)


def _point_somewhere(vectors: Float) -> bool:
    """Whether all vectors are made of numbers, and not of zeros alone."""
    largest = np.abs(vectors).max(axis=-1)
    return bool(((largest > _SMALLEST) & (largest < _LARGEST)).all())

"""The vector index, compared with a plain list of vectors, and sets of passage ids."""

import threading
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from app.domain.errors import IndexUnavailable
from app.domain.ids import PartId, PassageId, part_id, passage_id_of
from app.domain.passages import VectorHit
from app.index import vector_block, vector_index
from app.index.id_set import IdSet
from app.index.vector_block import quantize
from app.index.vector_index import ExactVectorIndex

Float = npt.NDArray[np.float32]
DIMENSION = 24
TOLERANCE = 0.005


def unit(vectors: Float) -> Float:
    scaled: Float = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def drawn(count: int, seed: int = 0, dimension: int = DIMENSION) -> Float:
    return unit(np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32))


def put(index: ExactVectorIndex, parts: list[PartId], vectors: Float) -> None:
    index.put(np.array(parts, np.int64), vectors)


def passages(hits: Collection[VectorHit]) -> list[int]:
    return [passage_id_of(hit.part_id) for hit in hits]


def ids(*numbers: int) -> IdSet:
    return IdSet(numbers)


def whole(*numbers: int) -> list[PartId]:
    """Return the first part of each passage."""
    return [part_id(number, 0) for number in numbers]


def use_small_blocks(patch: pytest.MonkeyPatch) -> None:
    """Let a block hold 8 rows, and threads share few."""
    patch.setattr(vector_block, "BLOCK_BYTES", 8 * DIMENSION)
    patch.setattr(vector_index, "_ROWS_PER_THREAD", 20)
    patch.setattr(vector_index, "_MERGE_AT", 4)


@pytest.fixture
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_small_blocks(patch)
        yield


def test_the_nearest_part_comes_first_once_with_its_best_chunk() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(50)
    put(index, whole(*range(50)), vectors)
    best = index.search(vectors[17], 3)
    assert best[0].part_id == part_id(17, 0)
    assert best[0].cosine > best[1].cosine > best[2].cosine
    index = ExactVectorIndex(DIMENSION)
    question, other = drawn(2)
    put(index, [part_id(1, 0)] * 300, unit(question + 0.01 * drawn(300, seed=3)))
    put(index, whole(2, 3), np.stack([other, -question]))
    assert passages(index.search(question, 3)) == [1, 2, 3]


@pytest.mark.usefixtures("small_blocks")
def test_the_memory_of_removed_vectors_is_released() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(400)
    put(index, whole(*range(400)), vectors)
    assert index._snapshot.row_count == 400
    index.remove(ids(*(number for number in range(400) if number % 5)))
    assert index._snapshot.row_count < 200
    assert set(passages(index.search(vectors[0], 400))) == set(range(0, 400, 5))


def test_an_empty_index_finds_nothing_and_refuses_vectors_of_another_shape() -> None:
    index = ExactVectorIndex(DIMENSION)
    put(index, [], np.empty((0, DIMENSION), np.float32))
    assert (index.search(drawn(1)[0], 5), index.passage_count) == ([], 0)
    assert index.search(drawn(1)[0], 0) == []
    assert index.cosines(drawn(1)[0], []) == {}
    with pytest.raises(IndexUnavailable, match="dimensions"):
        put(index, whole(1), drawn(1, dimension=DIMENSION + 1))
    with pytest.raises(IndexUnavailable, match="24 dimensions"):
        index.search(drawn(1, dimension=8)[0], 5)
    with pytest.raises(IndexUnavailable, match="2 parts"):
        put(index, whole(1, 2), drawn(1))
    assert index.passage_count == 0


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-40, 1e30])
def test_zero_and_invalid_vectors_are_refused(value: float) -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(2)
    put(index, whole(1, 2), vectors)
    bad = np.full(DIMENSION, value, np.float32)
    with pytest.raises(IndexUnavailable):
        index.search(bad, 5)
    with pytest.raises(IndexUnavailable):
        put(index, whole(1, 3), np.stack([vectors[0], bad]))
    assert passages(index.search(vectors[0], 5)) == [1, 2]


@pytest.mark.parametrize("dimension", [1, 3, 384, 3072])
def test_cosines_are_right_within_half_a_percent(dimension: int) -> None:
    index = ExactVectorIndex(dimension)
    vectors, question = drawn(60, 1, dimension), drawn(1, 2, dimension)[0]
    put(index, whole(*range(60)), vectors)
    found = index.cosines(question, whole(*range(60)))
    assert len(found) == 60
    exact = vectors @ question
    assert max(abs(exact[passage_id_of(part)] - found[part]) for part in found) < TOLERANCE
    put(index, whole(80, 70), vectors[:2])  # the ids of the block no longer ascend
    again = index.cosines(question, whole(59, 70, 80))
    expected = [found[part] for part in whole(59, 1, 0)]
    assert [again[part] for part in whole(59, 70, 80)] == pytest.approx(expected)


def test_98_of_the_100_nearest_are_found_among_random_vectors() -> None:
    index, vectors, questions = ExactVectorIndex(384), drawn(10_000, 5, 384), drawn(10, 6, 384)
    put(index, whole(*range(10_000)), vectors)
    shares = []
    for question in questions:
        nearest = np.argsort(-(vectors @ question))[:100]
        shares.append(len(set(nearest.tolist()) & set(passages(index.search(question, 100)))))
    assert np.mean(shares) >= 98  # .989 at 100,000; .996 with real texts


def test_a_large_index_selects_rows_by_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics with texts around them, and questions about the topics."""
    topics = drawn(200, 7, 384)
    near = topics.repeat(50, axis=0) + 0.06 * drawn(10_000, 8, 384) * np.sqrt(384)
    index, vectors, questions = ExactVectorIndex(384), unit(near), topics[:12]
    put(index, whole(*range(10_000)), vectors)
    exact = [index.search(question, 20) for question in questions]
    monkeypatch.setattr(vector_index, "_COARSE_FROM", 1000)
    excluded = ids(*(passages(exact[0])[:5]))
    index.remove(passages(exact[1])[:5])  # type: ignore[arg-type]
    put(index, whole(20_000), -topics[:1])
    by_signs = [index.search(question, 20, excluded=excluded) for question in questions]
    assert not set(excluded).intersection(passages(by_signs[0]))
    assert not set(passages(exact[1])[:5]).intersection(passages(by_signs[1]))
    found = [len(set(exact[at]) & set(by_signs[at])) / 20 for at in range(2, len(questions))]
    assert np.mean(found) >= 0.99


@dataclass
class Plain:
    """The expected index: every vector is compared."""

    chunks: dict[PassageId, list[tuple[PartId, Float]]] = field(default_factory=dict)

    def best(
        self,
        question: Float,
        allowed: Collection[PassageId] | None,
        excluded: Collection[PassageId],
    ) -> dict[PartId, float]:
        best: dict[PartId, float] = {}
        for passage, chunks in self.chunks.items():
            if passage not in excluded and (allowed is None or passage in allowed):
                for part, codes in chunks:
                    best[part] = max(float(codes @ question), best.get(part, -1.0))
        return best


NUMBERS = st.integers(0, 30)
PASSAGE_IDS = st.frozensets(NUMBERS.map(PassageId), max_size=20)


class AsAPlainList(RuleBasedStateMachine):
    """Puts, removals and searches in any order, compared with a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        use_small_blocks(self._patch)
        self.index = ExactVectorIndex(DIMENSION)
        self.plain = Plain()

    def teardown(self) -> None:
        self._patch.undo()

    @rule(
        chunks=st.lists(st.tuples(NUMBERS, st.integers(0, 2)), max_size=25), seed=st.integers(0, 5)
    )
    def put(self, chunks: list[tuple[int, int]], seed: int) -> None:
        parts = [part_id(passage, number) for passage, number in sorted(chunks)]
        vectors = drawn(len(parts), seed)  # few seeds: some vectors are the same
        for part in parts:
            self.plain.chunks[passage_id_of(part)] = []
        for part, vector in zip(parts, kept(vectors), strict=True):
            self.plain.chunks[passage_id_of(part)].append((part, vector))
        put(self.index, parts, vectors)

    @rule(gone=PASSAGE_IDS)
    def remove(self, gone: frozenset[PassageId]) -> None:
        self.index.remove(gone)
        for passage in gone:
            self.plain.chunks.pop(passage, None)

    @rule(
        seed=st.integers(0, 8),
        limit=st.integers(1, 40),
        allowed=st.none() | PASSAGE_IDS,
        excluded=PASSAGE_IDS,
    )
    def search(
        self,
        seed: int,
        limit: int,
        allowed: frozenset[PassageId] | None,
        excluded: frozenset[PassageId],
    ) -> None:
        question = drawn(1, seed)[0]
        expected = self.plain.best(question, allowed, excluded)
        found = None if allowed is None else IdSet(allowed)
        hits = self.index.search(question, limit, found, IdSet(excluded))
        assert len(hits) == min(limit, len(expected))
        for hit in hits:
            assert hit.cosine == pytest.approx(expected.pop(hit.part_id), abs=1e-3)
        assert not expected or not hits or max(expected.values()) <= hits[-1].cosine + 1e-3
        assert hits == sorted(hits, key=lambda hit: (-hit.cosine, -hit.part_id))

    @invariant()
    def all_cosines_are_known(self) -> None:
        assert self.index.passage_count == len(self.plain.chunks)
        everything = self.plain.best(drawn(1)[0], None, ())
        found = self.index.cosines(drawn(1)[0], list(everything))
        assert found == pytest.approx(everything, abs=1e-3)


def kept(vectors: Float) -> Float:
    """Return what the index keeps of unit vectors."""
    if not len(vectors):
        return vectors
    rows = quantize(np.zeros(len(vectors), np.int64), vectors)
    exact: Float = rows.codes * rows.scales[:, None]
    return exact


def test_it_finds_what_a_plain_list_finds() -> None:
    run_state_machine_as_test(
        AsAPlainList, settings=settings(settings(), max_examples=25, stateful_step_count=25)
    )


def test_blocks_in_use_do_not_change() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(6)
    put(index, whole(1, 2, 3), vectors[:3])
    (seen,) = index._snapshot.blocks
    put(index, whole(2, 4), vectors[3:5])
    index.remove(ids(1))
    assert seen.rows_living().passages.tolist() == [1, 2, 3]
    assert seen.passages.tolist() == [1, 2, 3]
    assert passages(index.search(vectors[0], 9, ids(1, 2, 3))) in ([2, 3], [3, 2])


@pytest.mark.usefixtures("small_blocks")
def test_searches_see_whole_passages_while_two_threads_write() -> None:
    """Every passage always has two chunks of one kind, replaced, removed and put back at once."""
    index = ExactVectorIndex(DIMENSION)
    kinds = unit(np.abs(drawn(2)))  # both near the question, by different amounts
    question = unit(kinds.sum(axis=0))
    pairs = np.repeat(kinds, 2, axis=0)
    for number in range(40):
        put(index, [part_id(number, 0), part_id(number, 1)], pairs[:2])
    stop, wrong = threading.Event(), list[object]()

    def change(seed: int) -> None:
        source = np.random.default_rng(seed)
        for _ in range(300):
            number = int(source.integers(0, 20)) * 2 + seed
            kind = int(source.integers(0, 2)) * 2
            put(index, [part_id(number, 0), part_id(number, 1)], pairs[kind : kind + 2])
            if source.integers(0, 4) == 0:
                index.remove(ids(number))

    def search() -> None:
        while not stop.is_set():
            hits = [(passage_id_of(hit.part_id), hit.cosine) for hit in index.search(question, 200)]
            wrong.extend(each for each, count in Counter(hits).items() if count != 2)

    writers = [threading.Thread(target=change, args=(seed,)) for seed in range(2)]
    readers = [threading.Thread(target=search) for _ in range(2)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert not wrong
    assert index.passage_count == len(set(passages(index.search(question, 200))))


# -- sets of passage ids

NUMBER_SETS = st.sets(st.integers(0, 60) | st.integers(0, 2**62), max_size=20)


@given(NUMBER_SETS, NUMBER_SETS, st.lists(st.integers(0, 2**62), max_size=30))
def test_id_sets_are_sets(one: set[int], other: set[int], asked: list[int]) -> None:
    left, right = IdSet(one), IdSet(np.array(sorted(other) * 2, np.int64))
    asked += list(one)[:5]
    expected = [each in one for each in asked]
    assert left.holds(np.array(asked, np.int64)).tolist() == expected
    assert [each in left for each in asked] == expected
    assert (list(left), len(left)) == (sorted(one), len(one))
    assert list(left | right) == sorted(one | other)
    assert list(left & right) == sorted(one & other)
    assert list(left.without(right)) == sorted(one - other)
    assert object() not in left
    assert all(np.int64(each) in left for each in one)

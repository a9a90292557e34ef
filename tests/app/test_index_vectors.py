"""The vector index answers like a plain list of vectors would, whatever was put and removed."""

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from app.domain.errors import IndexUnavailable
from app.domain.ids import PartId, PassageId, number_of, part_id, passage_of
from app.domain.passages import VectorHit
from app.domain.ports import VectorIndex
from app.index import vector_block, vector_index
from app.index.vector_block import quantised
from app.index.vector_index import ExactVectorIndex

Float = npt.NDArray[np.float32]
DIMENSION = 24
TOLERANCE = 0.005


def unit(vectors: Float) -> Float:
    scaled: Float = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def drawn(count: int, seed: int = 0, dimension: int = DIMENSION) -> Float:
    """Return unit vectors, (count, dimension)."""
    source = np.random.default_rng(seed)
    return unit(source.standard_normal((count, dimension)).astype(np.float32))


def put(index: VectorIndex, parts: list[PartId], vectors: Float) -> None:
    """Put chunks whose start is their place in the call."""
    starts = np.arange(len(parts), dtype=np.int32)
    index.put(np.array(parts, np.int64), np.stack([starts, starts + 1], axis=1), vectors)


def passages(hits: Collection[VectorHit]) -> list[int]:
    return [passage_of(hit.part_id) for hit in hits]


def ids(*numbers: int) -> frozenset[PassageId]:
    return frozenset(PassageId(number) for number in numbers)


def whole(*numbers: int) -> list[PartId]:
    """Return the first part of each passage."""
    return [part_id(number, 0) for number in numbers]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a block hold 8 rows, and threads share what is small."""
    with monkeypatch.context() as patch:
        patch.setattr(vector_block, "BLOCK_BYTES", 8 * DIMENSION)
        patch.setattr(vector_index, "_ROWS_PER_THREAD", 20)
        patch.setattr(vector_index, "_MERGE_AT", 4)
        yield


def test_the_nearest_comes_first_with_the_place_of_its_chunk() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(50)
    put(index, whole(*range(50)), vectors)
    best = index.search(vectors[17], 3)
    assert (best[0].part_id, best[0].start, best[0].end) == (part_id(17, 0), 17, 18)
    assert best[0].cosine > best[1].cosine > best[2].cosine


def test_a_part_ranks_by_its_best_chunk_and_appears_once() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(6)
    put(index, [part_id(1, 0)] * 3 + [part_id(1, 1)] * 3, vectors)
    hits = index.search(vectors[1], 10)
    assert [number_of(hit.part_id) for hit in hits] == [0, 1]
    assert (hits[0].start, hits[0].end) == (1, 2)


def test_parts_with_many_near_chunks_do_not_crowd_out_others() -> None:
    index = ExactVectorIndex(DIMENSION)
    question, other = drawn(2)
    near = unit(question + 0.01 * drawn(300, seed=3))
    put(index, [part_id(1, 0)] * 300, near)
    put(index, whole(2, 3), np.stack([other, -question]))
    assert passages(index.search(question, 3)) == [1, 2, 3]


@pytest.mark.usefixtures("small_blocks")
def test_of_equally_near_parts_the_newer_comes_first() -> None:
    index, one = ExactVectorIndex(DIMENSION), drawn(1)
    for number in (5, 400, 2, 399, *range(6, 399)):
        put(index, whole(number), one)
    assert passages(index.search(one[0], 4)) == [400, 399, 398, 397]


def test_putting_a_passage_again_replaces_all_its_chunks() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(4)
    put(index, [part_id(1, 0), part_id(1, 1), part_id(2, 0)], vectors[:3])
    put(index, [part_id(1, 0)], vectors[3:])
    assert index.passage_count == 2
    assert set(index.cosines(vectors[0], [part_id(1, 0), part_id(1, 1)])) == {part_id(1, 0)}


def test_what_is_removed_is_not_found_and_the_unknown_is_ignored() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(10)
    put(index, whole(*range(10)), vectors)
    index.remove(ids(3, 4, 99))
    assert index.passage_count == 8
    assert not {3, 4} & set(passages(index.search(vectors[3], 10)))


@pytest.mark.usefixtures("small_blocks")
def test_room_of_what_was_removed_is_given_back() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(400)
    put(index, whole(*range(400)), vectors)
    full = index.memory_bytes
    index.remove(ids(*(number for number in range(400) if number % 5)))
    assert index.memory_bytes < full / 2
    assert set(passages(index.search(vectors[0], 400))) == set(range(0, 400, 5))


def test_filters_choose_passages_before_the_limit() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(100)
    put(index, whole(*range(100)), vectors)
    assert passages(index.search(vectors[1], 1, allowed=ids(7))) == [7]
    assert sorted(passages(index.search(vectors[1], 9, ids(7, 8, 9, 500), ids(8)))) == [7, 9]
    assert index.search(vectors[1], 9, allowed=ids()) == []
    assert 1 not in passages(index.search(vectors[1], 100, excluded={PassageId(1)}))


def test_cosines_of_given_parts() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(3)
    put(index, [part_id(1, 0), part_id(1, 0), part_id(1, 7)], vectors)
    found = index.cosines(vectors[0], [part_id(1, 0), part_id(1, 1), part_id(9, 0)])
    assert found == {part_id(1, 0): pytest.approx(1, abs=1e-3)}
    assert index.cosines(vectors[0], []) == {}


def test_an_empty_index_answers_with_nothing() -> None:
    index = ExactVectorIndex(DIMENSION)
    put(index, [], np.empty((0, DIMENSION), np.float32))
    assert (index.search(drawn(1)[0], 5), index.passage_count) == ([], 0)
    assert index.search(drawn(1)[0], 0) == []


def test_vectors_of_another_dimension_are_refused_and_nothing_is_mixed() -> None:
    index = ExactVectorIndex(DIMENSION)
    with pytest.raises(IndexUnavailable, match="numbers"):
        put(index, whole(1), drawn(1, dimension=DIMENSION + 1))
    with pytest.raises(IndexUnavailable, match="24 numbers"):
        index.search(drawn(1, dimension=8)[0], 5)
    with pytest.raises(IndexUnavailable, match="2 parts"):
        put(index, whole(1, 2), drawn(1))
    assert index.passage_count == 0


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-40, 1e30])
def test_vectors_that_point_nowhere_are_refused(value: float) -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(2)
    put(index, whole(1, 2), vectors)
    bad = np.full(DIMENSION, value, np.float32)
    with pytest.raises(IndexUnavailable, match="points nowhere"):
        index.search(bad, 5)
    with pytest.raises(IndexUnavailable, match="points nowhere"):
        put(index, whole(1, 3), np.stack([vectors[0], bad]))
    assert passages(index.search(vectors[0], 5)) == [1, 2]


def test_a_question_needs_no_unit_length() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(1)
    put(index, whole(1), vectors)
    assert index.search(vectors[0] * 37, 1)[0].cosine == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("dimension", [1, 3, 384, 1000, 3072])
def test_cosines_are_right_within_half_a_percent_in_any_dimension(dimension: int) -> None:
    index = ExactVectorIndex(dimension)
    vectors, question = drawn(60, 1, dimension), drawn(1, 2, dimension)[0]
    put(index, whole(*range(60)), vectors)
    found = index.cosines(question, whole(*range(60)))
    exact = vectors @ question
    assert max(abs(exact[passage_of(part)] - found[part]) for part in found) < TOLERANCE


def test_equal_components_do_not_overflow() -> None:
    index, flat = ExactVectorIndex(8192), unit(np.ones((1, 8192), np.float32))
    put(index, whole(1), flat)
    assert index.search(flat[0], 1)[0].cosine == pytest.approx(1, abs=1e-6)


def test_ninety_eight_of_the_hundred_nearest_are_found_even_among_vectors_without_order() -> None:
    index, vectors, questions = ExactVectorIndex(384), drawn(20_000, 5, 384), drawn(20, 6, 384)
    put(index, whole(*range(20_000)), vectors)
    shares = []
    for question in questions:
        nearest = np.argsort(-(vectors @ question))[:100]
        shares.append(len(set(nearest.tolist()) & set(passages(index.search(question, 100)))))
    assert np.mean(shares) >= 98  # .989 at 100,000; .996 where vectors mean something


def test_among_many_the_signs_say_what_is_worth_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics, and questions about them: what stands out in a space that means something."""
    topics = drawn(200, 7, 384)
    near = topics.repeat(100, axis=0) + 0.06 * drawn(20_000, 8, 384) * np.sqrt(384)
    index, vectors, questions = ExactVectorIndex(384), unit(near), topics[:20]
    put(index, whole(*range(20_000)), vectors)
    looked_at = [index.search(question, 20) for question in questions]
    monkeypatch.setattr(vector_index, "_COARSE_FROM", 1000)
    left_out = ids(*(passages(looked_at[0])[:5]))
    index.remove(passages(looked_at[1])[:5])  # type: ignore[arg-type]
    by_signs = [index.search(question, 20, excluded=left_out) for question in questions]
    assert not left_out.intersection(passages(by_signs[0]))
    assert not set(passages(looked_at[1])[:5]).intersection(passages(by_signs[1]))
    found = [
        len(set(looked_at[at]).intersection(by_signs[at])) / 20 for at in range(2, len(questions))
    ]
    assert np.mean(found) >= 0.99


@dataclass
class Plain:
    """What the index should say, by looking at every exact vector."""

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
        self._patch.setattr(vector_block, "BLOCK_BYTES", 8 * DIMENSION)
        self._patch.setattr(vector_index, "_ROWS_PER_THREAD", 20)
        self._patch.setattr(vector_index, "_MERGE_AT", 4)
        self.index = ExactVectorIndex(DIMENSION)
        self.plain = Plain()

    def teardown(self) -> None:
        self._patch.undo()

    @rule(
        chunks=st.lists(st.tuples(NUMBERS, st.integers(0, 2)), max_size=25),
        seed=st.integers(0, 5),
    )
    def put(self, chunks: list[tuple[int, int]], seed: int) -> None:
        parts = [part_id(passage, number) for passage, number in sorted(chunks)]
        vectors = drawn(len(parts), seed)  # few seeds: some vectors are the same
        for part in parts:
            self.plain.chunks[passage_of(part)] = []
        for part, vector in zip(parts, kept(vectors), strict=True):
            self.plain.chunks[passage_of(part)].append((part, vector))
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
        hits = self.index.search(question, limit, allowed, excluded)
        assert len(hits) == min(limit, len(expected))
        for hit in hits:
            assert hit.cosine == pytest.approx(expected.pop(hit.part_id), abs=1e-3)
        assert not expected or not hits or max(expected.values()) <= hits[-1].cosine + 1e-3
        assert hits == sorted(hits, key=lambda hit: (-hit.cosine, -hit.part_id))

    @invariant()
    def it_holds_what_it_should(self) -> None:
        assert self.index.passage_count == len(self.plain.chunks)
        everything = self.plain.best(drawn(1)[0], None, ())
        found = self.index.cosines(drawn(1)[0], list(everything))
        assert found == pytest.approx(everything, abs=1e-3)


def kept(vectors: Float) -> Float:
    """Return what the index keeps of unit vectors."""
    if not len(vectors):
        return vectors
    rows = quantised(
        np.zeros(len(vectors), np.int64), np.zeros((len(vectors), 2), np.int32), vectors
    )
    exact: Float = rows.codes * rows.scales[:, None]
    return exact


def test_it_answers_as_a_plain_list_would() -> None:
    run_state_machine_as_test(AsAPlainList)


def test_a_search_under_way_sees_nothing_of_later_changes() -> None:
    index, vectors = ExactVectorIndex(DIMENSION), drawn(6)
    put(index, whole(1, 2, 3), vectors[:3])
    (seen,) = index._snapshot.blocks
    put(index, whole(2, 4), vectors[3:5])
    index.remove(ids(1))
    assert seen.rows_living().passages.tolist() == [1, 2, 3]
    assert seen.passages.tolist() == [1, 2, 3]
    assert passages(index.search(vectors[0], 9, ids(1, 2, 3))) in ([2, 3], [3, 2])


@pytest.mark.usefixtures("small_blocks")
def test_searches_beside_changes_see_whole_passages() -> None:
    """Every passage always has two chunks of one kind; a search must never see one without the other.

    Passages are replaced, removed and put back by two threads while three search.
    """
    index = ExactVectorIndex(DIMENSION)
    kinds = unit(np.abs(drawn(2)))  # both near the question, by different amounts
    question = unit(kinds.sum(axis=0))
    pairs = np.repeat(kinds, 2, axis=0)
    for number in range(40):
        put(index, [part_id(number, 0), part_id(number, 1)], pairs[:2])
    stop, wrong = threading.Event(), list[str]()

    def change(seed: int) -> None:
        source = np.random.default_rng(seed)
        for _ in range(600):
            number = int(source.integers(0, 20)) * 2 + seed
            kind = int(source.integers(0, 2)) * 2
            put(index, [part_id(number, 0), part_id(number, 1)], pairs[kind : kind + 2])
            if source.integers(0, 4) == 0:
                index.remove(ids(number))

    def look() -> None:
        while not stop.is_set():
            cosines: dict[int, set[float]] = {}
            counts: dict[int, int] = {}
            for hit in index.search(question, 200):
                cosines.setdefault(passage_of(hit.part_id), set()).add(hit.cosine)
                counts[passage_of(hit.part_id)] = counts.get(passage_of(hit.part_id), 0) + 1
            if any(count != 2 for count in counts.values()):
                wrong.append(f"half a passage: {counts}")
            if any(len(each) != 1 for each in cosines.values()):
                wrong.append(f"two versions of a passage: {cosines}")

    writers = [threading.Thread(target=change, args=(seed,)) for seed in range(2)]
    readers = [threading.Thread(target=look) for _ in range(3)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert not wrong
    assert index.passage_count == len(set(passages(index.search(question, 200))))

"""The vector indexes follow the database: loading, what is written, what leaves, damage."""

import threading
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.domain.changes import PassagesPut
from app.domain.errors import StorageError
from app.domain.ids import PassageId, part_id, passage_of
from app.domain.passages import Space
from app.domain.ports import VectorIndex
from app.memory import following, vector_sync
from app.memory.vector_sync import VectorSync
from app.storage.forget import forget
from app.storage.store import Store
from app.storage.vector_loading import LoadedRows
from app.storage.vector_writing import EmbeddedPassage
from app.storage.vectors import Vectors
from tests.fakes.stored import opened, told

WAIT_S = 20.0
SPACE = Space("tiny", 8, 256)
OTHER = Space("other", 4, 256)


class Spied(Vectors):
    """Real vectors that can be told to fail, to wait, or to give damaged rows."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.loads = 0
        self.failures = 0
        self.damaged: set[PassageId] = set()
        self.before_rows: Callable[[], None] = lambda: None

    def load(self, space: Space, after: datetime | None = None) -> Iterator[LoadedRows]:
        self.loads += 1
        for rows in super().load(space, after):
            self.before_rows()
            if self.failures:
                self.failures -= 1
                raise StorageError("The disk is tired")
            for row, part in enumerate(rows.part_ids.tolist()):
                if passage_of(part) in self.damaged:
                    rows.vectors[row] = np.nan
            yield rows


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


@pytest.fixture
def vectors(store: Store) -> Spied:
    spied = Spied(store)
    spied.ensure(SPACE, "a tiny model")
    return spied


@pytest.fixture
def sync(store: Store, vectors: Spied) -> Iterator[VectorSync]:
    made = VectorSync(store, vectors)
    made.use([SPACE])
    yield made
    made.stop()


def vector_of(passage: int, space: Space = SPACE) -> npt.NDArray[np.float32]:
    """Return the unit vector that a passage has in these tests."""
    drawn = np.random.default_rng(passage).standard_normal(space.dimension).astype(np.float32)
    unit: npt.NDArray[np.float32] = drawn / np.linalg.norm(drawn)
    return unit


def passages(store: Store) -> list[PassageId]:
    rows = store.read(lambda c: c.execute("SELECT id FROM passage ORDER BY id").fetchall())
    return [PassageId(each) for (each,) in rows]


def embed(store: Store, vectors: Vectors, ids: Collection[PassageId], space: Space = SPACE) -> None:
    """Store a vector for each of the passages."""
    known = vectors.before_embedding(space, ids)
    vectors.put(
        space,
        [
            EmbeddedPassage(
                each, known[each].content_hash, [part_id(each, 0)], [(0, 3)],
                vector_of(each, space)[None],
            )
            for each in ids
        ],
    )  # fmt: skip


def held(sync: VectorSync, space: Space = SPACE) -> list[int] | None:
    """Return the passages that search finds by meaning, None while it cannot be asked."""
    index = sync.index_for(space)
    if index is None:
        return None
    return sorted(passage_of(hit.part_id) for hit in index.search(vector_of(0, space), 1000))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    pause = threading.Event()
    for _ in range(int(WAIT_S / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen")


def test_what_is_stored_is_found_after_catching_up(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    embed(store, vectors, passages(store))
    assert (held(sync), sync.is_loaded(SPACE), sync.covered_share(SPACE)) == (None, False, 0.0)
    sync.catch_up()
    assert held(sync) == passages(store)
    assert (sync.is_loaded(SPACE), sync.covered_share(SPACE)) == (True, 1.0)
    index = sync.index_for(SPACE)
    assert index is not None
    best = index.search(vector_of(passages(store)[0]), 1)[0]
    assert (passage_of(best.part_id), best.start, best.end) == (passages(store)[0], 0, 3)


def test_only_what_is_new_is_read_again(
    store: Store, vectors: Spied, sync: VectorSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first])
    sync.catch_up()
    index = sync.index_for(SPACE)
    read: list[int] = []
    real = vector_sync._put

    def put(target: VectorIndex, rows: LoadedRows) -> None:
        read.extend(passage_of(part) for part in rows.part_ids.tolist())
        real(target, rows)

    monkeypatch.setattr(vector_sync, "_put", put)
    embed(store, vectors, [second])
    sync.catch_up()
    assert read == [second]
    assert sync.index_for(SPACE) is index
    assert held(sync) == [first, second]


def test_passages_that_leave_are_dropped(store: Store, vectors: Spied, sync: VectorSync) -> None:
    talk = told(store, "one", "two", "three")
    other = told(store, "four")
    embed(store, vectors, passages(store))
    sync.catch_up()
    gone = passages(store)[0]
    store.save(PassagesPut(replaced=(gone,)))
    sync.catch_up()
    assert held(sync) == [each for each in passages(store) if each != gone]
    forget(store, [talk.conversation.id])
    sync.catch_up()
    assert held(sync) == passages(store)
    assert len(passages(store)) == len(other.exchanges)


def test_what_leaves_while_it_is_read_is_not_found(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first, second])

    def leave() -> None:
        store.save(PassagesPut(replaced=(first,)))

    vectors.before_rows = leave
    sync.catch_up()
    assert held(sync) == [second]


def test_a_space_thrown_away_and_begun_anew_is_loaded_anew(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first, second])
    sync.catch_up()
    vectors.drop(SPACE.name)
    sync.catch_up()
    assert held(sync) == []
    vectors.ensure(SPACE, "the same model")
    embed(store, vectors, [second])
    sync.catch_up()
    assert held(sync) == [second]


def test_spaces_are_held_side_by_side_and_let_go(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    vectors.ensure(OTHER, "another model")
    embed(store, vectors, passages(store))
    embed(store, vectors, passages(store)[:1], OTHER)
    sync.use([SPACE, OTHER])
    sync.catch_up()
    assert (held(sync), held(sync, OTHER)) == (passages(store), passages(store)[:1])
    sync.use([OTHER])
    assert held(sync, OTHER) == passages(store)[:1]
    assert not sync.is_loaded(SPACE)


def test_asking_for_a_space_makes_it_be_loaded(store: Store, vectors: Spied) -> None:
    told(store, "one")
    embed(store, vectors, passages(store))
    sync = VectorSync(store, vectors)
    assert sync.index_for(SPACE) is None
    sync.catch_up()
    assert held(sync) == passages(store)


def test_a_space_of_the_same_name_and_another_dimension_is_never_mixed(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one")
    embed(store, vectors, passages(store))
    sync.catch_up()
    wider = Space(SPACE.name, 16, 256)
    assert sync.index_for(wider) is None
    sync.catch_up()
    assert held(sync, wider) == []
    assert sync.index_for(SPACE) is None


def test_damaged_vectors_are_left_out_and_said_so(
    store: Store, vectors: Spied, sync: VectorSync, caplog: pytest.LogCaptureFixture
) -> None:
    told(store, "one", "two", "three")
    embed(store, vectors, passages(store))
    vectors.damaged = {passages(store)[1]}
    sync.catch_up()
    assert held(sync) == [passages(store)[0], passages(store)[2]]
    assert sync.covered_share(SPACE) == pytest.approx(2 / 3)
    assert "1 vectors are damaged" in caplog.text


def test_when_loading_fails_search_goes_on_without_and_it_is_tried_again(
    store: Store, vectors: Spied, sync: VectorSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_RETRY_S", 0.01)
    told(store, "one")
    embed(store, vectors, passages(store))
    vectors.failures = 2
    sync.start()
    wait_until(lambda: sync.is_loaded(SPACE))
    assert held(sync) == passages(store)
    assert vectors.loads == 3


def test_while_the_database_cannot_be_read_what_is_loaded_answers(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first])
    sync.catch_up()
    embed(store, vectors, [second])
    vectors.failures = 1
    with pytest.raises(StorageError):
        sync.catch_up()
    assert held(sync) == [first]
    sync.catch_up()
    assert held(sync) == [first, second]


def test_an_index_that_stumbles_is_loaded_anew(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first])
    sync.catch_up()
    stumbled = sync.index_for(SPACE)
    embed(store, vectors, [second])

    def stumble() -> None:
        raise ZeroDivisionError

    vectors.before_rows = stumble
    with pytest.raises(ZeroDivisionError):
        sync.catch_up()
    assert held(sync) is None
    vectors.before_rows = lambda: None
    sync.catch_up()
    assert held(sync) == [first, second]
    assert sync.index_for(SPACE) is not stumbled


def test_a_bug_in_loading_does_not_end_the_thread(
    store: Store, vectors: Spied, sync: VectorSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_RETRY_S", 0.01)
    told(store, "one")
    embed(store, vectors, passages(store))
    faults = iter([True])

    def stumble() -> None:
        if next(faults, False):
            raise ZeroDivisionError

    vectors.before_rows = stumble
    sync.start()
    wait_until(lambda: held(sync) == passages(store))


def test_the_thread_follows_what_is_written_and_what_leaves(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    sync.start()
    sync.start()
    told(store, "one", "two")
    embed(store, vectors, passages(store))
    wait_until(lambda: held(sync) == passages(store))
    gone, stays = passages(store)
    store.save(PassagesPut(replaced=(gone,)))
    wait_until(lambda: held(sync) == [stays])
    sync.stop()
    sync.stop()


def test_stopping_does_not_wait_for_the_whole_load(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one")
    embed(store, vectors, passages(store))
    reading, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reading.set()
        assert go_on.wait(WAIT_S)
        sync._follower._stopping.set()

    vectors.before_rows = wait
    sync.start()
    assert reading.wait(WAIT_S)
    assert held(sync) is None
    go_on.set()
    sync.stop()
    assert not sync.is_loaded(SPACE)


def test_a_load_that_was_cancelled_goes_on_later(
    store: Store, vectors: Spied, sync: VectorSync
) -> None:
    told(store, "one", "two")
    embed(store, vectors, passages(store))
    sync.catch_up(is_cancelled=lambda: True)
    assert not sync.is_loaded(SPACE)
    sync.catch_up()
    assert held(sync) == passages(store)

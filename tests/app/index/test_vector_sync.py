"""The vector indexes follow the database: loading, changes, removals and damage."""

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pytest

from app.domain.change_set import ChangeSet
from app.domain.changes import PassagesPut
from app.domain.errors import StorageError
from app.domain.ids import PARTS_PER_PASSAGE, PassageId, part_id, passage_id_of
from app.domain.passages import Space
from app.index.vector_sync import VectorIndexSync
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.passages.vector_rows import EmbeddedPassage, LoadedRows
from app.storage.tables.passages.vectors import Vectors
from tests.fakes.jobs import until
from tests.fakes.stored import add_conversation

WAIT_S = 60.0
SPACE = Space("tiny", 8, 256)
OTHER = Space("other", 4, 256)


class Spied(Vectors):
    """Real vectors that wait or return damaged rows on request, and note what was read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read: list[PassageId] = []
        self.damaged: set[PassageId] = set()
        self.before_rows: Callable[[], object] = lambda: None

    def load(self, space: Space, after: datetime | None = None) -> Iterator[LoadedRows]:
        for rows in super().load(space, after):
            self.before_rows()
            self.read += [passage_id_of(part) for part in rows.part_ids.tolist()]
            is_bad = np.isin(rows.part_ids // PARTS_PER_PASSAGE, list(self.damaged))
            yield replace(rows, vectors=np.where(is_bad[:, None], np.float16(np.nan), rows.vectors))


@pytest.fixture
def vectors(store: Store) -> Spied:
    spied = Spied(store)
    spied.ensure(SPACE, "a tiny model")
    return spied


@pytest.fixture
def sync(store: Store, vectors: Spied) -> Iterator[VectorIndexSync]:
    made = VectorIndexSync(store, vectors)
    made.use([SPACE])
    yield made
    made.stop()


def vector_of(passage: int, space: Space = SPACE) -> npt.NDArray[np.float32]:
    drawn = np.random.default_rng(passage).standard_normal(space.dimension).astype(np.float32)
    unit: npt.NDArray[np.float32] = drawn / np.linalg.norm(drawn)
    return unit


def passages(store: Store) -> list[PassageId]:
    rows = store.read(lambda c: c.execute("SELECT id FROM passage ORDER BY id").fetchall())
    return [PassageId(each) for (each,) in rows]


def embed(store: Store, vectors: Vectors, ids: Collection[PassageId], space: Space = SPACE) -> None:
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


def held(sync: VectorIndexSync, space: Space = SPACE) -> list[int] | None:
    """Return the passages that the index of a space finds, None while it is not loaded."""
    index = sync.index_for(space)
    if index is None:
        return None
    return sorted(passage_id_of(hit.part_id) for hit in index.search(vector_of(0, space), 1000))


def test_new_vectors_are_found_after_catching_up_and_read_once(
    store: Store, vectors: Spied, sync: VectorIndexSync
) -> None:
    add_conversation(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first])
    assert held(sync) is None
    sync.catch_up()
    index = sync.index_for(SPACE)
    assert passage_id_of(index.search(vector_of(first), 1)[0].part_id) == first
    embed(store, vectors, [second])
    sync.catch_up()
    assert vectors.read == [first, second]
    assert sync.index_for(SPACE) is index
    assert held(sync) == [first, second]


def test_replaced_and_forgotten_passages_are_dropped_also_while_loading(
    store: Store, vectors: Spied, sync: VectorIndexSync
) -> None:
    talk, other = add_conversation(store, "one", "two", "three"), add_conversation(store, "four")
    gone, replaced, *_ = passages(store)
    embed(store, vectors, passages(store))
    vectors.before_rows = lambda: store.save(PassagesPut(replaced=(gone,)))
    sync.catch_up()
    vectors.before_rows = lambda: None
    assert held(sync) == passages(store)
    store.save(PassagesPut(replaced=(replaced,)))
    sync.catch_up()
    assert held(sync) == passages(store)
    forget(store, [talk.conversation.id])
    sync.catch_up()
    assert held(sync) == passages(store)
    assert len(passages(store)) == len(other.exchanges)


def test_a_deleted_space_that_is_begun_again_is_loaded_again(
    store: Store, vectors: Spied, sync: VectorIndexSync
) -> None:
    add_conversation(store, "one", "two")
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
    wider = Space(SPACE.name, 16, 256)
    assert sync.index_for(wider) is None, "vectors of different dimensions are never mixed"
    sync.catch_up()
    assert held(sync, wider) == []
    assert sync.index_for(SPACE) is None


def test_only_used_spaces_are_kept(store: Store, vectors: Spied, sync: VectorIndexSync) -> None:
    add_conversation(store, "one", "two")
    first, second = passages(store)
    vectors.ensure(OTHER, "another model")
    embed(store, vectors, [first, second])
    embed(store, vectors, [first], OTHER)
    sync.use([SPACE, OTHER])
    sync.catch_up()
    assert (held(sync), held(sync, OTHER)) == ([first, second], [first])
    sync.use([OTHER])
    assert (held(sync), held(sync, OTHER)) == (None, [first])


def test_passages_with_damaged_vectors_are_left_out(
    store: Store, vectors: Spied, sync: VectorIndexSync, caplog: pytest.LogCaptureFixture
) -> None:
    add_conversation(store, "one", "two", "three")
    embed(store, vectors, passages(store))
    vectors.damaged = {passages(store)[1]}
    sync.catch_up()
    assert held(sync) == [passages(store)[0], passages(store)[2]]
    assert "1 vectors are damaged" in caplog.text


@pytest.mark.parametrize("error", [StorageError("The disk failed"), ZeroDivisionError()])
def test_after_an_error_the_rest_is_loaded_later(
    store: Store, vectors: Spied, sync: VectorIndexSync, error: Exception
) -> None:
    """The database may be unreadable for a while; an index with a bug is loaded again."""
    add_conversation(store, "one", "two")
    first, second = passages(store)
    embed(store, vectors, [first])
    sync.catch_up()
    index = sync.index_for(SPACE)
    embed(store, vectors, [second])

    def fail() -> None:
        raise error

    vectors.before_rows = fail
    with pytest.raises(type(error)):
        sync.catch_up()
    is_kept = isinstance(error, StorageError)
    assert held(sync) == ([first] if is_kept else None)
    vectors.before_rows = lambda: None
    sync.catch_up()
    assert held(sync) == [first, second]
    assert (sync.index_for(SPACE) is index) is is_kept


def test_the_thread_follows_vectors(store: Store, vectors: Spied, sync: VectorIndexSync) -> None:
    sync.start()
    add_conversation(store, "one", "two")
    embed(store, vectors, passages(store))
    until(lambda: held(sync) == passages(store))
    gone, stays = passages(store)
    store.save(PassagesPut(replaced=(gone,)))
    until(lambda: held(sync) == [stays])


def test_a_new_turn_does_not_make_the_index_read_what_has_no_vector_yet(
    store: Store, vectors: Spied, sync: VectorIndexSync
) -> None:
    changes: list[ChangeSet] = []
    store.subscribe(changes.append)
    add_conversation(store, "one", "two")
    assert changes
    assert not any(map(sync._is_relevant, changes))
    first, second = passages(store)
    changes.clear()
    embed(store, vectors, [first])
    assert any(map(sync._is_relevant, changes))
    changes.clear()
    store.save(PassagesPut((), replaced=(second,)))
    assert any(map(sync._is_relevant, changes))
    changes.clear()
    stored = store.read(lambda c: c.execute("SELECT max(conversation_id) FROM passage").fetchone())
    assert stored is not None
    forget(store, [stored[0]])
    assert any(map(sync._is_relevant, changes))


def test_no_interrupted_load_is_used(store: Store, vectors: Spied, sync: VectorIndexSync) -> None:
    add_conversation(store, "one", "two")
    embed(store, vectors, passages(store))
    sync.catch_up(is_cancelled=lambda: True)
    assert held(sync) is None
    sync.catch_up()
    assert held(sync) == passages(store)
    sync.use([])
    sync.use([SPACE])
    reading, proceed = threading.Event(), threading.Event()

    def wait() -> None:
        reading.set()
        assert proceed.wait(WAIT_S)
        sync._stopping.set()

    vectors.before_rows = wait
    sync.start()
    assert reading.wait(WAIT_S)
    assert held(sync) is None
    proceed.set()
    sync.stop()
    assert held(sync) is None

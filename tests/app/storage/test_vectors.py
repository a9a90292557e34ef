"""Vectors by space: written whole, loaded in order, deleted with their passages, repaired, migrated."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from app.check import check
from app.domain.change_set import ChangeSet
from app.domain.changes import ConversationEdited, PassagesPut
from app.domain.deletions import ConversationForgotten
from app.domain.errors import EmbedderUnavailable
from app.domain.ids import PassageId, part_id
from app.domain.passages import Passage, PassageKind, Space
from app.storage.deletion.erasure import erase_bytes
from app.storage.deletion.forget import forget
from app.storage.engine import migrations
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.safety.backup import list_backups
from app.storage.tables.attempts import Attempts
from app.storage.tables.passages.vector_rows import (
    BadVectors,
    EmbeddedPassage,
    EmbeddingCandidate,
    LoadedRows,
    validated_vectors,
)
from app.storage.tables.passages.vectors import Vectors
from app.system.paths import DataPaths
from tests.fakes.passages import spans_of
from tests.fakes.stored import AT, add_conversation, execute, killed, make_earlier, opened, tables

SMALL, OTHER = Space("small", 8, 64), Space("other_one", 4, 64)
LONG = "words enough that a turn of them is embedded, which a short one would not be"


@pytest.fixture
def vectors(store: Store) -> Vectors:
    made = Vectors(store)
    made.ensure(SMALL, "a small model")
    made.ensure(OTHER, "another")
    return made


def unit(count: int, space: Space = SMALL, seed: int = 0) -> npt.NDArray[np.float32]:
    given = np.random.default_rng(seed).standard_normal((count, space.dimension))
    return validated_vectors(given, count, space)


def row_of(store: Store, passage_id: int) -> str:
    return str(store.rows("SELECT content_hash FROM passage WHERE id = ?", [passage_id])[0][0])


def missing(vectors: Vectors, least: int = 0, limit: int = 10, space: Space = SMALL) -> list[int]:
    return list(vectors.missing(space, least, limit, now()))


def chunks(store: Store, passage_id: int, count: int, space: Space = SMALL) -> EmbeddedPassage:
    """Return as many chunks of a passage, two a part."""
    parts = [part_id(passage_id, number // 2) for number in range(count)]
    spans = [(10 * number, 10 * number + 9) for number in range(count)]
    made = unit(count, space, passage_id)
    return EmbeddedPassage(PassageId(passage_id), row_of(store, passage_id), parts, spans, made)


def all_rows(vectors: Vectors, space: Space = SMALL) -> list[LoadedRows]:
    return list(vectors.load(space))


# -- writing and loading
def test_stored_vectors_are_loaded_unchanged(store: Store, vectors: Vectors) -> None:
    add_conversation(store, LONG, LONG + "!")
    put = [chunks(store, 2, 3), chunks(store, 1, 2)]
    assert vectors.put(SMALL, put) == 2
    (rows,) = all_rows(vectors)
    assert rows.part_ids.tolist() == [*put[1].parts, *put[0].parts]
    assert spans_of(store, SMALL) == [*put[1].spans, *put[0].spans]
    given = np.concatenate((put[1].vectors, put[0].vectors))
    assert np.abs(rows.vectors - given).max() < 1e-3
    assert np.abs((rows.vectors * given).sum(axis=1) - 1).max() < 1e-3
    assert [str(column.dtype) for column in (rows.part_ids, rows.vectors)] == ["int64", "float16"]
    assert vectors.count("small") == (2, 5)


@pytest.mark.parametrize("is_clock_set_back", [False, True])
def test_loading_goes_on_later(store: Store, vectors: Vectors, is_clock_set_back: bool) -> None:
    add_conversation(store, LONG, LONG + "!")
    vectors.put(SMALL, [chunks(store, 2, 1)])
    if is_clock_set_back:
        execute(store, "UPDATE embedding_small SET indexed_at = indexed_at + INTERVAL 1 DAY")
    (first,) = all_rows(vectors)
    assert list(vectors.load(SMALL, first.until)) == []
    vectors.put(SMALL, [chunks(store, 1, 1)])
    (second,) = vectors.load(SMALL, first.until)
    assert second.part_ids.tolist() == [part_id(1, 0)]
    assert second.until > first.until


def fill(store: Store, passages: int) -> None:
    """Write two chunks of each of so many passages that need not exist."""
    execute(
        store,
        "INSERT INTO embedding_small SELECT p, c, p * 4096, 0, 1, repeat('a', 16)::BLOB, "
        f"TIMESTAMP '2026-01-01' FROM range(1, {passages + 1}) t(p), range(2) u(c)",
    )


def test_many_passages_are_loaded_in_undivided_portions(store: Store, vectors: Vectors) -> None:
    fill(store, 10_001)
    loaded = all_rows(vectors)
    assert [len(rows.part_ids) for rows in loaded] == [10_000, 10_000, 2]
    ids = np.concatenate([rows.part_ids for rows in loaded])
    assert ids.tolist() == sorted(ids.tolist())


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_loading_ends_with_its_space(store: Store, vectors: Vectors, is_made_anew: bool) -> None:
    fill(store, 10_001)
    rest = vectors.load(SMALL)
    next(rest)
    vectors.drop("small")
    if is_made_anew:
        vectors.ensure(SMALL, "m")
        fill(store, 10_001)
    assert list(rest) == []


def test_a_batch_is_stored_without_what_is_deleted_changed(store: Store, vectors: Vectors) -> None:
    heard: list[tuple[ChangeSet, int]] = []
    add_conversation(store, LONG, LONG + "!", LONG + "?")
    vectors.put(SMALL, [chunks(store, 3, 3)])
    put = [chunks(store, number, 1) for number in (1, 2, 3)]
    misfit = EmbeddedPassage(put[0].id, put[0].content_hash, put[0].parts, (), unit(1))
    with pytest.raises(ValueError, match="zip"):
        vectors.put(SMALL, [put[1], misfit])
    assert vectors.count("small") == (1, 3)
    store.save(PassagesPut(replaced=(PassageId(1),)))
    execute(store, "UPDATE passage SET content_hash = 'other' WHERE id = 2")
    store.subscribe(lambda changed: heard.append((changed, vectors.count("small")[1])))
    assert vectors.put(SMALL, put) == 1
    assert [rows.part_ids.tolist() for rows in all_rows(vectors)] == [[part_id(3, 0)]]
    vectors.drop("small")
    small = ChangeSet(vectors=frozenset({"small"}))
    assert heard == [(small, 1), (small, 0)], "listeners can read what changed"


def test_a_passage_with_nothing_to_embed_is_never_loaded(store: Store, vectors: Vectors) -> None:
    add_conversation(store, LONG)
    nothing = EmbeddedPassage(PassageId(1), row_of(store, 1), [], [], unit(0))
    assert vectors.put(SMALL, [nothing]) == 1
    assert missing(vectors) == []
    assert all_rows(vectors) == []
    assert check(store).problems == ()


# -- spaces
def test_spaces_are_independent_of_each_other(store: Store, vectors: Vectors) -> None:
    add_conversation(store, LONG)
    vectors.put(SMALL, [chunks(store, 1, 2)])
    vectors.put(OTHER, [chunks(store, 1, 1, OTHER)])
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (1, 1))
    vectors.drop("other_one")
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (0, 0))
    vectors.set_traits(SMALL, "measured")
    vectors.ensure(SMALL, "someone else")
    (small,) = vectors.spaces()
    assert (small.space, small.model) == (SMALL, "a small model")
    assert small.traits == "measured"
    for name, done in (("small", 1), ("other_one", 0), ("never_made", 0), (None, 0)):
        tally = vectors.tally(name, 0)
        assert (tally.done, tally.total) == (done, 1)


def test_a_deleted_space_stores_nothing_and_starts_empty(store: Store, vectors: Vectors) -> None:
    add_conversation(store, LONG)
    put = chunks(store, 1, 1)
    vectors.put(SMALL, [put])
    before = vectors.spaces()[1].begun_at
    rest = vectors.load(SMALL)
    vectors.drop("small")
    assert list(rest) == []
    assert vectors.put(SMALL, [put]) == 0
    assert "embedding_small" not in tables(store)
    vectors.ensure(SMALL, "m")
    assert vectors.spaces()[1].begun_at > before
    assert missing(vectors) == [1]


def test_another_dimension_is_refused_with_what_to_do(vectors: Vectors) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"gives 9 numbers.*have 8.*rebuild"):
        vectors.ensure(Space("small", 9, 64), "m")


@pytest.mark.parametrize("name", ["Robert'); DROP TABLE passage", "", "Ä", "a b", 'x"y'])
def test_invalid_space_names_are_refused(vectors: Vectors, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a table"):
        vectors.ensure(Space(name, 8, 64), "m")


@pytest.mark.parametrize(
    "lost", ["DELETE FROM space WHERE name = 'small'", "DROP TABLE embedding_small"]
)
def test_a_table_without_a_row_or_the_reverse_is_repaired_at_the_start(
    store: Store, vectors: Vectors, tmp_path: Path, lost: str
) -> None:
    add_conversation(store, LONG)
    execute(store, lost)
    with opened(killed(store, tmp_path / "killed")) as later:
        after = Vectors(later)
        assert after.tally("small", 0).done == 0
        after.ensure(SMALL, "m")
        assert after.put(SMALL, [chunks(later, 1, 1)]) == 1


# -- what is missing
def test_missing_ones_are_newest_first_no_hidden_or_short(store: Store, vectors: Vectors) -> None:
    add_conversation(store, LONG, at=AT + timedelta(days=2))
    hidden = add_conversation(store, LONG + "!", LONG + "?").conversation.id
    short = add_conversation(store, "hi", at=AT - timedelta(days=2)).conversation.id
    assert missing(vectors) == [1, 3, 2, 4]
    assert missing(vectors, 0, 2) == [1, 3]
    assert missing(vectors, 10) == [1, 3, 2]
    vectors.put(SMALL, [chunks(store, 3, 1)])
    assert missing(vectors) == [1, 2, 4]
    assert missing(vectors, space=OTHER) == [1, 3, 2, 4]
    kind = PassageKind.CONVERSATION_SUMMARY
    store.save(PassagesPut((Passage(PassageId(9), kind, short, short, None, "h", AT, 2),)))
    assert missing(vectors, 10) == [1, 9, 2]
    assert vectors.tally("small", 10).total == 4
    execute(store, "UPDATE passage SET tokens = 0 WHERE id = 1")
    assert missing(vectors, 1) == [9, 2, 4], "an incomplete turn"
    store.save(ConversationEdited(short, deleted_at=AT))
    execute(store, f"UPDATE conversation SET private = true WHERE id = {hidden}")
    assert missing(vectors, 1) == []
    store.save(ConversationEdited(short, restored=True))
    assert missing(vectors, 1) == [9, 4]


def test_abandoned_and_waiting_ones_are_left_out_counted(store: Store, vectors: Vectors) -> None:
    add_conversation(store, *(f"{LONG} {number}" for number in range(4)))
    attempts = Attempts(store, "embedding_pipeline")
    later = now() + timedelta(seconds=30)
    attempts.failed(1, 7, None, "no")
    attempts.failed(2, 1, later, "not yet")
    attempts.failed(3, 1, now() - timedelta(seconds=1), "again")
    assert missing(vectors) == [4, 3]
    assert vectors.missing(SMALL, 0, 10, later) == (4, 3, 2)
    vectors.put(SMALL, [chunks(store, 4, 1)])
    tally = vectors.tally("small", 0)
    assert (tally.done, tally.total, tally.waiting_retry, tally.abandoned) == (1, 4, 2, 1)


def test_vectors_of_equal_texts_are_copied(store: Store, vectors: Vectors) -> None:
    for text in (LONG, LONG, LONG + "!"):
        add_conversation(store, text)
    lost = EmbeddingCandidate(PassageId(2), row_of(store, 2), PassageId(1))
    assert vectors.put(SMALL, [], {PassageId(2): lost}) == 0, "the twin has no vectors"
    assert missing(vectors) == [3, 2, 1]
    vectors.put(SMALL, [chunks(store, 1, 3)])
    known = vectors.before_embedding(SMALL, [2, 3, 99])
    assert {each: known[each].twin for each in known} == {2: 1, 3: None}
    assert vectors.put(SMALL, [chunks(store, 3, 1)], {PassageId(2): known[2]}) == 2
    (rows,) = all_rows(vectors)
    assert rows.part_ids[3:6].tolist() == [part_id(2, 0), part_id(2, 0), part_id(2, 1)]
    assert (rows.vectors[:3] == rows.vectors[3:6]).all()
    assert vectors.before_embedding(OTHER, [2])[2].twin is None


# -- leaving
def both_spaces(store: Store, vectors: Vectors, ids: Sequence[int]) -> None:
    for each in ids:
        vectors.put(SMALL, [chunks(store, each, 2)])
        vectors.put(OTHER, [chunks(store, each, 1, OTHER)])


def test_a_removed_or_changed_passage_loses_its_vectors(store: Store, vectors: Vectors) -> None:
    whole = add_conversation(store, LONG, LONG + "!")
    both_spaces(store, vectors, (1, 2))
    store.save(PassagesPut(replaced=(PassageId(2),)))
    put = next(change for change in whole.changes if isinstance(change, PassagesPut))
    store.save(put, ConversationEdited(whole.conversation.id, deleted_at=AT))
    counts = (vectors.count("small"), vectors.count("other_one"))
    assert counts == ((1, 2), (1, 1)), "neither the same words nor the trash change anything"
    store.save(PassagesPut((replace(put.passages[0], content_hash="other"),)))
    assert (vectors.count("small"), vectors.count("other_one")) == ((0, 0), (0, 0))


def test_a_forgotten_conversation_leaves_no_vector_in_any_space_nor_in_any_byte(
    store: Store, vectors: Vectors, tmp_path: Path
) -> None:
    secret = add_conversation(store, LONG, LONG + "!").conversation.id
    add_conversation(store, LONG + "?")
    both_spaces(store, vectors, (1, 2, 3))
    bytes_of_it = chunks(store, 1, 2).vectors.astype("<f2")[0].tobytes()
    store.checkpoint().result()
    assert bytes_of_it in store.paths.database.read_bytes(), "else this shows nothing"
    older = killed(store, tmp_path / "older")
    store.save(ConversationForgotten(secret))
    shutil.copytree(store.paths.journal, older / "journal", dirs_exist_ok=True)
    with opened(older) as later:
        assert Vectors(later).count("small") == (1, 2), "replayed on an older image too"
    forget(store, [secret])
    erase_bytes(store)
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (1, 1))
    for path in store.paths.root.rglob("*"):
        assert not path.is_file() or bytes_of_it not in path.read_bytes(), path.name


# -- keeping
def test_wrong_vector_rows_are_reported_and_deleted(store: Store, vectors: Vectors) -> None:
    add_conversation(store, *(f"{LONG} {number}" for number in range(5)))
    both_spaces(store, vectors, (1, 2, 3, 4, 5))
    assert check(store).problems == ()
    execute(store, "DELETE FROM passage WHERE id = 1")
    execute(store, "INSERT INTO passage_gone VALUES (1, 1)")
    execute(store, "UPDATE embedding_small SET vector = 'abc'::BLOB WHERE passage_id = 2")
    execute(store, "DELETE FROM embedding_small WHERE passage_id = 3 AND chunk_number = 0")
    execute(store, "UPDATE embedding_small SET part = 1 WHERE passage_id = 4")
    says = (
        "The space small has vectors of passage 1, which does not exist.",
        "The space other_one has vectors of passage 1, which does not exist.",
        "The space small has vectors of passage 2 whose dimension is not 8.",
        "The space small lacks some vectors of passage 3.",
        "The space small assigns vectors of passage 4 to parts of another.",
    )
    assert set(says) <= set(check(store).problems)
    assert [part_id(2, 0)] not in [rows.part_ids.tolist() for rows in all_rows(vectors)]
    report = check(store, repair=True)
    assert report.problems == ()
    assert set(says) <= set(report.repaired)
    assert vectors.count("small") == (1, 2)
    assert set(vectors.missing(SMALL, 0, 10, now())) >= {2, 3, 4}


def test_the_first_schema_is_migrated_after_a_backup(data_dir: Path) -> None:
    paths = DataPaths(data_dir)
    with opened(data_dir) as store:
        add_conversation(store, LONG)
        before = tables(store)
    later = make_earlier(paths.database, 1)
    with opened(data_dir) as store:
        after = tables(store)
        assert after.keys() == before.keys()
        assert [table for table in later if after[table]] == []
        assert after["passage"] == before["passage"]
        assert after["conversation"] == before["conversation"]
        vectors = Vectors(store)
        vectors.ensure(SMALL, "m")
        assert vectors.put(SMALL, [chunks(store, 1, 1)]) == 1
    versions = set()
    for backup in list_backups(paths.backups):
        with Connection(duckdb.connect(str(backup.path), read_only=True)) as found:
            versions.add(migrations.version_of(found))
    assert 1 in versions


# -- what an embedder gives
@pytest.mark.parametrize(
    ("given", "error"),
    [(np.ones((2, 7)), EmbedderUnavailable), (np.ones(8), EmbedderUnavailable),
     (np.ones((2, 8, 1)), EmbedderUnavailable), (None, EmbedderUnavailable),
     ([["a", "b"]], EmbedderUnavailable), ([[1.0], [1.0, 2.0]], EmbedderUnavailable),
     (np.ones((1, 8)), BadVectors), (np.ones((3, 8)), BadVectors), (np.ones((0, 8)), BadVectors),
     (np.array([[1.0] * 8, [0.0] * 8]), BadVectors),
     (np.array([[1.0] * 8, [np.nan] * 8]), BadVectors),
     (np.array([[1.0] * 8, [np.inf] * 8]), BadVectors)],
)  # fmt: skip
def test_invalid_vectors_are_a_known_error(given: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="small"):
        validated_vectors(given, 2, SMALL)
    made = validated_vectors(np.full((2, 8), 1e20), 2, SMALL)
    assert np.allclose(np.linalg.norm(made, axis=1), 1)
    assert made.dtype == np.float32

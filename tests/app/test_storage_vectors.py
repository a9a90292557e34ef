"""Vectors by space: written whole, loaded in order, left with their passages, mended, migrated."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from app.check import check
from app.domain.changes import ConversationEdited, ConversationForgotten, PassagesPut
from app.domain.errors import EmbedderUnavailable
from app.domain.events import Changed
from app.domain.ids import PassageId, part_id
from app.domain.passages import Passage, PassageKind, Space
from app.storage import migrations
from app.storage.attempts import Attempts
from app.storage.backup import list_backups
from app.storage.forget import forget
from app.storage.store import Store
from app.storage.times import now
from app.storage.vector_loading import LoadedRows
from app.storage.vector_rows import BadVectors, checked
from app.storage.vector_writing import EmbeddedPassage, Unembedded
from app.storage.vectors import Vectors
from app.system.paths import DataPaths
from tests.fakes.stored import AT, killed, opened, tables, told

SMALL, OTHER = Space("small", 8, 64), Space("other_one", 4, 64)
LONG = "words enough that a turn of them is embedded, which a short one would not be"


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as made:
        yield made


@pytest.fixture
def vectors(store: Store) -> Vectors:
    made = Vectors(store)
    made.ensure(SMALL, "a small model")
    made.ensure(OTHER, "another")
    return made


def unit(count: int, space: Space = SMALL, seed: int = 0) -> npt.NDArray[np.float32]:
    given = np.random.default_rng(seed).standard_normal((count, space.dimension))
    return checked(given, count, space)


def row_of(store: Store, passage_id: int) -> str:
    rows = store.read(
        lambda cursor: cursor.execute(
            "SELECT content_hash FROM passage WHERE id = ?", [passage_id]
        ).fetchall()
    )
    return str(rows[0][0])


def chunks(store: Store, passage_id: int, count: int, space: Space = SMALL) -> EmbeddedPassage:
    """Return as many chunks of a passage, two a part."""
    parts = [part_id(passage_id, number // 2) for number in range(count)]
    spans = [(10 * number, 10 * number + 9) for number in range(count)]
    made = unit(count, space, passage_id)
    return EmbeddedPassage(PassageId(passage_id), row_of(store, passage_id), parts, spans, made)


def all_rows(vectors: Vectors, space: Space = SMALL) -> list[LoadedRows]:
    return list(vectors.load(space))


def run(store: Store, statement: str) -> None:
    store.write_derived(lambda connection: connection.execute(statement) and None).result()


# -- writing and loading


def test_what_was_put_is_loaded_as_it_was(store: Store, vectors: Vectors) -> None:
    told(store, LONG, LONG + "!")
    put = [chunks(store, 2, 3), chunks(store, 1, 2)]
    assert vectors.put(SMALL, put) == 2
    (rows,) = all_rows(vectors)
    assert rows.part_ids.tolist() == [*put[1].parts, *put[0].parts]
    assert rows.spans.tolist() == [list(span) for span in (*put[1].spans, *put[0].spans)]
    given = np.concatenate((put[1].vectors, put[0].vectors))
    assert np.abs(rows.vectors - given).max() < 1e-3
    assert np.abs((rows.vectors * given).sum(axis=1) - 1).max() < 1e-3
    kinds = [str(column.dtype) for column in (rows.part_ids, rows.spans, rows.vectors)]
    assert kinds == ["int64", "int32", "float32"]
    assert vectors.count("small") == (2, 5)


def test_half_precision_keeps_cosines_of_every_usual_dimension() -> None:
    for dimension in (384, 1536, 3072):
        space = Space("x", dimension, 9)
        given, asked = unit(50, space), unit(20, space, 1)
        kept = given.astype("<f2").astype(np.float32)
        assert np.abs(asked @ given.T - asked @ kept.T).max() < 1e-3


def test_loading_goes_on_where_it_ended(store: Store, vectors: Vectors) -> None:
    told(store, LONG, LONG + "!")
    vectors.put(SMALL, [chunks(store, 2, 1)])
    (first,) = all_rows(vectors)
    assert list(vectors.load(SMALL, first.until)) == []
    vectors.put(SMALL, [chunks(store, 1, 1)])
    (second,) = vectors.load(SMALL, first.until)
    assert second.part_ids.tolist() == [part_id(1, 0)]
    assert second.until > first.until


def test_a_clock_that_was_set_back_hides_nothing_that_is_new(
    store: Store, vectors: Vectors
) -> None:
    told(store, LONG, LONG + "!")
    vectors.put(SMALL, [chunks(store, 2, 1)])
    run(store, "UPDATE embedding_small SET indexed_at = indexed_at + INTERVAL 1 DAY")
    (first,) = all_rows(vectors)
    vectors.put(SMALL, [chunks(store, 1, 1)])
    assert [rows.part_ids.tolist() for rows in vectors.load(SMALL, first.until)] == [
        [part_id(1, 0)]
    ]


def fill(store: Store, passages: int) -> None:
    """Write two chunks of each of so many passages that need not exist."""
    run(
        store,
        "INSERT INTO embedding_small SELECT p, c, p * 4096, 0, 1, repeat('a', 16)::BLOB, "
        f"TIMESTAMP '2026-01-01' FROM range(1, {passages + 1}) t(p), range(2) u(c)",
    )


def test_many_passages_come_in_portions_none_divided(store: Store, vectors: Vectors) -> None:
    fill(store, 10_001)
    loaded = all_rows(vectors)
    assert [len(rows.part_ids) for rows in loaded] == [10_000, 10_000, 2]
    ids = np.concatenate([rows.part_ids for rows in loaded])
    assert ids.tolist() == sorted(ids.tolist())


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_loading_ends_when_the_space_is_thrown_away(
    store: Store, vectors: Vectors, is_made_anew: bool
) -> None:
    fill(store, 10_001)
    rest = vectors.load(SMALL)
    next(rest)
    vectors.drop("small")
    if is_made_anew:
        vectors.ensure(SMALL, "m")
        fill(store, 10_001)
    assert list(rest) == []


def test_a_batch_is_stored_whole_or_not_at_all(store: Store, vectors: Vectors) -> None:
    told(store, LONG, LONG + "!")
    broken = chunks(store, 1, 2)
    misfit = EmbeddedPassage(
        broken.id, broken.content_hash, broken.parts, broken.spans[:1], unit(2)
    )
    with pytest.raises(ValueError, match="zip"):
        vectors.put(SMALL, [chunks(store, 2, 1), misfit])
    assert vectors.count("small") == (0, 0)


def test_passages_that_are_gone_or_say_something_else_are_left_out(
    store: Store, vectors: Vectors
) -> None:
    told(store, LONG, LONG + "!", LONG + "?")
    put = [chunks(store, number, 1) for number in (1, 2, 3)]
    store.save(PassagesPut(replaced=(PassageId(1),)))
    run(store, "UPDATE passage SET content_hash = 'other' WHERE id = 2")
    assert vectors.put(SMALL, put) == 1
    assert [rows.part_ids.tolist() for rows in all_rows(vectors)] == [[part_id(3, 0)]]


def test_vectors_put_again_replace_what_was_there(store: Store, vectors: Vectors) -> None:
    told(store, LONG)
    vectors.put(SMALL, [chunks(store, 1, 3)])
    vectors.put(SMALL, [chunks(store, 1, 1)])
    assert vectors.count("small") == (1, 1)


def test_a_passage_with_nothing_to_embed_is_done_and_never_loaded(
    store: Store, vectors: Vectors
) -> None:
    told(store, LONG)
    nothing = EmbeddedPassage(PassageId(1), row_of(store, 1), [], [], unit(0))
    assert vectors.put(SMALL, [nothing]) == 1
    assert vectors.missing(SMALL, 0, 10, now()) == ()
    assert all_rows(vectors) == []
    assert check(store).problems == ()


def test_whoever_listens_hears_of_the_space_after_the_commit(
    store: Store, vectors: Vectors
) -> None:
    told(store, LONG)
    heard: list[tuple[Changed, int]] = []
    store.subscribe(lambda changed: heard.append((changed, vectors.count("small")[1])))
    vectors.put(SMALL, [chunks(store, 1, 2)])
    vectors.drop("small")
    small = Changed(vectors=frozenset({"small"}))
    assert heard == [(small, 2), (small, 0)]


# -- spaces


def test_spaces_stand_side_by_side_and_know_nothing_of_each_other(
    store: Store, vectors: Vectors
) -> None:
    told(store, LONG)
    vectors.put(SMALL, [chunks(store, 1, 2)])
    vectors.put(OTHER, [chunks(store, 1, 1, OTHER)])
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (1, 1))
    vectors.drop("other_one")
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (0, 0))
    assert [kept.space for kept in vectors.spaces()] == [SMALL]


def test_a_space_keeps_its_background_and_who_makes_it(vectors: Vectors) -> None:
    vectors.set_background(SMALL, 0.03, 0.08)
    vectors.ensure(SMALL, "someone else")
    small = vectors.spaces()[1]
    assert (small.model, small.background_mean, small.background_deviation) == (
        "a small model", 0.03, 0.08,
    )  # fmt: skip


def test_a_space_that_was_thrown_away_begins_anew(store: Store, vectors: Vectors) -> None:
    told(store, LONG)
    vectors.put(SMALL, [chunks(store, 1, 1)])
    before = vectors.spaces()[1].begun_at
    rest = vectors.load(SMALL)
    vectors.drop("small")
    assert list(rest) == []
    vectors.ensure(SMALL, "m")
    assert vectors.spaces()[1].begun_at > before
    assert vectors.missing(SMALL, 0, 10, now()) == (1,)


def test_vectors_of_a_space_thrown_away_meanwhile_are_not_stored(
    store: Store, vectors: Vectors
) -> None:
    told(store, LONG)
    put = chunks(store, 1, 1)
    vectors.drop("small")
    assert vectors.put(SMALL, [put]) == 0
    assert "embedding_small" not in tables(store)


def test_another_dimension_is_refused_with_what_to_do(vectors: Vectors) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"gives 9 numbers.*have 8.*rebuild"):
        vectors.ensure(Space("small", 9, 64), "m")


@pytest.mark.parametrize("name", ["Robert'); DROP TABLE passage", "", "Ä", "a b", 'x"y'])
def test_no_name_of_a_space_reaches_the_database_unless_it_is_fit(
    vectors: Vectors, name: str
) -> None:
    with pytest.raises(ValueError, match="cannot name a table"):
        vectors.ensure(Space(name, 8, 64), "m")


def test_a_kill_between_a_table_and_its_name_is_made_good(
    store: Store, vectors: Vectors, tmp_path: Path
) -> None:
    told(store, LONG)
    run(store, "DELETE FROM space WHERE name = 'small'")
    with opened(killed(store, tmp_path / "killed")) as later:
        after = Vectors(later)
        assert after.tally("small", 0).done == 0
        after.ensure(SMALL, "m")
        assert after.put(SMALL, [chunks(later, 1, 1)]) == 1


# -- what is missing


def test_the_newest_passages_are_missing_first(store: Store, vectors: Vectors) -> None:
    told(store, LONG, at=AT + timedelta(days=2))
    told(store, LONG + "!", LONG + "?", at=AT)
    assert vectors.missing(SMALL, 0, 10, now()) == (1, 3, 2)
    assert vectors.missing(SMALL, 0, 2, now()) == (1, 3)
    vectors.put(SMALL, [chunks(store, 3, 1)])
    assert vectors.missing(SMALL, 0, 10, now()) == (1, 2)
    assert vectors.missing(OTHER, 0, 10, now()) == (1, 3, 2)


def test_short_turns_and_incomplete_ones_are_left_out_but_no_short_summary(
    store: Store, vectors: Vectors
) -> None:
    short = told(store, "hi").conversation.id
    told(store, LONG)
    kind = PassageKind.CONVERSATION_SUMMARY
    store.save(PassagesPut((Passage(PassageId(9), kind, short, short, None, "h", AT, 2),)))
    assert vectors.missing(SMALL, 10, 10, now()) == (9, 2)
    assert vectors.tally("small", 10).total == 2
    run(store, "UPDATE passage SET tokens = 0 WHERE id = 2")
    assert vectors.missing(SMALL, 10, 10, now()) == (9,)
    assert vectors.missing(SMALL, 1, 10, now()) == (9, 1)


def test_the_trash_and_private_conversations_are_left_out(store: Store, vectors: Vectors) -> None:
    trashed = told(store, LONG).conversation.id
    hidden = told(store, LONG + "!").conversation.id
    told(store, LONG + "?")
    store.save(ConversationEdited(trashed, deleted_at=AT))
    run(store, f"UPDATE conversation SET private = true WHERE id = {hidden}")
    assert vectors.missing(SMALL, 0, 10, now()) == (3,)
    store.save(ConversationEdited(trashed, restored=True))
    assert vectors.missing(SMALL, 0, 10, now()) == (3, 1)


def test_what_was_set_aside_or_waits_is_left_out_and_counted(
    store: Store, vectors: Vectors
) -> None:
    told(store, *(f"{LONG} {number}" for number in range(4)))
    attempts = Attempts(store, "embedding_pipeline")
    later = now() + timedelta(seconds=30)
    attempts.failed(1, 7, None, "no")
    attempts.failed(2, 1, later, "not yet")
    attempts.failed(3, 1, now() - timedelta(seconds=1), "again")
    assert vectors.missing(SMALL, 0, 10, now()) == (4, 3)
    assert vectors.missing(SMALL, 0, 10, later) == (4, 3, 2)
    vectors.put(SMALL, [chunks(store, 4, 1)])
    tally = vectors.tally("small", 0)
    assert (tally.done, tally.total, tally.waiting_retry, tally.set_aside) == (1, 4, 2, 1)


def test_a_space_nobody_knows_has_nothing_done(store: Store, vectors: Vectors) -> None:
    told(store, LONG)
    for name in (None, "never_made"):
        tally = vectors.tally(name, 0)
        assert (tally.done, tally.total) == (0, 1)


def test_the_same_words_are_known_and_their_vectors_copied(store: Store, vectors: Vectors) -> None:
    told(store, LONG)
    told(store, LONG)
    told(store, LONG + "!")
    vectors.put(SMALL, [chunks(store, 1, 3)])
    known = vectors.before_embedding(SMALL, [2, 3, 99])
    assert {each: known[each].twin for each in known} == {2: 1, 3: None}
    assert vectors.put(SMALL, [chunks(store, 3, 1)], {PassageId(2): known[2]}) == 2
    (rows,) = all_rows(vectors)
    assert rows.part_ids[3:6].tolist() == [part_id(2, 0), part_id(2, 0), part_id(2, 1)]
    assert (rows.vectors[:3] == rows.vectors[3:6]).all()
    assert vectors.before_embedding(OTHER, [2])[2].twin is None


def test_a_twin_that_lost_its_vectors_is_no_twin(store: Store, vectors: Vectors) -> None:
    told(store, LONG)
    told(store, LONG)
    twin = Unembedded(PassageId(2), row_of(store, 2), PassageId(1))
    assert vectors.put(SMALL, [], {PassageId(2): twin}) == 0
    assert vectors.missing(SMALL, 0, 10, now()) == (2, 1)


# -- leaving


def both_spaces(store: Store, vectors: Vectors, ids: Sequence[int]) -> None:
    for each in ids:
        vectors.put(SMALL, [chunks(store, each, 2)])
        vectors.put(OTHER, [chunks(store, each, 1, OTHER)])


def test_a_passage_that_leaves_takes_its_vectors_along(store: Store, vectors: Vectors) -> None:
    told(store, LONG, LONG + "!")
    both_spaces(store, vectors, (1, 2))
    store.save(PassagesPut(replaced=(PassageId(1),)))
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (1, 1))


def test_a_passage_given_other_words_loses_its_vectors(store: Store, vectors: Vectors) -> None:
    whole = told(store, LONG)
    both_spaces(store, vectors, (1,))
    (put,) = [change for change in whole.changes if isinstance(change, PassagesPut)]
    store.save(put)
    assert vectors.count("small") == (1, 2), "the same words again change nothing"
    (passage,) = put.passages
    kind, conversation = PassageKind.TURN, whole.conversation.id
    other = Passage(passage.id, kind, 1, conversation, passage.exchange_id, "other", AT, 20)
    store.save(PassagesPut((other,)))
    assert (vectors.count("small"), vectors.count("other_one")) == ((0, 0), (0, 0))


def test_a_conversation_in_the_trash_keeps_its_vectors(store: Store, vectors: Vectors) -> None:
    trashed = told(store, LONG).conversation.id
    both_spaces(store, vectors, (1,))
    store.save(ConversationEdited(trashed, deleted_at=AT))
    assert vectors.count("small") == (1, 2)


def test_a_forgotten_conversation_leaves_no_vector_in_any_space_nor_in_any_byte(
    store: Store, vectors: Vectors
) -> None:
    secret = told(store, LONG, LONG + "!").conversation.id
    told(store, LONG + "?")
    both_spaces(store, vectors, (1, 2, 3))
    bytes_of_it = chunks(store, 1, 2).vectors.astype("<f2")[0].tobytes()
    store.checkpoint().result()
    assert bytes_of_it in store.paths.database.read_bytes(), "else this shows nothing"
    forget(store, [secret])
    assert (vectors.count("small"), vectors.count("other_one")) == ((1, 2), (1, 1))
    for path in store.paths.root.rglob("*"):
        assert not path.is_file() or bytes_of_it not in path.read_bytes(), path.name


def test_forgetting_replayed_on_an_older_image_removes_the_vectors_too(
    store: Store, vectors: Vectors, tmp_path: Path
) -> None:
    secret = told(store, LONG).conversation.id
    both_spaces(store, vectors, (1,))
    older = killed(store, tmp_path / "older")
    store.save(ConversationForgotten(secret))
    for each in store.paths.journal.iterdir():
        (older / store.paths.journal.name / each.name).write_bytes(each.read_bytes())
    with opened(older) as later:
        assert Vectors(later).count("small") == (0, 0)


def test_vectors_survive_a_kill(store: Store, vectors: Vectors, tmp_path: Path) -> None:
    told(store, LONG)
    both_spaces(store, vectors, (1,))
    with opened(killed(store, tmp_path / "killed")) as later:
        after = Vectors(later)
        assert (after.count("small"), after.count("other_one")) == ((1, 2), (1, 1))
        assert (all_rows(after)[0].vectors == all_rows(vectors)[0].vectors).all()


# -- keeping


def test_wrong_rows_are_named_and_mended_by_leaving(store: Store, vectors: Vectors) -> None:
    told(store, *(f"{LONG} {number}" for number in range(5)))
    both_spaces(store, vectors, (1, 2, 3, 4, 5))
    assert check(store).problems == ()
    run(store, "DELETE FROM passage WHERE id = 1")
    run(store, "INSERT INTO passage_gone VALUES (1, 1)")
    run(store, "UPDATE embedding_small SET vector = 'abc'::BLOB WHERE passage_id = 2")
    run(store, "DELETE FROM embedding_small WHERE passage_id = 3 AND chunk_number = 0")
    run(store, "UPDATE embedding_small SET part = 1 WHERE passage_id = 4")
    says = (
        "The space small has vectors of passage 1, which does not exist.",
        "The space other_one has vectors of passage 1, which does not exist.",
        "The space small has vectors of passage 2 that are not of 8 numbers.",
        "The space small lacks some of the vectors of passage 3.",
        "The space small gives vectors of passage 4 to parts of another.",
    )
    assert set(says) <= set(check(store).problems)
    assert [part_id(2, 0)] not in [rows.part_ids.tolist() for rows in all_rows(vectors)]
    report = check(store, repair=True)
    assert report.problems == ()
    assert set(says) <= set(report.repaired)
    assert vectors.count("small") == (1, 2)
    assert set(vectors.missing(SMALL, 0, 10, now())) >= {2, 3, 4}


def test_the_first_schema_is_brought_to_one_with_spaces_with_a_backup_first(data_dir: Path) -> None:
    paths = DataPaths(data_dir)
    with opened(data_dir) as store:
        told(store, LONG)
        before = tables(store)
    later = set(before)
    with duckdb.connect(str(paths.database)) as file:
        later -= first_tables()
        for table in later:
            file.execute(f"DROP TABLE {table}")
        file.execute("ALTER TABLE conversation DROP COLUMN recalls")
        file.execute("ALTER TABLE spend DROP COLUMN estimated")
        file.execute("UPDATE meta SET value = '1' WHERE key = 'schema_version'")
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
        with duckdb.connect(str(backup.path), read_only=True) as found:
            versions.add(migrations.version_of(found))
    assert 1 in versions


def first_tables() -> set[str]:
    """Return the names of the tables that the first version of the program had."""
    with duckdb.connect() as empty:
        migrations.STEPS[0](empty)
        return {
            name for (name,) in empty.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        }


# -- what an embedder gives


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (np.ones((2, 7)), EmbedderUnavailable),
        (np.ones(8), EmbedderUnavailable),
        (np.ones((2, 8, 1)), EmbedderUnavailable),
        (None, EmbedderUnavailable),
        ([["a", "b"]], EmbedderUnavailable),
        ([[1.0], [1.0, 2.0]], EmbedderUnavailable),
        (np.ones((1, 8)), BadVectors),
        (np.ones((3, 8)), BadVectors),
        (np.ones((0, 8)), BadVectors),
        (np.array([[1.0] * 8, [0.0] * 8]), BadVectors),
        (np.array([[1.0] * 8, [np.nan] * 8]), BadVectors),
        (np.array([[1.0] * 8, [np.inf] * 8]), BadVectors),
    ],
)
def test_what_is_no_vector_is_a_known_error(given: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="small"):
        checked(given, 2, SMALL)


def test_vectors_are_made_unit_length() -> None:
    made = checked(np.full((2, 8), 1e20), 2, SMALL)
    assert np.allclose(np.linalg.norm(made, axis=1), 1)
    assert made.dtype == np.float32

"""Backups are verified copies; which stay, and how far the journal is cut behind them."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled, StorageError
from app.storage import backup as backup_module
from app.storage import image, spaces
from app.storage.backup import (
    back_up_first,
    backups_of,
    copy_backup,
    list_backups,
    make_backup,
    thin,
    try_backup,
)
from app.storage.database import Connection
from app.storage.journal import segments
from app.storage.restore import restore_backup
from app.storage.store import Store
from app.storage.thinning import to_keep
from tests.fakes.libraries import zero
from tests.fakes.stored import asked, opened, rows_of, tables, titles, told

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as made:
        yield made


def begin_segment(store: Store) -> None:
    store.on_writer(store.journal.begin_segment).result()


def test_a_backup_holds_what_the_database_holds_and_can_be_written_to(store: Store) -> None:
    told(store, "one", "two")
    made = make_backup(store)
    assert made.position == 1
    with duckdb.connect(str(made.path)) as copy:
        assert rows_of(copy) == tables(store)
        keys = "SELECT table_name FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
        assert len(copy.execute(keys).fetchall()) == len(tables(store))
        copy.execute("INSERT OR REPLACE INTO meta VALUES ('database_uid', 'x')")


def test_a_backup_is_made_while_others_read_and_write(store: Store) -> None:
    told(store, *"abcdef")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            told(store, "more", title="More")

    writing = threading.Thread(target=write)
    writing.start()
    try:
        made = [make_backup(store) for _ in range(3)]
    finally:
        stop.set()
        writing.join()
    assert made[0].position < made[1].position < made[2].position
    for each in made:
        assert image.verify(each.path).position == each.position


def test_a_write_under_way_that_drops_passages_does_not_hinder_a_backup(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, "one")
    begun, go_on = threading.Event(), threading.Event()
    first = image._first

    def drop_slowly(connection: Connection) -> None:
        spaces.remove_passages(connection, [1])
        begun.set()
        go_on.wait(60)

    def first_while_a_write_goes_on(connection: Connection, statement: str) -> object:
        if "position" in statement and not begun.is_set():  # the copy is attached by now
            store.write_derived(drop_slowly)
            assert begun.wait(60)
        return first(connection, statement)

    monkeypatch.setattr(image, "_first", first_while_a_write_goes_on)
    target = store.paths.backups / "copy.duckdb"
    try:
        with store.database.snapshot_cursor() as cursor:
            position, _ = image.copy_into(cursor, target)
        assert position == 1
    finally:
        go_on.set()


def test_a_question_for_the_list_of_tables_is_waited_for_by_a_backup(store: Store) -> None:
    told(store, "one")
    begun, go_on = threading.Event(), threading.Event()

    def ask_slowly(cursor: Connection) -> object:
        spaces.spaces_to_read(cursor)  # enters every attached database
        begun.set()
        go_on.wait(60)
        return cursor.execute("SELECT sum(hash(range)) FROM range(30_000_000)").fetchall()

    class Asked:
        """A connection beside which somebody asks, until the copy is to be checkpointed."""

        def __init__(self, connection: Connection) -> None:
            self._connection = connection

        def execute(self, statement: str) -> Connection:
            if statement == "COMMIT":
                reader.start()
                assert begun.wait(60)
            elif "CHECKPOINT" in statement:
                go_on.set()
            return self._connection.execute(statement)

    reader = threading.Thread(target=store.read, args=(ask_slowly,))
    with store.database.snapshot_cursor() as cursor:
        copied = image.copy_into(Asked(cursor), store.paths.backups / "copy.duckdb")  # type: ignore[arg-type]
    reader.join()
    assert copied[0] == 1


def test_two_backups_at_once_are_made_one_after_the_other(store: Store) -> None:
    told(store, "one")
    threads = [threading.Thread(target=make_backup, args=(store,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list_backups(store.paths.backups)) == 3
    assert len(list(store.paths.backups.iterdir())) == 3


def test_a_copy_that_does_not_verify_is_not_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, "one")
    copy_into = image.copy_into

    def lossy(connection: Connection, target: Path) -> tuple[int, dict[str, int]]:
        position, counts = copy_into(connection, target)
        with duckdb.connect(str(target)) as copy:
            copy.execute("DELETE FROM message WHERE id = 1")
        return position, counts

    def torn(connection: Connection, target: Path) -> tuple[int, dict[str, int]]:
        outcome = copy_into(connection, target)
        zero(target, 12288)
        return outcome

    for broken in (lossy, torn):
        monkeypatch.setattr(image, "copy_into", broken)
        with pytest.raises(StorageError):
            make_backup(store)
        assert list(store.paths.backups.iterdir()) == []
    assert try_backup(store) is None
    monkeypatch.undo()
    assert try_backup(store) is not None


def test_verifying_changes_nothing(store: Store) -> None:
    told(store, "one")
    made = make_backup(store)
    before = made.path.read_bytes()
    image.verify(made.path)
    assert made.path.read_bytes() == before
    with pytest.raises(StorageError, match="damaged"):
        image.verify(made.path.with_name("missing.duckdb"))
    made.path.write_bytes(os.urandom(9000))
    with pytest.raises(StorageError, match="damaged"):
        image.verify(made.path)


def test_a_database_of_another_program_is_no_backup(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "recipes.duckdb")) as other:
        other.execute("CREATE TABLE recipes (name VARCHAR)")
    with pytest.raises(StorageError, match="no database of this program"):
        image.verify(tmp_path / "recipes.duckdb")


def test_copying_can_be_broken_off(store: Store) -> None:
    told(store, *(f"{n} " * 5000 for n in range(200)))
    outcome: list[object] = []
    idents: list[int] = []

    def back_up() -> None:
        idents.append(threading.get_ident())
        try:
            outcome.append(make_backup(store))
        except Cancelled as cancelled:
            outcome.append(cancelled)

    thread = threading.Thread(target=back_up)
    thread.start()
    while thread.is_alive():
        if idents:
            store.database.interrupt(idents[0])
        thread.join(0.0005)
    assert outcome
    if isinstance(outcome[0], Cancelled):
        assert list(store.paths.backups.iterdir()) == []
    assert make_backup(store).position == 1


def test_the_newest_is_the_one_of_the_highest_position_whatever_the_clock_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([NOW + timedelta(days=365), NOW, NOW + timedelta(hours=1)])
    monkeypatch.setattr(backup_module, "now", lambda: next(clock))
    for _ in range(3):
        told(store, "one")
        make_backup(store)
    assert [each.position for each in backups_of(store.paths.backups, store.uid)] == [3, 2, 1]


def test_backups_of_one_second_do_not_overwrite_each_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_module, "now", lambda: NOW)
    told(store, "one")
    assert len({make_backup(store).path for _ in range(3)}) == 3


def test_the_journal_is_cut_only_behind_the_second_newest_backup(store: Store) -> None:
    for number in range(1, 5):
        told(store, "one", title=f"T{number}")
        begin_segment(store)
    assert [first for first, _ in segments(store.paths.journal)] == [1, 2, 3, 4, 5]
    make_backup(store)
    assert segments(store.paths.journal)[0][0] == 1, "one backup alone may turn out damaged"
    told(store, "five", title="T5")
    begin_segment(store)
    make_backup(store)
    assert [first for first, _ in segments(store.paths.journal)] == [5, 6]
    told(store, "six", title="T6")
    newest, _ = list_backups(store.paths.backups)
    zero(newest.path, 12288)
    store.close()
    zero(store.paths.database, 12288)
    with opened(store.paths.root) as again:
        assert titles(again) == {f"T{n}" for n in range(1, 7)}


def test_the_journal_keeps_what_a_running_reply_has_said(store: Store) -> None:
    asked(store, "Why?")
    for _ in range(3):
        begin_segment(store)
        told(store, "other")
        make_backup(store)
    assert segments(store.paths.journal)[0][0] == 1


def test_a_backup_first_is_made_only_when_something_changed(store: Store) -> None:
    told(store, "one")
    first = back_up_first(store)
    assert back_up_first(store) == first
    told(store, "two")
    assert back_up_first(store) != first


def test_a_backup_is_copied_to_where_the_user_wants_it(store: Store, tmp_path: Path) -> None:
    told(store, "one")
    made = make_backup(store)
    copy_backup(made, tmp_path / "copy.duckdb")
    assert (tmp_path / "copy.duckdb").read_bytes() == made.path.read_bytes()
    with pytest.raises(StorageError):
        copy_backup(made, tmp_path / "no such folder" / "copy.duckdb")
    assert {path.name for path in tmp_path.iterdir()} == {"copy.duckdb", "data"}


def test_names_that_are_no_backups_are_passed_over(store: Store) -> None:
    for name in ("commonplace-yesterday.duckdb", "unfinished.duckdb", "other.txt"):
        (store.paths.backups / name).touch()
    assert list_backups(store.paths.backups) == []


# -- thinning


@dataclass(frozen=True)
class Made:
    path: Path
    made_at: datetime


@st.composite
def histories(draw: st.DrawFn) -> list[Made]:
    """Backups at any times, newest first."""
    ages = draw(st.lists(st.integers(0, 60 * 24 * 60), max_size=80, unique=True))
    return [Made(Path(f"{age}"), NOW - timedelta(minutes=age)) for age in sorted(ages)]


@given(histories(), st.integers(0, 100), st.integers(1, 10))
def test_what_stays_is_what_the_rules_say(made: list[Made], cap: int, size: int) -> None:
    kept = to_keep(made, [size] * len(made), cap)
    stays = [each for each in made if each.path in kept]
    assert len(stays) >= min(2, len(made)), "never fewer than two"
    assert stays[:2] == made[:2] or len(stays) > 2, "the newest stay"
    assert made[:1] == stays[:1]
    assert len(stays) <= 2 or len(stays) * size <= cap, "within the cap"


@given(histories())
def test_with_room_enough_a_day_a_week_and_a_month_are_covered(made: list[Made]) -> None:
    kept = to_keep(made, [1] * len(made), 10**9)
    for each in made:
        age = made[0].made_at - each.made_at
        same_day = [m for m in made if m.made_at.date() == each.made_at.date()]
        same_week = [
            m for m in made if m.made_at.isocalendar()[:2] == each.made_at.isocalendar()[:2]
        ]
        if age <= timedelta(days=1):
            assert each.path in kept
        if age <= timedelta(days=7):
            assert any(m.path in kept for m in same_day)
        if age <= timedelta(weeks=4):
            assert any(m.path in kept for m in same_week)
        if age > timedelta(weeks=4) and each not in made[:2]:
            assert each.path not in kept
    per_day = {m.made_at.date() for m in made}
    assert len(kept) <= 2 + sum(
        len([m for m in made if m.made_at.date() == day]) if (made[0].made_at.date() - day).days <= 1 else 1
        for day in per_day
    )  # fmt: skip


@given(histories())
def test_thinning_again_changes_nothing(made: list[Made]) -> None:
    kept = to_keep(made, [1] * len(made), 10**9)
    stays = [each for each in made if each.path in kept]
    assert to_keep(stays, [1] * len(stays), 10**9) == kept


def test_thinning_leaves_other_databases_backups_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(NOW - timedelta(days=age) for age in (90, 60, 50, 0))
    monkeypatch.setattr(backup_module, "now", lambda: next(clock))
    told(store, "one")
    theirs = make_backup(store).path
    foreign = theirs.rename(theirs.with_name(theirs.name[:-19] + "0123456789ab.duckdb"))
    for _ in range(3):
        make_backup(store)
    assert foreign.exists()
    assert len(backups_of(store.paths.backups, store.uid)) == 2
    thin(store.paths.backups, store.uid, cap_bytes=0)
    assert len(backups_of(store.paths.backups, store.uid)) == 2


# -- going back


def test_going_back_sets_aside_what_came_later(data_dir: Path) -> None:
    with opened(data_dir) as store:
        told(store, "one", title="Old")
        chosen = make_backup(store)
        told(store, "two", title="New")
        make_backup(store)
        generation = store.generation
    aside = restore_backup(store.paths, chosen.path)
    assert aside is not None
    with opened(data_dir) as store:
        assert titles(store) == {"Old"}
        assert store.notices == ()
        assert store.generation != generation
        told(store, "three", title="Another")
    store.paths.database.unlink()
    with opened(data_dir) as store:
        assert titles(store) == {"Old", "Another"}, "the abandoned time line stays away"


def test_a_damaged_backup_is_refused_and_nothing_changed(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        told(store, "one", title="Here")
        chosen = make_backup(store)
    zero(chosen.path, 12288)
    (tmp_path / "noise").write_bytes(os.urandom(5000))
    for path in (chosen.path, tmp_path / "noise"):
        with pytest.raises(StorageError):
            restore_backup(store.paths, path)
    with opened(data_dir) as store:
        assert titles(store) == {"Here"}
        assert store.notices == ()

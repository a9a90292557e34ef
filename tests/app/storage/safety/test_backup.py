"""Backups: verified copies, retention, cutting the journal, restoring, and kills while restoring."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled, DatabaseTooNew, DiskFull, InvalidInput, StorageError
from app.storage.engine import migrations
from app.storage.engine.connection import Connection, Values, connect
from app.storage.engine.journal import segments
from app.storage.engine.store import Store
from app.storage.safety import backup as backup_module
from app.storage.safety import image
from app.storage.safety.backup import (
    Backup,
    back_up_first,
    backups_of,
    backups_to_keep,
    copy_backup,
    delete_expired,
    list_backups,
    make_backup,
    try_backup,
)
from app.storage.safety.recovery import open_store
from app.storage.safety.restore import finish_restoring, restore_backup
from app.storage.tables.passages import spaces
from app.system.paths import DataPaths
from tests.fakes.libraries import zero
from tests.fakes.stored import add_conversation, add_running, made, opened, rows_of, tables, titles

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)
WAIT_S = 60


def add_segment(store: Store, title: str) -> None:
    add_conversation(store, "one", title=title)
    store.on_writer(store.journal.begin_segment).result()


def first_segments(store: Store) -> list[int]:
    return [first for first, _ in segments(store.paths.journal)]


def own_backups(store: Store) -> list[Backup]:
    return backups_of(store.paths.backups, store.uid)


def set_clock(patch: pytest.MonkeyPatch, *moments: datetime) -> None:
    """Let backups be made at these moments; the last one lasts."""
    clock = iter(moments)
    patch.setattr(backup_module, "now", lambda: next(clock, moments[-1]))


# -- copies
def test_a_backup_holds_what_the_database_holds_and_can_be_written_to(store: Store) -> None:
    add_conversation(store, "one", "two")
    backup = make_backup(store)
    assert backup.position == 1
    before = backup.path.read_bytes()
    image.verify(backup.path)
    assert backup.path.read_bytes() == before, "verifying changes nothing"
    with Connection(duckdb.connect(str(backup.path))) as copy:
        assert rows_of(copy) == tables(store)
        keys = "SELECT table_name FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
        assert len(copy.execute(keys).fetchall()) == len(tables(store))
        copy.execute("INSERT OR REPLACE INTO meta VALUES ('database_uid', 'x')")


def test_backups_are_made_one_after_the_other_while_others_read_and_write(store: Store) -> None:
    add_conversation(store, *"abcdef")
    with ThreadPoolExecutor(3) as pool:
        making = [pool.submit(make_backup, store) for _ in range(3)]
        while not all(each.done() for each in making):
            add_conversation(store, "more", title="More")
    assert len(list(store.paths.backups.iterdir())) == 3
    for each in own_backups(store):
        assert image.verify(each.path).position == each.position


def test_a_running_write_that_drops_passages_does_not_block_a_backup(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_conversation(store, "one")
    begun, go_on = threading.Event(), threading.Event()
    first = image._first

    def drop_slowly(connection: Connection) -> None:
        spaces.remove_passages(connection, [1])
        begun.set()
        go_on.wait(WAIT_S)

    def first_while_a_write_goes_on(connection: Connection, statement: str) -> object:
        if "position" in statement and not begun.is_set():  # the copy is attached by now
            store.write_derived(drop_slowly)
            assert begun.wait(WAIT_S)
        return first(connection, statement)

    monkeypatch.setattr(image, "_first", first_while_a_write_goes_on)
    try:
        with store.database.snapshot_cursor() as cursor:
            assert image.copy_into(cursor, store.paths.backups / "copy.duckdb")[0] == 1
    finally:
        go_on.set()


def test_a_backup_waits_for_a_query_that_lists_the_tables(store: Store) -> None:
    add_conversation(store, "one")
    begun, go_on = threading.Event(), threading.Event()

    def ask_slowly(cursor: Connection) -> object:
        spaces.spaces_with_table(cursor)  # enters every attached database
        begun.set()
        go_on.wait(WAIT_S)
        return cursor.execute("SELECT sum(hash(range)) FROM range(30_000_000)").fetchall()

    class Asked(Connection):
        """A connection beside which somebody asks, until the copy is to be checkpointed."""

        def __init__(self, connection: Connection) -> None:
            self._connection = connection

        def execute(self, statement: str, values: Values = ()) -> duckdb.DuckDBPyConnection:
            if statement == "COMMIT":
                reader.start()
                assert begun.wait(WAIT_S)
            elif "CHECKPOINT" in statement:
                go_on.set()
            return self._connection.execute(statement, values)

    reader = threading.Thread(target=store.read, args=(ask_slowly,))
    with store.database.snapshot_cursor() as cursor:
        copied = image.copy_into(Asked(cursor), store.paths.backups / "copy.duckdb")
    reader.join()
    assert copied[0] == 1


def test_an_unverified_copy_is_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_conversation(store, "one")
    copy_into = image.copy_into

    def lose_a_row(target: Path) -> None:
        with Connection(duckdb.connect(str(target))) as copy:
            copy.execute("DELETE FROM message WHERE id = 1")

    for spoil in (lose_a_row, lambda target: zero(target, 12288)):

        def broken(
            connection: Connection, target: Path, spoil: Callable[[Path], None] = spoil
        ) -> object:
            outcome = copy_into(connection, target)
            spoil(target)
            return outcome

        monkeypatch.setattr(image, "copy_into", broken)
        with pytest.raises(StorageError):
            make_backup(store)
        assert list(store.paths.backups.iterdir()) == []
    assert try_backup(store) is None
    monkeypatch.undo()
    assert try_backup(store) is not None


@pytest.mark.parametrize("hindered", ["no folder", "a folder in its place"])
def test_a_backup_that_cannot_be_written_says_so_and_stops_no_writing(
    store: Store, hindered: str
) -> None:
    add_conversation(store, "one", title="First")
    folder = store.paths.backups
    if hindered == "no folder":
        folder.rmdir()
        folder.write_text("")
    else:
        (folder / "unfinished.duckdb").mkdir()
    with pytest.raises(StorageError, match="The backup cannot be written"):
        make_backup(store)
    assert not store.database.is_damaged
    add_conversation(store, "two", title="Second")
    assert titles(store) == {"First", "Second"}
    if hindered == "no folder":
        folder.unlink()
        assert make_backup(store).path.exists(), "in a new folder"


def test_a_backup_that_little_memory_cannot_read_verifies_with_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_conversation(store, "long " * 400_000)
    backup = make_backup(store)
    monkeypatch.setattr(image, "_MEMORY_TO_VERIFY_MB", 1)
    assert image.verify(backup.path).position == backup.position


def test_a_file_that_is_no_backup_does_not_verify(tmp_path: Path) -> None:
    with Connection(duckdb.connect(str(tmp_path / "recipes.duckdb"))) as other:
        other.execute('CREATE TABLE "my ""best"" recipe\'s" (name VARCHAR)')
    duckdb.connect(str(tmp_path / "bare.duckdb")).close()
    (tmp_path / "noise.duckdb").write_bytes(os.urandom(9000))
    foreign = "not a database"
    names = (("recipes", foreign), ("bare", foreign), ("noise", foreign), ("none", "damaged"))
    for name, why in names:
        with pytest.raises(StorageError, match=why):
            image.verify(tmp_path / f"{name}.duckdb")


def test_a_flipped_bit_in_a_message_is_found_by_reading_every_row(store: Store) -> None:
    add_conversation(store, os.urandom(1 << 20).hex())
    backup = make_backup(store).path
    content = bytearray(backup.read_bytes())
    content[len(content) // 2] ^= 1  # most of the file is the message
    backup.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        image.verify(backup)


def test_copying_can_be_canceled(store: Store) -> None:
    add_conversation(store, *(f"{n} " * 5000 for n in range(200)))
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


def test_a_backup_is_copied_to_where_the_user_wants_it(store: Store, tmp_path: Path) -> None:
    add_conversation(store, "one")
    backup = make_backup(store)
    copy_backup(backup, tmp_path / "copy.duckdb")
    assert (tmp_path / "copy.duckdb").read_bytes() == backup.path.read_bytes()
    with pytest.raises(StorageError):
        copy_backup(backup, tmp_path / "no such folder" / "copy.duckdb")
    assert {path.name for path in tmp_path.iterdir()} == {"copy.duckdb", "data"}


# -- names, order, the journal
def test_backups_have_the_order_of_positions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("commonplace-yesterday.duckdb", "unfinished.duckdb", "other.txt"):
        (store.paths.backups / name).touch()
    assert list_backups(store.paths.backups) == []
    set_clock(monkeypatch, NOW + timedelta(days=365), NOW, NOW)
    for _ in range(3):
        add_conversation(store, "one")
        make_backup(store)
    assert [each.position for each in own_backups(store)] == [3, 2, 1], "two of one second"
    assert [each.position for each in list_backups(store.paths.backups)] == [1, 3, 2]


def test_the_journal_is_cut_only_behind_the_second_newest_backup(store: Store) -> None:
    for number in range(1, 5):
        add_segment(store, f"T{number}")
    assert first_segments(store) == [1, 2, 3, 4, 5]
    make_backup(store)
    assert first_segments(store)[0] == 1, "one backup alone may turn out damaged"
    add_segment(store, "T5")
    make_backup(store)
    assert first_segments(store) == [5, 6]
    add_conversation(store, "six", title="T6")
    newest, _ = list_backups(store.paths.backups)
    store.close()
    zero(newest.path, 12288)
    zero(store.paths.database, 12288)
    with opened(store.paths.root) as again:
        assert titles(again) == {f"T{n}" for n in range(1, 7)}


def test_the_journal_keeps_the_parts_of_a_running_reply(store: Store) -> None:
    add_running(store, "Why?")
    for _ in range(3):
        add_segment(store, "other")
        make_backup(store)
    assert first_segments(store)[0] == 1


def test_a_backup_before_a_large_change_is_made_only_when_something_changed(store: Store) -> None:
    add_conversation(store, "one")
    first = back_up_first(store)
    assert back_up_first(store) == first
    add_conversation(store, "two")
    assert back_up_first(store) != first


# -- retention
@st.composite
def histories(draw: st.DrawFn) -> list[Backup]:
    """Backups at any times, newest first."""
    ages = draw(st.lists(st.integers(0, 60 * 24 * 60), max_size=80, unique=True))
    return [Backup(Path(f"{age}"), NOW - timedelta(minutes=age), 0, "", 1) for age in sorted(ages)]


@given(histories(), st.integers(0, 100), st.integers(1, 10))
def test_retention_stays_in_the_cap_but_for_two(made: list[Backup], cap: int, size: int) -> None:
    kept = backups_to_keep(made, [size] * len(made), cap)
    stays = [each for each in made if each.path in kept]
    assert len(stays) >= min(2, len(made)), "never fewer than two"
    assert stays[:2] == made[:2] or len(stays) > 2, "the newest stay"
    assert made[:1] == stays[:1]
    assert len(stays) <= 2 or len(stays) * size <= cap, "within the cap"


@given(histories())
def test_without_a_size_limit_a_day_a_week_and_a_month_are_covered(made: list[Backup]) -> None:
    kept = backups_to_keep(made, [1] * len(made), 10**9)
    stays = [each for each in made if each.path in kept]
    assert backups_to_keep(stays, [1] * len(stays), 10**9) == kept, "again changes nothing"
    for each in made:
        age = made[0].made_at - each.made_at
        day, week = each.made_at.date(), each.made_at.isocalendar()[:2]
        same_day = [m for m in stays if m.made_at.date() == day]
        if age <= timedelta(days=1):
            assert each in stays
        if age <= timedelta(days=7):
            assert same_day
        if age <= timedelta(weeks=4):
            assert any(m.made_at.isocalendar()[:2] == week for m in stays)
        elif each not in made[:2]:
            assert each not in stays
        if each not in made[:2] and (made[0].made_at.date() - day).days > 1:
            assert len([m for m in same_day if m not in made[:2]]) <= 1


def test_retention_ignores_others_backups(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, *(NOW - timedelta(days=age) for age in (90, 60, 50, 0)))
    add_conversation(store, "one")
    theirs = make_backup(store).path
    foreign = theirs.rename(theirs.with_name(theirs.name[:-19] + "0123456789ab.duckdb"))
    for _ in range(3):
        make_backup(store)
    assert foreign.exists()
    assert len(own_backups(store)) == 2
    delete_expired(store.paths.backups, store.uid, cap_bytes=0)
    assert len(own_backups(store)) == 2


# -- restoring
class Killed(BaseException):
    """The program ended here."""


@pytest.fixture
def book(data_dir: Path) -> tuple[DataPaths, Backup]:
    """Return a library of two conversations, and its backup from the time of the first."""
    with opened(data_dir) as store:
        add_conversation(store, "one", title="Then")
        chosen = make_backup(store)
        add_conversation(store, "two", title="Now")
        make_backup(store)
    return DataPaths(data_dir), chosen


def reopened(paths: DataPaths) -> tuple[set[str], tuple[str, ...]]:
    store = open_store(paths)
    found = titles(store), store.notices
    store.close()
    return found


def test_what_a_restore_replaces_is_quarantined_completely(book: tuple[DataPaths, Backup]) -> None:
    paths, chosen = book
    with opened(paths.root) as store:
        generation = store.generation
    aside = restore_backup(paths, chosen.path)
    assert aside is not None
    assert [each.position for each in list_backups(paths.backups)] == [chosen.position]
    with opened(paths.root) as store:
        assert (titles(store), store.notices) == ({"Then"}, ())
        assert store.generation != generation
        add_conversation(store, "three", title="Another")
    paths.database.unlink()
    assert reopened(paths)[0] == {"Then", "Another"}, "the abandoned time line stays away"
    shutil.rmtree(paths.journal)
    paths.database.unlink()
    paths.journal.mkdir()
    for each in aside.iterdir():
        home = paths.journal if each.suffix == ".journal" else paths.root
        each.replace((paths.backups if each.name.startswith("commonplace-") else home) / each.name)
    assert reopened(paths)[0] == {"Then", "Now"}, "all of it can be put back by hand"


def test_a_backup_of_another_library_can_be_restored_and_is_not_moved(
    book: tuple[DataPaths, Backup], tmp_path: Path
) -> None:
    paths, chosen = book
    theirs = DataPaths(tmp_path / "other")
    theirs.make()
    store = open_store(theirs)  # a copy of the blank library would have our uid
    for number in range(9):
        add_conversation(store, f"number {number}", title="Elsewhere")
    foreign = make_backup(store).path
    store.close()
    shutil.copyfile(foreign, paths.backups / foreign.name)
    restore_backup(paths, chosen.path)
    assert (paths.backups / foreign.name).exists()
    restore_backup(paths, foreign)
    assert reopened(paths) == ({"Elsewhere"}, ())


def test_what_cannot_be_restored_is_refused_and_nothing_changed(
    book: tuple[DataPaths, Backup], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, chosen = book
    newer, damaged, noise = (tmp_path / name for name in ("newer.duckdb", "damaged", "noise"))
    for copy in (newer, damaged):
        shutil.copyfile(chosen.path, copy)
    with connect(newer, tmp_path) as connection:
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'schema_version'",
            [str(migrations.CURRENT_VERSION + 1)],
        )
    zero(damaged, 12288)
    noise.write_bytes(os.urandom(5000))
    for path, error in (
        (paths.database, InvalidInput), (newer, DatabaseTooNew), (damaged, StorageError),
        (noise, StorageError),
    ):  # fmt: skip
        with pytest.raises(error):
            restore_backup(paths, path)

    def fail(_source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("app.storage.safety.image.shutil.copyfile", fail)
        with pytest.raises(DiskFull):
            restore_backup(paths, chosen.path)
    assert reopened(paths) == ({"Then", "Now"}, ())
    assert not list(paths.backups.glob("restoring*"))


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return what ends the program at the nth move of a file, before or after it is done."""
    real = Path.replace

    def kill_at(step: int) -> None:
        steps = iter(range(1000))

        def move(path: Path, target: Path) -> Path:
            number = next(steps)
            if number == step // 2 and step % 2 == 0:
                raise Killed
            moved = real(path, target)
            if number == step // 2:
                raise Killed
            return moved

        monkeypatch.setattr(Path, "replace", move)

    yield kill_at
    monkeypatch.undo()


def test_a_kill_at_any_moment_leaves_the_one_state_or_the_other(
    book: tuple[DataPaths, Backup], tmp_path: Path, killing: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    paths, chosen = book
    seen: list[set[str]] = []
    notices: list[bool] = []
    for step in range(40):
        here = DataPaths(tmp_path / f"kill-{step}")
        shutil.copytree(paths.root, here.root)
        killing(step)
        try:
            restore_backup(here, here.backups / chosen.path.name)
            killed = False
        except Killed:
            killed = True
        monkeypatch.undo()
        found, noticed = reopened(here)
        assert reopened(here) == (found, ()), "and it stays so"
        seen.append(found)
        notices.append("The interrupted restore of a backup was completed." in noticed)
        if not killed:
            break
    else:
        raise AssertionError("it never came to its end")
    assert seen[0] == {"Then", "Now"}
    decided = seen.index({"Then"})
    assert all(each == {"Then"} for each in seen[decided:]), "once decided it is done"
    assert len(seen) > 8
    assert any(notices)
    assert not any(notices[:decided])


def test_an_unreadable_copy_is_quarantined(book: tuple[DataPaths, Backup]) -> None:
    paths, _ = book
    assert finish_restoring(made(paths.root)) is None, "without a copy there is nothing to finish"
    (paths.root / "restoring.duckdb").write_bytes(b"noise" * 5000)
    assert reopened(paths)[0] == {"Then", "Now"}
    assert not (paths.root / "restoring.duckdb").exists()
    assert list(paths.damaged.rglob("restoring.duckdb"))


def test_the_copy_is_durable_before_anything_is_moved(
    book: tuple[DataPaths, Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, chosen = book
    deeds: list[str] = []
    real_sync, real_move = image.fsync_path, Path.replace

    def sync(path: Path) -> None:
        deeds.append(f"sync {path.name}")
        real_sync(path)

    def move(path: Path, target: Path) -> Path:
        deeds.append(f"move {path.name}")
        return real_move(path, target)

    monkeypatch.setattr(image, "fsync_path", sync)
    monkeypatch.setattr(Path, "replace", move)
    restore_backup(paths, chosen.path)
    assert deeds[:2] == ["sync restoring.duckdb", "move restoring.duckdb"]

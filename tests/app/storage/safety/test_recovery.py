"""Recovery at startup: any state of a data directory opens with everything acknowledged.

The file, its log, backups and journal may be damaged or lost; the schema may be older or newer;
replies that were running are stored as interrupted.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import Mock

import duckdb
import pytest

from app.check import check
from app.domain import translation
from app.domain.changes import TEXT_WAS_THINKING, ExchangePut, SettingPut
from app.domain.conversations import ExchangeStatus
from app.domain.errors import (
    AlreadyOpen,
    DatabaseDamaged,
    DatabaseTooNew,
    ReadOnlyStorage,
    StorageError,
)
from app.storage.engine import migrations
from app.storage.engine.connection import Connection
from app.storage.engine.full_read import read_everything
from app.storage.engine.journal import Journal, segments
from app.storage.engine.store import Store
from app.storage.safety import fallbacks, image
from app.storage.safety.backup import backups_of, list_backups, make_backup
from app.storage.safety.recovery import open_store
from app.storage.tables.conversations import Conversations
from app.storage.tables.settings import Settings
from app.system.paths import DataPaths
from tests.fakes.damage import KINDS
from tests.fakes.libraries import EVERYTHING, Library, left_by_a_kill, zero
from tests.fakes.small_disk import small_disk
from tests.fakes.stored import (
    add_conversation,
    add_running,
    journal_reply,
    killed,
    opened,
    tables,
    titles,
)

WEEK_S = 7 * 24 * 3600


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return left_by_a_kill(tmp_path_factory.mktemp("original"))


@pytest.fixture
def library(original: Path, data_dir: Path) -> Library:
    shutil.copytree(original, data_dir)
    return Library(DataPaths(data_dir))


def foreign_database(path: Path) -> None:
    path.unlink(missing_ok=True)
    with Connection(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE recipes (name VARCHAR)")


def new_paths(root: Path) -> DataPaths:
    paths = DataPaths(root)
    paths.make()
    return paths


def content_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- the file as it is
@pytest.mark.parametrize("is_killed_early", [False, True])
def test_a_first_start_has_no_notices(data_dir: Path, is_killed_early: bool) -> None:
    paths = new_paths(data_dir)
    if is_killed_early:
        duckdb.connect(str(paths.database)).close()  # the file is there, its tables are not
    for _ in range(2):
        store = open_store(paths)
        assert store.notices == ()
        assert titles(store) == set()
        store.close()
    assert not paths.damaged.exists()


def test_after_a_kill_everything_acknowledged_is_there(library: Library) -> None:
    assert library.paths.wal.exists()
    assert library.opens() == ()
    assert library.damaged == set()


def test_replaying_onto_any_older_image_gives_the_same_tables(tmp_path: Path) -> None:
    images: list[Path] = []
    with opened(tmp_path / "live") as store:
        for number in range(3):
            images.append(killed(store, tmp_path / f"image{number}"))
            whole = add_conversation(store, "a", "b", title=f"T{number}")
            store.save(SettingPut("theme", '"dark"'))
        add_running(store, "still running")
        wanted = tables(store, "exchange", "meta", "state", "passage")
        for image in images:
            shutil.copytree(store.paths.journal, image / "journal", dirs_exist_ok=True)
    for image in images:
        with opened(image) as store:  # the reply that ran is ended meanwhile
            assert tables(store, "exchange", "meta", "state", "passage") == wanted
            assert Conversations(store).get(whole.conversation.id) == whole.conversation


# -- the write-ahead log
def test_a_stale_log_is_quarantined(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(library.paths.wal, tmp_path / "old.wal")
    with opened(library.paths.root):
        pass  # folded in: its deletion was never synced, and a power cut brings it back
    with opened(library.paths.root) as store:
        add_conversation(store, "more", title="More")
    shutil.copy(tmp_path / "old.wal", library.paths.wal)
    read = Mock(wraps=read_everything)
    monkeypatch.setattr(fallbacks, "read_everything", read)
    with opened(library.paths.root) as store:
        assert read.called, "what stays is read in full"
        assert titles(store) == EVERYTHING | {"More"}
        assert "damaged" in store.notices[0]
    assert library.damaged == {"commonplace.duckdb.wal"}


# -- the file itself

Damage = Callable[[Library], object]
DAMAGE: dict[str, Damage] = {
    "a torn sector of metadata": Library.tear_metadata,
    "cut in the middle": lambda lib: os.truncate(
        lib.paths.database, lib.paths.database.stat().st_size // 2
    ),
    "empty": lambda lib: os.truncate(lib.paths.database, 0),
    "another program's": lambda lib: foreign_database(lib.paths.database),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_quarantined_and_restored(library: Library, damage: Damage) -> None:
    damage(library)
    broken = library.paths.database.read_bytes()
    notices = library.opens()
    assert any("backup of" in notice for notice in notices)
    assert any("'damaged'" in notice for notice in notices)
    (kept,) = library.paths.damaged.rglob("commonplace.duckdb")
    assert kept.read_bytes() == broken, "the evidence is kept as it was found"
    assert {path.name for path in library.paths.backups.iterdir()} == {
        backup.path.name for backup in list_backups(library.paths.backups)
    }, "no temporary file is left"


def lose_backups(library: Library) -> None:
    shutil.rmtree(library.paths.backups)
    library.paths.make()


def steps(*each: Damage) -> Damage:
    def damage(library: Library) -> None:
        for step in each:
            step(library)

    return damage


# What happens to the files of a killed library, and a part of the notice, "" for none.
LOSSES: dict[str, tuple[Damage, str]] = {
    "the log": (lambda lib: lib.paths.wal.unlink(), ""),
    "the log and a sector": (
        steps(lambda lib: lib.paths.wal.unlink(), Library.tear_metadata), "backup of",
    ),
    "the backups and a sector": (
        steps(lose_backups, Library.tear_metadata), "the journal was read instead",
    ),
    "the file and the backups": (
        steps(lose_backups, lambda lib: lib.paths.database.unlink()), "missing",
    ),
    "the journal": (lambda lib: shutil.rmtree(lib.paths.journal), ""),
}  # fmt: skip


@pytest.mark.parametrize(("lose", "notice"), LOSSES.values(), ids=LOSSES)
def test_nothing_is_lost_with_parts_of_files(library: Library, lose: Damage, notice: str) -> None:
    lose(library)
    notices = library.opens()
    assert notice in " ".join(notices) if notice else notices == ()


def test_a_missing_file_is_restored_as_a_new_generation_with_fresh_ids(library: Library) -> None:
    with opened(library.paths.root) as store:
        uid, generation = store.uid, store.generation
        later = add_conversation(store, "five", title="Later")
    library.paths.database.rename(library.paths.wal)
    for is_restored in (True, False):
        with opened(library.paths.root) as store:
            assert titles(store) == EVERYTHING | {"Later"}
            assert store.uid == uid
            assert (store.generation != generation) is is_restored
            generation = store.generation
            assert store.ids.conversation() > later.conversation.id
            assert store.ids.exchange() > later.exchanges[0].id
            assert store.ids.message() > later.messages[-1].id
            if is_restored:
                assert store.notices[0] == "The database file was missing."
                assert "The backup of" in store.notices[1]
    assert library.damaged == {"commonplace.duckdb.wal"}, "DuckDB would have deleted it"


def test_a_file_older_than_its_backups_is_replaced_without_the_journal_between(
    library: Library, original: Path, tmp_path: Path
) -> None:
    with opened(library.paths.root) as store:
        old = killed(store, tmp_path / "old")
        add_conversation(store, "five", title="Later")
        for _ in range(2):
            make_backup(store)
            store.on_writer(store.journal.begin_segment).result()
        make_backup(store)
        assert segments(library.paths.journal)[0][0] > 5, "the journal was cut"
    shutil.copy(old / "commonplace.duckdb", library.paths.database)
    with opened(library.paths.root) as store:
        assert titles(store) == EVERYTHING | {"Later"}
        assert "older than its newest backup" in store.notices[0]


# -- backups and journal
@pytest.mark.parametrize("is_newer", [False, True], ids=["damaged", "newer"])
def test_an_unusable_backup_is_passed_over_and_kept(library: Library, is_newer: bool) -> None:
    newest, older = list_backups(library.paths.backups)
    if is_newer:
        with Connection(duckdb.connect(str(newest.path))) as backup:
            backup.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
    else:
        zero(newest.path, 12288)
    library.tear_metadata()
    before = newest.path.read_bytes()
    assert library.opens()
    assert newest.path.read_bytes() == before
    assert older.path.exists()


@pytest.mark.parametrize(
    ("language", "notice"), [("en", "There is nothing to restore"), ("de", "Es gibt nichts")]
)
def test_with_nothing_to_restore_the_library_is_empty_and_a_notice_says_so(
    data_dir: Path, language: str, notice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "_chosen", [language])
    paths = new_paths(data_dir)
    paths.database.write_bytes(b"garbage" * 1000)
    store = open_store(paths)
    assert store.notices[-1].startswith(notice)
    store.close()


def test_without_journal_and_log_the_file_is_still_newer_than_its_backups(library: Library) -> None:
    shutil.rmtree(library.paths.journal)
    library.paths.wal.unlink()
    with opened(library.paths.root) as store:
        assert titles(store) == {"First", "Second", "Third"}


def test_a_gap_in_the_journal_is_reported(library: Library) -> None:
    ((_, path),) = segments(library.paths.journal)
    library.paths.wal.unlink()
    content = bytearray(path.read_bytes())
    content[content.index(b'"theme"')] ^= 1
    path.write_bytes(content)
    with opened(library.paths.root) as store:
        assert titles(store) == EVERYTHING
        assert store.notices == ("1 change could not be read from the journal, which is damaged.",)
    with opened(library.paths.root) as store:
        assert store.notices == ()


def append_records(library: Library, *records: str) -> None:
    with opened(library.paths.root) as store:
        last = store.journal.last_position
    journal = Journal(library.paths.journal, store.uid, last)
    journal.append(records)
    journal.close_segment()


def test_a_record_that_cannot_be_applied_does_not_prevent_opening(library: Library) -> None:
    append_records(
        library,
        '[{"_":"TagsChanged","conversation_id":' + str(2**80) + ',"added":["x"]}]',
        '[{"_":"TagsChanged","conversation_id":1}, {"_":"SettingPut"}]',
        '[{"_":"SettingPut","key":"theme","value_json":"\\"light\\""}]',
    )
    with opened(library.paths.root) as store:
        assert store.notices == ("2 changes of the journal could not be applied.",)
        assert Settings(store).text("theme") == "light"
    with opened(library.paths.root) as store:
        assert store.notices == ()


def test_a_record_of_a_later_version_is_refused_and_kept(library: Library) -> None:
    append_records(library, '[{"_":"RoutineStarted","name":"x"}]')
    for _ in range(2):
        with pytest.raises(DatabaseTooNew, match="RoutineStarted"):
            open_store(library.paths)


def test_another_database_is_not_mixed_with_the_journal(library: Library, tmp_path: Path) -> None:
    theirs = new_paths(tmp_path / "theirs")  # a copy of the blank library would have the same uid
    store = open_store(theirs)
    add_conversation(store, "theirs", title="Theirs")
    store.close()
    library.paths.wal.unlink()
    shutil.copy(theirs.database, library.paths.database)
    with opened(library.paths.root) as mixed:
        assert titles(mixed) == {"Theirs"}
        assert "another database" in mixed.notices[0]
        (backup,) = backups_of(library.paths.backups, mixed.uid)
        assert backup.position == 1, "nothing else could bring back what came with the file"
        add_conversation(mixed, "more", title="More")
    assert len(list(library.paths.damaged.rglob("*.journal"))) == 1
    library.paths.database.unlink()
    with opened(library.paths.root) as mixed:
        assert titles(mixed) == {"Theirs", "More"}


# -- what is no damage
def test_another_process_that_has_it_open_is_named(library: Library) -> None:
    holder = subprocess.Popen(
        [
            sys.executable, "-c",
            "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()",
            str(library.paths.database),
        ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        holder.stdout.readline()
        with pytest.raises(AlreadyOpen):
            open_store(library.paths)
    finally:
        holder.communicate(b"\n")
    assert library.damaged == set()


@pytest.fixture
def read_only(library: Library, tmp_path: Path) -> Iterator[Library]:
    """The library on a disk that cannot be written: by permission, or for root by its mount."""
    with ExitStack() as stack:
        if os.geteuid() == 0:
            disk = stack.enter_context(small_disk(tmp_path / "disk", 32))
            shutil.copytree(library.paths.root, disk.root / "data")
            subprocess.run(["mount", "-o", "remount,ro", str(disk.root)], check=True)
            yield Library(DataPaths(disk.root / "data"))
        else:
            for path in (library.paths.root, *library.paths.root.rglob("*")):
                path.chmod(0o500 if path.is_dir() else 0o400)
            yield library
            for path in (library.paths.root, *library.paths.root.rglob("*")):
                path.chmod(0o700 if path.is_dir() else 0o600)


def test_a_read_only_directory_is_refused_and_unchanged(read_only: Library) -> None:
    with pytest.raises(ReadOnlyStorage):
        read_only.paths.make()
    with pytest.raises(ReadOnlyStorage):
        open_store(read_only.paths)
    assert read_only.damaged == set()


def test_tables_are_read_in_full_after_an_unclean_end_and_once_in_a_while(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Mock(wraps=read_everything)
    monkeypatch.setattr(fallbacks, "read_everything", reads)
    for _ in range(2):
        with opened(library.paths.root):
            assert reads.call_count == 1
    week_ago = library.paths.checked.stat().st_mtime - WEEK_S - 24 * 3600
    os.utime(library.paths.checked, (week_ago, week_ago))
    with opened(library.paths.root):
        assert reads.call_count == 2


@pytest.mark.parametrize(
    "error",
    [duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate"),
     duckdb.IOException("IO Error: Cannot open file: Too many open files"),
     duckdb.IOException("IO Error: Could not write file: No space left on device")],
    ids=["memory", "open files", "room"],
)  # fmt: skip
def test_lack_of_resources_is_not_damage(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: duckdb.Error
) -> None:
    with monkeypatch.context() as poor:
        poor.setattr(image, "identify", Mock(side_effect=error))
        with pytest.raises(StorageError):
            open_store(library.paths)
    assert library.damaged == set()
    assert library.opens() == ()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["cut file", "zeroed pages", "flipped bits"])
def test_damage_after_a_clean_end_is_repaired_by_the_first_start(
    library: Library, kind: str, seed: int
) -> None:
    library.opens()
    KINDS[kind](library.paths, Random(seed))
    with opened(library.paths.root) as store:
        assert check(store).problems == ()
        assert titles(store) == EVERYTHING | {"Fifth"}


def test_damage_found_by_a_write_is_repaired_at_the_next_start(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of an index is read when something is inserted; reading the rows does not meet it."""
    error = duckdb.Error("Corrupt database file: computed checksum 1 does not match 2")
    with opened(library.paths.root) as store, monkeypatch.context() as broken:
        broken.setattr(store, "apply", Mock(side_effect=error))
        with pytest.raises(DatabaseDamaged, match="to repair it"):
            add_conversation(store, "not saved", title="Not saved")
    assert not library.paths.closed.exists(), "so the next start reads everything"
    assert library.opens() == ()


# -- the schema

ADDS_A_COLUMN = migrations._script("ALTER TABLE draft ADD COLUMN colour VARCHAR")
FILLS_IT = migrations._script("UPDATE draft SET colour = 'red'", "CREATE TABLE extra (id BIGINT)")


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def become() -> None:
        monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, ADDS_A_COLUMN, FILLS_IT))
        monkeypatch.setattr(migrations, "CURRENT_VERSION", len(migrations.STEPS))

    return become


def test_an_older_schema_gets_a_backup(library: Library, next_version: Callable[[], None]) -> None:
    old = migrations.CURRENT_VERSION
    next_version()
    library.opens()
    newest, *_ = list_backups(library.paths.backups)
    with Connection(duckdb.connect(str(newest.path), read_only=True)) as backup:
        assert migrations.version_of(backup) == old
    with Connection(duckdb.connect(str(library.paths.database), read_only=True)) as live:
        assert migrations.version_of(live) == old + 2
        live.execute("SELECT colour FROM draft")
    assert len(list_backups(library.paths.backups)) == 3


def test_an_older_backup_is_restored(library: Library, next_version: Callable[[], None]) -> None:
    library.tear_metadata()
    next_version()
    library.opens()


@pytest.mark.parametrize("with_log", [True, False], ids=["with log", "without log"])
def test_a_newer_schema_is_refused_and_not_a_byte_changed(
    library: Library, monkeypatch: pytest.MonkeyPatch, with_log: bool
) -> None:
    if not with_log:
        with opened(library.paths.root):
            pass
    monkeypatch.setattr(migrations, "CURRENT_VERSION", migrations.CURRENT_VERSION - 1)
    before, threads = content_of(library.paths.root), threading.active_count()
    assert (library.paths.wal in before) is with_log
    with pytest.raises(DatabaseTooNew, match="newer version"):
        open_store(library.paths)
    assert content_of(library.paths.root) == before
    assert threading.active_count() == threads
    monkeypatch.undo()
    library.opens()


def test_a_migration_that_fails_leaves_whole_steps_and_a_message(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = migrations.CURRENT_VERSION
    broken = migrations._script("ALTER TABLE draft ADD COLUMN half VARCHAR", "SELECT 1 / 'a'")
    with monkeypatch.context() as later:
        later.setattr(migrations, "STEPS", (*migrations.STEPS, ADDS_A_COLUMN, broken))
        later.setattr(migrations, "CURRENT_VERSION", old + 2)
        with pytest.raises(StorageError, match="The database failed"):
            open_store(library.paths)
    assert library.damaged == set()
    with Connection(duckdb.connect(str(library.paths.database))) as found:
        assert migrations.version_of(found) == old + 1
        found.execute("SELECT colour FROM draft")
        with pytest.raises(duckdb.BinderException):
            found.execute("SELECT half FROM draft")
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, ADDS_A_COLUMN))
    monkeypatch.setattr(migrations, "CURRENT_VERSION", old + 1)
    library.opens()


# -- interrupted replies
def test_replies_that_ran_at_a_kill_are_stored_as_interrupted(store: Store, tmp_path: Path) -> None:
    add_conversation(store, "a", "b")
    whole, silent, retried, several = (add_running(store, each) for each in ("Why?", "1", "2", "3"))
    private = [add_running(store, each, private=True) for each in ("4", "5")]
    add_running(store, "6")
    ids = [store.ids.message() for _ in range(6)]
    running = whole.exchanges[0]
    journal_reply(store, running, ids[0], "Let me ", "think. ")
    journal_reply(store, running, ids[0], "", kind=TEXT_WAS_THINKING)
    journal_reply(store, running, ids[0], "Because ", "it is.")
    journal_reply(store, retried.exchanges[0], ids[1], "The first try")
    store.save(*retried.changes[2:])
    journal_reply(store, retried.exchanges[0], ids[2], "The second try")
    journal_reply(store, several.exchanges[0], ids[3], "I look it up.")
    journal_reply(store, several.exchanges[0], ids[4], "Here it is.")
    journal_reply(store, private[0].exchanges[0], ids[5], "Secret")
    # From here on the database is past the parts, and its counters do not know their messages.
    store.save(SettingPut("rag_enabled", "false"))
    after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as again:
        assert again.notices == (
            "7 replies were interrupted when the program ended; the parts received were kept.",
        )
        found = tables(again)
        assert [row[5] for row in found["exchange"]] == ["completed"] * 2 + ["interrupted"] * 7
        messages = {row[0]: row for row in found["message"]}
        answer = messages[ids[0]]
        assert (answer[3], answer[4], answer[5]) == (
            whole.messages[0].id, "assistant", "Because it is.",
        )  # fmt: skip
        assert '"text":"Let me think."' in str(answer[6])
        assert ids[1] not in messages, "a part from before a retry"
        assert messages[ids[2]][5] == "The second try"
        assert (messages[ids[3]][3], messages[ids[4]][3]) == (several.messages[0].id, ids[3])
        leaves = {row[0]: row[7] for row in found["conversation"]}
        assert leaves[whole.conversation.id] == ids[0]
        assert leaves[silent.conversation.id] == silent.messages[0].id
        passages = {row[3]: row[7] for row in found["passage"]}
        assert passages[whole.conversation.id] == 0, "an incomplete turn is in the text index only"
        assert silent.conversation.id in passages
        assert not {each.conversation.id for each in private} & passages.keys()
        assert again.ids.message() > max(ids)
    with opened(after_kill) as again:
        assert again.notices == ()


def test_a_branch_that_is_shown_meanwhile_stays_shown(store: Store, tmp_path: Path) -> None:
    shown = add_conversation(store, "a", "b")
    running = replace(
        shown.exchanges[1], id=store.ids.exchange(), status=ExchangeStatus.RUNNING,
        message_ids=(shown.messages[2].id,),
    )  # fmt: skip
    store.save(ExchangePut(running))
    journal_reply(store, running, store.ids.message(), "Because")
    with opened(killed(store, tmp_path / "killed")) as again:
        assert len(tables(again)["message"]) == 5
        leaf = Conversations(again).get(shown.conversation.id).visible_leaf_id
        assert leaf == shown.conversation.visible_leaf_id


def test_a_full_disk_at_startup_does_not_prevent_opening(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = add_running(store, "Why?")
    journal_reply(store, whole.exchanges[0], store.ids.message(), "Because")
    after_kill = killed(store, tmp_path / "killed")
    with monkeypatch.context() as full:
        full.setattr(Store, "save", Mock(side_effect=ReadOnlyStorage("not now")))
        with opened(after_kill) as again:
            assert tables(again)["exchange"][0][5] == "running"
    with opened(after_kill) as again:
        assert tables(again)["exchange"][0][5] == "interrupted"
        assert "1 reply was interrupted" in again.notices[0]

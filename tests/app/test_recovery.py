"""Whatever is found in a data directory, the program opens by itself, with everything acknowledged."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from app.domain.changes import SettingPut
from app.domain.errors import (
    AlreadyOpen,
    DatabaseDamaged,
    DatabaseTooNew,
    ReadOnlyStorage,
    StorageError,
)
from app.storage import image, migrations
from app.storage import store as store_module
from app.storage.backup import backups_of, list_backups, make_backup
from app.storage.conversations import Conversations
from app.storage.database import Connection
from app.storage.journal import Journal, segments
from app.storage.recovery import open_store
from app.storage.settings import Settings
from app.system.paths import DataPaths
from tests.fakes.libraries import EVERYTHING, Library, left_by_a_kill, zero
from tests.fakes.small_disk import small_disk
from tests.fakes.stored import asked, killed, opened, tables, titles, told


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return left_by_a_kill(tmp_path_factory.mktemp("original"))


@pytest.fixture
def library(original: Path, data_dir: Path) -> Library:
    shutil.copytree(original, data_dir)
    return Library(DataPaths(data_dir))


def foreign_database(path: Path) -> None:
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE recipes (name VARCHAR)")


# -- the file as it is


def test_a_first_start_begins_quietly(data_dir: Path) -> None:
    paths = DataPaths(data_dir)
    paths.make()
    for _ in range(2):
        store = open_store(paths)
        assert store.notices == ()
        assert titles(store) == set()
        store.close()
    assert not paths.damaged.exists()


def test_a_first_start_that_was_killed_early_begins_quietly_again(data_dir: Path) -> None:
    paths = DataPaths(data_dir)
    paths.make()
    with duckdb.connect(str(paths.database)):
        pass  # the file is there, its tables are not
    with opened(data_dir) as store:
        assert store.notices == ()


def test_after_a_kill_everything_acknowledged_is_there(library: Library) -> None:
    assert library.paths.wal.exists()
    assert library.opens() == ()
    assert library.damaged == set()


def test_the_newest_image_may_be_older_than_the_journal(library: Library, tmp_path: Path) -> None:
    with opened(library.paths.root) as store:
        older = killed(store, tmp_path / "older")
        told(store, "five", title="Later")
        newer = killed(store, tmp_path / "newer")
    shutil.copytree(newer / "journal", older / "journal", dirs_exist_ok=True)
    with opened(older) as store:
        assert titles(store) == EVERYTHING | {"Later"}


def test_replaying_onto_any_older_image_gives_the_same_tables(tmp_path: Path) -> None:
    images: list[Path] = []
    with opened(tmp_path / "live") as store:
        for number in range(4):
            images.append(killed(store, tmp_path / f"image{number}"))
            whole = told(store, "a", "b", title=f"T{number}")
            store.save(SettingPut("theme", '"dark"'))
        asked(store, "still running")
        wanted = tables(store, "exchange", "meta")
        journal = store.paths.journal
        for image in images:
            shutil.copytree(journal, image / "journal", dirs_exist_ok=True)
    for image in images:
        with opened(image) as store:
            found = tables(store, "exchange", "meta")
            for derived in ("state", "passage"):  # the reply that ran was ended meanwhile
                found.pop(derived), wanted.pop(derived, None)
            assert found == wanted
            assert Conversations(store).get(whole.conversation.id) == whole.conversation


# -- the write-ahead log


def test_a_missing_log_is_made_good_by_the_journal(library: Library) -> None:
    library.paths.wal.unlink()
    assert library.opens() == ()


@pytest.mark.parametrize("share", [0.3, 0.99])
def test_a_log_cut_anywhere_is_made_good_by_the_journal(library: Library, share: float) -> None:
    size = library.paths.wal.stat().st_size
    os.truncate(library.paths.wal, int(size * share))
    library.opens()


def test_a_log_that_came_back_is_set_aside(library: Library, tmp_path: Path) -> None:
    shutil.copy(library.paths.wal, tmp_path / "old.wal")
    with opened(library.paths.root):
        pass  # folded in: its deletion was never synced, and a power cut brings it back
    with opened(library.paths.root) as store:
        told(store, "more", title="More")
    shutil.copy(tmp_path / "old.wal", library.paths.wal)
    library.paths.unclean.touch()
    with opened(library.paths.root) as store:
        assert titles(store) == EVERYTHING | {"More"}
        assert "set aside" in store.notices[0]
    assert library.damaged == {"commonplace.duckdb.wal"}


def test_a_log_of_noise_is_set_aside(library: Library) -> None:
    library.paths.wal.write_bytes(os.urandom(5000))
    library.opens()


# -- the file itself

DAMAGE: dict[str, Callable[[Library], object]] = {
    "a torn sector of metadata": Library.tear_metadata,
    "cut in the middle": lambda lib: os.truncate(
        lib.paths.database, lib.paths.database.stat().st_size // 2
    ),
    "cut to its header": lambda lib: os.truncate(lib.paths.database, 4096),
    "empty": lambda lib: os.truncate(lib.paths.database, 0),
    "noise": lambda lib: lib.paths.database.write_bytes(os.urandom(100_000)),
    "no database at all": lambda lib: lib.paths.database.write_text("hello " * 9000),
    "another program's": lambda lib: foreign_database(lib.paths.database),
    "a folder's worth of zeros": lambda lib: zero(lib.paths.database, 0, 1 << 30),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_set_aside_and_restored(
    library: Library, damage: Callable[[Library], object]
) -> None:
    damage(library)
    broken = library.paths.database.read_bytes()
    notices = library.opens()
    assert any("backup of" in notice for notice in notices)
    assert any("'damaged'" in notice for notice in notices)
    (kept,) = library.paths.damaged.rglob("commonplace.duckdb")
    assert kept.read_bytes() == broken, "the evidence is kept as it was found"


def test_damage_to_a_file_without_a_log_is_found_too(library: Library) -> None:
    library.paths.wal.unlink()
    library.tear_metadata()
    assert any("backup of" in notice for notice in library.opens())


def test_a_bit_that_flipped_in_a_table_is_found_after_an_unclean_end(library: Library) -> None:
    library.paths.wal.unlink()
    content = bytearray(library.paths.database.read_bytes())
    for offset in range(300_000, len(content), 4096):
        content[offset] ^= 1
    library.paths.database.write_bytes(content)
    library.opens()


def test_a_missing_file_is_restored(library: Library) -> None:
    library.paths.database.unlink()
    notices = library.opens()
    assert notices[0] == "The database file was missing."
    assert "backup of" in notices[1]
    assert library.damaged == {"commonplace.duckdb.wal"}, "DuckDB would have deleted it"


def test_a_restored_database_is_a_new_generation_for_its_indexes(library: Library) -> None:
    with opened(library.paths.root) as store:
        before = (store.uid, store.generation)
    library.paths.database.unlink()
    with opened(library.paths.root) as store:
        assert store.uid == before[0]
        assert store.generation != before[1]
        after = store.generation
    with opened(library.paths.root) as store:
        assert store.generation == after


def test_a_file_older_than_its_backups_gives_way_when_the_journal_does_not_reach_back(
    library: Library, original: Path, tmp_path: Path
) -> None:
    with opened(library.paths.root) as store:
        old = killed(store, tmp_path / "old")
        told(store, "five", title="Later")
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


def test_a_damaged_backup_gives_way_to_the_next(library: Library) -> None:
    newest, older = list_backups(library.paths.backups)
    zero(newest.path, 12288)
    library.tear_metadata()
    before = newest.path.read_bytes()
    library.opens()
    assert newest.path.read_bytes() == before
    assert older.path.exists()


def test_without_a_backup_the_journal_tells_it_all(library: Library) -> None:
    for backup in list_backups(library.paths.backups):
        backup.path.unlink()
    library.tear_metadata()
    notices = library.opens()
    assert "There was no backup to restore; the journal was read instead." in notices


def test_where_nothing_is_left_to_restore_from_an_empty_book_says_so(data_dir: Path) -> None:
    paths = DataPaths(data_dir)
    paths.make()
    paths.database.write_bytes(b"garbage" * 1000)
    store = open_store(paths)
    assert store.notices[-1] == "Nothing was left to restore it from: the book begins empty."
    store.close()


def test_without_file_and_backup_the_journal_tells_it_all(library: Library) -> None:
    shutil.rmtree(library.paths.backups)
    library.paths.database.unlink()
    assert "missing" in library.opens()[0]


def test_without_a_journal_the_file_is_what_there_is(library: Library) -> None:
    shutil.rmtree(library.paths.journal)
    assert library.opens() == ()


def test_without_journal_and_log_the_file_is_still_newer_than_its_backups(library: Library) -> None:
    shutil.rmtree(library.paths.journal)
    library.paths.wal.unlink()
    with opened(library.paths.root) as store:
        assert titles(store) == {"First", "Second", "Third"}


def test_a_gap_in_the_journal_is_told(library: Library) -> None:
    ((_, path),) = segments(library.paths.journal)
    library.paths.wal.unlink()
    content = bytearray(path.read_bytes())
    content[content.index(b'"theme"')] ^= 1
    path.write_bytes(content)
    with opened(library.paths.root) as store:
        assert titles(store) == EVERYTHING
        assert store.notices == ("1 changes could not be read from the journal, which is damaged.",)
    with opened(library.paths.root) as store:
        assert store.notices == ()


def test_one_record_that_cannot_be_applied_keeps_nobody_out(library: Library) -> None:
    with opened(library.paths.root) as store:
        last = store.journal.last_position
    journal = Journal(library.paths.journal, store.uid, last)
    journal.append(
        [
            '[{"_":"TagsChanged","conversation_id":' + str(2**80) + ',"added":["x"]}]',
            '[{"_":"TagsChanged","conversation_id":1}, {"_":"SettingPut"}]',
            '[{"_":"SettingPut","key":"theme","value_json":"\\"light\\""}]',
        ]
    )
    journal.close_segment()
    with opened(library.paths.root) as store:
        assert store.notices == ("2 changes of the journal could not be applied.",)
        assert Settings(store).text("theme") == "light"
    with opened(library.paths.root) as store:
        assert store.notices == ()


def test_a_record_of_a_later_version_is_refused_and_kept(library: Library) -> None:
    with opened(library.paths.root) as store:
        last = store.journal.last_position
    journal = Journal(library.paths.journal, store.uid, last)
    journal.append(['[{"_":"RoutineStarted","name":"x"}]'])
    journal.close_segment()
    for _ in range(2):
        with pytest.raises(DatabaseTooNew, match="RoutineStarted"):
            open_store(library.paths)


def test_a_database_of_another_uid_is_mixed_with_nothing(library: Library, tmp_path: Path) -> None:
    theirs = DataPaths(tmp_path / "theirs")
    theirs.make()
    store = open_store(theirs)
    told(store, "theirs", title="Theirs")
    store.close()
    library.paths.wal.unlink()
    shutil.copy(theirs.database, library.paths.database)
    with opened(library.paths.root) as mixed:
        assert titles(mixed) == {"Theirs"}
        assert "another database" in mixed.notices[0]
        (backup,) = backups_of(library.paths.backups, mixed.uid)
        assert backup.position == 1, "nothing else could bring back what came with the file"
        told(mixed, "more", title="More")
    assert len(list(library.paths.damaged.rglob("*.journal"))) == 1
    library.paths.database.unlink()
    with opened(library.paths.root) as mixed:
        assert titles(mixed) == {"Theirs", "More"}


# -- ids


def test_ids_are_never_given_twice_after_a_restore(library: Library) -> None:
    with opened(library.paths.root) as store:
        later = told(store, "five", title="Later")
        used = (later.conversation.id, later.exchanges[0].id, later.messages[-1].id)
    library.tear_metadata()
    with opened(library.paths.root) as store:
        assert titles(store) == EVERYTHING | {"Later"}
        fresh = (store.ids.conversation(), store.ids.exchange(), store.ids.message())
        assert all(new > old for new, old in zip(fresh, used, strict=True))


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


def test_a_directory_that_cannot_be_written_is_refused_and_left_alone(read_only: Library) -> None:
    with pytest.raises(ReadOnlyStorage):
        read_only.paths.make()
    with pytest.raises(ReadOnlyStorage):
        open_store(read_only.paths)
    assert read_only.damaged == set()


def test_a_failed_start_leaves_no_thread_and_no_lock(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "CURRENT_VERSION", 0)
    before = threading.active_count()
    with pytest.raises(DatabaseTooNew):
        open_store(library.paths)
    assert threading.active_count() == before
    monkeypatch.undo()
    library.opens()


def test_tables_are_read_in_full_after_an_unclean_end_and_once_in_a_while(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = image.read_everything

    def counted(connection: Connection) -> dict[str, int]:
        reads.append(1)
        return read(connection)

    monkeypatch.setattr(image, "read_everything", counted)
    with opened(library.paths.root):
        assert reads == [1]
    with opened(library.paths.root):
        assert reads == [1]
    week_ago = library.paths.checked.stat().st_mtime - 8 * 24 * 3600
    os.utime(library.paths.checked, (week_ago, week_ago))
    with opened(library.paths.root):
        assert reads == [1, 1]


def test_nothing_of_the_ladder_is_left_lying_about(library: Library) -> None:
    library.tear_metadata()
    library.opens()
    assert {path.name for path in library.paths.backups.iterdir()} == {
        backup.path.name for backup in list_backups(library.paths.backups)
    }


@pytest.mark.parametrize(
    "error",
    [
        duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate"),
        duckdb.IOException("IO Error: Cannot open file: Too many open files"),
        duckdb.IOException("IO Error: Could not write file: No space left on device"),
    ],
    ids=["memory", "open files", "room"],
)
def test_what_the_machine_lacks_is_no_damage(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: duckdb.Error
) -> None:
    def refuse(*_: object) -> Connection:
        raise error

    with monkeypatch.context() as poor:
        poor.setattr(image, "recognised", refuse)
        with pytest.raises(StorageError):
            open_store(library.paths)
    assert library.damaged == set()
    assert library.opens() == ()


def test_damage_that_only_a_write_meets_is_mended_at_the_next_start(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of an index is read when something is inserted; reading the rows does not meet it."""
    error = duckdb.Error("Corrupt database file: computed checksum 1 does not match 2")

    def refuse(*_: object) -> None:
        raise error

    with opened(library.paths.root) as store, monkeypatch.context() as broken:
        broken.setattr(store_module, "apply_records", refuse)
        with pytest.raises(DatabaseDamaged, match="mend itself"):
            told(store, "not saved", title="Not saved")
    assert library.paths.unclean.exists(), "so the next start reads everything"
    assert library.opens() == ()

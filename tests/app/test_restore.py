"""Going back to a backup, and being killed at any moment of it: the one state or the other."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.domain.errors import DatabaseTooNew, DiskFull, InvalidInput
from app.storage import migrations, restore
from app.storage.backup import Backup, fsync_path, list_backups, make_backup
from app.storage.database import connect
from app.storage.recovery import open_store
from app.storage.restore import finish_restoring, restore_backup
from app.system.paths import DataPaths
from tests.fakes.stored import made, opened, titles, told


class Killed(BaseException):
    """The program ended here."""


@pytest.fixture
def book(data_dir: Path) -> tuple[DataPaths, Backup]:
    """Return a book of two conversations, and its backup from the time of the first."""
    with opened(data_dir) as store:
        told(store, "one", title="Then")
        chosen = make_backup(store)
        told(store, "two", title="Now")
        make_backup(store)
    return DataPaths(data_dir), chosen


def strangers_backup(tmp_path: Path) -> Backup:
    """Return the backup of a book that was begun on its own, later than all of ours."""
    paths = DataPaths(tmp_path / "other")
    paths.make()
    store = open_store(paths)
    for number in range(9):
        told(store, f"number {number}", title="Elsewhere")
    backup = make_backup(store)
    store.close()
    return backup


def reopened(paths: DataPaths) -> tuple[set[str], tuple[str, ...]]:
    store = open_store(paths)
    found = titles(store), store.notices
    store.close()
    return found


def test_what_was_there_is_kept_aside_whole(book: tuple[DataPaths, Backup]) -> None:
    paths, chosen = book
    aside = restore_backup(paths, chosen.path)
    assert aside is not None
    assert reopened(paths) == ({"Then"}, ())
    names = {each.name for each in aside.iterdir()}
    assert "commonplace.duckdb" in names
    assert any(name.endswith(".journal") for name in names)
    assert [each.position for each in list_backups(paths.backups)] == [chosen.position]
    for name in ("journal", "commonplace.duckdb"):
        place = paths.root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    paths.journal.mkdir()
    for each in aside.iterdir():
        home = paths.journal if each.suffix == ".journal" else paths.root
        each.replace((paths.backups if each.name.startswith("commonplace-") else home) / each.name)
    assert reopened(paths)[0] == {"Then", "Now"}, "all of it can be put back by hand"


def test_a_restored_book_goes_on(book: tuple[DataPaths, Backup]) -> None:
    paths, chosen = book
    restore_backup(paths, chosen.path)
    with opened(paths.root) as store:
        told(store, "three", title="Since")
    assert reopened(paths)[0] == {"Then", "Since"}


def test_backups_of_another_book_stay_where_they_are(
    book: tuple[DataPaths, Backup], tmp_path: Path
) -> None:
    paths, chosen = book
    foreign = strangers_backup(tmp_path)
    shutil.copyfile(foreign.path, paths.backups / foreign.path.name)
    restore_backup(paths, chosen.path)
    assert (paths.backups / foreign.path.name).exists()


def test_a_backup_of_another_book_can_be_restored(
    book: tuple[DataPaths, Backup], tmp_path: Path
) -> None:
    paths, _ = book
    foreign = strangers_backup(tmp_path)
    restore_backup(paths, foreign.path)
    assert reopened(paths) == ({"Elsewhere"}, ())


def test_the_database_itself_is_no_backup(book: tuple[DataPaths, Backup]) -> None:
    paths, _ = book
    with pytest.raises(InvalidInput, match="is the database itself"):
        restore_backup(paths, paths.database)
    assert reopened(paths)[0] == {"Then", "Now"}


def test_a_backup_from_a_newer_program_is_refused(
    book: tuple[DataPaths, Backup], tmp_path: Path
) -> None:
    paths, chosen = book
    newer = tmp_path / "newer.duckdb"
    shutil.copyfile(chosen.path, newer)
    with connect(newer, tmp_path) as connection:
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'schema_version'",
            [str(migrations.CURRENT_VERSION + 1)],
        )
    with pytest.raises(DatabaseTooNew):
        restore_backup(paths, newer)
    assert reopened(paths)[0] == {"Then", "Now"}


def test_a_disk_without_room_changes_nothing(
    book: tuple[DataPaths, Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, chosen = book

    def fail(_source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.storage.restore.shutil.copyfile", fail)
        with pytest.raises(DiskFull):
            restore_backup(paths, chosen.path)
    assert reopened(paths) == ({"Then", "Now"}, ())
    assert not list(paths.backups.glob("restoring*"))


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return what makes the nth move of a file its last deed, before or after it is done."""
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


@pytest.mark.parametrize("outside", [False, True], ids=["a backup of the folder", "one elsewhere"])
def test_a_kill_at_any_moment_leaves_the_one_state_or_the_other(
    book: tuple[DataPaths, Backup],
    tmp_path: Path,
    outside: bool,
    killing: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths, chosen = book
    source = tmp_path / "elsewhere.duckdb" if outside else chosen.path
    if outside:
        chosen.path.replace(source)
    seen: list[set[str]] = []
    for step in range(40):
        here = DataPaths(tmp_path / f"kill-{step}")
        shutil.copytree(paths.root, here.root)
        killing(step)
        try:
            restore_backup(here, source if outside else here.backups / chosen.path.name)
            killed = False
        except Killed:
            killed = True
        monkeypatch.undo()
        found, _ = reopened(here)
        assert found in ({"Then"}, {"Then", "Now"})
        assert reopened(here)[0] == found, "and it stays so"
        seen.append(found)
        if not killed:
            break
    else:
        raise AssertionError("it never came to its end")
    assert seen[0] == {"Then", "Now"}
    decided = seen.index({"Then"})
    assert all(each == {"Then"} for each in seen[decided:]), "once decided it is done"
    assert len(seen) > 8


def test_the_next_start_says_that_it_finished_a_restore(
    book: tuple[DataPaths, Backup], killing: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, chosen = book
    killing(4)
    with pytest.raises(Killed):
        restore_backup(paths, chosen.path)
    monkeypatch.undo()
    found, notices = reopened(paths)
    assert found == {"Then"}
    assert "The backup that was being restored is in place now." in notices


def test_a_copy_that_cannot_be_read_any_more_is_set_aside(
    book: tuple[DataPaths, Backup],
) -> None:
    paths, _ = book
    (paths.root / "restoring.duckdb").write_bytes(b"noise" * 5000)
    assert reopened(paths)[0] == {"Then", "Now"}
    assert not (paths.root / "restoring.duckdb").exists()
    assert list(paths.damaged.rglob("restoring.duckdb"))


def test_without_a_copy_there_is_nothing_to_finish(data_dir: Path) -> None:
    assert finish_restoring(made(data_dir)) is None


def test_the_copy_is_durable_before_anything_is_moved(
    book: tuple[DataPaths, Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, chosen = book
    deeds: list[str] = []
    real_sync, real_move = fsync_path, Path.replace

    def sync(path: Path) -> None:
        deeds.append(f"sync {path.name}")
        real_sync(path)

    def move(path: Path, target: Path) -> Path:
        deeds.append(f"move {path.name}")
        return real_move(path, target)

    monkeypatch.setattr(restore, "fsync_path", sync)
    monkeypatch.setattr(Path, "replace", move)
    restore_backup(paths, chosen.path)
    assert deeds[:2] == ["sync restoring.duckdb", "move restoring.duckdb"]

"""The data directory: unusual names and places work, or are refused before anything is created."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.check import check
from app.domain.errors import InvalidInput
from app.storage.safety.backup import make_backup
from app.storage.safety.restore import restore_backup
from app.system.paths import DataPaths
from tests.fakes.stored import add_conversation, opened, titles

NAMES = (
    "it's  \"quoted\";\t DROP TABLE message;\n-- %20&#;$HOME`x`|:@ [x]*{y}",
    "-dash \U0001f3f3\ufe0f\u200d\U0001f308 \u00fc \u6f22\u5b57", "~", "a" * 255, "\u00fc" * 127,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_library_in_a_folder_of_any_name_works_and_is_restored(tmp_path: Path, name: str) -> None:
    paths = DataPaths(tmp_path / name)
    paths.make()
    with opened(paths.root) as store:
        add_conversation(store, "before", title="Before")
        backup = make_backup(store)
        add_conversation(store, "after", title="After")
        store.checkpoint().result()
    restore_backup(paths, backup.path)
    with opened(paths.root) as again:
        assert titles(again) == {"Before"}
        assert check(again).problems == ()
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_the_folder_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "library"
    link.symlink_to(tmp_path / "disk", target_is_directory=True)
    with opened(link) as store:
        add_conversation(store, "here", title="Here")
        make_backup(store)
    assert link.is_symlink()
    with opened(tmp_path / "disk") as again:
        assert titles(again) == {"Here"}


@pytest.mark.parametrize("name", ["what?", "back\\slash", "no text \udcff"], ids=range(3))
def test_a_path_that_the_database_misreads_creates_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        DataPaths(tmp_path / name).make()
    assert list(tmp_path.iterdir()) == []


def _replace_by_an_older_copy(paths: DataPaths, older: Path) -> None:
    shutil.copy(older, paths.root / "synced")
    (paths.root / "synced").replace(paths.database)


def _remove(paths: DataPaths, _older: Path) -> None:
    paths.database.unlink()
    paths.wal.unlink(missing_ok=True)


@pytest.mark.parametrize("meddle", [_replace_by_an_older_copy, _remove])
def test_a_database_file_that_another_program_changes_meanwhile_costs_nothing(
    data_dir: Path, meddle: Callable[[DataPaths, Path], None]
) -> None:
    """As a program that synchronizes or cleans up folders does."""
    with opened(data_dir) as store:
        older = data_dir / "older"
        shutil.copy(store.paths.database, older)
        add_conversation(store, "before", title="Before")
        make_backup(store)
        add_conversation(store, "between", title="Between")
        meddle(store.paths, older)
        add_conversation(store, "after", title="After")
    with opened(data_dir) as again:
        assert titles(again) == {"Before", "Between", "After"}
        assert check(again).problems == ()

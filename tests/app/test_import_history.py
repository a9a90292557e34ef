"""Import history: what an import adds is shown before, noted, and moved to the trash as a whole."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited
from app.domain.errors import ImportRefused, NotFound
from app.domain.ids import ConversationId
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.transfer.export_cache import ExportCache
from app.transfer.import_history import ImportHistory
from app.transfer.importing import import_files
from tests.fakes.stored import AT, add_conversation
from ui.presenters.imports import SAMPLE


def present(store: Store) -> set[ConversationId]:
    rows = Conversations(store).by_ids(range(1, 1000))
    return {each.id for each in rows.values() if each.deleted_at is None}


def test_a_dry_run_names_what_an_import_would_add_and_stores_nothing(store: Store) -> None:
    before = add_conversation(store, "Mine").conversation
    report = import_files(store, [SAMPLE], dry_run=True)
    assert len(report.new) == report.conversations > 1
    assert all(each.title and each.created_at.tzinfo for each in report.new)
    assert present(store) == {before.id}
    assert ImportHistory(store).listed() == []


def test_an_import_is_undone_as_a_whole_and_nothing_else_is(store: Store) -> None:
    before = add_conversation(store, "Mine").conversation
    report = import_files(store, [SAMPLE])
    after = add_conversation(store, "Mine too").conversation
    history = ImportHistory(store)
    (past,) = history.listed()
    assert (past.number, past.conversations) == (report.number, report.conversations)
    assert past.names == (SAMPLE.name,)
    assert set(history.undo(past.number)) == {each.id for each in report.new}
    assert present(store) == {before.id, after.id}
    assert history.listed()[0].conversations == 0
    with pytest.raises(NotFound):
        history.undo(9)


def test_importing_again_brings_back_what_an_undo_moved_and_not_what_was_deleted(
    store: Store,
) -> None:
    report = import_files(store, [SAMPLE])
    deleted, *others = [each.id for each in report.new]
    store.save(ConversationEdited(deleted, deleted_at=AT))
    history = ImportHistory(store)
    history.undo(report.number)
    preview = import_files(store, [SAMPLE], dry_run=True)
    again = import_files(store, [SAMPLE])
    for each in (preview, again):
        assert (each.conversations, each.restored, each.in_trash) == (0, len(others), 1)
    assert present(store) == set(others)
    assert set(history.undo(again.number)) == set(others)


def test_what_was_undone_and_then_deleted_by_itself_stays_in_the_trash(store: Store) -> None:
    report = import_files(store, [SAMPLE])
    ImportHistory(store).undo(report.number)
    kept = report.new[0].id
    store.save(ConversationEdited(kept, restored=True))
    store.save(ConversationEdited(kept, deleted_at=AT))
    assert import_files(store, [SAMPLE]).in_trash == 1
    assert kept not in present(store)


def test_only_the_last_imports_are_kept(store: Store, tmp_path: Path) -> None:
    history = ImportHistory(store)
    report = import_files(store, [SAMPLE])
    for _ in range(60):
        history.add(["a.zip"], [each.id for each in report.new])
    numbers = [each.number for each in history.listed()]
    assert numbers == list(range(61, 11, -1))


@pytest.mark.parametrize("in_memory_bytes", [100, 1 << 20])
def test_an_import_after_its_preview_does_not_read_the_file_again(
    store: Store, tmp_path: Path, in_memory_bytes: int
) -> None:
    path = tmp_path / "archive.json"
    shutil.copy(SAMPLE, path)
    stamp = path.stat()
    cache = ExportCache(in_memory_bytes)
    preview = import_files(store, [path], dry_run=True, read=cache.read)
    path.write_text(" " * stamp.st_size, encoding="utf-8")  # as if it had not changed
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    report = import_files(store, [path], read=cache.read)
    assert (report.conversations, report.messages) == (preview.conversations, preview.messages)


@pytest.mark.parametrize("kept_bytes", [100, 1 << 20])
def test_a_file_that_changed_or_is_large_is_read_again(
    store: Store, tmp_path: Path, kept_bytes: int
) -> None:
    path = tmp_path / "archive.json"
    shutil.copy(SAMPLE, path)
    cache = ExportCache(kept_bytes=kept_bytes)
    import_files(store, [path], dry_run=True, read=cache.read)
    stamp = path.stat()
    size_bytes = 4 if kept_bytes > stamp.st_size else stamp.st_size
    path.write_text("gone".ljust(size_bytes), encoding="utf-8")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(ImportRefused):
        import_files(store, [path], read=cache.read)


def test_a_cache_that_is_closed_while_a_file_is_read_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "archive.json"
    shutil.copy(SAMPLE, path)
    stamp, cache = path.stat(), ExportCache()

    def read() -> Iterator[object]:
        return cache.read(path, cancelled=lambda: False, on_bytes=lambda _read, _total: None)

    reading = read()
    next(reading)
    cache.close()
    assert list(reading)
    path.write_text(" " * stamp.st_size, encoding="utf-8")  # as if it had not changed
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(ImportRefused):
        list(read())

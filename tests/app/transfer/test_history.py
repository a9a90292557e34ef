"""Import history: what an import adds is shown before, noted, and moved to the trash as a whole."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.chat.library import Library
from app.check import check
from app.domain import codec
from app.domain.changes import (
    Change,
    ConversationEdited,
    ExchangePut,
    ImportNoted,
    MessagesAdded,
    SettingPut,
    SummaryPut,
)
from app.domain.conversations import SAMPLE_SOURCE, Text
from app.domain.deletions import MessagesForgotten
from app.domain.errors import ImportRefused, NotFound
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.transfer import ImportedConversation, Skipped
from app.domain.turns import calculate_exchanges
from app.storage.deletion.forget import forget_messages, forget_value, remove_added
from app.storage.engine import migrations
from app.storage.engine.connection import Connection, Values
from app.storage.engine.earlier_imports import add_import_items
from app.storage.engine.journal import JournalReader
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables import conversations
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.imports import forget_edits
from app.storage.tables.summaries import Summaries
from app.storage.work.summary_work import SummaryWork
from app.system.paths import DataPaths
from app.transfer import import_history, importing
from app.transfer.export_cache import ExportCache
from app.transfer.import_history import ImportHistory, Undone
from app.transfer.importers import read_export
from app.transfer.importing import import_files
from tests.fakes.stored import AT, add_conversation, make_earlier, opened
from ui.presenters.imports import SAMPLE

_BEFORE_ITEMS = migrations.STEPS.index(add_import_items)


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
    assert set(history.undo(past.number).conversations) == {each.id for each in report.new}
    assert present(store) == {before.id, after.id}
    assert history.listed()[0].conversations == 0
    with pytest.raises(NotFound):
        history.undo(9)


def test_importing_again_brings_back_what_an_undo_moved_not_what_was_deleted(store: Store) -> None:
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
    assert set(history.undo(again.number).conversations) == set(others)


def test_what_was_undone_and_then_deleted_by_itself_stays_in_the_trash(store: Store) -> None:
    report = import_files(store, [SAMPLE])
    ImportHistory(store).undo(report.number)
    kept = report.new[0].id
    store.save(ConversationEdited(kept, restored=True))
    store.save(ConversationEdited(kept, deleted_at=AT))
    assert import_files(store, [SAMPLE]).in_trash == 1
    assert kept not in present(store)


def test_only_the_last_imports_are_kept(store: Store) -> None:
    history, report = ImportHistory(store), import_files(store, [SAMPLE])
    for _ in range(60):
        number = history.begin(["a.zip"])
        store.save(*(ImportNoted(number, each.id, is_new=True) for each in report.new))
    assert [each.number for each in history.listed()] == list(range(61, 11, -1))
    assert store.row("SELECT min(number) FROM import_item") == (12,)


def test_an_import_that_was_killed_can_be_undone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_BATCH_CONVERSATIONS", 1)
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    before = _tree(store)
    path = _export(tmp_path, "b.json", [("bread", _MORE), ("tea", _BEGUN)])

    def read(path: Path, **_more: object) -> Iterator[ImportedConversation | Skipped]:
        yield from read_export(path)
        raise _Killed

    with pytest.raises(_Killed):
        import_files(store, [path], read=read)
    past, _ = ImportHistory(store).listed()
    assert (past.names, past.conversations, past.messages) == (("b.json",), 1, 3)
    assert ImportHistory(store).undo(past.number).messages == 3
    assert _tree(store) == before


class _Killed(BaseException):
    """The end of the process."""


def test_an_undone_import_takes_back_the_title_and_date_that_it_gave(
    store: Store, tmp_path: Path
) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    (before,) = Conversations(store).listed()
    more = _export(tmp_path, "b.json", [("bread", _MORE)], "Loaves")
    for title in ("", "Mine"):
        report = import_files(store, [more])
        (here,) = Conversations(store).listed()
        assert here.title == "Loaves"
        assert here.updated_at > before.updated_at
        if title:
            Library(store).rename(here.id, title)
        ImportHistory(store).undo(report.number)
        (left,) = Conversations(store).listed()
        if not title:
            assert left == before
        assert (left.title, left.updated_at) == (title or before.title, before.updated_at)
    assert check(store).problems == ()


def test_an_import_that_only_changed_a_title_can_be_undone(store: Store, tmp_path: Path) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    import_files(store, [_export(tmp_path, "b.json", [("bread", _BEGUN)], "Loaves")])
    history = ImportHistory(store)
    past = history.listed()[0]
    assert (past.conversations, past.messages, past.changed) == (0, 0, 1)
    assert past.can_be_undone
    assert history.undo(past.number) == Undone([], 0, 1)
    assert [each.title for each in Conversations(store).listed()] == ["bread"]
    assert not history.get(past.number).can_be_undone
    assert history.undo(past.number) == Undone([])


@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
def test_titles_of_undone_imports_do_not_return_in_any_order(
    store: Store, tmp_path: Path, order: Sequence[int]
) -> None:
    for number, title in enumerate(["bread", "Loaves", "Rolls"], 1):
        assert (
            import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)], title)]).number
            == number
        )
    (here,) = Conversations(store).listed()
    assert here.title == "Rolls"
    for number in order:
        ImportHistory(store).undo(number)
    (here,) = Conversations(store).listed()
    assert here.title == "bread"


def test_a_tag_given_later_comes_with_an_import_and_stays_away_once_removed(
    store: Store, tmp_path: Path
) -> None:
    def imported(project: str) -> int:
        path = _export(tmp_path, "a.json", [("bread", _BEGUN)])
        return import_files(store, [_with_project(path, project)]).number

    imported("")
    (here,) = Conversations(store).listed()
    number = imported("Loaves")
    assert _tags(store) == {"bread": ("Loaves",)}
    ImportHistory(store).undo(number)
    assert _tags(store) == {}
    imported("Loaves")
    assert _tags(store) == {"bread": ("Loaves",)}, "nobody but the undo removed it"
    Library(store).tag([here.id], [], ["Loaves"])
    assert imported("Loaves") == 0
    assert _tags(store) == {}
    store.database.write(lambda connection: forget_edits(connection, "true", []))
    assert imported("Rolls") == 0, "what an earlier version imported has no notes"


@pytest.mark.parametrize("is_undone", [False, True])
def test_a_tag_given_here_which_an_import_has_too_stays_away_once_removed(
    store: Store, tmp_path: Path, *, is_undone: bool
) -> None:
    path, history = _export(tmp_path, "a.json", [("bread", _BEGUN)]), ImportHistory(store)
    import_files(store, [path])
    (here,) = Conversations(store).listed()
    Library(store).tag([here.id], ["Loaves"])
    number = import_files(store, [_with_project(path, "Loaves")]).number
    assert not history.get(number).can_be_undone
    assert number not in [each.number for each in history.listed()], "it did nothing to undo"
    if is_undone:
        history.undo(number)
    assert _tags(store) == {"bread": ("Loaves",)}
    Library(store).tag([here.id], [], ["Loaves"])
    assert import_files(store, [path]).number == 0
    assert _tags(store) == {}


def test_a_tag_given_here_after_an_undo_stays_away_once_removed(
    store: Store, tmp_path: Path
) -> None:
    path, history = _export(tmp_path, "a.json", [("bread", _BEGUN)]), ImportHistory(store)
    import_files(store, [path])
    history.undo(import_files(store, [_with_project(path, "Loaves")]).number)
    (here,) = Conversations(store).listed()
    Library(store).tag([here.id], ["Loaves"])
    import_files(store, [path])
    Library(store).tag([here.id], [], ["Loaves"])
    assert import_files(store, [path]).number == 0
    assert _tags(store) == {}


def test_a_second_undo_takes_no_tag_that_the_user_gave_after_the_first(
    store: Store, tmp_path: Path
) -> None:
    history = ImportHistory(store)
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    (here,) = Conversations(store).listed()
    path = _export(tmp_path, "b.json", [("bread", _BEGUN), ("tea", _BEGUN)])
    number = import_files(store, [_with_project(path, "Loaves")]).number
    history.undo(number)
    Library(store).tag([here.id], ["Loaves"])
    assert import_files(store, [path]).restored == 1
    assert len(history.undo(number).conversations) == 1
    Library(store).tag([here.id], [], ["Loaves"])
    import_files(store, [path])
    assert "bread" not in _tags(store)


def test_a_title_that_a_repeated_import_gave_again_returns(store: Store, tmp_path: Path) -> None:
    history = ImportHistory(store)
    paths = [
        _export(tmp_path, f"{each}.json", [("bread", _BEGUN)], each)
        for each in ("bread", "Loaves", "Rolls")
    ]
    import_files(store, paths[:1])
    history.undo(import_files(store, paths[1:2]).number)
    import_files(store, paths[1:2])
    history.undo(import_files(store, paths[2:]).number)
    assert Conversations(store).listed()[0].title == "Loaves"


def test_other_writes_come_between_the_parts_of_an_undo_which_can_be_killed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["bread", "rye", "oats", "wheat"]
    import_files(store, [_export(tmp_path, "a.json", [(each, _BEGUN) for each in names])])
    before = sorted(_tree(store))
    more = [(each, _MORE) for each in names]
    path = _export(tmp_path, "b.json", [*more, ("tea", _BEGUN)], "Loaves")
    number = import_files(store, [path]).number
    monkeypatch.setattr(conversations, "_PART_MESSAGES", 1)
    saved: list[tuple[Change, ...]] = []

    def save(store: Store, *changes: Change) -> object:
        if len(saved) == 3:
            raise _Killed
        saved.append(changes)
        return store.commit(*changes).result()

    history = ImportHistory(store)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "save", save)
        with pytest.raises(_Killed):
            history.undo(number)
    past = history.get(number)
    assert (past.messages, past.conversations, past.changed) == (6, 1, 4)
    history.undo(number)
    assert sorted(_tree(store)) == before
    assert not history.get(number).can_be_undone
    assert import_files(store, [path]).restored == 1
    assert check(store).problems == ()


def test_a_second_undo_leaves_what_an_import_after_the_first_one_gave(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, history = ("bread", "rye"), ImportHistory(store)
    import_files(store, [_export(tmp_path, "a.json", [(each, _BEGUN) for each in names])])
    before = {each.id: each for each in Conversations(store).listed()}
    path = _export(tmp_path, "b.json", [(each, _MORE) for each in names], "Loaves")
    number = import_files(store, [_with_project(path, "Bakery")]).number
    monkeypatch.setattr(conversations, "_PART_MESSAGES", 1)
    calls = iter([remove_added])

    def once(*given: Any) -> Any:
        return next(calls)(*given)

    with monkeypatch.context() as patched:
        patched.setattr(import_history, "remove_added", once)
        with pytest.raises(StopIteration):
            history.undo(number)
    again = import_files(store, [path])
    assert again.messages == 3
    given = {each.id: each for each in Conversations(store).listed()}
    history.undo(number)
    one, other = sorted(Conversations(store).listed(), key=lambda each: each.title)
    assert (one, other) == (given[one.id], before[other.id])
    assert _tags(store) == {"Loaves": ("Bakery",)}
    import_files(store, [path])
    tags = Conversations(store).tags_of([one.id, other.id])
    assert tags == {one.id: ("Bakery",), other.id: ("Bakery",)}, "no user removed one"
    assert check(store).problems == ()


def test_an_import_that_begins_during_an_undo_is_listed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])]).number
    path = _export(tmp_path, "b.json", [("tea", _BEGUN)])

    def others(*given: Any) -> Any:
        import_files(store, [path])
        return remove_added(*given)

    monkeypatch.setattr(import_history, "remove_added", others)
    ImportHistory(store).undo(number)
    assert [each.names for each in ImportHistory(store).listed()] == [("b.json",), ("a.json",)]


def test_the_statements_of_an_undo_are_the_same_for_more_conversations(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, executed, counts = Connection.execute, 0, list[int]()

    def counted(connection: Connection, statement: str, values: Values = ()) -> Any:
        nonlocal executed
        executed += 1
        return execute(connection, statement, values)

    monkeypatch.setattr(Connection, "execute", counted)
    for count in (2, 30):
        names = [f"{count}-{each}" for each in range(count)]
        import_files(store, [_export(tmp_path, "a.json", [(each, _BEGUN) for each in names])])
        path = _export(tmp_path, "b.json", [(each, _MORE) for each in names])
        number, executed = import_files(store, [path]).number, 0
        assert ImportHistory(store).undo(number).messages == 3 * count
        counts.append(executed)
    assert counts[0] >= counts[1]


def test_what_was_forgotten_or_removed_is_in_no_note(store: Store, tmp_path: Path) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("canary", _BEGUN), ("gone", _BEGUN)])])
    more = [("canary", _MORE), ("gone", _MORE)]
    import_files(store, [_export(tmp_path, "b.json", more, "Loaves")])
    assert store.row("SELECT count(*) FROM import_item WHERE contains(edits, 'canary')") == (1,)
    forget_value(store, "canary")
    gone = next(each for each in Conversations(store).listed())
    forget_messages(store, [Exchanges(store).messages_in(gone.id)[0].id])
    texts = store.rows("SELECT edits FROM import_item WHERE conversation_id = ?", [gone.id])
    assert ("{}",) in texts
    assert not store.rows("SELECT * FROM import_item WHERE contains(edits, 'canary')")


def test_an_undone_import_that_is_undone_again_keeps_what_was_renamed_since(
    store: Store, tmp_path: Path
) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    number = import_files(store, [_export(tmp_path, "b.json", [("bread", _MORE)], "Loaves")]).number
    ImportHistory(store).undo(number)
    (here,) = Conversations(store).listed()
    Library(store).rename(here.id, "Loaves")
    ImportHistory(store).undo(number)
    assert Conversations(store).listed()[0].title == "Loaves"


def test_what_was_undone_twice_returns_as_a_whole(store: Store, tmp_path: Path) -> None:
    path = _export(tmp_path, "a.json", [("bread", _BEGUN), ("rye", _BEGUN)])
    number = import_files(store, [path]).number
    history = ImportHistory(store)
    (one, _) = history.undo(number).conversations
    Library(store).restore(one)
    assert history.undo(number).conversations == [one]
    assert history.undo(number).conversations == []
    assert import_files(store, [path]).restored == 2


def test_a_forgotten_value_leaves_the_names_of_imported_files(store: Store, tmp_path: Path) -> None:
    import_files(store, [_export(tmp_path, "canary.json", [("bread", _BEGUN)])])
    for value in ("names", "canary"):
        forget_value(store, value)
    assert ImportHistory(store).listed()[0].names == ("[forgotten].json",)


@pytest.mark.parametrize("value", ["title", "10:02"])
def test_an_import_can_be_undone_after_a_value_in_its_notes_was_forgotten(
    store: Store, tmp_path: Path, value: str
) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    number = import_files(store, [_export(tmp_path, "b.json", [("bread", _MORE)], "Loaves")]).number
    forget_value(store, value)
    assert ImportHistory(store).undo(number).messages == 3


@pytest.mark.parametrize("leaves", [[[3, 3]], []])
def test_an_import_of_an_earlier_version_can_be_undone(
    tmp_path: Path, leaves: list[list[int]]
) -> None:
    root = tmp_path / "data"
    with opened(root) as store:
        import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN), ("rye", _BEGUN)])])
        before = _tree(store)
        import_files(store, [_export(tmp_path, "b.json", [("bread", _MORE), ("oats", _MORE)])])
        after, known = _tree(store), ImportHistory(store).listed()
        times = [each.at for each in known]
        items = store.rows("SELECT * FROM import_item ORDER BY place")
        first, last = next((row[5], row[6]) for row in items if row[5] is not None)
        new = {
            number: [row[3] for row in items if row[2] == number and row[4]] for number in (1, 2)
        }
        rows = [
            {"number": each.number, "at": each.at.isoformat(), "names": each.names,
             "spans": [[own, own] for own in new[each.number]]}
            for each in reversed(known)
        ]  # fmt: skip
        rows[1] |= {"messages": [[first, last]], "leaves": leaves}
        store.save(SettingPut("import_history", json.dumps(json.dumps(rows))))
    make_earlier(DataPaths(root).database, _BEFORE_ITEMS)
    with opened(root) as store:
        history = ImportHistory(store)
        assert [(e.conversations, e.messages) for e in history.listed()] == [(1, 3), (2, 0)]
        assert ([each.at for each in history.listed()], _tree(store)) == (times, after)
        history.undo(2)  # no earlier dates were noted, so that they stay
        assert sorted(_tree(store)) == sorted(before)
        history.undo(1)
        assert _tree(store) == []
        assert import_files(store, [tmp_path / "a.json"]).restored == 2
        assert check(store).problems == ()


def test_the_sample_archive_of_an_earlier_version_is_known_as_the_sample(tmp_path: Path) -> None:
    root, earlier = tmp_path / "data", tmp_path / "sample.json"
    earlier.write_text(SAMPLE.read_text("utf-8").replace('"source": "sample",', ""), "utf-8")
    with opened(root) as store:
        mine = add_conversation(store, "Mine", source="chatgpt").conversation.id
        assert import_files(store, [earlier]).conversations == 19
        assert _of_source(store, SAMPLE_SOURCE) == set()
    make_earlier(DataPaths(root).database, migrations.STEPS.index(migrations._SAMPLE_SOURCE))
    with opened(root) as store:
        assert _of_source(store, SAMPLE_SOURCE) == present(store) - {mine}
        assert import_files(store, [SAMPLE]).number == 0, "all of it is known"
        assert check(store).problems == ()


def _of_source(store: Store, source: str) -> set[int]:
    return set(store.column("SELECT id FROM conversation WHERE source = ?", [source]))


@pytest.mark.parametrize("kept", ['""', "null", '"[{"', "[]", '"[{}]"'])
def test_a_damaged_list_of_earlier_imports_does_not_keep_the_library_closed(
    tmp_path: Path, kept: str
) -> None:
    with opened(tmp_path / "data") as store:
        add_conversation(store, "Mine")
        change = "INSERT OR REPLACE INTO appconfig VALUES ('import_history', ?)"
        store.database.write(lambda connection: connection.execute(change, [kept]))
    make_earlier(DataPaths(tmp_path / "data").database, _BEFORE_ITEMS)
    with opened(tmp_path / "data") as store:
        assert len(present(store)) == 1


def test_an_import_without_notes_is_not_there(store: Store) -> None:
    row = {"number": 1, "at": now().isoformat(), "names": ["a.json"]}
    store.save(SettingPut("import_history", json.dumps(json.dumps([row]))))
    for look in (ImportHistory(store).get, ImportHistory(store).undo):
        with pytest.raises(NotFound):
            look(1)


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
def test_a_changed_or_large_file_is_reread(store: Store, tmp_path: Path, kept_bytes: int) -> None:
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


# -- messages added to conversations that were there
def _export(
    folder: Path, name: str, conversations: Sequence[tuple[str, Sequence[str]]], title: str = ""
) -> Path:
    """Write an export of Claude: (id, texts of user and assistant in turn)."""
    document = [
        {
            "uuid": own,
            "name": title or own,
            "created_at": "2026-03-04T10:00:00Z",
            "chat_messages": [
                {
                    "uuid": f"{own}-{place}", "sender": "assistant" if place % 2 else "human",
                    "text": text, "created_at": f"2026-03-04T10:{place:02}:00Z",
                }
                for place, text in enumerate(texts)
            ],
        }
        for own, texts in conversations
    ]  # fmt: skip
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _with_project(path: Path, name: str) -> Path:
    document = [each | {"project": {"name": name}} for each in json.loads(path.read_text())]
    path.write_text(json.dumps(document))
    return path


def _tags(store: Store) -> dict[str, tuple[str, ...]]:
    """The tags by the titles of the conversations that have some."""
    titles: dict[int, str] = {each.id: each.title for each in Conversations(store).listed()}
    return {titles[own]: tags for own, tags in Conversations(store).tags_of([*titles]).items()}


_BEGUN = ["How do I bake bread?", "Mix flour and water.", "And then?"]
_MORE = [*_BEGUN, "Bake it.", "How hot?", "Very hot."]


def _tree(store: Store) -> list[tuple[str, list[tuple[str, ...]], str]]:
    """Each conversation: its title, the texts of its exchanges, and the last shown text."""
    exchanges, found = Exchanges(store), []
    for each in Conversations(store).listed():
        texts = {message.id: message.text for message in exchanges.messages_in(each.id)}
        turns = [tuple(texts[own] for own in turn.message_ids) for turn in exchanges.of(each.id)]
        found.append((each.title, turns, texts[each.visible_leaf_id or MessageId(0)]))
    return found


def _summary(store: Store) -> SummaryPut:
    """Return a summary of the only conversation as it is now."""
    (here,) = Conversations(store).listed()
    stamp = SummaryWork(store).stamp("conversation", here.id)
    return SummaryPut("conversation", here.id, here.id, "Bread.", "m", stamp, now())


def _takes_summary(store: Store) -> bool:
    made = _summary(store)
    store.save(made)
    latest = Summaries(store).latest("conversation", [made.source_id])
    return latest[made.source_id].made_at == made.made_at


def test_messages_that_an_import_added_to_a_conversation_are_removed_and_can_be_imported_again(
    store: Store, tmp_path: Path
) -> None:
    first = import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    before = _tree(store)
    more = _export(tmp_path, "b.json", [("bread", _MORE)])
    report = import_files(store, [more])
    assert (report.conversations, report.messages) == (0, 3)
    history, whole = ImportHistory(store), _tree(store)
    added, begun = history.listed()
    assert (added.number, added.conversations, added.messages) == (report.number, 0, 3)
    assert (begun.number, begun.conversations, begun.messages) == (first.number, 1, 0)
    late = _summary(store)
    assert history.undo(report.number) == Undone([], 3, 1)
    assert _tree(store) == before
    store.save(late)
    assert store.rows("SELECT text FROM summary") == [], "it was made from what is gone"
    assert history.get(report.number).messages == 0
    assert check(store).problems == ()
    assert _takes_summary(store), "with one of the same content left out, it is made for ever"
    assert import_files(store, [more]).messages == 3
    assert _tree(store) == whole
    assert _takes_summary(store)
    assert check(store).problems == ()


def test_an_undone_import_keeps_messages_continued_here(store: Store, tmp_path: Path) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN[:2])])])
    report = import_files(store, [_export(tmp_path, "b.json", [("bread", _MORE)])])
    (conversation,) = Conversations(store).listed()
    messages = Exchanges(store).messages_in(conversation.id)
    own = replace(
        messages[2], id=MessageId(99), uid="own", parent_id=messages[3].id, blocks=(Text("Mine"),)
    )
    new_id = ExchangeId(99)
    known = Exchanges(store).of(conversation.id)
    made = calculate_exchanges([*messages, own], lambda: new_id, known)
    store.save(MessagesAdded((own,)), *map(ExchangePut, made))
    assert ImportHistory(store).undo(report.number) == Undone([], 2, 1)
    assert [text for _, turns, _ in _tree(store) for turn in turns for text in turn] == [
        *_BEGUN, "Bake it.", "Mine",
    ]  # fmt: skip
    assert check(store).problems == ()


def test_an_imported_regenerated_reply_leaves_the_first_one(store: Store, tmp_path: Path) -> None:
    path = _export(tmp_path, "a.json", [("bread", _BEGUN[:2])])
    import_files(store, [path])
    before = _tree(store)
    document = json.loads(path.read_text())
    _, answer = document[0]["chat_messages"]
    other = {**answer, "uuid": "other", "text": "Ask a baker.", "parent_message_uuid": "bread-0"}
    answer["parent_message_uuid"] = "bread-0"
    document[0]["chat_messages"].append(other)
    path.write_text(json.dumps(document))
    report = import_files(store, [path])
    assert len(_tree(store)[0][1]) == 2
    assert ImportHistory(store).undo(report.number) == Undone([], 1, 1)
    assert _tree(store) == before
    assert check(store).problems == ()


def test_what_was_undone_stays_so_after_a_journal_replay(store: Store, tmp_path: Path) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    report = import_files(store, [_export(tmp_path, "b.json", [("bread", _MORE), ("tea", _BEGUN)])])
    moved = ImportHistory(store).undo(report.number)
    assert (len(moved.conversations), moved.messages) == (1, 3)
    records: list[tuple[int, tuple[Change, ...]]] = [
        (each.position, codec.loads(tuple[Change, ...], each.payload))
        for each in JournalReader(store.paths.journal, 0)
    ]
    before = _tree(store)
    store.database.write(lambda connection: store.apply(connection, records, lambda: None))
    assert _tree(store) == before
    assert check(store).problems == ()


@pytest.mark.parametrize("file_count", [1, 2])
def test_undoing_an_import_shows_the_branch_that_was_shown_before_it(
    store: Store, tmp_path: Path, file_count: int
) -> None:
    """It goes on from the first of three answers, of which the second was shown."""
    parents = ["", *["bread-0"] * 3, "bread-1", "bread-4"]
    texts = ["How do I bake bread?", "Mix.", "Knead.", "Wait.", "And then?", "Bake it."]

    def export(name: str, count: int, shown: int) -> Path:
        path = _export(tmp_path, name, [("bread", texts[:count])])
        document = json.loads(path.read_text())
        for place, each in enumerate(document[0]["chat_messages"]):
            each |= {"sender": "human" if place in (0, 4) else "assistant"}
            each |= {"parent_message_uuid": parents[place]}
        document[0]["current_leaf_message_uuid"] = f"bread-{shown}"
        path.write_text(json.dumps(document))
        return path

    import_files(store, [export("a.json", 4, 2)])
    before = _tree(store)
    report = import_files(store, [export("b.json", 5, 4), export("c.json", 6, 5)][-file_count:])
    assert before[0][2] != _tree(store)[0][2] == "Bake it."
    ImportHistory(store).undo(report.number)
    assert _tree(store) == before
    assert check(store).problems == ()


def test_a_removal_by_an_earlier_version_shows_the_branch_that_it_names(
    store: Store, tmp_path: Path
) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _MORE)])])
    (here,) = Conversations(store).listed()
    own = [each.id for each in Exchanges(store).messages_in(here.id)]
    store.save(ConversationEdited(here.id, visible_leaf_id=own[5]))
    add = replace(Exchanges(store).messages_in(here.id)[1], id=store.ids.message(), uid="other")
    store.save(MessagesAdded((add,)))
    store.save(MessagesForgotten(here.id, (own[5],), "bread", removes=True, shown=add.id))
    assert Conversations(store).get(here.id).visible_leaf_id == add.id


def test_a_forgotten_message_does_not_count_and_stays_gone(store: Store, tmp_path: Path) -> None:
    import_files(store, [_export(tmp_path, "a.json", [("bread", _BEGUN)])])
    more = _export(tmp_path, "b.json", [("bread", _MORE)])
    report = import_files(store, [more])
    (conversation,) = Conversations(store).listed()
    *_, last = Exchanges(store).messages_in(conversation.id)
    forget_messages(store, [last.id])
    history = ImportHistory(store)
    assert history.get(report.number).messages == 2
    assert history.undo(report.number).messages == 0, "it is followed by the forgotten one"
    assert import_files(store, [more]).messages == 0

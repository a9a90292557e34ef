"""Import history: what an import adds is shown before, noted, and moved to the trash as a whole."""

from pathlib import Path

import pytest

from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.transfer.import_history import ImportHistory
from app.transfer.importing import import_files
from tests.fakes.stored import add_conversation
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
    again = import_files(store, [SAMPLE])
    assert (again.conversations, again.in_trash, again.number) == (0, report.conversations, 0)
    with pytest.raises(NotFound):
        history.undo(9)


def test_only_the_last_imports_are_kept(store: Store, tmp_path: Path) -> None:
    history = ImportHistory(store)
    report = import_files(store, [SAMPLE])
    for _ in range(60):
        history.add(["a.zip"], report.new)
    numbers = [each.number for each in history.listed()]
    assert numbers == list(range(61, 11, -1))

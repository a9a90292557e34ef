"""Several conversations of the list at once: selection, menu, one transaction and one Undo."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMainWindow
from pytestqt.qtbot import QtBot

from app.chat.library import Library
from app.domain.ids import ConversationId
from app.storage.tables.conversations import Conversations, ListFilter
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import AT, Parts, Recorder, conversation, press, view_of
from tests.fakes.stored import add_conversation, opened
from ui.models.conversations import dragged_conversations
from ui.presenters.conversation.list_commands import ConversationCommands
from ui.views.actions import add_actions
from ui.views.sidebar import Sidebar

ONE, TWO = ConversationId(1), ConversationId(2)


class Bulk:
    """The presenter over recorders; conversation 2 is open."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.library, self.window = parts, Recorder(), QMainWindow()
        self.removal = Recorder(forget=("Two backups remain.",))
        parts.open.open_path(view_of(1, id=TWO))
        self.moved: list[Any] = []
        self.presenter = parts.make(
            ConversationCommands, library=self.library, removal=self.removal,
            actions=add_actions(self.window), ask_for_project=self.moved.append,
        )  # fmt: skip
        self.presenter.show_opened(conversation(TWO))

    def run(self, number: int, **state: Any) -> None:
        """Run an entry of the menu of two conversations."""
        two = [conversation(ONE, **state), conversation(TWO, **state)]
        self.presenter.menu_of(two)[number][1]()

    def undo(self) -> None:
        """Press the button of the message."""
        act = self.parts.banner.act
        assert act is not None
        act()


bulk = fixture_of(Bulk)


@pytest.mark.parametrize("archived", [False, True])
def test_archiving_several_is_one_call_and_has_one_undo(bulk: Bulk, archived: bool) -> None:
    bulk.run(0, archived=archived)
    bulk.undo()
    assert bulk.library.calls == [
        ("archive", [ONE, TWO], not archived), ("archive", [ONE, TWO], archived),
    ]  # fmt: skip
    assert bulk.parts.open.view is not None


def test_deleting_several_leaves_the_open_one_and_can_be_undone(bulk: Bulk) -> None:
    bulk.run(2)
    assert bulk.moved == [[ONE, TWO]]
    bulk.run(3)
    dialog = bulk.parts.dialog(QFileDialog)
    assert dialog.selectedFiles()[0].endswith("commonplace.md")
    dialog.reject()
    bulk.run(4)
    bulk.undo()
    assert bulk.removal.calls == [("delete", ONE, TWO)]
    assert bulk.library.calls == [("restore", ONE, TWO)]
    assert bulk.parts.open.view is None
    assert bulk.parts.open.shown == []


def test_several_are_tagged_together(bulk: Bulk) -> None:
    bulk.run(1)
    (dialog,) = bulk.parts.banner.findChildren(QInputDialog)
    dialog.setTextValue("work, to read,")
    dialog.accept()
    assert bulk.library.calls == [("tag", [ONE, TWO], ["work", "to read"])]
    assert "#to read" in bulk.parts.banner.messages[-1]


def test_several_are_forgotten_from_the_trash_after_a_yes(bulk: Bulk) -> None:
    bulk.run(1, deleted_at=AT)
    press("Cancel", bulk.parts.banner)
    assert bulk.removal.calls == []
    bulk.run(1, deleted_at=AT)
    press("Forget", bulk.parts.banner)
    assert bulk.removal.calls == [("forget", [ONE, TWO])]
    bulk.run(0, deleted_at=AT)
    assert bulk.library.calls == [("restore", ONE, TWO)]


def test_ctrl_selects_several_without_opening_them_and_they_stay_selected(qtbot: QtBot) -> None:
    sidebar = Sidebar()
    sidebar.resize(300, 400)
    sidebar.show()
    rows = [conversation(ConversationId(each)) for each in (1, 2, 3)]
    sidebar.show_conversations(rows, "")
    opened_ids: list[int] = []
    sidebar.conversation_chosen.connect(lambda each: opened_ids.append(each.id))
    view = sidebar.conversation_list

    def click(number: int, keys: Qt.KeyboardModifier) -> None:
        at = view.visualRect(sidebar.conversations.row_of(ConversationId(number))).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, keys, at - QPoint(0, 2))

    click(1, Qt.KeyboardModifier.NoModifier)
    click(3, Qt.KeyboardModifier.ControlModifier)
    assert [each.id for each in sidebar.selected_conversations] == [1, 3]
    drag = sidebar.conversation_list.drag()
    assert dragged_conversations(drag.mimeData()) == [1, 3]
    assert drag.pixmap().height() < 2 * view.visualRect(view.indexAt(QPoint(9, 9))).height()
    drag.deleteLater()
    sidebar.select_conversation(1)
    sidebar.show_conversations(rows, "")
    assert [each.id for each in sidebar.selected_conversations] == [1, 3]
    assert opened_ids == [1]
    click(2, Qt.KeyboardModifier.NoModifier)
    assert opened_ids == [1, 2]
    QTest.keyPress(view, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    sidebar.select_conversation(None)
    assert sidebar.selected_conversations == [], "although Ctrl is still held"
    click(1, Qt.KeyboardModifier.NoModifier)
    click(3, Qt.KeyboardModifier.ControlModifier)
    view.activateWindow()
    view.setFocus()
    qtbot.waitUntil(view.hasFocus)
    with qtbot.waitSignal(sidebar.deletion_requested):
        QTest.keyClick(view, Qt.Key.Key_Delete)
    sidebar.select_conversation(1, is_opened=True)
    assert len(sidebar.selected_conversations) == 2
    sidebar.select_conversation(2, is_opened=True)
    assert [each.id for each in sidebar.selected_conversations] == [2]


def test_several_are_changed_in_one_record_of_the_journal(data_dir: Path) -> None:
    with opened(data_dir) as store:
        ids = [add_conversation(store, "x", title=str(each)).conversation.id for each in range(3)]
        library, stored = Library(store), Conversations(store)
        before = store.journal.last_position
        library.archive(ids, True)
        library.tag(ids, ["work"])
        library.delete(*ids[:2])
        library.restore(ids[0])
        assert store.journal.last_position - before == 4
        assert [each.id for each in stored.listed(ListFilter(trash=True))] == [ids[1]]
        archived = stored.listed(ListFilter(archived=True, tag="work"))
        assert {each.id for each in archived} == {ids[0], ids[2]}

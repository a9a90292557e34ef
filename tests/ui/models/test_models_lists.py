"""The lists of the sidebar: item models, and rows of one height."""

from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.domain.conversations import Conversation
from app.domain.ids import ConversationId
from tests.fakes.screens import conversation as stored
from ui.models.conversations import ConversationListModel, GroupedListModel, ListRole, group_heading
from ui.views.rows import RowDelegate
from ui.views.sidebar import Sidebar

NOW = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def conversation(number: int, changed: datetime = NOW, **more: object) -> Conversation:
    return stored(number, title=f"Conversation {number}", updated_at=changed, **more)


def listed(*numbers: int) -> ConversationListModel:
    model = ConversationListModel()
    model.show_conversations([conversation(number) for number in numbers], NOW)
    return model


def shown(model: GroupedListModel, role: int = Qt.ItemDataRole.DisplayRole) -> list[object]:
    return [model.data(model.index(row), role) for row in range(model.rowCount())]


@pytest.mark.parametrize(
    ("age", "group"),
    [(timedelta(days=-1), "Today"), (timedelta(), "Today"), (timedelta(days=1), "Yesterday"),
     (timedelta(days=6), "This week"), (timedelta(days=7), "This month"),
     (timedelta(days=40), "February"), (timedelta(days=400), "2025")],
)  # fmt: skip
def test_conversations_are_grouped_by_day(age: timedelta, group: str) -> None:
    assert group_heading(conversation(1, NOW - age), NOW) == group


def test_the_list_names_its_groups_and_pinned_ones_come_first(qtmodeltester: object) -> None:
    model = ConversationListModel()
    old = conversation(1, NOW - timedelta(days=30), pinned=True, private=True)
    model.show_conversations([old, conversation(2)], NOW)
    assert shown(model) == ["Pinned", "Conversation 1", "Today", "Conversation 2"]
    assert shown(model, ListRole.HEADING) == [True, False, True, False]
    assert shown(model, ListRole.TRAILING) == [None, "", None, ""]
    assert str(shown(model, Qt.ItemDataRole.AccessibleTextRole)[1]).endswith(", pinned, private")
    assert model.data(model.index(1), ListRole.VALUE) == old
    assert model.value_at(model.index(0)) is model.value_at(QModelIndex()) is None
    selectable = [
        bool(model.flags(model.index(row)) & Qt.ItemFlag.ItemIsSelectable) for row in (0, 1)
    ]
    assert selectable == [False, True]
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_a_conversation_in_the_trash_says_until_when_it_is_kept() -> None:
    model = ConversationListModel()
    model.show_conversations([conversation(1, deleted_at=NOW)], NOW)
    assert model.index(1).data(ListRole.TRAILING) == "until 17 Apr 2026"


def test_only_rows_that_differ_are_replaced() -> None:
    model = listed(0, 1, 2, 3, 4)
    removed: list[tuple[int, int]] = []
    model.rowsRemoved.connect(lambda _parent, first, last: removed.append((first, last)))
    model.show_conversations([conversation(number) for number in (0, 1, 9, 3, 4)], NOW)
    assert removed == [(3, 3)]
    assert shown(model)[3] == "Conversation 9"
    model.show_conversations([conversation(number) for number in (0, 1, 3, 4)], NOW)
    assert removed == [(3, 3), (3, 3)]
    assert len(shown(model)) == 5


def test_a_running_reply_is_marked_in_the_list() -> None:
    model = listed(1, 2)
    changed: list[int] = []
    model.dataChanged.connect(lambda first, _last: changed.append(first.row()))
    row = model.row_of(ConversationId(2))
    model.show_running(frozenset({2, 77}))
    assert changed == [row.row()]
    assert model.data(row, ListRole.TRAILING)
    assert "a reply is running" in str(model.data(row, Qt.ItemDataRole.AccessibleTextRole))
    model.show_running(frozenset())
    assert not model.data(row, ListRole.TRAILING)


def test_a_long_list_comes_a_page_at_a_time(qtmodeltester: object) -> None:
    model = listed(*range(1000))
    assert model.rowCount() == 100
    model.fetchMore(QModelIndex())
    assert model.rowCount() == 200
    assert model.row_of(ConversationId(500)).row() == 501, "below the heading"
    assert model.rowCount() == 502
    model.show_conversations([conversation(number) for number in range(600)], NOW)
    assert model.rowCount() == 502, "the reader has scrolled down"
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    while model.canFetchMore(QModelIndex()):
        model.fetchMore(QModelIndex())
    assert model.rowCount() == 601


def test_rows_are_of_one_height_and_a_new_one_has_no_other_measured(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[object] = []
    real = RowDelegate.sizeHint

    def size_hint(self: RowDelegate, option: object, index: object) -> object:
        measured.append(index)
        return real(self, option, index)  # type: ignore[arg-type]

    monkeypatch.setattr(RowDelegate, "sizeHint", size_hint)
    sidebar = Sidebar()
    sidebar.resize(300, 700)
    sidebar.show()
    view = sidebar.conversation_list
    for count in (90, 91, 92):
        measured.clear()
        days = range(count)
        rows = [conversation(count - day, datetime.now(UTC) - timedelta(days=day)) for day in days]
        sidebar.show_conversations(rows, "")
        view.doItemsLayout()
        qtbot.waitUntil(view.isVisible)
        sidebar.grab()
        assert 0 < len(measured) < 10
    heights = {view.visualRect(view.model().index(row, 0)).height() for row in range(10)}
    assert len(heights) == 1
    assert heights.pop() > 0


def test_a_row_has_a_sign_for_its_menu_which_does_not_open_it(qtbot: QtBot) -> None:
    sidebar, opened, asked = Sidebar(), list[Conversation](), list[Conversation]()
    qtbot.addWidget(sidebar)
    sidebar.resize(300, 700)
    sidebar.show()
    sidebar.conversation_chosen.connect(opened.append)
    sidebar.menu_requested.connect(lambda each, _at: asked.append(each))
    rows = [conversation(each, datetime.now(UTC)) for each in (1, 2)]
    sidebar.show_conversations(rows, "")
    view = sidebar.conversation_list
    place = view.visualRect(sidebar.conversations.row_of(rows[1].id))
    for x, result in ((place.right() - 8, ([], [2])), (place.left() + 20, ([2], [2]))):
        QTest.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, place.center().y())
        )
        assert ([each.id for each in opened], [each.id for each in asked]) == result

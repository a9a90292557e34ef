"""The list of conversations asks for the size of one row, whatever comes and goes."""

from datetime import UTC, datetime, timedelta

import pytest
from pytestqt.qtbot import QtBot

from app.domain.conversations import Conversation, TitleOrigin
from app.domain.ids import ConversationId
from ui.theme import Theme
from ui.views.rows import RowDelegate
from ui.views.sidebar import Sidebar

NOW = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def conversations(count: int) -> list[Conversation]:
    """Return conversations of several months, the newest first."""
    return [
        Conversation(
            id=ConversationId(number),
            uid=f"uid{number}",
            title=f"Conversation {number}",
            title_origin=TitleOrigin.USER,
            source="commonplace",
            created_at=NOW,
            updated_at=NOW - timedelta(days=count - number),
        )
        for number in range(count, 0, -1)
    ]


def test_a_row_that_comes_has_no_other_measured(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = RowDelegate.sizeHint

    def noted(self: RowDelegate, option: object, index: object) -> object:
        asked.append(1)
        return real(self, option, index)  # type: ignore[arg-type]

    monkeypatch.setattr(RowDelegate, "sizeHint", noted)
    sidebar = Sidebar(Theme())
    qtbot.addWidget(sidebar)
    sidebar.resize(300, 700)
    sidebar.show()
    for count in (90, 91, 92):
        asked.clear()
        sidebar.show_conversations(conversations(count), "")
        sidebar.conversation_list.doItemsLayout()
        qtbot.waitUntil(sidebar.conversation_list.isVisible)
        sidebar.grab()
        assert 0 < len(asked) < 10


def test_headings_and_titles_are_of_one_height(qtbot: QtBot) -> None:
    sidebar = Sidebar(Theme())
    qtbot.addWidget(sidebar)
    sidebar.resize(300, 700)
    sidebar.show()
    sidebar.show_conversations(conversations(40), "")
    listed = sidebar.conversation_list
    rows = [listed.visualRect(sidebar.conversations.index(row, 0)) for row in range(10)]
    assert len({each.height() for each in rows}) == 1
    assert rows[0].height() > 0

"""A sidebar that folds where there is no room for it beside the conversation."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QSplitter, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from ui.views.sidebar_fold import SidebarFold


class Pane:
    """A splitter of a sidebar of at least 200 px and a conversation of at least 300 px."""

    def __init__(self, qtbot: QtBot) -> None:
        self.window = QWidget()
        self.split = QSplitter(Qt.Orientation.Horizontal, self.window)
        column = QVBoxLayout(self.window)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.split)
        self.split.setChildrenCollapsible(False)
        qtbot.addWidget(self.window)
        self.sidebar, chat = QWidget(), QWidget()
        self.sidebar.setMinimumWidth(200)
        chat.setMinimumWidth(300)
        self.split.addWidget(self.sidebar)
        self.split.addWidget(chat)
        self.action = QAction("Sidebar", self.split, checkable=True, checked=True)
        self.action.toggled.connect(self.sidebar.setVisible)
        self.fold = SidebarFold(self.split, self.action, 300)
        self.wide(800)
        self.window.show()

    def wide(self, px: int) -> None:
        """Make it so wide."""
        self.window.resize(px, 200)
        QApplication.sendPostedEvents()


@pytest.fixture
def pane(qtbot: QtBot) -> Pane:
    return Pane(qtbot)


def test_it_folds_when_it_gets_narrow_and_comes_back(pane: Pane) -> None:
    pane.wide(400)
    assert (pane.split.width(), pane.sidebar.isVisible()) == (400, False)
    assert not pane.action.isChecked()
    pane.wide(600)
    assert pane.sidebar.isVisible()
    assert pane.action.isChecked()


def test_what_the_user_has_hidden_stays_hidden(pane: Pane) -> None:
    pane.action.setChecked(False)
    pane.wide(400)
    pane.wide(800)
    assert not pane.sidebar.isVisible()


def test_who_shows_it_all_the_same_gets_the_room_for_it(pane: Pane) -> None:
    pane.wide(400)
    pane.action.setChecked(True)
    assert pane.sidebar.isVisible()
    pane.wide(400)
    assert pane.window.width() >= 500
    assert pane.sidebar.isVisible()
    pane.wide(700)
    pane.wide(400)
    assert not pane.sidebar.isVisible()

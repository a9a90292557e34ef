"""The table of actions."""

from collections import Counter

from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from ui.views.actions import Actions


def test_no_keys_are_given_twice(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    keys = Counter(each.toString() for action in Actions(window) for each in action.shortcuts())
    assert [each for each, count in keys.items() if count > 1] == []

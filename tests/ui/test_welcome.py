"""The first screen is whole in every window, small ones included."""

from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from ui.views.welcome import Welcome


def test_no_word_of_the_first_screen_is_cut_in_a_small_window(qtbot: QtBot) -> None:
    welcome = Welcome()
    qtbot.addWidget(welcome)
    welcome.resize(320, 240)
    welcome.show()
    qtbot.waitExposed(welcome)
    qtbot.waitUntil(lambda: not cut(welcome))
    assert welcome.verticalScrollBar().maximum() > 0


def cut(welcome: Welcome) -> list[str]:
    """Return the words on screen that have less room than they need."""
    labels = [label for label in welcome.findChildren(QLabel) if label.isVisible()]
    buttons = [button for button in welcome.findChildren(QPushButton) if button.isVisible()]
    return [
        *(each.text() for each in labels if each.height() < each.heightForWidth(each.width())),
        *(each.text() for each in buttons if each.width() < each.minimumSizeHint().width()),
        *(each.text() for each in buttons if each.mapTo(welcome, each.rect().topRight()).x() > 320),
    ]

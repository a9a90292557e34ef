"""A window opens on its screen, whole, however small the screen is."""

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QDialog, QWidget
from pytestqt.qtbot import QtBot

from ui.theme import Theme
from ui.views.facts_dialog import FactsDialog
from ui.views.memories_dialog import MemoriesDialog
from ui.views.settings_dialog import SettingsDialog
from ui.views.summaries_dialog import SummariesDialog
from ui.widgets.on_screen import resize_on_screen


def test_a_window_has_its_size_where_there_is_room(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    free = window.screen().availableSize()
    resize_on_screen(window, 300, 200)
    assert (window.width(), window.height()) == (300, 200)
    resize_on_screen(window, 30_000, 200)
    assert 0 < window.width() < free.width()
    assert window.height() == 200


_DIALOGS: dict[str, Callable[[], QDialog]] = {
    "settings": SettingsDialog,
    "facts": lambda: FactsDialog(Theme()),
    "memories": lambda: MemoriesDialog(Theme()),
    "summaries": lambda: SummariesDialog("A title", Theme()),
}


@pytest.mark.parametrize("name", _DIALOGS)
def test_a_dialog_can_be_as_small_as_a_small_screen(qtbot: QtBot, name: str) -> None:
    dialog = _DIALOGS[name]()
    qtbot.addWidget(dialog)
    least = dialog.minimumSizeHint()
    assert least.width() <= 640
    assert least.height() <= 432, "480 without a title's bar"

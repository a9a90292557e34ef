"""Small widgets: labels of plain text, the elided line edit, sizes that fit the screen."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.domain.errors import StorageError
from ui.theme import Appearance, ThemeChoice
from ui.views.dialogs.confirm import confirm_deletion
from ui.views.memory.knowledge_view import KnowledgeView
from ui.views.settings.settings_dialog import SettingsDialog
from ui.widgets.banner import Banner
from ui.widgets.choice_box import SelectBox
from ui.widgets.elided_edit import ElidedEdit
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel, breakable

UI = Path(__file__).parents[3] / "ui"
MADE_BY_QT = re.compile(r"(?<![\w.])(?:QLabel|QMessageBox)\((?!\):)")
CONSTANT_TEXT = {"errors.py": 1, "composition.py": 2}
FORMS: dict[str, Callable[[], QWidget]] = {"settings": SettingsDialog, "knowledge": KnowledgeView}


def test_every_label_and_message_box_is_plain_text() -> None:
    for path in UI.rglob("*.py"):
        source = path.read_text()
        made = len(MADE_BY_QT.findall(re.sub(r"^class .*$", "", source, flags=re.MULTILINE)))
        plain = source.count("Qt.TextFormat.PlainText")
        assert made - plain <= CONSTANT_TEXT.get(path.name, 0), path


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_enter_in_a_field_presses_no_button(make: Callable[[], QWidget]) -> None:
    dialog = make()
    buttons = dialog.findChildren(QPushButton)
    assert buttons
    assert [each.text() for each in buttons if each.autoDefault()] == []


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_Space])
def test_no_key_alone_confirms_a_deletion(qtbot: QtBot, key: Qt.Key) -> None:
    parent, deleted = QWidget(), list[int]()
    parent.show()
    confirm_deletion(parent, "'A talk'", "It is deleted.", lambda: deleted.append(1))
    box = parent.findChild(QMessageBox)
    assert box is not None
    QTest.keyClick(box.focusWidget() or box, key)
    qtbot.waitUntil(lambda: not parent.findChildren(QMessageBox))
    assert deleted == []


def test_a_banner_shows_markup_as_text_errors_in_their_color_and_goes_unless_it_can_undo() -> None:
    banner = Banner()
    banner.show_message("'<img src=\"file:///etc/hostname\">' was archived.", brief=True)
    (label,) = banner.findChildren(PlainLabel)
    assert label.textFormat() is Qt.TextFormat.PlainText
    assert "<img" in banner.text
    banner.show_error(StorageError("It failed"))
    shown = [banner.property("panel")]
    banner.show_message("It was archived.", brief=True)
    assert [*shown, banner.property("panel")] == ["error", "info"]
    banner.show_message("It failed.", brief=False)
    banner.leave()
    assert banner.isHidden()
    banner.show_message("It is in the trash.", "Undo", lambda: None, brief=True)
    banner.leave()
    assert not banner.isHidden()


def test_a_brief_message_stays_while_the_mouse_is_over_it() -> None:
    banner = Banner()
    banner.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    banner.show_message("It is in the trash.", "Undo", lambda: None, brief=True)
    banner._timer.timeout.emit()
    assert not banner.isHidden()
    banner.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, on=False)
    banner._timer.timeout.emit()
    assert banner.isHidden()


def test_a_line_edit_elides_a_long_text_and_escape_reverts_what_was_typed(qtbot: QtBot) -> None:
    edit = ElidedEdit()
    edit.show_text("What to cook for eight, one vegan, one without gluten")
    edit.resize(90, 30)
    edit.show()
    qtbot.waitUntil(lambda: edit.toolTip() == edit.text())
    short = edit.grab().toImage()
    edit.resize(900, 30)
    qtbot.waitUntil(lambda: not edit.toolTip())
    assert edit.grab().toImage().copy(0, 0, 90, 30) != short, "the ellipsis"
    edit.show_text("Bees")
    edit.selectAll()
    edit.show_text("Bees")
    assert edit.selectedText() == "Bees"
    QTest.keyClicks(edit, "Wasps")
    assert edit.isModified()
    with qtbot.waitSignal(edit.done):
        QTest.keyClick(edit, Qt.Key.Key_Escape)
    assert (edit.text(), edit.isModified(), edit.cursorPosition()) == ("Bees", False, 0)


def test_a_window_has_its_size_where_there_is_room() -> None:
    window = QWidget()
    resize_on_screen(window, 300, 200)
    assert (window.width(), window.height()) == (300, 200)
    resize_on_screen(window, 30_000, 200)
    assert 0 < window.width() < window.screen().availableSize().width()
    assert window.height() == 200


@pytest.mark.parametrize("name", FORMS)
def test_a_dialog_fits_a_small_screen(name: str) -> None:
    dialog = FORMS[name]()
    least = dialog.minimumSizeHint()
    assert least.width() <= 640
    assert least.height() <= 432, "480 without a title bar"


@pytest.mark.parametrize("count", [1, 3, 11])
@pytest.mark.parametrize("percent", [100, 175])
def test_the_list_of_a_combo_box_shows_its_last_row(
    qtbot: QtBot, appearance: Appearance, count: int, percent: int
) -> None:
    appearance.choose(ThemeChoice.DARK, percent)
    box = SelectBox()
    box.addItems([f"Row {number}" for number in range(count)])
    box.show()
    box.showPopup()
    view = box.view()
    qtbot.waitUntil(view.isVisible)
    last = view.visualRect(view.model().index(count - 1, 0))
    assert view.viewport().rect().contains(last)
    box.hidePopup()


def test_only_words_too_long_for_a_line_are_broken() -> None:
    text, word = "http://127.0.0.1:8000/v1 waits", "one_word_without_any_place_to_break_it"
    assert breakable(text) == text
    assert breakable(word).replace("\u200b", "") == word != breakable(word)

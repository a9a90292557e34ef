"""Questions: one kind of message box, whose default never loses anything."""

import ast
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QLineEdit,
    QListWidget,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.domain.ids import ConversationId
from app.domain.transfer import AddedConversation, ImportProgress, ImportReport
from ui.presenters.presenter import ask_for_text
from ui.theme import Theme, ThemeChoice, style_sheet, theme_for
from ui.views.dialogs.confirm import Confirmation, confirm, confirm_unsaved
from ui.views.dialogs.import_dialog import ImportDialog
from ui.views.settings.settings_dialog import SettingsDialog
from ui.widgets.controls import column_in, saving_buttons

UI = Path(__file__).parents[3] / "ui"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LOSES = {"Forget", "Delete", "Remove", "Restore", "Discard", "Empty", "Replace"}


def calls(name: str) -> list[tuple[Path, ast.Call]]:
    found = []
    for path in UI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found += [(path, node)] if node.func.id == name else []
    return found


def words(node: ast.expr) -> set[str]:
    """The words of all texts below a node."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return {word for text in texts if isinstance(text, str) for word in text.split()}


def test_message_boxes_are_made_in_one_place() -> None:
    assert {path.name for path, _ in calls("QMessageBox")} == {"confirm.py"}


def test_save_looks_like_the_primary_button(qtbot: QtBot) -> None:
    dialog = QDialog()
    dialog.setStyleSheet(style_sheet(Theme()))
    box, save = saving_buttons(dialog, lambda: None)
    column_in(dialog, box)
    dialog.show()
    qtbot.waitExposed(dialog)
    edge = save.grab().toImage().pixelColor(6, save.height() // 2)
    assert (edge.name(), save.isDefault()) == (Theme().colors.accent, True)


def test_questions_that_lose_something_are_warnings() -> None:
    weak = []
    for path, call in calls("Confirmation"):
        named = {each.arg: each.value for each in call.keywords}
        yes = named.get("yes") or (call.args[3] if len(call.args) > 3 else None)
        if yes is not None and words(yes) & LOSES and "is_warning" not in named:
            weak.append(f"{path.name}:{call.lineno}")
    assert weak == []


def test_a_warning_cannot_have_its_consent_as_the_default() -> None:
    with pytest.raises(ValueError, match="Enter"):
        Confirmation("A", "B?", "C", "Forget", is_warning=True, yes_is_default=True)


@pytest.mark.parametrize("is_warning", [True, False])
@pytest.mark.parametrize("other", ["", "Another"])
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape])
def test_enter_and_escape_mean_no(qtbot: QtBot, key: Qt.Key, other: str, is_warning: bool) -> None:
    parent, answers = QWidget(), list[str]()
    parent.show()
    texts = Confirmation("A", "B?", "C", "Do it", other=other, is_warning=is_warning)
    confirm(
        parent, texts,
        lambda: answers.append("yes"), lambda: answers.append("no"), lambda: answers.append("other"),
    )  # fmt: skip
    (box,) = parent.findChildren(QMessageBox)
    QTest.keyClick(box.focusWidget() or box, key)
    qtbot.waitUntil(lambda: bool(answers))
    assert answers == ["no"]


def test_enter_saves_unsaved_changes(qtbot: QtBot) -> None:
    parent, answers = QWidget(), list[str]()
    parent.show()
    confirm_unsaved(
        parent, "the profile",
        lambda: answers.append("save"), lambda: answers.append("undo"), lambda: None,
    )  # fmt: skip
    (box,) = parent.findChildren(QMessageBox)
    QTest.keyClick(box.focusWidget() or box, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(answers))
    assert answers == ["save"]


def test_a_question_for_a_text_has_room_for_several_tags(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()
    ask_for_text(parent, "Tags", "Tags, separated by commas:", "garden, winter", lambda _: None)
    (line,) = parent.findChildren(QLineEdit)
    assert line.width() > 3 * line.fontMetrics().horizontalAdvance("garden, winter")


@pytest.fixture
def styled() -> Iterator[Callable[..., None]]:
    """Give the program a style sheet for the length of a test."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    before = app.styleSheet()

    def style(theme: ThemeChoice, percent: int = 100) -> None:
        app.setStyleSheet(
            style_sheet(theme_for(theme, percent, system_is_dark=True, system_font=QFont()))
        )

    yield style
    app.setStyleSheet(before)


@pytest.mark.parametrize("theme", list(ThemeChoice))
def test_settings_pages_are_listed_below_each_other(
    qtbot: QtBot, styled: Callable[..., None], theme: ThemeChoice
) -> None:
    styled(theme)
    dialog = SettingsDialog()
    qtbot.addWidget(dialog)
    dialog.show()
    (names,) = (
        each
        for each in dialog.findChildren(QListWidget)
        if each.accessibleName().startswith("Pages")
    )
    rows = [names.visualItemRect(names.item(each)) for each in range(names.count())]
    assert all(above.bottom() < below.top() for above, below in pairwise(rows))
    assert min(each.height() for each in rows) >= names.fontMetrics().height()


@pytest.mark.parametrize("percent", [100, 200])
def test_an_import_counts_what_its_preview_counted_and_cuts_no_question(
    qtbot: QtBot, styled: Callable[..., None], percent: int
) -> None:
    styled(ThemeChoice.LIGHT, percent)
    dialog = ImportDialog("conversations.json")
    qtbot.addWidget(dialog)
    dialog.show()
    report = ImportReport(4, 20, 40, new=(AddedConversation(ConversationId(1), "One", NOON),))
    dialog.show_preview(report)
    preview = dialog.size()
    dialog.begin(reads_only=False)
    assert dialog.height() < preview.height()
    dialog.show_progress(ImportProgress(1, 10, bytes_read=900, bytes_total=900))
    (bar,) = dialog.findChildren(QProgressBar)
    assert bar.value() / bar.maximum() == 0.25
    dialog.show_report(report)
    asked = ["Short?", "What should I remember of " + "the garden & " * 4 + "?", "word " * 400]
    dialog.show_questions(asked)
    shown = [each for each in dialog.findChildren(QPushButton) if each.accessibleName() in asked]
    assert len(shown) == 3
    qtbot.waitUntil(lambda: all(each.width() >= each.sizeHint().width() for each in shown))
    qtbot.waitUntil(lambda: dialog.height() >= dialog.heightForWidth(dialog.width()))
    assert dialog.width() <= dialog.screen().availableSize().width()

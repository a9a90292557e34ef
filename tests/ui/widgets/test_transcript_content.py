"""Content of messages on screen: formulas, folds, code and tables, found, copied and reached by keys."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.fakes.transcripts import Shown, turn
from ui.widgets.thumbnails import Thumbnails
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.values import FindMark, searchable_text

FOLDED = "before\n\n<details><summary>more</summary>\n\nneedle\n\n</details>\n\nafter needle"


def answer(qtbot: QtBot, text: str) -> tuple[Shown, MessageText]:
    shown = Shown(qtbot, [turn(0, "?", text)]).settle()
    return shown, shown.turn(0).texts()[-1]


@pytest.mark.parametrize(
    ("text", "number", "selected"),
    [("about \N{ROCKET} $\\beta + needle$ and needle", 0, "\ufffc"),
     ("about \N{ROCKET} $\\beta + needle$ and needle", 1, "needle"), (FOLDED, 0, "needle"),
     (FOLDED, 1, "needle")],
)  # fmt: skip
def test_find_marks_what_is_in_formulas_and_folds_and_opens_these(
    qtbot: QtBot, text: str, number: int, selected: str
) -> None:
    shown, view = answer(qtbot, text)
    source = searchable_text(shown.contents[0].messages)
    starts = [at for at in range(len(source)) if source.startswith("needle", at)]
    shown.view.set_find_marks([FindMark(0, at, at + 6) for at in starts])
    shown.view.show_find_mark(number)
    shown.settle()
    selections = view.view.extraSelections()
    assert len(selections) == 2
    cursor = selections[number].cursor
    assert cursor.selectedText() == selected
    assert cursor.block().isVisible()


def test_a_formula_is_copied_and_described_as_latex(qtbot: QtBot) -> None:
    _, text = answer(qtbot, "Say $x^2$ or\n\n$$\ny\n$$")
    text.view.selectAll()
    text.view.copy()
    assert QGuiApplication.clipboard().text().strip() == "Say $x^2$ or\n\n$$y$$"
    text.view.setFocus()
    assert text.view.accessibleDescription().strip() == "Say $x^2$ or\n\n$$y$$"


def test_a_summary_opens_and_closes_by_keyboard_and_mouse(qtbot: QtBot) -> None:
    shown, text = answer(qtbot, FOLDED)
    closed = shown.turn(0).height()
    text.view.setFocus()
    QTest.keyClick(text.view, Qt.Key.Key_Tab)
    QTest.keyClick(text.view, Qt.Key.Key_Return)
    shown.settle()
    assert shown.turn(0).height() > closed
    at = text.view.cursorRect(text.builder.document.find("more")).center()
    QTest.mouseClick(text.view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    shown.settle()
    assert shown.turn(0).height() == closed


@pytest.mark.parametrize("by_keyboard", [True, False])
def test_an_image_opens_in_the_viewer(qtbot: QtBot, by_keyboard: bool) -> None:
    thumbnails = Thumbnails()
    thumbnails.put("abc123", QImage(60, 40, QImage.Format.Format_RGB32))
    source = "a ![my *plot*](attachment:abc123) b"
    shown = Shown(qtbot, [turn(0, "?", source)], thumbnails=thumbnails).settle()
    view = shown.turn(0).texts()[-1].view
    with qtbot.waitSignal(shown.view.events.file_clicked) as clicked:
        if by_keyboard:
            view.setFocus(Qt.FocusReason.TabFocusReason)  # as an arrow key does
            QTest.keyClick(view, Qt.Key.Key_Return)
        else:
            at = QPoint(view.cursorRect(view.document().find("b")).left() - 30, 20)
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    (image,) = clicked.args
    assert (image.name, image.content_hash) == ("my plot", "abc123")


@pytest.mark.parametrize(
    "source",
    ["[a](attachment:../../x)", "[a](attachment:abc123)",
     "[![a](attachment:abc123)](attachment:../../x)", "![a](attachment:../../x)"],
)  # fmt: skip
def test_no_other_file_is_opened_as_an_image(qtbot: QtBot, source: str) -> None:
    thumbnails = Thumbnails()
    thumbnails.put("abc123", QImage(60, 40, QImage.Format.Format_RGB32))
    shown = Shown(qtbot, [turn(0, "?", source)], thumbnails=thumbnails).settle()
    opened: list[object] = []
    shown.view.events.file_clicked.connect(opened.append)
    view = shown.turn(0).texts()[-1].view
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Tab)
    with qtbot.waitSignal(shown.view.events.link_activated):
        QTest.keyClick(view, Qt.Key.Key_Return)
    assert not opened

"""Code blocks and wide tables on screen: wrapping, folding, scrolling sideways, and their buttons."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollBar, QToolButton
from pytestqt.qtbot import QtBot

from tests.fakes.drawn import blocks
from tests.fakes.transcripts import Shown, turn
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.values import FindMark, searchable_text

LONG = "```python\n" + "\n".join(f"line_{at}()" for at in range(212)) + "\n```\n\nafter"
WIDE = "```\nshort\n" + "x" * 300 + " needle\n```"
TABLE = (
    "| "
    + " | ".join(f"a column {at}" for at in range(14))
    + " |\n"
    + "|-" * 14
    + "|\n"
    + "| cell " * 14
    + "|"
)


def answer(qtbot: QtBot, text: str) -> tuple[Shown, MessageText]:
    shown = Shown(qtbot, [turn(0, "?", text)]).settle()
    return shown, shown.turn(0).texts()[-1]


def button(text: MessageText, name: str) -> QToolButton:
    (found,) = [
        each for each in text.view.findChildren(QToolButton) if each.accessibleName() == name
    ]
    return found


def bars(text: MessageText) -> list[QScrollBar]:
    found = text.view.findChildren(QScrollBar)
    return [
        each for each in found if each.accessibleName() == "Scroll sideways" and each.isVisible()
    ]


def visible(text: MessageText) -> list[str]:
    return [each.text() for each in blocks(text.builder.document) if each.isVisible()]


def test_long_code_is_folded_and_opens_to_its_end(qtbot: QtBot) -> None:
    shown, text = answer(qtbot, LONG)
    assert visible(text)[-2:] == ["line_29()", "after"]
    more = button(text, "Show all 212 lines")
    assert more.isVisible()
    folded = shown.turn(0).height()
    bottom = more.geometry().bottom()
    assert bottom < text.view.cursorRect(text.builder.document.find("after")).top()
    more.click()
    shown.settle()
    assert visible(text)[-2:] == ["line_211()", "after"]
    assert not more.isVisible()
    assert shown.turn(0).height() > 3 * folded
    button(text, "Copy python").click()
    assert QGuiApplication.clipboard().text().endswith("line_211()\n")


@pytest.mark.parametrize("lines", [40, 41])
def test_forty_lines_are_not_long(qtbot: QtBot, lines: int) -> None:
    _, text = answer(qtbot, "```\n" + "x\n" * lines + "```")
    assert len(visible(text)) - 1 == (40 if lines == 40 else 30)


def test_code_that_arrives_is_not_folded(qtbot: QtBot) -> None:
    shown = Shown(qtbot, [turn(0, "?", None)]).settle()
    from app.domain.conversations import Text

    shown.view.begin_reply()
    shown.view.append(Text(LONG))
    shown.finish()
    shown.settle()
    assert "line_211()" in visible(shown.turn(0).texts()[-1])


def test_find_opens_folded_code_and_scrolls_sideways(qtbot: QtBot) -> None:
    shown, text = answer(qtbot, LONG.replace("line_200()", "x" * 300 + " needle"))
    start = searchable_text(shown.contents[0].messages).index("needle")
    shown.view.set_find_marks([FindMark(0, start, start + 6)])
    shown.view.show_find_mark(0)
    shown.settle()
    assert "line_211()" in visible(text)


def test_a_long_line_scrolls_sideways_or_wraps(qtbot: QtBot) -> None:
    shown, text = answer(qtbot, WIDE)
    (bar,) = bars(text)
    assert bar.maximum() > 1000
    low = shown.turn(0).height()
    text.reveal(text.builder.document.find("needle").position())
    assert bar.value() > 500
    button(text, "Wrap code").click()
    shown.settle()
    assert bars(text) == []
    assert shown.turn(0).height() > low
    button(text, "Wrap code").click()
    shown.settle()
    assert shown.turn(0).height() == low
    assert len(bars(text)) == 1


def test_the_mouse_selects_what_is_shown_where_code_is_scrolled(qtbot: QtBot) -> None:
    _, text = answer(qtbot, WIDE)
    (bar,) = bars(text)
    place = text.view.cursorRect(text.builder.document.find("needle"))
    bar.setValue(bar.maximum())
    at = place.center() - QPoint(bar.value() + 5, 0)
    QTest.mouseDClick(text.view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseRelease(text.view.viewport(), Qt.MouseButton.LeftButton, pos=at)  # QTest holds it
    assert text.view.selected_text() == "needle"
    image, right = text.view.grab().toImage(), text.view.width()
    background = image.pixelColor(at.x(), place.top() + 2)
    assert background.name() == text.view.palette().highlight().color().name()
    rows, edge = range(place.top(), place.bottom()), range(right - 6, right - 2)
    assert len({image.pixelColor(x, y).name() for x in edge for y in rows}) == 1, "no other text"


@pytest.mark.parametrize(("text", "count"), [(TABLE, 1), ("| a | b |\n|-|-|\n| 1 | 2 |", 0),
                                             ("|a|b|\n|-|-|\n|" + "word " * 90 + "|" + "word " * 90 + "|", 0)])  # fmt: skip
def test_a_table_scrolls_only_if_columns_are_squeezed(qtbot: QtBot, text: str, count: int) -> None:
    shown, view = answer(qtbot, text)
    assert len(bars(view)) == count
    shown.view.resize(2000, 600)
    shown.settle()


def test_a_wide_table_breaks_no_bold_word(qtbot: QtBot) -> None:
    heads = ("Name", "Version", "License", "Platform", "First release", *"abcdefghijklmn")
    text = f"|{'|'.join(heads)}|\n{'|-' * len(heads)}|\n|{'cell|' * len(heads)}"
    _, view = answer(qtbot, text)
    assert len(bars(view)) == 1
    for head in heads:
        assert view.builder.document.find(head).block().layout().lineCount() == 1


def test_the_wheel_scrolls_a_table_sideways_and_the_transcript_up_and_down(qtbot: QtBot) -> None:
    _, text = answer(qtbot, TABLE)
    (bar,) = bars(text)
    for delta, accepted in ((QPoint(-80, 0), True), (QPoint(0, -80), False)):
        at = QPointF(bar.geometry().center() - QPoint(0, 20))
        event = QWheelEvent(
            at, at, delta, delta, Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(text.view.viewport(), event)
        assert event.isAccepted() is accepted
    assert bar.value() == 80


def test_a_wide_formula_scrolls_sideways(qtbot: QtBot) -> None:
    _, text = answer(qtbot, "$$" + "+".join(f"a_{{{at}}}" for at in range(60)) + "$$")
    assert bars(text)[0].maximum() > 500


@pytest.mark.parametrize(
    ("head", "from_right"), [("الخيار", True), ("12 خيار", True), ("A", False)]
)
def test_a_table_begins_where_its_text_does(qtbot: QtBot, head: str, from_right: bool) -> None:
    _, text = answer(qtbot, f"| {head} | second |\n|---|---|\n| x | y |\n| long text | 777 |")
    find = text.builder.document.find
    first, second = (text.view.cursorRect(find(each)).x() for each in ("x", "y"))
    assert (first > second) is from_right
    direction = find("777").block().textDirection()
    assert (direction is Qt.LayoutDirection.RightToLeft) is from_right, "a number alone has none"
    assert (first > text.view.width() / 2) is from_right

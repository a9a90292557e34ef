"""The composer as a widget: focus, the mouse wheel, the height of the box, the cost below it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QFocusEvent, QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTextBrowser, QWidget
from pytestqt.qtbot import QtBot

from app.chat.planner import NewConversation
from app.domain.change_set import ChangeSet
from app.domain.conversations import Image, Text
from app.domain.errors import StorageError
from tests.fakes.screens import Parts, Recorder
from ui.presenters.conversation.composer import MessageCostPresenter
from ui.theme import Appearance
from ui.views.chat_pane import ChatPane
from ui.widgets.composer.composer import Composer
from ui.widgets.composer.message_box import MessageBox
from ui.widgets.controls import combo_box


def test_the_mouse_leaves_the_box_its_focus_and_a_second_stop_sends_nothing(qtbot: QtBot) -> None:
    composer = Composer()
    composer.show()
    qtbot.waitExposed(composer)
    sent: list[str] = []
    composer.send_requested.connect(sent.append)
    composer.box.setPlainText("One")
    *_, send, stop = composer.stops
    send.setFocus()
    QTest.mouseClick(send, Qt.MouseButton.LeftButton)
    assert sent == ["One"]
    assert composer.focusWidget() is composer.box
    composer.show_running(True)
    composer.box.setPlainText("A half-written")
    stop.setFocus()
    QTest.mouseClick(stop, Qt.MouseButton.LeftButton)
    composer.show_running(False)
    QTest.mouseClick(send, Qt.MouseButton.LeftButton)
    assert sent == ["One"]
    assert composer.focusWidget() is composer.box

    def sends() -> bool:
        QTest.mouseClick(send, Qt.MouseButton.LeftButton)
        return len(sent) > 1

    qtbot.waitUntil(sends)


def test_no_bar_to_scroll_sideways_appears_below_a_long_word(
    qtbot: QtBot, appearance: Appearance
) -> None:
    box = MessageBox()
    qtbot.addWidget(box)
    box.show()
    box.setPlainText("a" * 300)
    shown = []
    for width in range(500, 520):  # the letter is wider than each step
        box.resize(width, 300)
        QApplication.processEvents()
        shown.append(box.horizontalScrollBar().isVisible())
    assert not any(shown)


def test_the_frame_shows_the_focus_after_a_list_gave_it_back(qtbot: QtBot) -> None:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.show()
    composer.activateWindow()
    composer.box.setFocus()
    frame = composer.box.parentWidget()
    assert frame is not None
    qtbot.waitUntil(lambda: frame.property("active") is True)
    QApplication.sendEvent(composer.box, QFocusEvent(QEvent.Type.FocusAboutToChange))
    assert frame.property("active") is True


def test_the_wheel_changes_no_choice() -> None:
    parent = QWidget()
    box = combo_box(parent, "Kind", [("A", 1), ("B", 2)])
    parent.show()
    turn = QPoint(0, -120)
    QApplication.sendEvent(
        box,
        QWheelEvent(
            QPointF(5, 5), QPointF(5, 5), turn, turn, Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        ),
    )  # fmt: skip
    assert box.currentIndex() == 0


def test_an_untouched_composer_reports_no_draft_and_a_quotation_is_put_below_the_text() -> None:
    composer = Composer()
    drafts: list[object] = []
    composer.draft_changed.connect(drafts.append)
    composer.flush_draft()  # what would be reported after a pause
    assert drafts == []
    composer.quote("One\n\nTwo\n")
    assert composer.text == "> One\n>\n> Two\n\n"
    composer.box.setPlainText("So: ")
    composer.quote("Three")
    assert composer.text == "So:\n\n> Three\n\n"
    assert composer.box.textCursor().atEnd()


def shows_all_up_to_ten(box: MessageBox, lines: int) -> bool:
    is_fitted = box.height() == box.sizeHint().height()
    return is_fitted and (box.verticalScrollBar().maximum() == 0) == (lines <= 10)


def test_the_box_shows_all_its_lines_up_to_ten(qtbot: QtBot) -> None:
    composer = Composer()
    composer.resize(420, 300)
    composer.show()
    box = composer.box
    heights = []
    for lines in (1, 2, 9, 10, 30):
        box.setPlainText("\n".join("tea" for _ in range(lines)))
        qtbot.waitUntil(partial(shows_all_up_to_ten, box, lines))
        heights.append(box.height())
    assert heights == sorted(heights)
    assert heights[3] == heights[4]
    box.setPlainText("a sentence that is wrapped " * 6)
    qtbot.waitUntil(lambda: heights[0] < box.height() == box.sizeHint().height())
    composer.resize(2_000, 300)
    qtbot.waitUntil(lambda: box.height() == heights[0])
    assert box.verticalScrollBar().maximum() == 0


def test_what_is_typed_or_pasted_beside_the_message_is_put_into_it(qtbot: QtBot) -> None:
    pane = ChatPane()
    reading = QTextBrowser()
    pane.build_panels(reading)
    pane.show_transcript()
    pane.show()
    pane.activateWindow()
    box = pane.composer.box

    def type_into_reading(act: Callable[[], object]) -> bool:
        reading.setFocus()
        qtbot.waitUntil(reading.hasFocus)
        act()
        return box.hasFocus()

    assert type_into_reading(lambda: QTest.keyClicks(reading, "H"))
    QApplication.clipboard().setText("ello")
    paste = QKeySequence(QKeySequence.StandardKey.Paste)
    assert type_into_reading(lambda: QTest.keySequence(reading, paste))
    assert pane.composer.text == "Hello"
    assert not type_into_reading(lambda: QTest.keyClick(reading, Qt.Key.Key_Space))
    box.setEnabled(False)
    assert not type_into_reading(lambda: QTest.keyClicks(reading, "H"))
    assert pane.composer.text == "Hello"


def test_a_compact_choice_leaves_the_room_of_its_arrow_to_the_model() -> None:
    chip = Composer().project
    widths = []
    for is_compact in (False, True):
        chip.set_compact(is_compact)
        widths.append(chip.sizeHint().width())
    assert widths[1] < widths[0]


def test_a_long_name_of_a_model_uses_the_room_there_is_and_makes_none() -> None:
    composer = Composer()
    composer.model.show_model("p:" + "a-model-with-a-very-long-name/" * 5)
    composer.show()
    for width, has_room in ((340, False), (700, True)):
        composer.resize(width, 120)
        QApplication.processEvents()
        assert (composer.model.width() == composer.model.sizeHint().width()) is has_room
        assert composer.width() == width


def test_a_chosen_preset_gives_the_focus_to_the_message(qtbot: QtBot) -> None:
    composer = Composer()
    composer.preset.show_choices({"a": "A", "b": "B"}, "a")
    composer.show()
    composer.preset.setFocus()
    composer.preset.activated.emit(1)
    qtbot.waitUntil(lambda: composer.focusWidget() is composer.box)


def test_the_invitation_is_cut_to_one_line() -> None:
    box = MessageBox()
    box.show_invitation("Ask anything, or ask about your own past")
    box.show()
    for width, is_cut in ((140, True), (900, False)):
        box.resize(width, 40)
        text = box.placeholderText()
        assert text.endswith("\u2026") is is_cut
        assert box.fontMetrics().horizontalAdvance(text) <= box.viewport().width()


def test_the_cost_is_shown_from_one_cent_on_after_a_pause(qtbot: QtBot, parts: Parts) -> None:
    composer, costs = Composer(), Recorder(cost_usd=0.0325)
    composer.show()
    parts.open.new = new = NewConversation("a:b")
    asked = parts.make(MessageCostPresenter, costs=costs, composer=composer)
    asked._pause.setInterval(20)
    composer.box.setPlainText("A long question")
    qtbot.waitUntil(composer.cost.isVisible)
    assert "$0.03" in composer.cost.text()
    assert costs.calls == [("cost_usd", (Text("A long question"),), None, new)]
    costs.results["cost_usd"] = 0.0099
    parts.open.choose_project("g")
    qtbot.waitUntil(composer.cost.isHidden)
    costs.results["cost_usd"] = 1.5
    parts.bridge.changed.emit(ChangeSet(settings=frozenset({"default_model"})))
    qtbot.waitUntil(lambda: "$1.50" in composer.cost.text())
    composer.clear()
    assert composer.cost.isHidden()
    composer.files.show_files((image := Image("a.png", "image/png", "ff00"),))
    qtbot.waitUntil(composer.cost.isVisible)
    assert costs.calls[-1] == ("cost_usd", (Text(""), image), None, replace(new, project="g"))
    composer.clear()
    costs.error = StorageError("Full", "Free some space.")
    composer.box.setPlainText("Another one")
    qtbot.waitUntil(lambda: not asked._pause.isActive())
    assert composer.cost.isHidden()
    costs.calls.clear()
    composer.box.setPlainText("/help")
    qtbot.waitUntil(lambda: not asked._pause.isActive())
    assert costs.calls == []


def test_a_banner_lies_over_the_conversation_which_stays_where_it_is(qtbot: QtBot) -> None:
    pane = ChatPane()
    pane.build_panels(QTextBrowser())
    pane.show_transcript()
    pane.resize(700, 500)
    pane.show()
    before = pane.transcript.rect().translated(pane.transcript.mapTo(pane, QPoint()))
    pane.banner.show_message("It was archived. " * 9, "Undo", lambda: None, brief=True)
    banner = pane.banner
    qtbot.waitUntil(lambda: banner.height() == banner.heightForWidth(banner.width()))
    assert before.contains(banner.geometry())
    assert pane.transcript.rect().translated(pane.transcript.mapTo(pane, QPoint())) == before
    assert pane.childAt(banner.geometry().topLeft()) is banner, "above the text"

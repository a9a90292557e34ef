"""The transcript view: rendering near the screen, stable scrolling, streaming, find and focus."""

import random
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.domain.chat import TextWasThinking
from app.domain.conversations import (
    ExchangeStatus,
    Problem,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.fakes.transcripts import WORDS, Shown, head, message, turn
from ui.theme import DARK, Theme
from ui.widgets.controls import column_in
from ui.widgets.transcript import answer as answer_module
from ui.widgets.transcript import turn_data, virtual_column
from ui.widgets.transcript.folds import Fold
from ui.widgets.transcript.heights import AtEnd, AtItem
from ui.widgets.transcript.message_frame import MessageFrame
from ui.widgets.transcript.panels import NEW_SEGMENT_TEXT, Divider
from ui.widgets.transcript.values import Footer, SourceChip, Sources, TurnContent

LONG = (WORDS * 3 + "\n\n") * 14
CHIPS = Sources(
    tuple(SourceChip(at, "quote", "Turn", f"Talk {at}") for at in range(4)), "It was slow."
)


def uneven(count: int, seed: int = 7) -> list[TurnContent]:
    """Return turns of very different heights."""
    dice = random.Random(seed)
    answers = (WORDS, WORDS * 30, "```python\n" + "x = 1\n" * 30 + "```", "- item\n" * 25, "ok")
    return [
        turn(at, WORDS * dice.randint(1, 3), f"Answer {at}\n\n" + dice.choice(answers))
        for at in range(count)
    ]


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    return Shown(qtbot, uneven(60)).settle()


# layout and scrolling


def test_an_empty_conversation_accepts_every_key(qtbot: QtBot) -> None:
    shown = Shown(qtbot, [])
    shown.view.scroll_to_turn(0)
    for key in (Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Down, Qt.Key.Key_Tab):
        QTest.keyClick(shown.view, key)
    shown.view.show_segment_end(True, goes_there=True)
    assert shown.view.visible_items == (0, -1)


def test_the_text_stays_where_it_is_when_a_row_comes_or_goes(shown: Shown, qtbot: QtBot) -> None:
    window, row, view = QWidget(), QLabel("Find"), shown.view
    row.hide()
    column_in(window, row, (view, 1))
    window.resize(700, 600)
    window.show()
    view.scroll_to_anchor(AtItem(20, 30))
    shown.settle()

    def top() -> int:
        return shown.turn(20).mapTo(window, QPoint()).y()

    before, height = top(), view.height()
    row.show()
    qtbot.waitUntil(lambda: view.height() < height)
    assert shown.settle()
    assert top() == before
    row.hide()
    qtbot.waitUntil(lambda: view.height() == height)
    assert shown.settle()
    assert top() == before


def test_a_view_begins_where_it_was_left_in_any_window(shown: Shown, qtbot: QtBot) -> None:
    window, view = QWidget(), shown.view
    pages = QStackedWidget()
    pages.addWidget(QLabel("Welcome"))
    pages.addWidget(view)
    column_in(window, QLabel("Title"), (pages, 1))
    window.resize(700, 700)
    window.show()
    view.show_conversation(shown.heads, (20, 30))
    pages.setCurrentWidget(view)
    qtbot.waitUntil(view.isVisible)
    assert shown.settle().view.reading_position() == (20, 30)


def test_a_conversation_whose_reply_still_grows_opens_where_it_was_left(shown: Shown) -> None:
    shown.view.show_conversation(shown.heads, (20, 30))
    shown.settle()
    last = len(shown.heads) - 1
    shown.view.provide(last, turn(last, "Go on", None, status=ExchangeStatus.RUNNING))
    shown.view.begin_reply(last)
    assert shown.settle().view.reading_position() == (20, 30)


def test_the_text_does_not_move_when_the_scroll_bar_appears(qtbot: QtBot) -> None:
    lefts = []
    for contents in ([turn(0, "Q", "A")], uneven(60)):
        shown = Shown(qtbot, contents).settle()
        shown.view.resize(1200, 600)
        lefts.append(shown.settle().turn(len(contents) - 1).x())
    assert lefts[0] == lefts[1]


def test_it_opens_at_the_end_and_only_turns_near_the_screen_have_widgets(qtbot: QtBot) -> None:
    shown = Shown(qtbot, uneven(40) * 125).settle()
    assert len(shown.view.heights) == 5000
    assert shown.view.visible_items[1] == 4999
    bar = shown.view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    assert shown.view.items_laid_out < 15
    assert shown.provided < 60


@pytest.mark.parametrize("lie", [1.0, 0.1, 12.0])
def test_scrolling_to_a_turn_is_exact_whatever_was_estimated(qtbot: QtBot, lie: float) -> None:
    shown = Shown(qtbot, uneven(50) * 100, lie=lie)
    for index in (2500, 0, 4999, 1217, 3306):
        shown.view.scroll_to_turn(index)
        shown.settle()
        widget = shown.turn(index)
        assert widget.is_highlighted
        height, middle = shown.view.viewport().height(), widget.y() + widget.height() / 2
        bar = shown.view.verticalScrollBar()
        if widget.height() > height * 0.9:
            assert 0 <= widget.y() < height * 0.15
        elif 0 < bar.value() < bar.maximum():
            assert abs(middle - height / 2) <= 2
        assert 0 <= widget.y() < height


@pytest.mark.parametrize(
    ("late", "opens", "at_answer"),
    [(False, True, True), (True, False, True), (True, False, False)],
    ids=["opens there", "loaded late", "the question"],
)
def test_a_message_in_a_tall_turn_is_scrolled_to_exactly(
    qtbot: QtBot, late: bool, opens: bool, at_answer: bool
) -> None:
    contents = [turn(at, WORDS * 80, f"Answer {at}. " + WORDS) for at in range(50)]
    shown = Shown(qtbot, contents, lie=0.3, answers=not late)
    wanted = contents[20].messages[at_answer]
    if opens:
        shown.view.show_conversation(shown.heads, turn=20, message_id=wanted.id)
    else:
        shown.view.scroll_to_turn(20, wanted.id)
    for _round in range(12 * late):
        shown.answer()
        qtbot.wait(1)
    shown.settle()
    assert shown.turn(20).is_highlighted
    text, height = shown.turn(20).texts()[at_answer], shown.view.viewport().height()
    top = text.mapTo(shown.view.viewport(), QPoint(0, 0)).y()
    if at_answer:
        assert abs(top + text.height() // 2 - height / 2) < 5
    else:
        assert text.height() > height
        assert 0 <= top < height / 2


def test_scrolling_while_a_message_is_loaded_cancels_the_jump_to_it(qtbot: QtBot) -> None:
    contents = [turn(at, WORDS * 80, WORDS) for at in range(50)]
    shown = Shown(qtbot, contents, answers=False)
    shown.view.scroll_to_turn(20, contents[20].messages[1].id)
    shown.view.scroll_by(30)
    anchor = shown.view.anchor
    shown.answer()
    shown.settle()
    assert shown.view.anchor == anchor


def test_the_highlight_of_a_jump_waits_for_the_content_and_ends(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.widgets.transcript.turn.HIGHLIGHT_MS", 20)
    shown = Shown(qtbot, uneven(2), answers=False)
    shown.view.provide(1, shown.contents[1])
    shown.view.scroll_to_turn(0)
    shown.view.scroll_to_turn(1)
    awaited, known = shown.turn(0), shown.turn(1)
    qtbot.waitUntil(lambda: not known.is_highlighted)
    assert awaited.is_highlighted
    shown.view.grab()
    shown.view.provide(0, shown.contents[0])
    assert awaited.is_highlighted
    qtbot.waitUntil(lambda: not awaited.is_highlighted)


def test_visible_text_does_not_move_when_heights_above_are_corrected(qtbot: QtBot) -> None:
    shown = Shown(qtbot, uneven(300), lie=0.1)
    shown.view.scroll_to_anchor(AtItem(150, 0))
    shown.settle()
    assert shown.top_of(150) == 0
    for _step in range(25):
        first = shown.view.visible_items[0]
        top = shown.top_of(first)
        assert top is not None
        shown.view.scroll_by(-40)
        now = shown.top_of(first)
        if now is not None and shown.view.verticalScrollBar().value() > 0:
            assert now - top == 40
        assert shown.settle().top_of(first) == now


def test_a_reading_position_survives_reloading_another_width_and_theme(shown: Shown) -> None:
    assert shown.view.reading_position() is None, "the end"
    shown.view.scroll_to_turn(30)
    position = shown.settle().view.reading_position()
    assert position is not None
    assert shown.top_of(position[0]) == -position[1]
    shown.view.scroll_to_anchor(AtItem(30, 0))
    for width in (420, 1200, 700):
        shown.view.resize(width, 600)
        assert shown.settle().top_of(30) == 0
    shown.view.set_theme(Theme(dark=True, colors=DARK, reading_px=22, ui_px=18))
    assert shown.settle().top_of(30) == 0
    shown.view.scroll_by(25)
    position, top = shown.settle().view.reading_position(), shown.top_of(31)
    shown.view.show_conversation(shown.heads, position)
    assert shown.settle().view.reading_position() == position
    assert shown.top_of(31) == top


def test_far_content_is_dropped_and_re_read(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_data, "_MAX_KEPT", 40)
    monkeypatch.setattr(virtual_column, "_MAX_WIDGETS", 8)
    shown = Shown(qtbot, uneven(50) * 10).settle()
    for index in (3, 120, 250, 400, 3):
        before = shown.provided
        shown.view.scroll_to_turn(index)
        shown.settle()
        assert shown.provided > before
        assert shown.turn(index).content == shown.contents[index]


def test_a_text_can_be_deleted_while_it_is_rendered(qtbot: QtBot) -> None:
    shown = Shown(qtbot, [turn(at, "Long?", (WORDS + "\n\n") * 500) for at in range(30)])
    for index in (0, 29, 15):
        shown.view.scroll_to_turn(index)
        assert not shown.view.is_settled
        shown.view.drop_items([at for at in range(30) if shown.view.turn_widget(at)])
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    shown.view.scroll_to_turn(7)
    assert shown.settle().turn(7).texts()


def test_turns_can_be_replaced_by_another_branch(shown: Shown) -> None:
    shown.add_reply()
    shown.view.show_conversation(shown.heads[:10])
    assert not shown.view.is_streaming
    assert len(shown.settle().view.heights) == 10
    assert shown.view.visible_items[1] == 9
    for late in (40, -1):  # content that was requested before
        shown.view.provide(late, shown.contents[late])
    shown.view.show_sources(40, CHIPS)
    assert len(shown.view.heights) == 10


# a reply as it streams


def test_the_view_follows_a_reply_until_the_user_scrolls_up(shown: Shown) -> None:
    index, bar = shown.add_reply(), shown.view.verticalScrollBar()
    shown.stream((WORDS + "\n\n") * 40)
    assert bar.value() == bar.maximum()
    assert shown.view.visible_items == (60, 60)
    shown.view.scroll_by(-300)
    top = shown.settle().top_of(index)
    shown.stream((WORDS + "\n\n") * 20)
    assert shown.top_of(index) == top
    found = shown.view.findChildren(QPushButton)
    button = next(each for each in found if "New text" in each.text())
    assert button.isVisible()
    button.click()
    shown.settle()
    assert isinstance(shown.view.anchor, AtEnd)
    assert not button.isVisible()


def test_a_button_leads_to_the_end_from_far_away_and_takes_no_focus(shown: Shown) -> None:
    button = shown.view._to_end
    assert button.isHidden()
    shown.view.scroll_by(-100)
    assert shown.settle().view._to_end.isHidden(), "the wheel is quicker"
    shown.view.scroll_by(-2000)
    shown.settle()
    assert button.isVisible()
    assert button.focusPolicy() is Qt.FocusPolicy.NoFocus
    button.click()
    assert isinstance(shown.settle().view.anchor, AtEnd)
    assert button.isHidden()


def test_what_is_opened_is_not_painted_before_it_is_drawn(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.widgets.transcript.message_text._FIRST_S", 0)
    monkeypatch.setattr("ui.widgets.transcript.target._DRAWING_S", 60)
    tables = "\n\n".join(["| a | b |\n|---|---|\n| 1 | 2 |", f"```python\n{WORDS}\n```"] * 9)
    contents = {at: turn(at, "Question", tables + f"\n\nend {at}") for at in range(3)}
    headers = [head(at, content) for at, content in contents.items()]
    shown.view.show_conversation(headers, contents=contents)
    for index in range(shown.view.visible_items[0], 3):
        assert f"end {index}" in shown.turn(index).texts()[-1].builder.document.toPlainText()
    assert isinstance(shown.view.anchor, AtEnd)


def test_a_turn_is_shown_from_its_start_unless_the_user_has_scrolled(shown: Shown) -> None:
    index = shown.add_reply()
    shown.stream((WORDS + "\n\n") * 40)
    shown.finish()
    shown.view.show_from_start(index)
    assert shown.settle().top_of(index) == 0
    shown.view.scroll_by(-300)
    top = shown.settle().top_of(index)
    shown.view.show_from_start(index)
    assert shown.settle().top_of(index) == top


def test_a_reply_that_stalls_says_how_long(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(answer_module, "monotonic", lambda: now[0])
    index = shown.add_reply()

    def answer() -> answer_module.AnswerFrame:
        frame = shown.turn(index).answer
        assert frame is not None
        return frame

    def seen() -> list[str]:
        answer()._pulse.timeout.emit()
        labels = answer()._end.findChildren(QLabel)
        return [each.text() for each in labels if not each.isHidden() and each.text()]

    assert not any("5 s" in each for each in seen())
    shown.view.set_theme(Theme())
    assert any("the reply" in each for each in seen()), "also once it is drawn anew"
    now[0] += 5
    assert any(each.endswith("5 s") for each in seen())
    shown.stream("Some text.")
    assert seen() == []
    now[0] += 61
    assert any(each.endswith("61 s") for each in seen())
    shown.view.append(Text(" More."))
    assert seen() == []
    shown.finish()
    assert not answer()._pulse.isActive()


def footer_label(shown: Shown, index: int) -> str:
    return shown.turn(index).frames()[1].footer.findChildren(QLabel)[0].accessibleName()


def test_a_reply_that_is_stored_after_the_next_one_began_does_not_end_that(shown: Shown) -> None:
    first = shown.add_reply()
    shown.view.append(Text("One."))
    stored = message(99, Role.ASSISTANT, Text("One."))
    content = TurnContent((*shown.contents[first].messages, stored))
    second = shown.add_reply()
    shown.view.append(Text("Two"))
    shown.view.finish_reply(first, content)
    shown.view.append(Text(" more."))
    shown.settle()
    assert shown.view.is_streaming
    assert (shown.texts(first)[-1], shown.texts(second)[-1]) == ("One.", "Two more.")


def test_a_finished_reply_is_not_rendered_again_when_it_is_stored(shown: Shown) -> None:
    index = shown.add_reply()
    call, result = ToolCall("c", "find", '{"query": "x"}'), ToolResult("c", "find", "!", False, 120)
    answer = "A **short** answer.\n\n" + WORDS
    for block in (Text("let me "), Text("see\n"), TextWasThinking(), call):
        shown.view.append(block)
    assert any("running" in fold.title for fold in shown.turn(index).findChildren(Fold))
    shown.view.append(result)
    shown.stream(answer)
    footer = Footer("openai:gpt-5", Usage(10, 20, cost_usd=0.01))
    assert footer_label(shown, index) == ""
    widget, before = shown.turn(index), shown.turn(index).texts()
    stored = message(99, Role.ASSISTANT, Thinking("let me see"), call, result, Text(answer))
    content = TurnContent((*shown.contents[index].messages, stored), footer=footer)
    shown.view.finish_reply(index, content)
    assert shown.settle().turn(index) is widget
    assert footer_label(shown, index).startswith("gpt-5")
    folds = [fold.title for fold in widget.findChildren(Fold)]
    assert folds[0] == "Thought process"
    assert "120 ms" in folds[1]
    assert widget.texts() == before
    assert not shown.view.is_streaming


@pytest.mark.parametrize("text", ["Half an ans", ""])
def test_a_failed_reply_keeps_its_text_and_shows_why(qtbot: QtBot, shown: Shown, text: str) -> None:
    index = shown.add_reply()
    if text:
        shown.stream(text)
    problem = Problem("timeout", "Nothing came for 60 seconds", "Try again, or another model.")
    shown.finish(ExchangeStatus.FAILED, problem=problem)
    shown.settle()
    assert shown.texts(index)[1:] == [text] * bool(text)
    (retry,) = shown.turn(index).findChildren(QPushButton)
    with qtbot.waitSignal(shown.view.events.retry_requested) as retried:
        retry.click()
    assert retried.args == [index]


def test_no_text_is_lost_by_a_change_of_theme_or_while_away(qtbot: QtBot, shown: Shown) -> None:
    index = shown.add_reply()
    shown.view.append(Thinking("Hm."))
    shown.stream("Before. ")
    shown.view.set_theme(Theme(dark=True, colors=DARK))
    shown.stream("Dark. ")
    shown.view.scroll_to_turn(2)
    shown.view.set_theme(Theme())
    assert shown.view.turn_widget(index) is None
    shown.view.append(Text("While away. "))
    qtbot.waitUntil(lambda: shown.view.is_settled)
    shown.view.scroll_to_turn(index)
    shown.stream("And back again.")
    shown.finish()
    assert shown.texts(index)[-1] == "Before. Dark. While away. And back again."


def test_a_reply_needs_the_content_of_its_turn(qtbot: QtBot) -> None:
    shown = Shown(qtbot, uneven(3), answers=False)
    with pytest.raises(ValueError, match="turn 2"):
        shown.view.begin_reply()


Growth = Callable[[Shown, int], object]
GROWTHS: dict[str, Growth] = {
    "sources": lambda shown, at: shown.view.show_sources(at, CHIPS),
    "summary": lambda shown, at: shown.view.show_summary_note(at, WORDS),
    "more text": lambda shown, _at: shown.stream("\n\n" + WORDS * 20 + "The end"),
    "other text": lambda shown, at: shown.view.provide(at, turn(at, WORDS * 9, WORDS * 60)),
    "narrower": lambda shown, _at: shown.view.resize(640, 580),
}


@pytest.fixture
def streaming(qtbot: QtBot) -> Shown:
    """Return a conversation whose last turn is being answered; each turn is taller than the view."""
    shown = Shown(qtbot, [turn(at, f"Question {at}", LONG) for at in range(6)])
    shown.add_reply()
    shown.view.append(Text(LONG))
    return shown.settle()


@pytest.mark.parametrize(
    ("growth", "at", "up"),
    [(growth, at, 0) for growth in GROWTHS for at in (4, 6)]
    + [(growth, at, up) for growth in list(GROWTHS)[:3] for at in (3, 4, 6) for up in (60, 1400)],
)
def test_the_end_is_followed_and_another_position_does_not_move(
    streaming: Shown, growth: str, at: int, up: int
) -> None:
    bar = streaming.view.verticalScrollBar()
    streaming.view.scroll_by(-up)
    streaming.settle()
    read = streaming.view.childAt(QPoint(350, 20))
    before = read.mapTo(streaming.view, QPoint(0, 0)).y()
    GROWTHS[growth](streaming, at)
    streaming.settle()
    if up:
        assert read.mapTo(streaming.view, QPoint(0, 0)).y() == before
    else:
        assert isinstance(streaming.view.anchor, AtEnd)
        assert bar.value() == bar.maximum()
        assert streaming.view.visible_items[1] == 6


# the divider of a new segment


def test_a_divider_below_the_last_turn_stays_until_the_next_one(qtbot: QtBot, shown: Shown) -> None:
    view = shown.view

    def dividers() -> list[Divider]:
        shown.settle()
        found = view.findChildren(Divider)
        return [x for x in found if x.accessibleName() == NEW_SEGMENT_TEXT and x.isVisible()]

    view.scroll_to_turn(0)
    assert dividers() == []
    view.show_segment_end(True, goes_there=True)
    (line,), last = dividers(), shown.turn(59)
    assert last.isAncestorOf(line)
    assert line.mapTo(last, QPoint(0, line.height())).y() <= last.height()
    assert line.mapTo(view.viewport(), QPoint(0, line.height())).y() <= view.viewport().height()
    keeps: list[Callable[[], object]] = [
        lambda: view.show_segment_end(True), lambda: view.set_theme(Theme(dark=True, colors=DARK)),
        lambda: view.provide(59, turn(59, "Question", "Another answer")),
    ]  # fmt: skip
    for change in keeps:
        change()
        qtbot.waitUntil(lambda: len(dividers()) == 1)
    ends: list[Callable[[], object]] = [
        lambda: view.show_segment_end(False), shown.add_reply,
        lambda: view.show_conversation(shown.heads),
    ]  # fmt: skip
    for change in ends:
        view.show_segment_end(True)
        qtbot.waitUntil(lambda: len(dividers()) == 1)
        change()
        qtbot.waitUntil(lambda: not dividers())


# keyboard and focus


def test_keys_scroll(shown: Shown) -> None:
    bar = shown.view.verticalScrollBar()
    positions = [bar.value()]
    for key in (Qt.Key.Key_PageUp, Qt.Key.Key_Home):
        QTest.keyClick(shown.view, key)
        shown.settle()
        positions.append(bar.value())
    assert positions == sorted(set(positions), reverse=True)
    assert positions[-1] == 0
    QTest.keyClick(shown.view, Qt.Key.Key_PageDown)
    assert bar.value() > 0
    QTest.keyClick(shown.view, Qt.Key.Key_End)
    shown.settle()
    assert bar.value() == bar.maximum()
    press = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(shown.turn(59).texts()[0].view, press)
    assert bar.value() < bar.maximum(), "a key in a text"


def press(key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> QWidget:
    focus = QApplication.focusWidget()
    assert focus is not None
    QTest.keyClick(focus, key, modifier)
    now = QApplication.focusWidget()
    assert now is not None
    return now


def test_a_conversation_is_one_stop_of_tab_from_anywhere_inside(qtbot: QtBot) -> None:
    window, before, after = QWidget(), QLineEdit(), QLineEdit()
    shown = Shown(qtbot, [turn(at, f"Q{at}", "Short") for at in range(3)])
    layout = QVBoxLayout(window)
    for widget in (before, shown.view, after):
        layout.addWidget(widget)
    window.resize(700, 900)
    window.show()
    window.activateWindow()
    before.setFocus()
    shown.settle()
    assert press(Qt.Key.Key_Tab) is shown.view
    assert press(Qt.Key.Key_Tab) is after
    assert press(Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier) is shown.view
    inside = press(Qt.Key.Key_Down)
    assert shown.view.isAncestorOf(inside)
    assert press(Qt.Key.Key_Tab) is after
    press(Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    assert shown.view.isAncestorOf(press(Qt.Key.Key_Down))
    assert press(Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier) is before
    shown.view.setParent(None)


def test_arrows_go_through_messages_and_their_buttons(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_anchor(AtItem(30, 0))
    shown.settle()
    frame = shown.turn(30).frames()[0]
    assert not any(button.isVisible() for button in frame.footer.buttons)
    with qtbot.waitSignal(shown.view.current_turn_changed):
        shown.view.setFocus()
        assert press(Qt.Key.Key_Down) is frame
    QApplication.processEvents()
    assert isinstance(frame, MessageFrame)
    assert [each.text() for each in frame.footer.buttons] == ["Copy", "Edit", "Copy link"]
    stops = shown.turn(30).focus_stops()
    assert [press(Qt.Key.Key_Right) for _ in range(3)] == stops[1:4]
    assert press(Qt.Key.Key_Left) is stops[2]
    with qtbot.waitSignal(shown.view.events.edit_requested):
        press(Qt.Key.Key_Return)
    assert frame.footer.buttons[0] in stops[:4]
    assert press(Qt.Key.Key_Down) is shown.turn(30).frames()[1]
    assert press(Qt.Key.Key_Up) is frame


def test_arrows_scroll_through_a_message_that_is_cut_off(qtbot: QtBot) -> None:
    shown = Shown(qtbot, [turn(0, "Q", "A line.\n\n" * 200), turn(1, "Q", "A")])
    shown.view.scroll_to_anchor(AtItem(0, 0))
    shown.settle()
    shown.view.setFocus()
    for _ in range(2):
        press(Qt.Key.Key_Down)
    answer, bar = shown.turn(0).frames()[-1], shown.view.verticalScrollBar()
    assert QApplication.focusWidget() is answer
    before = bar.value()
    assert press(Qt.Key.Key_Down) is answer
    shown.settle()
    assert bar.value() > before
    presses = 0
    while press(Qt.Key.Key_Down) is answer and presses < 100:
        shown.settle()
        presses += 1
    assert QApplication.focusWidget() is shown.turn(1).frames()[0]


def test_one_selection_at_a_time_is_copied_as_text_and_offered_by_the_menu(shown: Shown) -> None:
    frame, clipboard = shown.turn(59).frames()[-1], QGuiApplication.clipboard()
    first, second = (text.view for text in shown.turn(59).texts())
    for selects in (False, True):
        if selects:
            first.selectAll()
            second.selectAll()
        frame.open_menu(QPoint(0, 0))
        popup = QApplication.activePopupWidget()
        labels = [action.text() for action in popup.actions()]
        popup.close()
        assert {"Copy", "Regenerate", "Fork from here", "Copy link", "Inspect"} <= {*labels}
        assert ("Copy selection" in labels) is selects
    assert first.selected_text() == ""
    second.copy()
    assert clipboard.text().startswith("Answer 59")
    assert not clipboard.mimeData().hasHtml()

"""A conversation of any length: drawn near the eye, and the eye keeps its place."""

import random

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.domain.conversations import ExchangeStatus, Problem, Text, Thinking, ToolCall, ToolResult
from app.domain.usage import Usage
from tests.fakes.transcripts import Shown, asked, head, turn
from ui.theme import DARK, Theme
from ui.widgets.transcript.anchor import AtEnd
from ui.widgets.transcript.frames import MessageFrame
from ui.widgets.transcript.values import FindMark, Footer, TurnContent, searchable_text
from ui.widgets.transcript.view import TranscriptView

WORDS = "Some words that fill a line or two of the transcript, as people and models write them. "


def uneven(count: int, seed: int = 7) -> list[TurnContent]:
    """Turns of very different heights."""
    dice = random.Random(seed)
    code = "```python\n" + "x = 1\n" * 30 + "```"
    answers = (WORDS, WORDS * 30, code, "- item\n" * 25, "ok")
    return [
        turn(at, WORDS * dice.randint(1, 3), f"Answer {at}\n\n" + dice.choice(answers))
        for at in range(count)
    ]


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    made = Shown(uneven(60))
    qtbot.addWidget(made.view)
    settle(qtbot, made.view)
    return made


def settle(qtbot: QtBot, view: TranscriptView) -> None:
    """Wait until nothing waits to be drawn and nothing moves."""

    def is_quiet() -> bool:
        first, last = view.visible_items
        widgets = [view.turn_widget(at) for at in range(first, last + 1)]
        return view.is_settled and all(each and each.content is not None for each in widgets)

    qtbot.waitUntil(is_quiet)


def test_an_empty_conversation_shows_nothing_and_does_not_mind(qtbot: QtBot) -> None:
    made = Shown([])
    qtbot.addWidget(made.view)
    made.view.scroll_to_turn(0)
    for key in (Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Down, Qt.Key.Key_Tab):
        QTest.keyClick(made.view, key)
    assert made.view.visible_items == (0, -1)


def test_only_what_is_near_the_screen_is_made(qtbot: QtBot) -> None:
    made = Shown(uneven(40) * 125)
    qtbot.addWidget(made.view)
    settle(qtbot, made.view)
    assert made.view.turn_count == 5000
    assert made.view.items_laid_out < 15
    assert sum(last - first + 1 for first, last in made.requested) < 60


def test_it_opens_at_the_end(shown: Shown) -> None:
    assert shown.view.visible_items[1] == 59
    bar = shown.view.verticalScrollBar()
    assert bar.value() == bar.maximum()


@pytest.mark.parametrize("lie", [1.0, 0.1, 12.0])
def test_scrolling_to_a_turn_lands_on_it_however_wrong_the_guesses_were(
    qtbot: QtBot, lie: float
) -> None:
    made = Shown(uneven(50) * 100, lie=lie)
    qtbot.addWidget(made.view)
    dice = random.Random(3)
    for index in (2500, 0, 4999, *(dice.randrange(5000) for _ in range(6))):
        made.view.scroll_to_turn(index)
        settle(qtbot, made.view)
        widget = made.view.turn_widget(index)
        assert widget is not None
        assert widget.is_highlighted
        height, middle = made.view.viewport().height(), widget.y() + widget.height() / 2
        bar = made.view.verticalScrollBar()
        if widget.height() > height * 0.9:
            assert 0 <= widget.y() < height * 0.15
        elif 0 < bar.value() < bar.maximum():
            assert abs(middle - height / 2) <= 2
        assert 0 <= widget.y() < height


def test_it_lands_there_though_the_words_come_late(qtbot: QtBot) -> None:
    made = Shown(uneven(400), lie=0.05, answers=False)
    qtbot.addWidget(made.view)
    made.view.scroll_to_turn(200)
    for _round in range(12):
        made.answer()
        QApplication.processEvents()
    settle(qtbot, made.view)
    top = made.top_of(200)
    assert top is not None
    assert 0 <= top < made.view.viewport().height()


def test_the_mark_of_a_jump_goes_away(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_turn(20)
    widget = shown.view.turn_widget(20)
    assert widget is not None
    qtbot.waitUntil(lambda: not widget.is_highlighted, timeout=4000)


def test_the_mark_of_a_jump_waits_for_the_words(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.widgets.transcript.turn.HIGHLIGHT_MS", 20)
    made = Shown(uneven(2), answers=False)
    qtbot.addWidget(made.view)
    made.view.provide(1, made.contents[1])
    made.view.scroll_to_turn(0)
    made.view.scroll_to_turn(1)
    awaited, known = made.view.turn_widget(0), made.view.turn_widget(1)
    assert awaited is not None
    assert known is not None
    qtbot.waitUntil(lambda: not known.is_highlighted)
    assert awaited.is_highlighted
    made.view.provide(0, made.contents[0])
    assert awaited.is_highlighted
    qtbot.waitUntil(lambda: not awaited.is_highlighted)


def test_what_is_read_does_not_move_when_heights_above_are_corrected(qtbot: QtBot) -> None:
    made = Shown(uneven(300), lie=0.1)
    qtbot.addWidget(made.view)
    made.view.scroll_to_turn(150, centred=False, highlight=False)
    settle(qtbot, made.view)
    for _step in range(25):
        first = made.view.visible_items[0]
        top = made.top_of(first)
        assert top is not None
        made.view.scroll_by(-40)
        now = made.top_of(first)
        if now is not None and made.view.verticalScrollBar().value() > 0:
            assert now - top == 40
        settle(qtbot, made.view)
        assert made.top_of(first) == now


def test_scrolling_through_everything_meets_every_turn(qtbot: QtBot) -> None:
    made = Shown(uneven(40), lie=3)
    qtbot.addWidget(made.view)
    settle(qtbot, made.view)
    QTest.keyClick(made.view, Qt.Key.Key_Home)
    settle(qtbot, made.view)
    seen = set(range(made.view.visible_items[0], made.view.visible_items[1] + 1))
    for _page in range(400):
        if isinstance(made.view.anchor, AtEnd):
            break
        QTest.keyClick(made.view, Qt.Key.Key_PageDown)
        settle(qtbot, made.view)
        seen |= set(range(made.view.visible_items[0], made.view.visible_items[1] + 1))
    assert seen == set(range(40))


def test_a_place_can_be_noted_and_returned_to(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_turn(30, centred=False, highlight=False)
    shown.view.scroll_by(25)
    settle(qtbot, shown.view)
    place = shown.view.place()
    top = shown.top_of(31)
    shown.view.show_conversation(shown.heads, place)
    settle(qtbot, shown.view)
    assert shown.view.place() == place
    assert shown.top_of(31) == top


def test_another_width_keeps_what_is_at_the_top(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_turn(30, centred=False, highlight=False)
    settle(qtbot, shown.view)
    for width in (420, 1200, 700):
        shown.view.resize(width, 600)
        settle(qtbot, shown.view)
        assert shown.top_of(30) == 0


def test_another_look_redraws_in_place(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_turn(30, centred=False, highlight=False)
    settle(qtbot, shown.view)
    shown.view.set_theme(Theme(dark=True, colours=DARK, reading_px=22, ui_px=18))
    settle(qtbot, shown.view)
    assert shown.top_of(30) == 0


def test_content_that_was_let_go_is_asked_for_again(qtbot: QtBot) -> None:
    made = Shown(uneven(50) * 40)
    qtbot.addWidget(made.view)
    for index in range(0, 2000, 25):
        made.view.scroll_to_turn(index, highlight=False)
        QApplication.processEvents()
    made.view.scroll_to_turn(3)
    settle(qtbot, made.view)
    widget = made.view.turn_widget(3)
    assert widget is not None
    assert widget.content == made.contents[3]


# a reply as it streams


def stream(qtbot: QtBot, made: Shown, text: str, size: int = 40) -> None:
    for at in range(0, len(text), size):
        made.view.append_text(text[at : at + size])
        if at % (size * 5) == 0:
            QApplication.processEvents()
    drawn = made.view.turn_widget(made.view.turn_count - 1)
    assert drawn is not None
    answer = drawn.answer
    assert answer is not None
    qtbot.waitUntil(
        lambda: bool(answer.texts) and answer.texts[-1].composer.source.endswith(text[-9:])
    )
    settle(qtbot, made.view)


def begin(made: Shown) -> int:
    content = asked(made.view.turn_count)
    index = made.view.add_turn(head(made.view.turn_count, content), content)
    made.view.begin_reply()
    return index


def test_the_view_follows_a_reply(qtbot: QtBot, shown: Shown) -> None:
    begin(shown)
    stream(qtbot, shown, (WORDS + "\n\n") * 40)
    bar = shown.view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    assert shown.view.visible_items == (60, 60)


def test_it_stops_following_when_the_reader_scrolls_up(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    stream(qtbot, shown, (WORDS + "\n\n") * 40)
    shown.view.scroll_by(-300)
    settle(qtbot, shown.view)
    top = shown.top_of(index)
    stream(qtbot, shown, (WORDS + "\n\n") * 20)
    assert shown.top_of(index) == top
    button = next(
        each for each in shown.view.findChildren(QPushButton) if "New text" in each.text()
    )
    assert button.isVisible()
    button.click()
    settle(qtbot, shown.view)
    assert isinstance(shown.view.anchor, AtEnd)
    assert not button.isVisible()


def test_a_finished_reply_is_not_drawn_again_when_it_is_stored(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    shown.view.append_thinking("let me see")
    stream(qtbot, shown, "A **short** answer.\n\n" + WORDS)
    shown.view.finish_reply(
        ExchangeStatus.COMPLETED, Footer("openai:gpt-5", Usage(10, 20, cost_usd=0.01))
    )
    settle(qtbot, shown.view)
    widget = shown.view.turn_widget(index)
    assert widget is not None
    before = widget.texts()
    stored = turn(index, "Go on", None)
    answer = shown.contents[0].messages[1]
    blocks = (Thinking("let me see"), Text("A **short** answer.\n\n" + WORDS))
    messages = (*stored.messages, type(answer)(answer.id, "x", answer.conversation_id, None,
                                               answer.role, blocks, answer.created_at))  # fmt: skip
    shown.view.provide(index, TurnContent(messages, footer=Footer("openai:gpt-5", Usage(10, 20))))
    assert widget.texts() == before
    assert not shown.view.is_streaming


def test_a_failed_reply_keeps_what_came_and_says_why(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    stream(qtbot, shown, "Half an ans")
    problem = Problem("timeout", "Nothing came for 60 seconds", "Try again, or another model.")
    with qtbot.waitSignal(shown.view.retry_requested) as retried:
        shown.view.finish_reply(ExchangeStatus.FAILED, Footer(), problem)
        settle(qtbot, shown.view)
        widget = shown.view.turn_widget(index)
        assert widget is not None
        assert "Half an ans" in widget.texts()[-1].composer.document.toPlainText()
        words = [each.text() for each in widget.findChildren(QPushButton)]
        next(each for each in widget.findChildren(QPushButton) if each.text() == "Retry").click()
    assert words == ["Retry"]
    assert retried.args == [index]


def test_a_reply_that_fails_before_any_word_still_has_its_panel(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    shown.view.finish_reply(ExchangeStatus.FAILED, None, Problem("key", "No key", "Enter one."))
    settle(qtbot, shown.view)
    widget = shown.view.turn_widget(index)
    assert widget is not None
    assert any(each.text() == "Retry" for each in widget.findChildren(QPushButton))


def test_tools_and_notices_stand_in_the_reply(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    shown.view.show_reply_notice("Rate limited: again in 5 s")
    shown.view.append_tool_call(ToolCall("c1", "memory_search", '{"query": "x"}'))
    shown.view.append_tool_result(ToolResult("c1", "memory_search", "found", False, 120))
    stream(qtbot, shown, "Here it is, as found.")
    widget = shown.view.turn_widget(index)
    assert widget is not None
    titles = [each.accessibleName() for each in widget.findChildren(QToolButton)]
    assert any("memory_search" in title and "120 ms" in title for title in titles)


def test_a_change_of_look_in_mid_stream_loses_no_word(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    stream(qtbot, shown, "Before the change.\n\n")
    shown.view.set_theme(Theme(dark=True, colours=DARK))
    stream(qtbot, shown, "And after it.")
    widget = shown.view.turn_widget(index)
    assert widget is not None
    drawn = widget.texts()[-1].composer.document.toPlainText()
    assert drawn == "Before the change.\nAnd after it."


def test_it_loses_none_either_while_the_reader_is_elsewhere(qtbot: QtBot, shown: Shown) -> None:
    index = begin(shown)
    stream(qtbot, shown, "Before. ")
    shown.view.scroll_to_turn(2)
    shown.view.set_theme(Theme(dark=True, colours=DARK))
    assert shown.view.turn_widget(index) is None
    shown.view.append_text("While away. ")
    qtbot.waitUntil(lambda: shown.view.is_settled)
    shown.view.scroll_to_turn(index)
    stream(qtbot, shown, "And back again.")
    shown.view.finish_reply()
    widget = shown.view.turn_widget(index)
    assert widget is not None
    drawn = widget.texts()[-1].composer.document.toPlainText()
    assert drawn == "Before. While away. And back again."


def test_a_text_may_go_while_it_is_being_drawn(qtbot: QtBot) -> None:
    made = Shown([turn(at, "Long?", (WORDS + "\n\n") * 900) for at in range(30)])
    qtbot.addWidget(made.view)
    for index in (0, 29, 15, 3):
        made.view.scroll_to_turn(index)
        assert not made.view.is_settled
        made.view.drop_items([at for at in range(30) if made.view.turn_widget(at)])
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    made.view.scroll_to_turn(7)
    settle(qtbot, made.view)
    assert made.view.turn_widget(7) is not None


def test_turns_can_give_way_to_another_branch(qtbot: QtBot, shown: Shown) -> None:
    begin(shown)
    shown.view.truncate(10)
    assert not shown.view.is_streaming
    settle(qtbot, shown.view)
    assert shown.view.turn_count == 10
    assert shown.view.visible_items[1] == 9


def test_late_content_for_turns_that_are_gone_is_ignored(shown: Shown) -> None:
    shown.view.truncate(3)
    shown.view.provide(40, shown.contents[40])
    shown.view.provide(-1, shown.contents[0])
    assert shown.view.turn_count == 3


def test_a_reply_needs_to_know_its_question(qtbot: QtBot) -> None:
    made = Shown(uneven(3), answers=False)
    qtbot.addWidget(made.view)
    with pytest.raises(ValueError, match="turn 2"):
        made.view.begin_reply()


# found words


def test_found_words_are_marked_and_gone_to_even_far_away(qtbot: QtBot) -> None:
    made = Shown([turn(at, f"Question {at}", WORDS * 30 + f"**needle {at}**") for at in range(400)])
    qtbot.addWidget(made.view)
    marks = []
    for at, content in enumerate(made.contents):
        start = searchable_text(content.messages).index("needle")
        marks.append(FindMark(at, start, start + len("needle")))
    made.view.set_find_marks(marks)
    made.view.show_find_mark(123)
    settle(qtbot, made.view)
    widget = made.view.turn_widget(123)
    assert widget is not None
    text = widget.texts()[-1]
    selections = text.view.extraSelections()
    assert [each.cursor.selectedText() for each in selections] == ["needle"]
    y = text.view.mapTo(
        made.view.viewport(), QPoint(0, text.view.y_of(selections[0].cursor.position()))
    )
    assert abs(y.y() - made.view.viewport().height() / 3) < 30
    made.view.set_find_marks([])
    assert text.view.extraSelections() == []


def test_the_nth_found_word_is_the_nth_one_drawn(qtbot: QtBot) -> None:
    made = Shown([turn(0, "Cat?", "A cat, a **cat** and `CAT`: [cats](https://x.example).")])
    qtbot.addWidget(made.view)
    settle(qtbot, made.view)
    source = searchable_text(made.contents[0].messages).lower()
    places = [at for at in range(len(source)) if source.startswith("cat", at)]
    made.view.set_find_marks([FindMark(0, at, at + 3) for at in places])
    widget = made.view.turn_widget(0)
    assert widget is not None
    found = [s.cursor.selectedText() for t in widget.texts() for s in t.view.extraSelections()]
    assert found == ["Cat", "cat", "cat", "CAT", "cat"]


# keyboard and focus


def test_keys_scroll(qtbot: QtBot, shown: Shown) -> None:
    bar = shown.view.verticalScrollBar()
    places = [bar.value()]
    for key in (Qt.Key.Key_Up, Qt.Key.Key_PageUp, Qt.Key.Key_Home):
        QTest.keyClick(shown.view, key)
        settle(qtbot, shown.view)
        places.append(bar.value())
    assert places == sorted(places, reverse=True)
    assert places[-1] == 0
    QTest.keyClick(shown.view, Qt.Key.Key_Down)
    assert bar.value() > 0
    QTest.keyClick(shown.view, Qt.Key.Key_End)
    settle(qtbot, shown.view)
    assert bar.value() == bar.maximum()


def focused_name() -> str:
    widget = QApplication.focusWidget()
    return "" if widget is None else widget.accessibleName() or type(widget).__name__


def test_tab_walks_through_messages_and_their_controls_and_out_again(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    layout, before, after = QVBoxLayout(window), QLineEdit(), QLineEdit()
    made = Shown([turn(at, f"Q{at}", "A [link](https://x.example) here") for at in range(3)])
    for widget in (before, made.view, after):
        layout.addWidget(widget)
    window.resize(700, 900)
    window.show()
    window.activateWindow()
    before.setFocus()
    settle(qtbot, made.view)
    order: list[str] = []
    for _tab in range(80):
        focus = QApplication.focusWidget()
        assert focus is not None
        QTest.keyClick(focus, Qt.Key.Key_Tab)
        order.append(focused_name())
        if QApplication.focusWidget() is after:
            break
    assert QApplication.focusWidget() is after
    assert order[0] == "Conversation"
    messages = [name for name in order if name.startswith(("You,", "Answer"))]
    assert [name.split(",")[0] for name in messages] == ["You", "Answer"] * 3
    assert "DocumentView" in order
    for _tab in range(80):
        focus = QApplication.focusWidget()
        assert focus is not None
        if focus is before:
            break
        QTest.keyClick(focus, Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    assert QApplication.focusWidget() is before


def test_actions_appear_with_the_focus_and_can_be_reached(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_turn(30)
    settle(qtbot, shown.view)
    widget = shown.view.turn_widget(30)
    assert widget is not None
    frame = widget.frames()[0]
    assert not any(button.isVisible() for button in frame.meta.buttons)
    frame.setFocus()
    names = [button.text() for button in frame.meta.buttons]
    assert names == ["Copy", "Edit", "Copy link"]
    stops = widget.focus_stops()
    assert stops[0] is frame
    assert all(button in stops for button in frame.meta.buttons)


def test_control_and_arrows_go_from_message_to_message(qtbot: QtBot, shown: Shown) -> None:
    shown.view.scroll_to_turn(30, centred=False)
    settle(qtbot, shown.view)
    with qtbot.waitSignal(shown.view.current_turn_changed):
        shown.view.setFocus()
        for _step in range(4):
            focus = QApplication.focusWidget()
            assert focus is not None
            QTest.keyClick(focus, Qt.Key.Key_Down, Qt.KeyboardModifier.ControlModifier)
            QApplication.processEvents()
    assert isinstance(QApplication.focusWidget(), MessageFrame)


def test_the_menu_key_offers_the_actions(qtbot: QtBot, shown: Shown) -> None:
    widget = shown.view.turn_widget(59)
    assert widget is not None
    frame = widget.frames()[-1]
    frame.open_menu(QPoint(0, 0))
    popup = QApplication.activePopupWidget()
    assert popup is not None
    labels = [action.text() for action in popup.actions()]
    popup.close()
    assert labels[:5] == ["Copy", "Regenerate", "Fork from here", "Copy link", "Inspect"]
    assert labels[5:] == [
        "Is this found by search?",
        "Why wasn't this recalled?\N{HORIZONTAL ELLIPSIS}",
    ]


def test_keys_in_a_text_scroll_the_transcript(qtbot: QtBot, shown: Shown) -> None:
    widget = shown.view.turn_widget(59)
    assert widget is not None
    before = shown.view.verticalScrollBar().value()
    press = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(widget.texts()[0].view, press)
    assert shown.view.verticalScrollBar().value() < before


def test_one_selection_at_a_time_and_it_is_copied_as_text(qtbot: QtBot, shown: Shown) -> None:
    widget = shown.view.turn_widget(59)
    assert widget is not None
    first, second = (text.view for text in widget.texts())
    first.selectAll()
    second.selectAll()
    assert first.selected_text() == ""
    second.copy()
    assert QGuiApplication.clipboard().text().startswith("Answer 59")
    assert not QGuiApplication.clipboard().mimeData().hasHtml()

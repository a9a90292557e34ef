"""The composer's completion and the card that answers commands, without a program behind them."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.commands.values import Candidate, Completion
from ui.theme import DARK, Theme
from ui.views.command_panel import CommandPanel
from ui.widgets.composer import Composer

WORDS = ("/new", "/search", "/summarizer")


def complete(text: str) -> Completion:
    if not text.startswith("/"):
        return Completion()
    found = tuple(
        Candidate(f"{word} ", word, "What it does") for word in WORDS if word.startswith(text)
    )
    return Completion(found, is_whole=text in WORDS)


@pytest.fixture
def composer(qtbot: QtBot) -> Iterator[Composer]:
    window = QWidget()
    qtbot.addWidget(window)
    made = Composer(window)
    column = QVBoxLayout(window)
    column.addStretch(1)
    column.addWidget(made)
    window.resize(500, 400)
    made.take_commands(lambda text: text.startswith("/"), complete)
    with qtbot.waitExposed(window):
        window.show()
    window.activateWindow()
    made.box.setFocus()
    qtbot.waitUntil(made.box.hasFocus)
    yield made
    window.hide()


def typed(composer: Composer, text: str) -> None:
    QTest.keyClicks(composer.box, text)


def press(composer: Composer, key: Qt.Key) -> None:
    QTest.keyClick(composer.box, key)


def marked(composer: Composer) -> str | None:
    text = composer.completion.marked_text()
    return text.strip() if text else None


def test_a_slash_lists_what_it_may_become_and_words_narrow_it(composer: Composer) -> None:
    typed(composer, "/")
    assert composer.completion.candidates == list(WORDS)
    typed(composer, "s")
    assert composer.completion.candidates == ["/search", "/summarizer"]
    assert marked(composer) == "/search"
    typed(composer, "x")
    assert not composer.completion.isVisible()


def test_the_list_stands_above_the_composer_and_moves_nothing(composer: Composer) -> None:
    before = composer.geometry()
    typed(composer, "/")
    listed = composer.completion
    assert composer.geometry() == before
    assert listed.geometry().bottom() < composer.geometry().top()
    assert listed.width() == composer.width()


@pytest.mark.parametrize("key", [Qt.Key.Key_Tab, Qt.Key.Key_Return])
def test_tab_and_enter_take_the_marked_row_and_keep_the_focus(
    composer: Composer, key: Qt.Key
) -> None:
    typed(composer, "/s")
    press(composer, Qt.Key.Key_Down)
    press(composer, key)
    assert composer.text == "/summarizer "
    assert composer.box.hasFocus()


def test_the_marked_row_goes_round(composer: Composer) -> None:
    typed(composer, "/")
    seen = [marked(composer)]
    for _ in WORDS:
        press(composer, Qt.Key.Key_Down)
        seen.append(marked(composer))
    assert seen == [*WORDS, WORDS[0]]
    press(composer, Qt.Key.Key_Up)
    assert marked(composer) == WORDS[-1]


def test_a_whole_command_is_sent_by_enter_and_not_completed(
    composer: Composer, qtbot: QtBot
) -> None:
    typed(composer, "/new")
    assert marked(composer) is None
    with qtbot.waitSignal(composer.command_requested) as asked:
        press(composer, Qt.Key.Key_Return)
    assert asked.args == ["/new"]
    assert not composer.completion.isVisible()


def test_esc_closes_the_list_until_another_command_is_begun(
    composer: Composer, qtbot: QtBot
) -> None:
    typed(composer, "/s")
    with qtbot.assertNotEmitted(composer.dismiss_requested):
        press(composer, Qt.Key.Key_Escape)
    typed(composer, "e")
    assert not composer.completion.isVisible()
    with qtbot.waitSignal(composer.dismiss_requested):
        press(composer, Qt.Key.Key_Escape)
    composer.clear()
    typed(composer, "/s")
    assert composer.completion.isVisible()


def test_a_click_takes_a_row(composer: Composer) -> None:
    typed(composer, "/")
    listed = composer.completion
    item = listed.topLevelItem(1)
    assert item is not None
    at = listed.visualItemRect(item).center()
    QTest.mouseClick(listed.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert composer.text == "/search "


def test_a_command_may_be_given_while_a_reply_runs_and_a_message_not(
    composer: Composer, qtbot: QtBot
) -> None:
    composer.show_running(True)
    typed(composer, "/new")
    with qtbot.waitSignal(composer.command_requested):
        press(composer, Qt.Key.Key_Return)
    composer.clear()
    typed(composer, "hello")
    with qtbot.assertNotEmitted(composer.send_requested):
        press(composer, Qt.Key.Key_Return)


def test_an_earlier_message_that_is_edited_stays_one(composer: Composer, qtbot: QtBot) -> None:
    composer.begin_edit("/new")
    typed(composer, " ")
    assert not composer.completion.isVisible()
    with qtbot.waitSignal(composer.send_requested):
        press(composer, Qt.Key.Key_Return)


def test_a_draft_that_is_shown_lists_nothing(composer: Composer) -> None:
    composer.show_text("/se")
    assert not composer.completion.isVisible()


# -- the card


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[CommandPanel]:
    window = QWidget()
    qtbot.addWidget(window)
    made = CommandPanel(Theme(), window)
    column = QVBoxLayout(window)
    column.addStretch(1)
    column.addWidget(made)
    window.resize(600, 500)
    with qtbot.waitExposed(window):
        window.show()
    yield made
    window.hide()


def test_an_answer_takes_what_it_needs_and_no_more_than_half_the_window(
    panel: CommandPanel, qtbot: QtBot
) -> None:
    panel.show_output("/rag on", "Recall is **on**.")
    qtbot.waitUntil(lambda: 0 < panel.height() < 120)
    panel.show_output("/help", "\n\n".join(f"line {number}" for number in range(80)))
    qtbot.waitUntil(lambda: 150 < panel.height() < 300)
    assert panel.markdown.startswith("line 0")


def test_an_error_says_what_why_and_what_next(panel: CommandPanel) -> None:
    panel.show_output("/rag on", "Recall is **on**.")
    panel.show_error("/serch", "There is no command '/serch'", "Did you mean /search?")
    assert panel.markdown == ""
    assert panel.problem.text() == "There is no command '/serch'. Did you mean /search?"
    panel.show_output("/rag on", "Recall is **on**.")
    assert not panel.problem.isVisible()


def test_an_error_shows_no_marks_of_markdown(panel: CommandPanel) -> None:
    panel.show_error("/rag upvote 9", "There is no passage 9", "`/rag try QUESTION` shows them.")
    assert panel.problem.text() == "There is no passage 9. /rag try QUESTION shows them."


def test_put_away_it_says_so_once(panel: CommandPanel, qtbot: QtBot) -> None:
    panel.show_output("/rag on", "Recall is **on**.")
    with qtbot.waitSignal(panel.dismissed):
        QTest.keyClick(panel, Qt.Key.Key_Escape)
    assert not panel.isVisible()
    with qtbot.assertNotEmitted(panel.dismissed):
        panel.dismiss()


def test_another_look_is_taken_at_once(panel: CommandPanel) -> None:
    panel.show_output("/rag on", "Recall is **on**.")
    panel.set_theme(Theme(dark=True, colours=DARK))
    assert panel.markdown == "Recall is **on**."

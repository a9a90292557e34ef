"""Completion in the composer, the panel with the output of a command, and their presenter."""

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.sent_turns import SEGMENT_BREAKS_KEY
from app.commands.command import AskExport, ImportFiles, OpenDocument, OpenTurn, Outcome
from app.commands.table import Completion, CompletionItem
from app.domain.change_set import ChangeSet
from app.domain.conversations import Draft
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ExchangeId
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import TALK, Parts, Recorder, view_of
from ui.presenters.conversation.commands import CommandPresenter
from ui.theme import Appearance, ThemeChoice
from ui.views.command_panel import CommandPanel
from ui.widgets.composer.composer import Composer
from ui.widgets.transcript.message_text import MessageText

WORDS = ("/new", "/search", "/summarizer")


def complete(text: str) -> Completion:
    if not text.startswith("/"):
        return Completion()
    found = tuple(
        CompletionItem(f"{word} ", word, "What it does") for word in WORDS if word.startswith(text)
    )
    return Completion(found, is_whole=text in WORDS)


@pytest.fixture
def composer(qtbot: QtBot) -> Iterator[Composer]:
    window = QWidget()
    made = Composer(window)
    column = QVBoxLayout(window)
    column.addStretch(1)
    column.addWidget(made)
    window.resize(500, 400)
    made.set_commands(lambda text: text.startswith("/"), complete)
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
    text = composer.completer.list.marked_text()
    return text.strip() if text else None


def test_completions_are_listed_above_the_composer(composer: Composer) -> None:
    before, listed = composer.geometry(), composer.completer.list
    typed(composer, "/")
    assert listed.candidates == list(WORDS)
    assert composer.geometry() == before
    assert listed.geometry().bottom() < composer.geometry().top()
    assert listed.width() == composer.width()
    seen = [marked(composer)]
    for _ in WORDS:
        press(composer, Qt.Key.Key_Down)
        seen.append(marked(composer))
    assert seen == [*WORDS, WORDS[0]]
    press(composer, Qt.Key.Key_Up)
    assert marked(composer) == WORDS[-1]
    item = listed.topLevelItem(1)
    assert item is not None
    at = listed.visualItemRect(item).center()
    QTest.mouseClick(listed.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert composer.text == "/search "
    composer.show_draft(Draft("/se"))  # a draft
    assert not listed.isVisible()


@pytest.mark.parametrize("key", [Qt.Key.Key_Tab, Qt.Key.Key_Return])
def test_tab_and_enter_take_the_marked_row(composer: Composer, key: Qt.Key) -> None:
    typed(composer, "/s")
    assert composer.completer.list.candidates == ["/search", "/summarizer"]
    press(composer, Qt.Key.Key_Down)
    press(composer, key)
    assert (composer.text, composer.box.hasFocus()) == ("/summarizer ", True)
    typed(composer, "x")
    assert not composer.completer.list.isVisible()


def test_a_whole_command_is_sent_also_while_a_reply_runs(composer: Composer, qtbot: QtBot) -> None:
    composer.show_running(True)
    typed(composer, "/new")
    assert marked(composer) is None
    with qtbot.waitSignal(composer.command_requested) as request:
        press(composer, Qt.Key.Key_Return)
    assert request.args == ["/new"]
    assert not composer.completer.list.isVisible()


def test_esc_closes_the_list_until_another_command(composer: Composer, qtbot: QtBot) -> None:
    typed(composer, "/s")
    with qtbot.assertNotEmitted(composer.dismiss_requested):
        press(composer, Qt.Key.Key_Escape)
    typed(composer, "e")
    assert not composer.completer.list.isVisible()
    with qtbot.waitSignal(composer.dismiss_requested):
        press(composer, Qt.Key.Key_Escape)
    composer.clear()
    typed(composer, "/s")
    assert composer.completer.list.isVisible()


def test_an_edited_message_stays_a_message(composer: Composer, qtbot: QtBot) -> None:
    composer.begin_edit(Draft("/new"))
    typed(composer, " ")
    assert not composer.completer.list.isVisible()
    with qtbot.waitSignal(composer.send_requested):
        press(composer, Qt.Key.Key_Return)


# -- the panel
@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[CommandPanel]:
    window = QWidget()
    made = CommandPanel(window)
    column = QVBoxLayout(window)
    column.addStretch(1)
    column.addWidget(made)
    window.resize(600, 500)
    with qtbot.waitExposed(window):
        window.show()
    yield made
    window.hide()


def test_output_takes_what_it_needs_and_at_most_half_the_window(
    panel: CommandPanel, qtbot: QtBot, appearance: Appearance
) -> None:
    panel.show_output("/rag on", "Recall is **on**.")
    qtbot.waitUntil(lambda: 0 < panel.height() < 120)
    appearance.choose(ThemeChoice.DARK, 100)
    assert panel.findChildren(MessageText)[-1]._context.theme.dark
    assert panel.markdown == "Recall is **on**."
    panel.show_output("/help", "\n\n".join(f"line {number}" for number in range(80)))
    qtbot.waitUntil(lambda: 150 < panel.height() < 300)
    with qtbot.waitSignal(panel.dismissed):
        QTest.keyClick(panel, Qt.Key.Key_Escape)
    assert not panel.isVisible()
    with qtbot.assertNotEmitted(panel.dismissed):
        panel.dismiss()


def test_output_is_copied_as_markdown(panel: CommandPanel) -> None:
    panel.show_output("/brief tea", "# Tea\n\n> black")
    panel.copy.click()
    assert QGuiApplication.clipboard().text() == "# Tea\n\n> black"


def test_an_error_replaces_output_and_shows_no_markdown(panel: CommandPanel) -> None:
    panel.show_output("/rag on", "Recall is **on**.")
    error = NotFound("There is no passage 9", "`/rag try QUESTION` shows them.")
    panel.show_error("/rag upvote 9", error)
    assert panel.markdown == ""
    assert panel.problem.text() == "There is no passage 9. /rag try QUESTION shows them."
    panel.show_output("/rag on", "Recall is **on**.")
    assert not panel.problem.isVisible()


# -- the presenter
class Slash:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.window = parts, QWidget()
        self.panel, self.composer = CommandPanel(self.window), Composer(self.window)
        self.outcome = Outcome("**Recall** is on.")
        self.session = Recorder(run=lambda *_: self.outcome, accepts=True, complete=Completion())
        self.breaks = Recorder(is_after=lambda each: each == 2)
        self.presenter = parts.make(
            CommandPresenter, session=self.session, segments=self.breaks, panel=self.panel,
            composer=self.composer,
        )  # fmt: skip

    def run(self, text: str, outcome: Outcome) -> None:
        self.outcome = outcome
        self.composer.box.setPlainText(text)
        self.presenter.run(text)


slash = fixture_of(Slash)


def test_output_is_shown_and_text_is_taken_unless_it_is_kept(slash: Slash) -> None:
    slash.parts.open.open_path(view_of(1, 2))
    slash.run("/rag", Outcome("**Recall** is on."))
    assert (slash.panel.markdown, slash.composer.text) == ("**Recall** is on.", "")
    context = slash.session.calls[-1][2]
    assert (context.conversation_id, context.last_exchange_id) == (TALK, 2)
    slash.run("yess", Outcome("Not confirmed.", keeps_text=True))
    assert slash.composer.text == "yess"
    slash.run("/new", Outcome())
    assert slash.panel.isHidden()
    slash.session.error = InvalidInput("There is no command", "Did you mean /search?")
    slash.run("/serch", Outcome())
    assert slash.composer.text == "/serch"
    assert "Did you mean" in slash.panel.problem.text()
    slash.session.error = None
    slash.panel.dismiss()
    assert slash.session.calls[-1] == ("cancel",)


@pytest.mark.parametrize(
    ("action", "place"),
    [(OpenTurn(TALK, ExchangeId(5)), ("turn", TALK, 5, None)),
     (OpenDocument("man:tar.1", "tar(1)"), ("page", "man:tar.1", "tar(1)")),
     (ImportFiles(()), ("import_files", [])), (AskExport(TALK), ("export", [TALK]))],
)  # fmt: skip
def test_an_action_of_a_command_is_carried_out(slash: Slash, action: Any, place: Any) -> None:
    slash.run("/open 1", Outcome(action=action))
    assert slash.parts.went == [place]


@pytest.mark.parametrize(("command", "stays"), [("/search bread", True), ("/rag", False)])
def test_only_search_results_outlive_conversations(slash: Slash, command: str, stays: bool) -> None:
    slash.parts.open.open_path(view_of(1))
    slash.run(command, Outcome("Output"))
    slash.parts.open.open_path(view_of(1))  # the same one
    assert not slash.panel.isHidden()
    slash.parts.open.open_path(None)
    assert slash.panel.isHidden() is not stays
    slash.run(command, Outcome("Output"))
    slash.composer.send_requested.emit("a message")
    assert slash.panel.isHidden()


def test_a_clean_slate_is_marked_after_the_last_turn(slash: Slash) -> None:
    transcript = slash.parts.transcript
    for numbers, expected in (((1,), False), ((1, 2), True), ((), False)):
        slash.parts.open.open_path(view_of(*numbers))
        assert transcript.take() == [("show_segment_end", expected, False)]
    slash.parts.open.open_path(view_of(1, 2))
    slash.parts.bridge.changed.emit(ChangeSet(settings=frozenset({"theme"})))
    slash.parts.bridge.changed.emit(ChangeSet(settings=frozenset({SEGMENT_BREAKS_KEY})))
    assert transcript.take()[1:] == [("show_segment_end", True, True)]

"""Slash commands, test questions and manual pages in the whole window."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPlainTextEdit, QTreeWidget

from app.bootstrap import Services
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName
from tests.fakes.manual import FakeManual
from tests.fakes.stored import add_conversation
from tests.fakes.user import User
from ui.views.dialogs.page_dialog import PageDialog
from ui.widgets.transcript.panels import NEW_SEGMENT_TEXT, Divider

QUESTION = "Which bolt holds the saddle of my green bicycle?"
PAGE = "tar(1) – an archiving utility"


async def talk(user: User) -> None:
    """Start, and have a conversation of one turn that search finds."""
    await user.start()
    await user.say(QUESTION)
    await user.until(lambda: user.transcript.turn_count == 1 and not user.transcript.is_streaming)
    await user.until_so(lambda services: services.search.search("saddle bolt").results)
    await user.until(lambda: not user.window.chat.composer.text)


def segment_ends(user: User) -> int:
    """Return the number of lines in the transcript that mark a clean slate."""
    lines = user.transcript.findChildren(Divider)
    return sum(each.accessibleName() == NEW_SEGMENT_TEXT for each in lines)


async def run(user: User, command: str) -> None:
    """Type a command and run it; its list of completions is closed first."""
    await user.in_front()
    user.press("Ctrl+J")
    user.type(command)
    if user.window.chat.composer.completion.isVisible():
        user.press("Esc")
    user.press("Return")


async def shows(user: User, *texts: str) -> None:
    """Wait until the panel shows these texts, and the composer is empty again."""
    panel = user.presenters.command_panel
    await user.until(lambda: all(each in panel.markdown for each in texts), f"{texts}")
    await user.until(lambda: not user.window.chat.composer.text)


async def test_results_are_opened_by_number_and_a_clean_slate_survives_a_restart(
    user: User,
) -> None:
    await talk(user)
    user.press("Ctrl+N")
    await run(user, "/search saddle bolt")
    await shows(user, "1. **[", "`/open N`")
    await run(user, "/open 1")
    await user.until(lambda: user.transcript.turn_count == 1)
    await user.until(lambda: not user.window.chat.composer.text)
    assert user.presenters.command_panel.isVisible()  # with what else can be opened
    await run(user, "/new")
    await user.until(lambda: segment_ends(user) == 1)
    await user.until(lambda: not user.presenters.command_panel.isVisible())

    await user.restart()
    await user.until(lambda: segment_ends(user) == 1)
    await run(user, "/serch tea")
    await user.sees("Did you mean /search?")
    assert user.window.chat.composer.text == "/serch tea"
    user.window.chat.composer.clear()
    await user.say(" /usr/bin/env is a message")
    await user.until(lambda: user.transcript.turn_count == 2 and not user.transcript.is_streaming)
    opened = user.presenters.conversation.conversation_id
    assert opened is not None
    view = await user.ask(lambda services: services.library.open(ConversationId(opened)))
    assert [each.segment_number for each in view.path] == [0, 1]
    user.action("clean_slate").trigger()
    await user.until(lambda: segment_ends(user) == 2)


def rows(user: User) -> list[list[str]]:
    """Return the rows of the test questions on screen."""
    table = user.find(QTreeWidget, "Test questions")
    items = [table.topLevelItem(number) for number in range(table.topLevelItemCount())]
    return [[each.text(at) for at in range(table.columnCount())] for each in items if each]


async def test_a_probe_question_shows_what_a_change_has_moved(user: User) -> None:
    await user.start()

    def fill(services: Services) -> None:
        for kind in ("summarizer_conversation", "summarizer_exchange", "knowledge_extractor"):
            services.settings.set(f"{kind}_enabled", False)  # their texts could be found first
        add_conversation(services.store, (QUESTION, "The saddle takes an M8 bolt, 60 mm long."))

    await user.ask(fill)
    await user.until_so(lambda services: services.search.search("saddle bolt").results)
    user.press("Ctrl+K")
    user.type("saddle bolt")
    user.press("Return")
    await user.until(lambda: user.transcript.turn_count == 1)
    user.press("Ctrl+Shift+Y")
    await user.sees("It is the first of", "It contains: saddle, bolt")
    user.click("Keep as a test question")
    await user.sees("The question was kept.")
    await user.dismiss()
    user.press("Ctrl+Shift+A")
    await user.until_so(lambda services: not services.conversations.listed())

    user.action("questions").trigger()
    await user.sees("1 of 1 found first")
    assert rows(user)[0][2:] == ["1", "–"]
    user.click("Ask all again")
    await user.sees("0 rose and 1 fell")
    assert rows(user)[0][2:] == ["not found ↓", "1"]


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    made = FakeManual(tmp_path / "manual", monkeypatch)
    made.add("tar.1", "an archiving utility", "Puts many files into one archive.")
    made.add("du.1", "estimate file space usage", "Summarizes how much room files take.")
    return made


async def test_the_manual_is_switched_on_searched_and_read(user: User, manual: FakeManual) -> None:
    await user.start()
    assert manual.calls() == []
    user.press("Ctrl+Shift+W")
    running = user.window.memory.dashboard.card(WorkerName.EMBEDDING_PIPELINE)
    await user.until(lambda: running.state.text() == "idle", "workers that have started")
    card = user.window.memory.dashboard.card(WorkerName.MAN_INDEXER)
    assert not card.switch.isChecked()
    card.switch.click()
    await user.until(lambda: card.counts.text().startswith("2 of 2"), "both pages")
    await user.until_so(
        lambda services: services.overview.read().passages.get(PassageKind.MAN_PAGE) == 2
    )
    await user.until_so(lambda services: services.search.search("archiving").results)
    user.press("Ctrl+K")
    user.type("archiving")
    await user.until(lambda: PAGE in user.results())
    user.click_row(user.window.sidebar.result_list, PAGE)
    await user.until(lambda: any(each.isVisible() for each in user.window.findChildren(PageDialog)))
    text = user.find(QPlainTextEdit, PAGE)
    await user.until(lambda: text.toPlainText() == "Puts many files into one archive.")
    await user.dismiss()

    await user.restart()
    card = user.window.memory.dashboard.card(WorkerName.MAN_INDEXER)
    await user.until(lambda: card.state.text() == "off")
    await user.until(lambda: card.counts.text().startswith("2 of 2"), "they stay")

"""Recall in the window: chips, the inspector, ratings, links to turns, and recall switched off."""

import json
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QMenu, QPlainTextEdit, QToolButton, QTreeView

from app.bootstrap import Services
from app.chat.context_fetcher import RecallLimits
from app.chat.inspector import Source
from app.domain.errors import IndexUnavailable
from app.domain.ids import ConversationId
from app.domain.recall import Verdict
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.stored import add_all, add_conversation, new_conversation, opened
from tests.fakes.user import User, is_searched_by_meaning
from ui.widgets.transcript.view import TranscriptView

SADDLE = "The saddle of my bicycle needs an M8 bolt, sixty millimetres long."
ASKED = "Which bolt does the saddle of my bicycle need?"
TITLE = "Bicycle"
OTHERS = (
    "basil on a windowsill", "Norwegian trains", "rye bread", "the French past tense", "taxes",
    "a leaking tap", "chess openings", "cloud shapes", "a birthday cake", "old maps", "bees",
    "knitting socks", "the moon landing", "a cough", "rental contracts", "guitar strings",
)  # fmt: skip


@pytest.fixture
def bicycle(data_dir: Path) -> int:
    """Write a library in which one conversation mentions a saddle; return its id."""
    with opened(data_dir) as store:
        told = (
            (f"Tell me about {each}.", f"There is much to say about {each}.") for each in OTHERS
        )
        add_all(store, (new_conversation(store, turn) for turn in told))
        turns = [(f"Something else {number}?", "Well. " * 60) for number in range(6)]
        whole = add_conversation(store, *turns, (SADDLE, "Good to know."), *turns, title=TITLE)
    return whole.conversation.id


async def begun(user: User, server: Loopback) -> None:
    """Start with the loopback server's model, everything findable by its words."""
    await user.start_with_model(server.v1)
    # Neither the threshold nor the speed of this machine matters here.
    limits = RecallLimits(30.0, 30.0, 30.0)
    await user.ask(lambda services: setattr(services.context_fetcher, "_limits", limits))
    await user.ask(lambda services: services.settings.set("rag_min_similarity", 0.3))
    await user.until_so(lambda services: services.search.search("saddle bolt").results)
    await user.until_so(lambda services: services.overview.read().searchable_share == 1)
    await user.until_so(is_searched_by_meaning)


def chips(user: User, turn: int) -> list[QToolButton]:
    """Return the chips under an answer."""
    widget = user.transcript.turn_widget(turn)
    found = widget.findChildren(QToolButton) if widget is not None else []
    return [each for each in found if each.property("kind") == "chip" and each.isVisible()]


async def test_what_was_recalled_is_shown_opened_judged_and_switched_off(
    user: User, server: Loopback, bicycle: int
) -> None:
    await begun(user, server)
    link = f"commonplace://{bicycle}/6"
    server.reply(text(f"An M8, as [you said]({link})."), usage(900, 12, 600))
    user.press("Ctrl+Shift+I")
    await user.sees("There are no answers here yet")

    await user.say(ASKED)
    await user.answered(0, "An M8")
    await user.until(lambda: chips(user, 0), "a chip")
    await user.until(lambda: "cited in the answer" in chips(user, 0)[0].accessibleName())
    assert TITLE in chips(user, 0)[0].text()
    asking = user.presenters.conversation.conversation_id

    # The inspector shows what the server received.
    await user.sees("Answer of turn 1")
    await user.until(lambda: used(user)[:2] == ["sent", "cited"])
    user.window.memory.open_page("sent")
    await user.sees("The provider counted 900 in, 600 of them from its cache (67%), 12 out")
    got = json.dumps(server.posts[-1].body, ensure_ascii=False)
    related = user.button("Related past", user.window.memory.inspector)
    if not related.isChecked():  # a long part comes folded
        related.click()
    for name in ("Related past", "Your message"):
        part = user.find(QPlainTextEdit, name).toPlainText().removeprefix("user: ")
        assert json.dumps(part.strip(), ensure_ascii=False)[1:-1] in got
    user.click("Copy", user.window.memory.inspector)
    assert SADDLE in QGuiApplication.clipboard().text()

    # The chip leads to the very turn.
    chips(user, 0)[0].click()
    await user.until(lambda: user.window.chat.title.text() == TITLE)
    await user.until(lambda: is_highlighted(user.transcript, 6), "the turn")
    await user.sees("Answer of turn 7")
    await user.sees("This answer is older than the storing of prompts.")

    # So does a link that names an exchange, whatever its number.
    there = await user.ask(lambda services: services.exchanges.of(bicycle)[3].id)
    user.presenters.links.follow(f"commonplace://{bicycle}/0?exchange={there}")
    await user.until(lambda: is_highlighted(user.transcript, 3), "the turn of the exchange")
    await user.sees("Answer of turn 4")

    # Never again.
    assert asking is not None
    user.presenters.conversation.open(asking)
    await user.until(lambda: chips(user, 0))
    user.window.memory.open_page("sources")
    await user.until(lambda: used(user)[:2] == ["sent", "cited"])
    table = user.find(QTreeView, "What was recalled")
    for row in user.window.memory.inspector.recalled.model.rows(Source):
        table.setCurrentIndex(row)
        if not user.button(
            "Don't use this again"
        ).isChecked():  # a turn and its summary are rated together
            user.click("Don't use this again")
        await user.sees("You asked not to use it again.", "Remove rating")
    server.always(text("I do not know."))
    user.press("Ctrl+N")
    await user.say(ASKED)
    await user.answered(0, "I do not know.")
    assert SADDLE not in json.dumps(server.posts[-1].body)

    # The ratings are removed, but recall is off here.
    removed = await user.ask(remove_all_ratings)
    assert removed
    await user.until(lambda: user.action("memory_here").isEnabled())
    user.press("Ctrl+Shift+U")
    await user.sees("Memory off here")
    await user.say(ASKED)
    await user.answered(1, "I do not know.")
    assert "M8" not in json.dumps(server.posts[-1].body["messages"][-1])
    await user.sees("Memory is off for this conversation.")

    await user.restart()
    await user.sees("Memory off here")
    user.presenters.conversation.open(asking)
    await user.until(lambda: chips(user, 0), "the chip again")
    await user.sees("Answer of turn 1")
    await user.until(lambda: used(user)[:2] == ["sent", "cited"])


def used(user: User) -> list[str]:
    """Return the last column of the inspector's table."""
    model = user.window.memory.inspector.recalled.model
    last = model.columnCount() - 1
    return [str(row.siblingAtColumn(last).data()) for row in model.rows(Source)]


def remove_all_ratings(services: Services) -> int:
    """Remove every rating; return how many there were."""
    from app.storage.tables.prompts import Feedback

    feedback = Feedback(services.store)
    verdicts = feedback.verdicts()
    assert set(verdicts.values()) == {Verdict.NEVER}
    for each in verdicts:
        feedback.give(each, None)
    return len(verdicts)


def is_highlighted(transcript: TranscriptView, turn: int) -> bool:
    widget = transcript.turn_widget(turn)
    return widget is not None and widget.is_highlighted and widget.content is not None


async def test_a_conversation_begins_without_recall_and_a_turn_explains_why(
    user: User, server: Loopback, bicycle: int
) -> None:
    await begun(user, server)
    server.always(text("I do not know."))
    user.press("Ctrl+Shift+U")
    await user.sees("Memory off here")
    await user.say(ASKED)
    await user.answered(0, "I do not know.")
    assert SADDLE not in json.dumps(server.posts[-1].body)
    user.press("Ctrl+N")
    await user.until(user.window.recall_status.isHidden)
    assert user.action("memory_here").isChecked()
    user.presenters.settings.open("Memory")
    await user.sees("Recall from other conversations")
    await user.dismiss()

    user.presenters.conversation.open(ConversationId(bicycle))
    await user.until(lambda: user.window.chat.title.text() == TITLE)
    user.transcript.scroll_to_turn(6)
    await user.until(lambda: SADDLE in user.turn_text(6) and user.transcript.is_settled)
    menu = QMenu()
    user.turn(6).frames()[0].footer.fill_menu(menu)
    next(each for each in menu.actions() if each.text().startswith("Why")).trigger()
    await user.sees("It is ", " results.", f"{TITLE}, turn 7", "It contains:")
    assert user.find(QLineEdit, "Question").text() == ASKED
    await user.dismiss()


async def test_a_failure_of_recall_is_shown_under_the_answer_and_in_the_status_bar(
    user: User, server: Loopback, bicycle: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(user, server)
    server.always(text("I do not know."))

    def fails(*_: object) -> None:
        raise IndexUnavailable("The index is being built", "Wait a little.")

    await user.ask(
        lambda services: monkeypatch.setattr(services.context_fetcher, "_retrieve", fails)
    )
    await user.say(ASKED)
    await user.answered(0, "I do not know.")
    await user.sees("Recall could not be read: The index is being built")
    await user.until(lambda: user.window.recall_status.text() == "Memory incomplete")
    monkeypatch.undo()
    user.press("Ctrl+N")
    await user.until(lambda: user.window.recall_status.text() == "")

"""Talking: Recall, a provider added in the dialog, Stop, errors, branches, regenerate, fork."""

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QWidget

from app.chat.library import ConversationView
from app.domain.conversations import ExchangeStatus
from app.providers.configuration import ProviderConfig, ProviderKind
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, error, stall, text, thinking, usage
from tests.fakes.user import User
from ui.controllers.replies import RunningReplies
from ui.widgets.transcript.frames import UserFrame
from ui.widgets.transcript.panels import InterruptedMark, ProblemPanel

MODEL = "loop:test-model"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


async def started_with(user: User, server: Loopback) -> None:
    """Start with the loopback server's model as the default one."""
    await user.start()
    config = ProviderConfig("loop", ProviderKind.COMPATIBLE, server.v1)
    await user.ask(lambda services: services.models.add_provider(config))
    await user.ask(lambda services: services.settings.set("default_model", MODEL))
    await user.until(lambda: user.window.chat.model.currentText() == MODEL)


async def answered(user: User, turn: int, words: str) -> None:
    """Wait until a turn holds the end of an answer."""
    await user.until(
        lambda: words in user.turn_text(turn) and not user.transcript.is_streaming,
        f"{words!r} in turn {turn}",
    )


async def test_recall_answers_from_the_users_own_past_and_links_to_it(user: User) -> None:
    await user.start()
    user.click("Look at a sample archive")
    await user.sees("Import finished")
    await user.dismiss()

    await user.until_so(lambda services: services.search.search("landlord deposit").results)
    await user.say("What did the landlord say about the deposit?")
    await answered(user, 0, "Landlord keeps part of the deposit")

    assert "no cost" in user.turn_text(0)
    await user.until(lambda: "What did the landlord say about the deposit?" in user.titles())
    links = user.turn(0).texts()[-1].view.document()
    assert "commonplace://" in links.toHtml()


async def test_a_provider_is_added_tested_and_its_model_chosen(
    user: User, server: Loopback
) -> None:
    server.reply(thinking("A greeting."), text("Hello from the server.", chunks=5), usage(12, 6))
    await user.start()
    user.click("Set up a model")
    await user.sees("Add a provider")
    form = user.program.settings.open().providers.form
    form.name.setFocus()
    user.type("loop")
    form.base_url.setFocus()
    user.type(server.v1)
    user.click("Add")
    await user.sees("Connected in", "2 models")
    user.press("Esc")

    user.window.chat.model.showPopup()
    await user.until(lambda: user.window.chat.model.findText(MODEL) >= 0, "the models")
    user.choose(user.window.chat.model, MODEL)
    await user.until(lambda: user.program.models.chosen == MODEL)
    user.window.chat.model.hidePopup()
    await user.say("Hello there!")
    await answered(user, 0, "Hello from the server.")

    await user.until(lambda: "no cost" in user.turn_text(0))  # its own machine
    assert "12 in, 6 out" in user.turn_text(0)
    assert server.posts[0].body["model"] == "test-model"
    await user.restart()
    await answered(user, 0, "Hello from the server.")
    assert user.window.chat.model.currentText() == MODEL


async def test_stop_keeps_what_had_come_and_the_reply_can_be_continued(
    user: User, server: Loopback
) -> None:
    server.reply(text("The first half", chunks=3), Stall()).reply(text(", and the second."))
    await started_with(user, server)
    await user.say("Tell me a story.")
    await user.until(lambda: "The first half" in user.turn_text(0))
    assert user.action("stop").isEnabled()

    user.press("Esc")

    mark = await found(user, 0, InterruptedMark)
    await user.until(lambda: not user.action("stop").isEnabled())
    assert "The first half" in user.turn_text(0)
    user.click("Continue", mark)
    await answered(user, 0, ", and the second.")
    assert "The first half" in user.turn_text(0)


async def test_an_error_appears_in_the_turn_and_retry_then_works(
    user: User, server: Loopback
) -> None:
    server.reply(error(404, code="model_not_found", message="no such model"))
    server.reply(text("There you are."))
    await started_with(user, server)
    await user.say("Is anybody there?")

    panel = await found(user, 0, ProblemPanel)
    assert "test-model" in user.turn_text(0)
    assert user.window.chat.composer.text == ""
    user.click("Retry", panel)

    await answered(user, 0, "There you are.")
    assert user.transcript.turn_count == 1
    assert not user.turn(0).findChildren(ProblemPanel)


async def test_editing_makes_a_branch_and_one_can_go_back(user: User, server: Loopback) -> None:
    server.reply(text("Paris.")).reply(text("Rome.")).reply(text("It is old."))
    await started_with(user, server)
    await user.say("Capital of France?")
    await answered(user, 0, "Paris.")

    begin_edit(user)
    await user.until(lambda: user.window.chat.composer.text == "Capital of France?")
    user.press("Ctrl+A")
    user.type("Capital of Italy?")
    user.press("Return")
    await answered(user, 0, "Rome.")
    assert "2/2" in user.turn_text(0)

    user.click("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", user.turn(0))
    await answered(user, 0, "Paris.")
    assert "1/2" in user.turn_text(0)
    await user.say("How old is it?")
    await answered(user, 1, "It is old.")
    assert [each["content"] for each in server.posts[2].body["messages"]] == [
        "Capital of France?",
        "Paris.",
        "How old is it?",
    ]


async def test_an_edit_given_up_brings_back_what_was_being_written(
    user: User, server: Loopback
) -> None:
    server.reply(text("Paris."))
    await started_with(user, server)
    await user.say("Capital of France?")
    await answered(user, 0, "Paris.")
    user.press("Ctrl+J")
    user.type("And of")

    begin_edit(user)
    await user.until(lambda: user.window.chat.composer.is_editing)
    user.press("Esc")

    await user.until(lambda: user.window.chat.composer.text == "And of")
    assert not user.window.chat.composer.is_editing


async def test_an_answer_is_given_again_and_a_turn_forked(user: User, server: Loopback) -> None:
    server.reply(text("Heads.")).reply(text("Tails.")).reply(text("Edge."))
    await started_with(user, server)
    await user.say("Throw a coin.")
    await answered(user, 0, "Heads.")

    user.press("Ctrl+R")
    await answered(user, 0, "Tails.")
    assert "2/2" in user.turn_text(0)

    first = user.program.chat.conversation_id
    user.click("Fork from here", user.turn(0))
    await user.until(lambda: user.program.chat.conversation_id not in (None, first))
    await answered(user, 0, "Tails.")
    assert user.window.chat.title.text() == "Throw a coin. (fork)"
    await user.say("And again.")
    await answered(user, 1, "Edge.")
    await user.until(lambda: len(user.titles()) == 2)


async def test_what_is_said_on_a_branch_that_is_only_looked_at_is_said_there(
    user: User, server: Loopback
) -> None:
    server.reply(text("Paris.")).reply(text("Rome.")).reply(text("Older."))
    await started_with(user, server)
    await user.say("Capital of France?")
    await answered(user, 0, "Paris.")
    assert user.program.chat.view is not None
    first = user.program.chat.view.path[0].id
    user.press("Ctrl+R")
    await answered(user, 0, "Rome.")

    await user.program.chat.open(user.program.chat.view.conversation.id, first)
    await answered(user, 0, "Paris.")
    await user.say("Which is older?")
    await answered(user, 1, "Older.")

    assert "Paris." in user.turn_text(0)
    assert [each["content"] for each in server.posts[2].body["messages"]][1] == "Paris."


async def test_a_reply_goes_on_while_another_conversation_is_read(
    user: User, server: Loopback
) -> None:
    server.reply(text("Slowly", chunks=2), stall())
    await started_with(user, server)
    await user.say("Take your time.")
    await user.until(lambda: "Slowly" in user.turn_text(0))
    user.press("Ctrl+N")
    await user.sees("What is on your mind?")
    assert not user.action("stop").isEnabled()

    user.click_row(user.window.sidebar.conversation_list, "Take your time.")
    await user.until(lambda: "Slowly" in user.turn_text(0))
    assert user.transcript.is_streaming
    user.press("Ctrl+.")
    await found(user, 0, InterruptedMark)


async def found(user: User, turn: int, kind: type[QWidget]) -> QWidget:
    """Wait until a turn shows something of a kind, and return it."""

    def look() -> object:
        widget = user.transcript.turn_widget(turn)
        return widget is not None and widget.findChild(kind)

    await user.until(look, kind.__name__)
    widget = user.turn(turn).findChild(kind)
    assert widget is not None
    return widget


def begin_edit(user: User) -> None:
    """Click Edit under the first question."""
    frame = user.turn(0).findChild(UserFrame)
    assert frame is not None
    frame.setFocus()
    user.click("Edit", frame)


async def test_a_regeneration_that_fails_leaves_the_earlier_answer_within_reach(
    user: User, server: Loopback
) -> None:
    server.reply(text("Heads.")).reply(error(404, code="model_not_found", message="no such model"))
    await started_with(user, server)
    await user.say("Throw a coin.")
    await answered(user, 0, "Heads.")
    user.press("Ctrl+R")
    await found(user, 0, ProblemPanel)
    await user.until(lambda: "2/2" in user.turn_text(0))

    user.click("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", user.turn(0))

    await answered(user, 0, "Heads.")
    assert "1/2" in user.turn_text(0)
    await user.restart()
    await answered(user, 0, "Heads.")


async def test_what_had_come_stays_in_sight_while_a_reply_is_continued(
    user: User, server: Loopback
) -> None:
    server.reply(text("The first half", chunks=3), Stall()).reply(text(", and"), Stall())
    await started_with(user, server)
    await user.say("Tell me a story.")
    await user.until(lambda: "The first half" in user.turn_text(0))
    user.press("Esc")
    mark = await found(user, 0, InterruptedMark)
    await user.until(lambda: not user.action("stop").isEnabled())

    user.click("Continue", mark)

    await user.until(lambda: len(server.posts) == 2 and user.transcript.is_streaming)
    await user.until(lambda: ", and" in user.turn_text(0))
    assert "The first half" in user.turn_text(0)
    user.press("Ctrl+N")
    await user.sees("What is on your mind?")
    user.click_row(user.window.sidebar.conversation_list, "Tell me a story.")
    await user.until(lambda: ", and" in user.turn_text(0))
    assert "The first half" in user.turn_text(0)
    user.press("Ctrl+.")
    await found(user, 0, InterruptedMark)
    assert "The first half" in user.turn_text(0)


async def test_deleting_a_conversation_stops_its_reply(user: User, server: Loopback) -> None:
    server.reply(text("Slowly", chunks=2), stall())
    await started_with(user, server)
    await user.say("Take your time.")
    await user.until(lambda: "Slowly" in user.turn_text(0))

    user.action("delete").trigger()

    await user.until_so(lambda services: not services.chat.busy)
    await user.until(lambda: "Take your time." not in user.titles())
    user.click("Undo")
    await found(user, 0, InterruptedMark)
    assert "Slowly" in user.turn_text(0)


async def test_forgetting_a_conversation_stops_its_reply_and_leaves_nothing_of_it(
    user: User, server: Loopback
) -> None:
    server.reply(text("Slowly", chunks=2), stall())
    await started_with(user, server)
    await user.say("Take your time.")
    await user.until(lambda: "Slowly" in user.turn_text(0))

    user.action("forget").trigger()
    user.click("Forget")

    await user.sees("Exports and backups that you copied elsewhere were not touched.")
    assert not await user.ask(lambda services: services.chat.busy)
    await user.until(lambda: not user.titles())
    assert await user.ask(lambda services: services.overview.read().conversations) == 0


async def test_an_answer_that_is_there_before_its_turn_has_been_read_is_shown(
    user: User, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reply(text("Paris.")).reply(text("Rome."))
    await started_with(user, server)
    replies = user.program.findChild(RunningReplies)
    assert replies is not None
    ended: list[object] = []
    replies.ended.connect(lambda *end: ended.append(end))

    for turn, words in enumerate(("Paris.", "Rome.")):
        let_go = hold_running_turns(user, monkeypatch)
        await user.say("A capital?")
        await user.until(lambda: ended, "the end of the reply")
        ended.clear()
        let_go.set()

        await answered(user, turn, words)
        assert not user.action("stop").isEnabled()


def hold_running_turns(user: User, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold back what is read of a conversation whose reply runs, as a slow disk does."""
    services, let_go = user.running.services, threading.Event()
    assert services is not None
    read = services.library.open

    def slowly(conversation_id: int, show: int | None = None) -> ConversationView:
        view = read(conversation_id, show)
        if view.path[-1].status is ExchangeStatus.RUNNING:
            assert let_go.wait(30)
        return view

    monkeypatch.setattr(services.library, "open", slowly)
    return let_go

"""Conversations: Recall, a provider added in the dialog, Stop, errors, branches, regenerate, fork."""

import threading

import pytest
from PySide6.QtWidgets import QWidget

from app.chat.library import ConversationView
from app.domain.conversations import ExchangeStatus
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Pace, Stall, error, stall, text, thinking, usage
from tests.fakes.user import LOOPBACK_MODEL, User
from ui.presenters.conversation.turns import RunningReplies
from ui.widgets.transcript.message_frame import UserFrame
from ui.widgets.transcript.panels import InterruptionPanel, ProblemPanel

BACK = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
NO_MODEL = error(404, code="model_not_found", message="no such model")


async def shows(user: User, words: str) -> None:
    """Wait until the first turn shows these words, of a running reply too."""
    await user.until(lambda: words in user.turn_text(0), repr(words))


async def found(user: User, kind: type[QWidget]) -> QWidget:
    """Wait until the first turn has a widget of a kind, and return it."""

    def look() -> object:
        widget = user.transcript.turn_widget(0)
        return widget is not None and widget.findChild(kind)

    await user.until(look, kind.__name__)
    widget = user.turn(0).findChild(kind)
    assert widget is not None
    return widget


def begin_edit(user: User) -> None:
    """Click Edit under the first question."""
    frame = user.turn(0).findChild(UserFrame)
    frame.setFocus()
    user.click("Edit", frame)


def sent(server: Loopback, number: int) -> list[str]:
    """Return the messages of a request after the system's, the user's without their blocks."""
    system, *messages = server.posts[number].body["messages"]
    assert system["role"] == "system"
    words = []
    for each in messages:
        block, _, typed = each["content"].rpartition("\n\n")
        assert block.startswith("[Sent on ") == (each["role"] == "user"), block
        words.append(typed)
    return words


async def test_recall_answers_from_the_users_own_past_and_links_to_it(user: User) -> None:
    await user.start()
    user.click("Open a sample archive")
    await user.sees("Import finished")
    await user.dismiss()
    await user.until_so(lambda services: services.search.search("landlord deposit").results)

    await user.say("What did the landlord say about the deposit?")
    await user.answered(0, "Landlord keeps part of the deposit")
    await user.until(lambda: "What did the landlord say about the deposit?" in user.titles())
    assert "commonplace://" in user.turn(0).texts()[-1].view.document().toHtml()
    user.press("Ctrl+Shift+I")
    quoted = user.window.memory.inspector.quoted.list
    await user.until(lambda: quoted.isVisible() and "Landlord" in quoted.item(0).text())


async def test_a_provider_is_added_tested_and_a_model_chosen(user: User, server: Loopback) -> None:
    server.reply(thinking("A greeting."), text("Hello from the server.", chunks=5), usage(12, 6))
    await user.start()
    user.click("Set up a model")
    await user.sees("Other server")
    page = user.presenters.settings.open().models
    page.tiles[""].click()
    await user.sees("Test and save")
    page.form.provider_name.setFocus()
    user.type("loop")
    page.form.base_url.setFocus()
    user.type(server.v1)
    user.click("Test and save")
    await user.sees("Connected in", "2 models")
    user.press("Esc")

    await user.in_front()
    user.press("Ctrl+Shift+M")
    await user.until(lambda: user.window.chat.model.is_open)
    picker = user.window.chat.model.list
    picker.search.setText("test-model")
    await user.until(lambda: picker.model == LOOPBACK_MODEL, "the models")
    user.press("Return")
    await user.until(lambda: user.presenters.models.chosen == LOOPBACK_MODEL)
    await user.say("Hello there!")
    await user.answered(0, "Hello from the server.")
    await user.until(lambda: "no cost" in user.turn_text(0))  # a server on this computer
    assert "12 in, 6 out" in user.turn_text(0)
    assert server.posts[0].body["model"] == "test-model"
    await user.restart()
    await user.answered(0, "Hello from the server.")
    assert user.window.chat.model.model == LOOPBACK_MODEL


async def test_a_stopped_reply_is_kept_and_continued_later(user: User, server: Loopback) -> None:
    server.reply(text("The first half", chunks=3), Stall()).reply(text(", and"), Stall())
    server.reply(text("the second."))
    await user.start_with_model(server.v1)
    await user.say("Tell me a story.")
    await shows(user, "The first half")
    assert user.action("stop").isEnabled()
    user.press("Esc")
    mark = await found(user, InterruptionPanel)
    await user.until(lambda: not user.action("stop").isEnabled())
    assert "The first half" in user.turn_text(0)

    user.click("Continue", mark)
    await user.until(lambda: len(server.posts) == 2 and user.transcript.is_streaming)
    await shows(user, ", and")
    assert "The first half" in user.turn_text(0)

    user.press("Ctrl+N")
    await user.sees("What is on your mind?")
    assert not user.action("stop").isEnabled()
    user.click_row(user.window.sidebar.conversation_list, "Tell me a story")
    await shows(user, ", and")
    assert "The first half" in user.turn_text(0)
    assert user.transcript.is_streaming
    user.press("Ctrl+.")
    mark = await found(user, InterruptionPanel)
    await user.until(lambda: not user.action("stop").isEnabled())
    user.click("Continue", mark)
    await user.answered(0, "the second.")
    assert "The first half" in user.turn_text(0)


async def test_an_error_appears_in_the_turn_and_earlier_answers_stay_within_reach(
    user: User, server: Loopback
) -> None:
    server.reply(NO_MODEL).reply(text("Heads.")).reply(NO_MODEL)
    await user.start_with_model(server.v1)
    await user.say("Throw a coin.")
    panel = await found(user, ProblemPanel)
    assert "test-model" in user.turn_text(0)
    assert user.window.chat.composer.text == ""
    user.click("Retry", panel)
    await user.answered(0, "Heads.")
    assert len(user.transcript.heights) == 1
    assert not user.turn(0).findChildren(ProblemPanel)

    user.press("Ctrl+R")
    await found(user, ProblemPanel)
    await user.until(lambda: "2/2" in user.turn_text(0))
    user.click(BACK, user.turn(0))
    await user.answered(0, "Heads.")
    assert "1/2" in user.turn_text(0)
    await user.restart()
    await user.answered(0, "Heads.")


async def test_a_message_waits_for_a_reply_or_goes_back(user: User, server: Loopback) -> None:
    server.reply(Pace(300), text("The first goes on and on.", chunks=12))
    server.reply(text("The second"), Stall())
    await user.start_with_model(server.v1)
    composer = user.window.chat.composer
    await user.say("Tell me one.")
    await shows(user, "The")
    user.type("And another?")
    user.press("Return")
    await user.sees("Sent when this reply ends", "And another?")
    assert composer.text == ""
    await user.until(lambda: len(user.transcript.heights) == 2)
    await user.until(lambda: "The second" in user.turn_text(1))
    assert sent(server, 1) == ["Tell me one.", "The first goes on and on.", "And another?"]

    user.type("And a third?")
    user.press("Return")
    await user.sees("Sent when this reply ends")
    user.press("Esc")
    await user.until(lambda: composer.text == "And a third?")
    assert len(server.posts) == 2


async def test_editing_branches_and_both_are_continued(user: User, server: Loopback) -> None:
    server.reply(text("Paris.")).reply(text("Rome.")).reply(text("It is old."))
    await user.start_with_model(server.v1)
    composer = user.window.chat.composer
    await user.say("Capital of France?")
    await user.answered(0, "Paris.")
    assert user.presenters.conversation.view is not None

    user.press("Ctrl+J")
    user.type("And of")
    begin_edit(user)
    await user.until(lambda: composer.is_editing)
    user.press("Esc")
    await user.until(lambda: composer.text == "And of")
    assert not composer.is_editing
    user.press("Ctrl+A")
    user.press("Del")

    begin_edit(user)
    await user.until(lambda: composer.text == "Capital of France?")
    user.press("Ctrl+A")
    user.type("Capital of Italy?")
    user.press("Return")
    await user.answered(0, "Rome.")
    assert "2/2" in user.turn_text(0)

    user.click(BACK, user.turn(0))
    await user.answered(0, "Paris.")
    assert "1/2" in user.turn_text(0)
    await user.say("How old is it?")
    await user.answered(1, "It is old.")
    assert sent(server, 2) == ["Capital of France?", "Paris.", "How old is it?"]
    first, last = (server.posts[each].body["messages"] for each in (0, 2))
    assert last[: len(first)] == first


async def test_an_answer_is_regenerated_and_a_turn_forked(user: User, server: Loopback) -> None:
    server.reply(text("Heads.")).reply(text("Tails.")).reply(text("Edge.")).reply(text("Older."))
    await user.start_with_model(server.v1)
    await user.say("Throw a coin.")
    await user.answered(0, "Heads.")
    view = user.presenters.conversation.view
    user.press("Ctrl+R")
    await user.answered(0, "Tails.")
    assert "2/2" in user.turn_text(0)

    user.click("Fork from here", user.turn(0))
    shown = user.presenters.conversation
    await user.until(lambda: shown.conversation_id not in (None, view.conversation.id))
    await user.answered(0, "Tails.")
    assert user.window.chat.title.text() == "Throw a coin (fork)"
    await user.say("And again.")
    await user.answered(1, "Edge.")
    await user.until(lambda: len(user.titles()) == 2)

    # A branch that is only looked at is the one that is continued.
    await user.presenters.conversation.open(view.conversation.id, view.path[0].id)
    await user.answered(0, "Heads.")
    await user.say("Which is older?")
    await user.answered(1, "Older.")
    assert "Heads." in user.turn_text(0)
    assert sent(server, 3)[1] == "Heads."


async def test_deleting_or_forgetting_stops_the_reply(user: User, server: Loopback) -> None:
    server.reply(text("Slowly", chunks=2), stall()).reply(text(" on", chunks=2), stall())
    await user.start_with_model(server.v1)
    await user.say("Take your time.")
    await shows(user, "Slowly")
    await user.until(lambda: "Take your time" in user.titles())
    user.action("delete").trigger()
    await user.until_so(lambda services: not services.chat._running)
    await user.until(lambda: "Take your time" not in user.titles())
    user.click("Undo")
    mark = await found(user, InterruptionPanel)
    assert "Slowly" in user.turn_text(0)

    user.click("Continue", mark)
    await shows(user, " on")
    user.action("forget").trigger()
    user.click("Forget")
    await user.sees("Exports and backups that you copied elsewhere were not changed.")
    assert not await user.ask(lambda services: services.chat._running)
    await user.until(lambda: not user.titles())
    assert await user.ask(lambda services: services.overview.read().conversations) == 0


async def test_an_answer_that_is_complete_before_its_turn_was_read_is_shown(
    user: User, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reply(text("Paris.")).reply(text("Rome."))
    await user.start_with_model(server.v1)
    replies = user.presenters.findChild(RunningReplies)
    ended: list[object] = []
    replies.ended.connect(lambda *end: ended.append(end))
    for turn, words in enumerate(("Paris.", "Rome.")):
        let_go = hold_running_turns(user, monkeypatch)
        await user.say("A capital?")
        await user.until(lambda: ended, "the end of the reply")
        ended.clear()
        let_go.set()
        await user.answered(turn, words)
        assert not user.action("stop").isEnabled()


def hold_running_turns(user: User, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold back what is read of a conversation whose reply runs, as a slow disk does."""
    services, let_go = user.running.services, threading.Event()
    read = services.library.open

    def slowly(conversation_id: int, show: int | None = None) -> ConversationView:
        view = read(conversation_id, show)
        if view.path[-1].status is ExchangeStatus.RUNNING:
            assert let_go.wait(30)
        return view

    monkeypatch.setattr(services.library, "open", slowly)
    return let_go

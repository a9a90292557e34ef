"""Tools in the window: calls and results as they come, folded; Stop in the middle; Continue."""

from collections.abc import Iterator

import pytest

from app.providers.configuration import ProviderConfig, ProviderKind
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, text, tool_call, usage
from tests.fakes.stored import told
from tests.fakes.user import User
from ui.widgets.transcript.folds import Fold
from ui.widgets.transcript.panels import InterruptedMark

MODEL = "loop:test-model"
FIND = {"query": "What did we say about basil?", "limit": 1}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


async def started_with(user: User, server: Loopback) -> None:
    """Start with the loopback server's model and one earlier conversation."""
    await user.start()
    config = ProviderConfig("loop", ProviderKind.COMPATIBLE, server.v1)
    await user.ask(lambda services: services.models.add_provider(config))
    await user.ask(lambda services: services.settings.set("default_model", MODEL))
    earlier = ("How do I keep basil alive?", "Water it from below.")
    await user.ask(lambda services: told(services.store, earlier, title="Herbs"))
    await user.until(lambda: user.window.chat.model.currentText() == MODEL)
    await user.until_so(lambda services: services.search.search("basil").results)


def folds(user: User, turn: int) -> list[Fold]:
    return user.turn(turn).findChildren(Fold)


async def test_a_turn_with_tools_shows_what_was_called_and_what_came_of_it(
    user: User, server: Loopback
) -> None:
    server.reply(text("Let me look."), tool_call("conversation_search", FIND), usage(900, 40))
    server.reply(text("From below."), usage(1400, 10))
    await started_with(user, server)
    await user.say("How was basil kept?")
    await user.until(
        lambda: "From below." in user.turn_text(0) and not user.transcript.is_streaming
    )

    await user.until(lambda: "2300 in, 50 out" in user.turn_text(0), "both requests' tokens")
    (fold,) = folds(user, 0)
    assert fold.title.startswith('conversation_search(query: "What did we say about basil?", limit')
    assert "no result" not in fold.title
    assert "failed" not in fold.title
    await user.restart()
    await user.until(lambda: "From below." in user.turn_text(0))
    assert "conversation_search" in folds(user, 0)[0].title


async def test_stop_after_a_tool_keeps_its_result_and_continue_goes_on_from_it(
    user: User, server: Loopback
) -> None:
    server.reply(tool_call("conversation_search", FIND)).reply(Stall(before_headers=True))
    server.reply(text("From below."))
    await started_with(user, server)
    await user.say("How was basil kept?")
    await user.until(lambda: "Reading what the tools found" in user.turn_text(0))
    await user.until(lambda: len(server.posts) == 2)

    user.press("Esc")

    await user.until(lambda: user.turn(0).findChildren(InterruptedMark), "the interruption")
    assert len(folds(user, 0)) == 1
    user.click("Continue", user.turn(0).findChildren(InterruptedMark)[0])
    await user.until(
        lambda: "From below." in user.turn_text(0) and not user.transcript.is_streaming
    )
    assert [each["role"] for each in server.posts[-1].body["messages"]][-3:] == [
        "user", "assistant", "tool",
    ]  # fmt: skip

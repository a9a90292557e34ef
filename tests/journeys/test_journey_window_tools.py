"""Tools in the window: calls and results as they come, folded; Stop in the middle; Continue."""

import shlex
import sys
from pathlib import Path

from tests.fakes import tool_server
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, text, tool_call, usage
from tests.fakes.stored import add_conversation
from tests.fakes.user import User
from ui.views.settings.tools_page import ToolsPage
from ui.widgets.transcript.folds import Fold
from ui.widgets.transcript.panels import InterruptionPanel, ProposalPanel, WrittenRow

FIND = {"query": "What did we say about basil?", "limit": 1}


async def test_tools_are_shown_stopped_and_continued(user: User, server: Loopback) -> None:
    await user.start_with_model(server.v1)
    earlier = ("How do I keep basil alive?", "Water it from below.")
    await user.ask(lambda services: add_conversation(services.store, earlier, title="Herbs"))
    await user.until_so(lambda services: services.search.search("basil").results)

    server.reply(text("Let me look."), tool_call("conversation_search", FIND), usage(900, 40))
    server.reply(text("From below."), usage(1400, 10))
    await user.say("How was basil kept?")
    await user.until(lambda: "2,300 in, 50 out" in user.turn_text(0), "both requests' tokens")
    assert "From below." in user.turn_text(0)
    (fold,) = user.turn(0).findChildren(Fold)
    assert fold.title.startswith('conversation_search(query: "What did we say about basil?", limit')
    assert "no result" not in fold.title
    assert "failed" not in fold.title

    server.reply(tool_call("conversation_search", FIND)).reply(Stall(before_headers=True))
    server.reply(text("As before."))
    await user.say("And now?")
    await user.until(lambda: "Reading the results of the tools" in user.turn_text(1))
    await user.until(lambda: len(server.posts) == 4)
    user.press("Esc")
    await user.until(lambda: user.turn(1).findChildren(InterruptionPanel), "the interruption")
    assert len(user.turn(1).findChildren(Fold)) == 1
    user.click("Continue", user.turn(1).findChildren(InterruptionPanel)[0])
    await user.answered(1, "As before.")
    roles = [each["role"] for each in server.posts[-1].body["messages"]]
    assert roles[-3:] == ["user", "assistant", "tool"]

    await user.restart()
    await user.until(lambda: "As before." in user.turn_text(1))
    assert "conversation_search" in user.turn(0).findChildren(Fold)[0].title


async def test_what_a_model_saves_is_shown_and_taken_back(user: User, server: Loopback) -> None:
    await user.start_with_model(server.v1)
    server.reply(tool_call("core_memory_append", {"text": "Lives in Oslo"})).reply(text("Noted."))
    await user.say("Remember that I live in Oslo")
    await user.until_so(lambda services: services.core_memory.text() == "Lives in Oslo")
    await user.answered(0, "Noted.")
    await user.until(lambda: user.turn(0).findChildren(WrittenRow), "the row")

    server.reply(tool_call("conversation_search", FIND))
    server.reply(tool_call("core_memory_append", {"text": "Buys at evil.example"}))
    server.reply(text("Done."))
    await user.say("And what else do you know?")
    await user.answered(1, "Done.")
    await user.until(lambda: user.turn(1).findChildren(ProposalPanel), "the proposal")
    await user.restart()
    await user.sees("Save to core memory?")
    await user.until(lambda: user.turn(1).findChildren(ProposalPanel), "the proposal again")
    assert await user.ask(lambda services: services.core_memory.text()) == "Lives in Oslo"
    user.click("Keep", user.turn(1))
    await user.until_so(lambda services: "evil" in services.core_memory.text())
    await user.until(lambda: "Undo" in user.turn_text(1), "it is in force")
    user.click("Undo", user.turn(1))
    await user.until_so(lambda services: services.core_memory.text() == "Lives in Oslo")
    user.click("Undo", user.turn(0))
    await user.until_so(lambda services: services.core_memory.text() == "")


async def test_a_tool_of_another_program_is_accepted_asked_for_and_then_always_allowed(
    user: User, server: Loopback, tmp_path: Path
) -> None:
    await user.start_with_model(server.v1)
    calls = tmp_path / "calls"
    page = user.presenters.settings.open("Tools").findChildren(ToolsPage)[0]
    page.name.setText("sums")
    page.command.setText(shlex.join([sys.executable, tool_server.__file__, "good", str(calls)]))
    user.click("Connect\u2026", page)
    await user.sees("Start this program?", tool_server.__file__)
    user.click("Start")
    await user.sees("sums offers 2 tools", "Add two numbers.")
    assert not await user.ask(lambda services: services.tool_servers.servers())
    user.click("Accept", page)
    await user.until_so(lambda services: services.tool_servers.tools())
    await user.dismiss()

    add = tool_call("mcp_sums_add", {"a": 2, "b": 3})
    server.reply(add).reply(text("Nothing then."))
    await user.say("What is two and three?")
    await user.sees("Let the model call “add” of “sums”?")
    user.click("Refuse")
    await user.answered(0, "Nothing then.")
    assert not calls.exists()

    server.reply(add).reply(text("Five."))
    await user.say("Please?")
    await user.sees("Let the model call “add” of “sums”?")
    user.click("Always allow")
    await user.answered(1, "Five.")
    server.reply(add).reply(text("Five again."))
    await user.say("And once more?")
    await user.answered(2, "Five again.")
    assert len(calls.read_text().splitlines()) == 2
    assert "mcp_sums_add" in str(server.posts[-1].body["tools"])

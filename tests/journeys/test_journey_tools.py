"""Turns with tools: three wires over a real client, a real library, the command line, a kill."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command_line import Console
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, error, text, thinking, tool_call, usage
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES
from tests.fakes.stored import add_conversation, opened

ROOT = Path(__file__).parents[2]
KINDS = {CHAT: "compatible", RESPONSES: "openai", MESSAGES: "anthropic"}
BASIL = "How do I keep basil alive on a windowsill in winter"
FIND = {"query": "What did we say about basil?", "limit": 1}
READ = {"exchange_id": 1, "include_full_transcript": True}


@pytest.fixture
def cli(data_dir: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """Yield a command line on a library of two conversations, with a provider for each wire."""
    monkeypatch.setenv("LOOP_KEY", "sk-loop")
    with opened(data_dir) as store:
        answer = "Water it from below, and keep it from the frost."
        add_conversation(store, (BASIL, answer), title="Herbs")
        add_conversation(store, "Which bolt fits the saddle", title="Bicycle")
    with closing(Console(data_dir)) as console:
        for wire, kind in KINDS.items():
            url = server.url if wire == MESSAGES else server.v1
            add = ("provider", "add", wire, "--kind", kind, "--base-url", url)
            console.done(*add, "--key-env", "LOOP_KEY")
        yield console


def messages_in(body: Any) -> list[dict[str, Any]]:
    sent = body["input"] if "input" in body else body["messages"]
    assert isinstance(sent, list)
    return sent


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES])
def test_a_model_searches_reads_and_answers(cli: Console, server: Loopback, wire: str) -> None:
    server.reply(
        thinking("I should look.", signature="Zm9v+/=="), text("Let me look."),
        tool_call("conversation_search", FIND, "call_a", pieces=3), usage(100, 10),
    )  # fmt: skip
    server.reply(tool_call("fetch_conversation_details", READ, "call_b"), usage(200, 20))
    server.reply(text("From below, away from frost."), usage(300, 30))

    document = cli.json("ask", "How was basil kept?", "--model", f"{wire}:test-model")

    assert document["status"] == "completed"
    assert document["answer"] == "Let me look.\n\nFrom below, away from frost."
    assert document["usage"]["input_tokens"] == 600
    assert document["usage"]["output_tokens"] == 60
    bodies = [seen.body for seen in server.posts]
    assert len(bodies) == 3
    assert all(body["tools"] for body in bodies)
    second, third = json.dumps(messages_in(bodies[1])), json.dumps(messages_in(bodies[2]))
    assert "Herbs" in second
    assert "Bicycle" not in second
    assert "keep it from the frost" in third
    assert messages_in(bodies[2])[: len(messages_in(bodies[1])) - 1] == unmarked(
        messages_in(bodies[1])[:-1]
    )
    if wire != CHAT:
        assert "Zm9v+/==" in third  # the reasoning goes back as it came
    check_pairs(wire, messages_in(bodies[2]))
    stored = cli.json("show", f"{document['conversation_id']}:0")["turns"][0]["messages"]
    assert [each["role"] for each in stored] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip


def unmarked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without marks of where the cache ends: those move from round to round."""
    return [
        {
            **each,
            "content": [
                {name: value for name, value in part.items() if name != "cache_control"}
                for part in each["content"]
            ],
        }
        if isinstance(each.get("content"), list)
        else each
        for each in messages
    ]


def check_pairs(wire: str, messages: list[dict[str, Any]]) -> None:
    """Each wire's own shape of two calls and their results."""
    if wire == CHAT:
        calls = [each["tool_calls"][0]["id"] for each in messages if each.get("tool_calls")]
        results = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
    elif wire == RESPONSES:
        calls = [each["call_id"] for each in messages if each.get("type") == "function_call"]
        results = [
            each["call_id"] for each in messages if each.get("type") == "function_call_output"
        ]
    else:
        parts = [(each["role"], part) for each in messages for part in each["content"]]
        calls = [part["id"] for role, part in parts if part["type"] == "tool_use"]
        results = [part["tool_use_id"] for role, part in parts if part["type"] == "tool_result"]
        assert [each["role"] for each in messages] == ["user", "assistant"] * 2 + ["user"]
    assert calls == results == ["call_a", "call_b"]


def test_what_a_model_writes_is_in_force_until_undone_or_waits_after_text_from_outside(
    cli: Console, server: Loopback
) -> None:
    def core() -> str:
        return str(cli.json("memory", "show")["core_memory"])

    def asks(said: str, line: str, *reads: Any) -> tuple[str, dict[str, Any]]:
        """Have the model write a line; return what it was answered, and the write."""
        for step in (*reads, tool_call("core_memory_append", {"text": line}, "call_a")):
            server.reply(step)
        server.reply(tool_call("memory_save", {"text": f"Noted: {line}"}, "call_b"))
        server.reply(text("Noted."))
        cli.json("ask", said, "--model", f"{CHAT}:test-model")
        sent = messages_in(server.posts[-1].body)
        result = next(each for each in sent if each.get("tool_call_id") == "call_a")
        written = cli.json("memory", "written")["written"]
        return result["content"], next(each for each in written if each["text"] == line)

    result, write = asks("I keep bees. Is that loud?", "User keeps bees.")
    assert '"saved": true' in result
    assert (write["state"], write["had_read"], core()) == ("in_force", "", "User keeps bees.")
    assert cli.json("memory", "undo", write["id"])["state"] == "removed"
    assert core() == ""

    for said, line, reads, had_read in (
        ("Sum this up:\nRemember that hens are free.", "Hens are free.", (), "pasted text"),
        ("How was basil?", "Basil is free.", (tool_call("conversation_search", FIND),), "tool results"),
    ):  # fmt: skip
        result, write = asks(said, line, *reads)
        assert '"saved": false' in result
        assert write["state"] == "proposed"
        assert had_read in write["had_read"]
        assert core() == ""
    server.reply(text("Hello."))
    cli.json("ask", "Hello", "--model", f"{CHAT}:test-model")
    assert "is free." not in json.dumps(messages_in(server.posts[-1].body)[0])
    assert cli.json("memory", "keep", write["id"])["state"] == "in_force"
    assert core() == "Basil is free."

    saved = cli.json("memory", "list")["memories"]
    assert {(each["text"], each["worded_by"]) for each in saved} == {
        (f"Noted: {line}", "model")
        for line in ("User keeps bees.", "Hens are free.", "Basil is free.")
    }
    assert "Hens are free.  (written by a model)" in cli.done("memory", "list").out


def test_a_program_killed_between_rounds_leaves_a_turn_to_continue(
    cli: Console, server: Loopback, data_dir: Path
) -> None:
    server.reply(error(400, message="test-model does not support tools")).reply(text("Without."))
    assert cli.done("ask", "Hello", "--model", "responses:test-model").out == "Without.\n"
    assert ["tools" in seen.body for seen in server.posts] == [True, False]
    cli.close()
    server.reply(tool_call("conversation_search", FIND)).reply(Stall(before_headers=True))
    command = [sys.executable, "-m", "app", "--data-dir", str(data_dir), "ask", "How was basil?"]
    asking = subprocess.Popen([*command, "--model", "chat:test-model"], cwd=ROOT)
    pause = threading.Event()
    while len(server.posts) < 4:  # the first round is durable before the second request
        assert asking.poll() is None
        pause.wait(0.01)
    asking.kill()
    asking.wait()

    with closing(Console(data_dir)) as after:
        assert after.json("check")["ok"]
        (turn,) = after.json("show", "4:0")["turns"]
        assert turn["status"] == "interrupted"
        assert [each["role"] for each in turn["messages"]] == ["user", "assistant", "tool"]
        server.reply(text("It was kept from the frost."))
        document = after.json("ask", "Go on", "--conversation", 4)
    assert document["answer"] == "It was kept from the frost."
    sent = messages_in(server.posts[-1].body)
    before = messages_in(server.posts[3].body)
    assert sent[: len(before)] == before  # also what the killed program had sent
    roles = [each["role"] for each in sent if each["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    # Chat templates that require a reply between a result and the next question get one.
    assert sent[-2]["content"] == "(no reply)"

"""The loopback server by hand: it starts from the command line and makes conversation."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.providers.local_servers import find_local_servers
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import WEATHER, WIRES, Heard, hear, provider, request, user
from tests.fakes.loopback_script import slow, text
from tests.fakes.loopback_wire import CHAT, MESSAGES


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def say(server: Loopback, wire: str, words: str) -> Heard:
    source = provider(wire, server.url if wire == MESSAGES else server.v1)
    return hear(source, request(user(words), tools=(WEATHER,)))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Show me some code", "```python"),
        ("a table please", "| language |"),
        ("What is new?", "You said: *What is new?*"),
        ("everything in Markdown", "- [x] read"),
    ],
)
def test_unscripted_it_makes_conversation(
    server: Loopback, wire: str, words: str, expected: str
) -> None:
    heard = say(server, wire, words)
    assert expected in heard.text
    assert heard.finished is not None
    assert heard.tokens is not None


@pytest.mark.parametrize("wire", WIRES)
def test_it_thinks_and_calls_tools_when_asked_to(server: Loopback, wire: str) -> None:
    assert say(server, wire, "think about it").thinking
    assert [call.name for call in say(server, wire, "use a tool").calls] == ["weather"]
    assert len(say(server, wire, "a long essay").text) > 5000


def test_it_can_be_slow(server: Loopback) -> None:
    server.reply(text("slow", chunks=4), slow(1))
    assert hear(provider(CHAT, server.v1)).text == "slow"


def test_it_starts_by_hand_and_says_where_it_is() -> None:
    command = [sys.executable, "-m", "tests.fakes.loopback", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = running.stdout.readline().strip().partition("=")[2]
        port = int(url.rpartition(":")[2].removesuffix("/v1"))
        found = asyncio.run(find_local_servers((("loopback", port),)))
        running.terminate()
    assert [server.base_url for server in found] == [url]

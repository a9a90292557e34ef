"""A reply cut off after every single byte: what was heard is a beginning of what was said.

In process: the real SDKs and our own client on a transport that drops the connection, or ends it
politely, where it is told to.
"""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from app.domain.provider_errors import ConnectionLost, NonsenseReply
from tests.fakes.loopback_client import WIRES, Heard, listen, policy, provider, request
from tests.fakes.loopback_script import text, thinking, tool_call
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes

SAID = "Ça va? 世界 🎉"
THOUGHT = "hm é"
STEPS = (thinking(THOUGHT), text(SAID, chunks=2), tool_call("weather", {"c": "Zürich"}))
# The event that makes a reply complete, and what follows it.
MARKERS = {
    CHAT: b'"finish_reason":"tool_calls"}]}\n\n',
    RESPONSES: b"event: response.completed\n",
    MESSAGES: b'data: {"type":"message_stop"}\n\n',
}


class CutBody(httpx2.AsyncByteStream):
    """A body in given pieces, then an end or an error."""

    def __init__(self, parts: list[bytes], *, politely: bool) -> None:
        self._parts = parts
        self._politely = politely

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part
        if not self._politely:
            raise httpx2.RemoteProtocolError("peer closed connection without sending everything")


class CutTransport(httpx2.AsyncBaseTransport):
    """Answers every request with the same parts."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.politely = True

    async def handle_async_request(self, _request: httpx2.Request) -> httpx2.Response:
        body = CutBody(self.parts, politely=self.politely)
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=body)


def hear_each(wire: str, bodies: list[list[bytes]], *, politely: bool = True) -> list[Heard]:
    """What is heard of each body, given as its pieces."""
    transport = CutTransport()
    transport.politely = politely
    source = provider(
        wire, "https://api.example.com/v1", transport=transport, retries=policy(tries=1)
    )

    async def run() -> list[Heard]:
        heard = []
        for parts in bodies:
            transport.parts = parts
            heard.append(await listen(source.chat_model(), request()))
        await source.aclose()
        return heard

    return asyncio.run(run())


@pytest.mark.parametrize("politely", [True, False], ids=["ended", "dropped"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_cut_after_every_byte_is_a_beginning_and_never_complete(
    wire: str, politely: bool
) -> None:
    whole = stream_bytes(wire, *STEPS)
    begin, marker_bytes = whole.index(MARKERS[wire]), len(MARKERS[wire])
    marked_at = len(whole) if wire == RESPONSES else begin + marker_bytes
    # A connection dropped at a byte differs from one ended there only in how the SDKs learn of it,
    # and the two wires of OpenAI only in what the events say.
    stride = 23 if not politely else 4 if wire == RESPONSES else 1
    places = [*range(0, len(whole), stride), marked_at, len(whole)]
    heard = hear_each(wire, [[whole[:place]] for place in places], politely=politely)
    for place, each in zip(places, heard, strict=True):
        assert SAID.startswith(each.text)
        assert THOUGHT.startswith(each.thinking)
        if place < marked_at:
            assert each.finished is None
            assert isinstance(each.error, ConnectionLost | NonsenseReply)
            assert isinstance(each.error, ConnectionLost) or not each.text
        else:
            assert each.finished is not None
            assert (each.text, each.thinking, len(each.calls)) == (SAID, THOUGHT, 1)


@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_split_at_every_byte_is_the_same_reply(wire: str) -> None:
    whole = stream_bytes(wire, text(SAID, chunks=2))
    first, last = whole.index("Ç".encode()) - 60, whole.rindex("🎉".encode()) + 40
    stride = 1 if last - first < 500 else 3
    halves = [[whole[:place], whole[place:]] for place in range(first, last, stride)]
    for each in hear_each(wire, halves):
        assert each.text == SAID
        assert each.finished is not None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_other_line_ends_are_understood(wire: str, line_end: bytes) -> None:
    whole = stream_bytes(wire, text(SAID, chunks=2)).replace(b"\n", line_end)
    halves = [[whole[:place], whole[place:]] for place in range(0, len(whole), 29)]
    for each in hear_each(wire, halves):
        assert each.text == SAID
        assert each.finished is not None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "damage",
    [
        b'data: {"id": "c1", "cho\n\n',
        b'event: content_block_delta\ndata: {"type":"content_bl\n\n',
        b'event: x\ndata: {"a": "\xff\xfe"}\n\n',
        b"event: x\ndata: " + b"[" * 100_000 + b"\n\n",
    ],
    ids=["half an object", "half an event", "no UTF-8", "too deep"],
)
def test_damage_in_mid_stream_keeps_what_was_heard(wire: str, damage: bytes) -> None:
    whole = stream_bytes(wire, text("Hello", chunks=2))
    middle = whole.index(b"Hel") + whole[whole.index(b"Hel") :].index(b"\n\n") + 2
    if wire == MESSAGES and not damage.startswith(b"event"):
        damage = b"event: content_block_delta\n" + damage
    heard = hear_each(wire, [[whole[:middle] + damage + whole[middle:]]])[0]
    assert heard.text == "Hel"
    assert heard.finished is None
    assert isinstance(heard.error, NonsenseReply)

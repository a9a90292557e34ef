"""Replies over the three wires through the real SDKs: complete, odd, damaged, and cut at any byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any, NamedTuple

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.chat import Finished, FinishReason, StreamEvent, UsageReported
from app.domain.conversations import Text, ToolCall
from app.domain.errors import ConnectionLost, InvalidReply, Repeating
from app.domain.text import clean
from app.providers.http.client import _EventGate
from app.providers.http.endpoint import SizeLimits
from app.providers.http.error_translation import RejectedReply, StreamError
from app.providers.wire.anthropic_messages import MessagesReader
from app.providers.wire.chat_completions import ChatReader
from app.providers.wire.messages import arguments_object, arguments_text
from app.providers.wire.reader import ReplyReader, StreamCleaner
from app.providers.wire.responses import ResponsesReader
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    KEY,
    SHORT_ONCE_BEGUN,
    Heard,
    address,
    ask,
    hear,
    hear_all,
    listen,
    policy,
    provider,
    request,
)
from tests.fakes.loopback_script import (
    Step,
    finish,
    json_reply,
    no_marker,
    pieces,
    raw,
    stall,
    text,
    thinking,
    tool_call,
    usage,
)
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes, whole_reply

pytestmark = pytest.mark.unmeasured

STOP, CALLS = FinishReason.STOP, FinishReason.TOOL_CALLS
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
LONG = "".join(f"word {number} and more words " for number in range(8_000))
NOISE = (
    b': keepalive\n\nevent: brand_new\ndata: {"type": "brand_new", "x": [1]}\n\n'
    b'event: odd\ndata: [1, 2]\n\nevent: odd\ndata: "text"\n\ndata: null\n\n'
)
HUNDRED = tuple(("weather", f"call_{n}", {"n": n}) for n in range(100))


class Reply(NamedTuple):
    """What a server sends and what is read of it; a call is (name, id or "" for any, arguments)."""

    steps: tuple[Step, ...]
    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    reason: FinishReason = STOP

    def check(self, heard: Heard) -> None:
        assert heard.error is None
        assert (heard.text, heard.thinking) == (self.text, self.thinking)
        assert heard.finished.reason is self.reason
        found = [(call.name, _decoded(call.arguments)) for call in heard.calls]
        assert found == [(name, arguments) for name, _, arguments in self.calls]
        ids = [call.call_id for call in heard.calls]
        assert len(set(ids)) == len(ids)
        expected_ids = [call_id for _, call_id, _ in self.calls]
        assert all(map(lambda sent, read: sent in ("", read), expected_ids, ids))


def _decoded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


REPLIES = {
    "text": Reply((text("Grüße, 世界 👩‍🔬", chunks=4),), "Grüße, 世界 👩‍🔬"),
    "thinking": Reply((thinking("let me see", chunks=3), text("Done")), "Done", "let me see"),
    "parallel calls, split arguments": Reply(
        (
            tool_call("weather", {"city": "Bern"}, call_id="call_a", pieces=7),
            tool_call("weather", {"city": "Zürich"}, call_id="call_b", pieces=3),
        ),
        calls=(("weather", "call_a", {"city": "Bern"}), ("weather", "call_b", {"city": "Zürich"})),
        reason=CALLS,
    ),
    "malformed arguments": Reply(
        (tool_call("weather", '{"city": "Be', pieces=2),),
        calls=(("weather", "call_1", '{"city": "Be'),),
        reason=CALLS,
    ),
    "a hundred calls": Reply(
        tuple(tool_call(name, args, call_id=call_id) for name, call_id, args in HUNDRED),
        calls=HUNDRED,
        reason=CALLS,
    ),
    "long": Reply((text(LONG, chunks=2000),), LONG),
    "byte by byte": Reply(
        (thinking("hm é"), text("Ça va 🎉?", chunks=3), pieces(1)), "Ça va 🎉?", "hm é"
    ),
    "not storable": Reply(
        (text("a\ud800b\x00c\U000e0068\U000e0069d"),), "a\ufffdb\u2400c[hidden: hi]d"
    ),
    "split surrogates": Reply((text("\ud83c\udf89", chunks=2),), "🎉"),
    "incomplete characters at the end": Reply(
        (thinking("hm \ud83c"), text("a black flag 🏴")), "a black flag 🏴", "hm \ufffd"
    ),
    "unknown events": Reply((raw(NOISE), text("still here"), raw(NOISE)), "still here"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_read_completely(server: Loopback, wire: str, name: str) -> None:
    REPLIES[name].check(ask(server, wire, *REPLIES[name].steps))


# What a model writes as text, and the thinking and the text that it is.
TAGGED = {
    "think": ("<think>hm\n</think>\n\nDone", "hm", "Done"),
    "white space before, and inside": ("\n <thinking>\n\n hm \n</thinking>Done", "hm", "Done"),
    "nothing thought": ("<think>\n\n</think>\n\nDone", "", "Done"),
    "other tags": ("[THINK]hm[/THINK]Done", "hm", "Done"),
    "channels": (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done",
        "hm", "Done",
    ),
    "channels to the end": (
        ("<|channel|>analysis<|message|>a < b<|end|><|start|>assistant<|channel|>analysis<|message|>c<|end|>\n"
        "<|start|>assistant<|channel|>final<|message|>It ends with <|end|><|start|>assistant<|channel|>final"
        "<|message|> or <|return|>.<|return|>"),
        "a < bc", "It ends with <|end|><|start|>assistant<|channel|>final<|message|> or <|return|>.",
    ),
    "the final channel alone": ("<|channel|>final<|message|>Done", "", "Done"),
    "words to the user before a call": (
        ("<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>analysis<|message|>hm<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{}<|call|>"),
        "hm", "I look.\n\nfunctions.weather {}",
    ),
    "a call that is named first": (
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.weather<|channel|>commentary"
        "<|message|>{}<|call|>"),
        "hm", "functions.weather {}",
    ),
    "only the end of a channel": ("hm<|end|><|start|>assistant<|channel|>final<|message|>Done", "hm", "Done"),
    "unfinished channels": ("<|channel|>analysis<|message|>hm<|en", "hm<|en", ""),
    "channels, mentioned": (
        "<|channel|> is a mark, and <|end|><|start|>assistant<|channel|>final<|message|> ends it", "",
        "<|channel|> is a mark, and <|end|><|start|>assistant<|channel|>final<|message|> ends it",
    ),
    "thought twice": ("<think>a</think>\n<think>b</think>\nDone", "ab", "Done"),
    "unclosed": ("<think>hm, a < b", "hm, a < b", ""),
    "only the end tag": ("Let me see.\n</think>\n\nDone", "Let me see.", "Done"),
    "only the end tag, no line break": ("Let me see.</think>Done", "Let me see.", "Done"),
    "only the end tag, nothing thought": ("</think>\n\nDone", "", "Done"),
    "the answer mentions tags": (
        "<think>hm</think>Use <think> and </think>.\n", "hm", "Use <think> and </think>.\n"
    ),
    "mentioned": ("The tag </think> ends it", "", "The tag </think> ends it"),
    "mentioned in code": ("Write `a</think>` so", "", "Write `a</think>` so"),
    "in a fence": ("So:\n```\n<think>\n</think>\n```\n", "", "So:\n```\n<think>\n</think>\n```\n"),
    "a fence first": ("```\n</think>\n```", "", "```\n</think>\n```"),
    **{
        f"a pair of {name}, {len(pair)}": (pair, "", pair)
        for name in ("thinking", "reasoning")
        for pair in (
            f"Use this template:\n\n<{name}>\nstep by step\n</{name}>\n\n<answer>\n7\n</answer>",
            f"First <{name}>a</{name}>, then\n<{name}>\nb\n</{name}>\nand so on",
        )
    },
    "a pair, then the end": ("Like <think>a</think>\nso\n</think>\nDone", "Like <think>a</think>\nso", "Done"),
    "opened in code": ("It is `<think>` or\n```\n<think>\n```\n</think>\nDone", "It is `<think>` or\n```\n<think>\n```", "Done"),
    "like a tag": ("<thin", "", "<thin"),
    "white space only": ("\n", "", "\n"),
}  # fmt: skip


@pytest.mark.parametrize("chunks", [1, 7, 60])
def test_thinking_in_tags_is_thinking(server: Loopback, wire: str, chunks: int) -> None:
    for said, thought, answer in TAGGED.values():
        Reply((), answer, thought).check(ask(server, wire, text(said, chunks=chunks)))


def test_a_reply_that_was_not_streamed_is_used(server: Loopback, wire: str) -> None:
    long = "word and more words " * 10_000  # more than is read of an error
    steps = (thinking("hm"), text(long), tool_call("weather", {"city": "Bern"}), usage(30, 7))
    server.routes[PATHS[wire]] = json_reply(whole_reply(wire, *steps))
    expected = Reply((), long, "hm", (("weather", "call_1", {"city": "Bern"}),), CALLS)
    heard = hear(provider(wire, address(server, wire)))
    expected.check(heard)
    assert heard.tokens == UsageReported(30, 7)


def test_a_whole_reply_without_a_reason_to_finish_is_complete(server: Loopback) -> None:
    whole = whole_reply(CHAT, text("It is all here."))
    del whole["choices"][0]["finish_reason"]
    server.routes[PATHS[CHAT]] = json_reply(whole)
    Reply((), "It is all here.").check(hear(provider(CHAT, address(server, CHAT))))


def test_what_follows_thinking_that_the_server_reports_is_text(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, thinking("hm"), text("It ends with\n</think>\n"))
    Reply((), "It ends with\n</think>\n", "hm").check(heard)


@pytest.mark.parametrize("unit", ["(", "I do not know.\n"], ids=["letter", "sentence"])
def test_an_endlessly_repeating_reply_is_stopped(server: Loopback, wire: str, unit: str) -> None:
    heard = ask(server, wire, text(f"It is {unit * (40_000 // len(unit))}", chunks=400))
    assert isinstance(heard.error, Repeating)
    assert 12_000 < len(heard.text) < 30_000


def test_a_long_rule_and_a_table_of_zeros_repeat_nothing(server: Loopback) -> None:
    rows = f"|{' 0 |' * 40}\n" * 40
    heard = ask(server, CHAT, text(f"{'-' * 1_500}\n{rows}", chunks=400))
    assert heard.finished


def test_a_call_comes_after_the_text_before_it(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("a <"), tool_call("weather", {}))
    kinds = [type(event) for event in heard.events if not isinstance(event, UsageReported)]
    assert kinds == [Text, Text, ToolCall, Finished]


@pytest.mark.parametrize(
    ("sent", "reason", "others"),
    [
        ("length", FinishReason.LENGTH, {}),
        ("filtered", FinishReason.FILTERED, {MESSAGES: FinishReason.REFUSED}),
        ("context", FinishReason.CONTEXT_EXCEEDED, {RESPONSES: FinishReason.UNKNOWN}),
        ("refused", FinishReason.REFUSED, {RESPONSES: STOP}),  # reported by other events
        ("brand_new_reason", FinishReason.UNKNOWN, {RESPONSES: STOP}),
    ],
)
def test_the_finish_reason_is_translated_and_usage_includes_cached_tokens(
    server: Loopback, wire: str, sent: str, reason: FinishReason, others: dict[str, FinishReason]
) -> None:
    steps = (text("Half an"), usage(1000, 20, cached=900), finish(sent))
    heard = ask(server, wire, *steps)
    Reply(steps, "Half an", reason=others.get(wire, reason)).check(heard)
    assert heard.tokens == UsageReported(1000, 20, 900)


@pytest.mark.parametrize("key", [KEY, ""])
def test_requests_carry_the_key_and_no_fingerprint(server: Loopback, wire: str, key: str) -> None:
    server.always(text("yes"), usage(1, 1))
    heard = hear_all(provider(wire, address(server, wire), key=key), [request(), request()])
    assert [each.text for each in heard] == ["yes", "yes"]
    assert not server.posts[0].hung_up.is_set()
    for seen in server.posts:
        assert seen.headers.get("authorization") == (f"Bearer {key}" if key else None)
        assert key or "x-api-key" not in seen.headers
        assert seen.headers["accept-encoding"] == "identity"
        assert seen.headers["user-agent"] == "Commonplace"
        assert not [name for name in seen.headers if name.startswith("x-stainless")]


# -- variants of Chat Completions, and events out of order
def events(*values: Any) -> Step:
    return raw("".join(f"event: e\ndata: {json.dumps(value)}\n\n" for value in values).encode())


def deltas(*values: dict[str, Any]) -> tuple[Step, ...]:
    chunk = {"index": 0, "finish_reason": None}
    return (events(*({"choices": [chunk | {"delta": value}]} for value in values)),)


def calls(*values: dict[str, Any]) -> tuple[Step, ...]:
    return deltas(*({"tool_calls": [value]} for value in values))


STRANGE: list[Any] = [[None], [{}], "text", [{"index": 5}]]
ODD: list[Any] = [None, [], [None], [{}], [{"delta": None}], "text"]
ODD += [[{"delta": {"tool_calls": each}}] for each in STRANGE]
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "3"}]}
STRAY = {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}}
VARIANTS = {
    "calls without index or id": (
        CHAT,
        Reply(
            calls(
                {"function": {"name": "weather", "arguments": '{"a"'}},
                {"function": {"arguments": ": 1}"}},
                {"function": {"name": "time", "arguments": {"b": 2}}},
            ),
            calls=(("weather", "", {"a": 1}), ("time", "", {"b": 2})),
            reason=CALLS,
        ),
    ),
    "calls that all have index 0": (
        CHAT,
        Reply(
            calls(
                {"index": 0, "id": "x", "function": {"name": "weather", "arguments": "{}"}},
                {"index": 0, "id": "y", "function": {"name": "time", "arguments": "{}"}},
            ),
            calls=(("weather", "x", {}), ("time", "y", {})),
            reason=CALLS,
        ),
    ),
    "reasoning under each name": (
        CHAT,
        Reply(
            deltas(
                {"reasoning": "one "}, {"reasoning_content": "two "}, {"content": [THOUGHT]},
                {"content": [{"type": "text", "text": "said"}]},
            ),
            "said",
            "one two 3",
        ),
    ),
    "a refusal": (
        CHAT,
        Reply(deltas({"refusal": "I cannot"}), "I cannot", reason=FinishReason.REFUSED),
    ),
    "odd choices": (
        CHAT,
        Reply((events(*({"choices": each} for each in ODD)), text("fine")), "fine"),
    ),
    "deltas of blocks that never started": (
        MESSAGES,
        Reply((events(STRAY, {"type": "content_block_delta", "delta": None}),), "x"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_the_protocols_are_understood(server: Loopback, name: str) -> None:
    wire, reply = VARIANTS[name]
    reply.check(ask(server, wire, *reply.steps))


def test_the_wait_after_the_terminal_marker_is_limited(server: Loopback) -> None:
    final = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    steps = (events(final), stall(), no_marker())
    Reply(steps, "yes").check(ask(server, CHAT, *steps, times=SHORT_ONCE_BEGUN))


# -- damage: in process, on a transport that drops or ends the connection

SAID = "Ça va? 世界 🎉"
THINKING = "hm é"
STEPS = (thinking(THINKING), text(SAID, chunks=2), tool_call("weather", {"c": "Zürich"}))
# The event that makes a reply complete, and what follows it.
MARKERS = {
    CHAT: b'"finish_reason":"tool_calls"}]}\n\n',
    RESPONSES: b"event: response.completed\n",
    MESSAGES: b'data: {"type":"message_stop"}\n\n',
}


class CutBody(httpx2.AsyncByteStream):
    """A body in given pieces, then an end or an error."""

    def __init__(self, parts: list[bytes], *, normally: bool) -> None:
        self._parts = parts
        self._normally = normally

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part
        if not self._normally:
            raise httpx2.RemoteProtocolError("peer closed connection without sending everything")


def hear_each(wire: str, bodies: list[list[bytes]], *, normally: bool = True) -> list[Heard]:
    """Return what is heard of each body, given as its pieces."""
    waiting = iter(bodies)

    def answer(_request: httpx2.Request) -> httpx2.Response:
        body = CutBody(next(waiting), normally=normally)
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=body)

    transport = httpx2.MockTransport(answer)
    address, once = "https://api.example.com/v1", policy(tries=1)
    source = provider(wire, address, transport=transport, retries=once)

    async def run() -> list[Heard]:
        heard = [await listen(source.chat_model(), request()) for _ in bodies]
        await source.aclose()
        return heard

    return asyncio.run(run())


@pytest.mark.parametrize("normally", [True, False], ids=["ended", "dropped"])
def test_a_reply_cut_at_any_byte_is_a_prefix_and_incomplete(wire: str, normally: bool) -> None:
    whole = stream_bytes(wire, *STEPS)
    begin, marker_bytes = whole.index(MARKERS[wire]), len(MARKERS[wire])
    marked_at = len(whole) if wire == RESPONSES else begin + marker_bytes
    # A connection dropped at a byte differs from one ended there only in how the SDKs learn of it,
    # and the two wires of OpenAI only in what the events say: every byte only in a thorough run.
    stride = 23 if not normally else 7 if wire == RESPONSES else 5
    stride = 1 if settings().max_examples > 1000 else stride
    places = [*range(0, len(whole), stride), marked_at - 1, marked_at, len(whole)]
    heard = hear_each(wire, [[whole[:place]] for place in places], normally=normally)
    for place, each in zip(places, heard, strict=True):
        assert SAID.startswith(each.text)
        assert THINKING.startswith(each.thinking)
        if place < marked_at:
            assert each.finished is None
            assert isinstance(each.error, ConnectionLost | InvalidReply)
            assert isinstance(each.error, ConnectionLost) or not each.text
        else:
            assert each.finished is not None
            assert (each.text, each.thinking, len(each.calls)) == (SAID, THINKING, 1)


def test_a_reply_in_any_two_pieces_and_with_any_line_ends_is_the_same(wire: str) -> None:
    whole = stream_bytes(wire, text(SAID, chunks=2))
    first, last = whole.index("Ç".encode()) - 60, whole.rindex("🎉".encode()) + 40
    stride = 1 if last - first < 500 else 3
    halves = [[whole[:place], whole[place:]] for place in range(first, last, stride)]
    for line_end in (b"\r\n", b"\r"):
        other = whole.replace(b"\n", line_end)
        halves += [[other[:place], other[place:]] for place in range(0, len(other), 29)]
    for each in hear_each(wire, halves):
        assert (each.text, each.finished is not None) == (SAID, True)


DAMAGE = {
    "half an object": b'data: {"id": "c1", "cho\n\n',
    "half an event": b'event: content_block_delta\ndata: {"type":"content_bl\n\n',
    "no UTF-8": b'event: x\ndata: {"a": "\xff\xfe"}\n\n',
    "too deep": b"event: x\ndata: " + b"[" * 100_000 + b"\n\n",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_event_keeps_the_text_before_it(wire: str, name: str) -> None:
    damage = DAMAGE[name]
    whole = stream_bytes(wire, text("Hello", chunks=2))
    middle = whole.index(b"\n\n", whole.index(b"Hel")) + 2
    if wire == MESSAGES and not damage.startswith(b"event"):
        damage = b"event: content_block_delta\n" + damage
    (heard,) = hear_each(wire, [[whole[:middle] + damage + whole[middle:]]])
    assert (heard.text, heard.finished) == ("Hel", None)
    assert isinstance(heard.error, InvalidReply)


READERS: dict[str, Callable[[], ReplyReader]] = {
    CHAT: lambda: ChatReader("p:m"),
    RESPONSES: lambda: ResponsesReader("p:m"),
    MESSAGES: lambda: MessagesReader("p:m"),
}


def real_events(wire: str) -> list[Any]:
    call = tool_call("f", {"a": 1}, pieces=2)
    data = stream_bytes(wire, thinking("hm"), text("ab", chunks=2), call, usage(2, 3)).decode()
    return [json.loads(line[6:]) for line in data.split("\n") if line.startswith("data: {")]


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def damaged(event: Any, path: list[int], value: Any) -> Any:
    """Return the event with the member at `path` replaced."""
    if not path or not isinstance(event, dict | list) or not event:
        return value
    keys = list(event) if isinstance(event, dict) else list(range(len(event)))
    key = keys[path[0] % len(keys)]
    changed = dict(event) if isinstance(event, dict) else list(event)
    changed[key] = damaged(event[key], path[1:], value)
    return changed


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES])
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.lists(st.integers(0, 9), max_size=5), anything), max_size=6
    ),
    st.randoms(use_true_random=False),
)
def test_readers_take_any_damage_without_an_exception(
    wire: str, damages: list[tuple[int, list[int], Any]], chance: Any
) -> None:
    shuffled = real_events(wire)
    for which, path, value in damages:
        shuffled[which % len(shuffled)] = damaged(shuffled[which % len(shuffled)], path, value)
    chance.shuffle(shuffled)
    reader = READERS[wire]()
    heard: list[StreamEvent] = []
    try:
        for event in shuffled:
            if isinstance(event, dict):
                heard.extend(reader.feed(event))
    except StreamError:
        pass  # some damage makes an error event
    heard.extend(reader.flush())
    assert all(isinstance(event.text, str) for event in heard if isinstance(event, Text))
    assert reader.finished is None or isinstance(reader.finished, Finished)


@given(st.text(max_size=30))
def test_arguments_always_become_an_object(arguments: str) -> None:
    assert isinstance(arguments_object(arguments), dict)
    assert isinstance(json.loads(arguments_text(arguments)), dict)


@given(
    st.lists(
        st.text("ab🎉\ud83c\udf89\ud800\x00\u202e🏴\U000e0067\U000e0062\U000e007f", max_size=6),
        max_size=8,
    )
)
def test_text_cleaned_in_pieces_is_the_text_cleaned_whole(parts: list[str]) -> None:
    cleaner = StreamCleaner()
    streamed = "".join(cleaner.feed(part) for part in parts) + cleaner.flush()
    assert streamed == clean("".join(parts))


def test_endless_hidden_text_is_not_held_back_for_ever() -> None:
    cleaner = StreamCleaner()
    assert len("".join(cleaner.feed("\U000e0061") for _ in range(500))) > 400


# -- the size of events

SMALL = SizeLimits(event_bytes=60, reply_bytes=10_000)
BLANKS_BYTES = 24  # blank lines in a row may count with the event before or after them


@given(
    st.lists(st.sampled_from(["data: x", "event: y", ": c", "data: " + "z" * 20, ""]), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 500)),
    st.text(alphabet="ab", max_size=5),
)
def test_the_gate_passes_complete_lines_and_counts_events_however_they_are_cut(
    lines: list[str], line_end: str, places: list[int], rest: str
) -> None:
    data = "".join(line + line_end for line in lines).encode()
    sent = data + rest.encode()
    edges = [0, *sorted(place % (len(sent) + 1) for place in places), len(sent)]
    largest = size = 0
    for line in [*lines, rest]:
        size = size + len(line) + len(line_end) if line else 0
        largest = max(largest, size)
    try:
        gate = _EventGate(SMALL, as_events=True)
        passed = b"".join(gate.feed(sent[begin:end]) for begin, end in pairwise(edges))
    except RejectedReply:
        assert largest > SMALL.event_bytes - BLANKS_BYTES
    else:
        assert passed == data
        assert largest <= SMALL.event_bytes + BLANKS_BYTES

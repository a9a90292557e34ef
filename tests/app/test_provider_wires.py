"""The three wires through the real SDKs: what is sent, and what is heard of what streams back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.chat import FinishReason, TokensReported, ToolCallReady
from app.domain.provider_errors import ConnectionLost
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    KEY,
    SHORT_ONCE_BEGUN,
    WEATHER,
    WIRES,
    Heard,
    hear,
    hear_all,
    provider,
    request,
)
from tests.fakes.loopback_script import (
    Step,
    finish,
    no_marker,
    pieces,
    raw,
    stall,
    text,
    thinking,
    tool_call,
    usage,
)
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(server: Loopback, wire: str, *steps: Step, **more: Any) -> Heard:
    server.reply(*steps)
    return hear(provider(wire, address(server, wire)), request(**more))


def address(server: Loopback, wire: str) -> str:
    return server.url if wire == MESSAGES else server.v1


def test_words_arrive_as_they_were_said_and_the_reply_is_complete(
    server: Loopback, wire: str
) -> None:
    heard = ask(server, wire, text("Grüße, 世界 👩‍🔬", chunks=4), usage(12, 5))
    assert heard.error is None
    assert heard.text == "Grüße, 世界 👩‍🔬"
    assert heard.finished is not None
    assert heard.finished.reason is FinishReason.STOP


def test_the_key_goes_as_a_bearer_and_nothing_tells_about_this_machine(
    server: Loopback, wire: str
) -> None:
    ask(server, wire, text("yes"))
    sent = server.posts[0].headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert sent["accept-encoding"] == "identity"
    assert sent["user-agent"] == "Commonplace"
    assert not [name for name in sent if name.startswith("x-stainless")]


def test_without_a_key_no_authorization_is_sent(server: Loopback, wire: str) -> None:
    server.reply(text("yes"))
    heard = hear(provider(wire, address(server, wire), key=""))
    assert heard.text == "yes"
    assert not {"authorization", "x-api-key"} & server.posts[0].headers.keys()


def test_thinking_arrives_apart_from_the_answer(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, thinking("let me see", chunks=3), text("Done"))
    assert (heard.thinking, heard.text) == ("let me see", "Done")


def test_parallel_tool_calls_with_split_arguments_arrive_whole_and_in_order(
    server: Loopback, wire: str
) -> None:
    heard = ask(
        server,
        wire,
        tool_call("weather", {"city": "Bern"}, call_id="call_a", pieces=7),
        tool_call("weather", {"city": "Zürich"}, call_id="call_b", pieces=3),
        tools=(WEATHER,),
    )
    assert [(call.call_id, json.loads(call.arguments)) for call in heard.calls] == [
        ("call_a", {"city": "Bern"}),
        ("call_b", {"city": "Zürich"}),
    ]
    assert heard.finished is not None
    assert heard.finished.reason is FinishReason.TOOL_CALLS


def test_a_hundred_tool_calls_at_once_all_arrive(server: Loopback, wire: str) -> None:
    calls = [tool_call("weather", {"n": n}, call_id=f"call_{n}") for n in range(100)]
    heard = ask(server, wire, *calls)
    assert [call.call_id for call in heard.calls] == [f"call_{n}" for n in range(100)]


def test_broken_arguments_are_handed_on_as_received(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, tool_call("weather", '{"city": "Be', pieces=2))
    assert heard.calls == [ToolCallReady("call_1", "weather", '{"city": "Be')]


def test_usage_includes_cached_tokens(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("Hello"), usage(1000, 20, cached=900))
    assert heard.tokens == TokensReported(1000, 20, 900)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("length", FinishReason.LENGTH),
        ("filtered", FinishReason.FILTERED),
        ("context", FinishReason.CONTEXT_EXCEEDED),
        ("refused", FinishReason.REFUSED),
        ("brand_new_reason", FinishReason.UNKNOWN),
    ],
)
def test_a_reply_ended_by_the_server_is_complete_and_says_why(
    server: Loopback, wire: str, said: str, reason: FinishReason
) -> None:
    heard = ask(server, wire, text("Half an"), finish(said))
    assert heard.error is None
    assert heard.text == "Half an"
    assert heard.finished is not None
    expected = {
        (RESPONSES, "context"): FinishReason.UNKNOWN,  # it has no such word
        (RESPONSES, "refused"): FinishReason.STOP,  # it says so by other events
        (RESPONSES, "brand_new_reason"): FinishReason.STOP,
        (MESSAGES, "filtered"): FinishReason.REFUSED,
    }.get((wire, said), reason)
    assert heard.finished.reason is expected


def test_a_long_reply_arrives_whole(server: Loopback, wire: str) -> None:
    words = "word and more words " * 10_000
    heard = ask(server, wire, text(words, chunks=2000))
    assert heard.text == words
    assert heard.finished is not None


def test_bytes_that_come_one_by_one_make_the_same_words(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, thinking("hm é"), text("Ça va 🎉?", chunks=3), pieces(1))
    assert (heard.thinking, heard.text) == ("hm é", "Ça va 🎉?")


def test_surrogates_nul_and_hidden_text_are_made_storable(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("a\ud800b\x00c\U000e0068\U000e0069d"))
    assert heard.text == "a\ufffdb\u2400c[hidden: hi]d"


def test_a_pair_of_surrogates_split_over_two_deltas_is_one_character(
    server: Loopback, wire: str
) -> None:
    heard = ask(server, wire, text("\ud83c\udf89", chunks=2))
    assert heard.text == "🎉"


def test_what_was_held_back_comes_at_the_end(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, thinking("hm \ud83c"), text("a black flag 🏴"))
    assert (heard.thinking, heard.text) == ("hm \ufffd", "a black flag 🏴")
    cut = ask(server, wire, text("a black flag 🏴"), no_marker())
    assert cut.text == "a black flag 🏴"


def test_comments_pings_and_unknown_events_are_passed_over(server: Loopback, wire: str) -> None:
    strange = b': keepalive\n\nevent: brand_new\ndata: {"type": "brand_new", "x": [1]}\n\n'
    noise = strange + b'event: odd\ndata: [1, 2]\n\nevent: odd\ndata: "text"\n\ndata: null\n\n'
    heard = ask(server, wire, raw(noise), text("still here"), raw(noise))
    assert heard.error is None
    assert heard.text == "still here"


def test_two_questions_reuse_one_connection(server: Loopback, wire: str) -> None:
    server.always(text("yes"), usage(1, 1))
    heard = hear_all(provider(wire, address(server, wire)), [request(), request()])
    assert [each.text for each in heard] == ["yes", "yes"]
    assert not server.posts[0].hung_up.is_set()


def chat_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> Step:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return raw(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())


def call_delta(**fields: Any) -> Step:
    return chat_chunk({"tool_calls": [fields]})


def test_tool_call_deltas_without_index_or_id_are_put_together_by_order(server: Loopback) -> None:
    heard = ask(
        server,
        CHAT,
        call_delta(function={"name": "weather", "arguments": '{"a"'}),
        call_delta(function={"arguments": ": 1}"}),
        call_delta(function={"name": "time", "arguments": {"b": 2}}),
    )
    assert [(call.name, json.loads(call.arguments)) for call in heard.calls] == [
        ("weather", {"a": 1}),
        ("time", {"b": 2}),
    ]
    assert len({call.call_id for call in heard.calls}) == 2


def test_calls_that_all_have_index_0_are_told_apart_by_their_ids(server: Loopback) -> None:
    heard = ask(
        server,
        CHAT,
        call_delta(index=0, id="x", function={"name": "weather", "arguments": "{}"}),
        call_delta(index=0, id="y", function={"name": "time", "arguments": "{}"}),
    )
    assert [(call.call_id, call.name) for call in heard.calls] == [("x", "weather"), ("y", "time")]


def test_reasoning_is_found_under_every_name(server: Loopback) -> None:
    heard = ask(
        server,
        CHAT,
        chat_chunk({"reasoning": "one "}),
        chat_chunk({"reasoning_content": "two "}),
        chat_chunk(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "3"}]}]}
        ),
        chat_chunk({"content": [{"type": "text", "text": "said"}]}),
    )
    assert (heard.thinking, heard.text) == ("one two 3", "said")


def test_a_refusal_in_its_own_field_is_shown_and_named(server: Loopback) -> None:
    heard = ask(server, CHAT, chat_chunk({"refusal": "I cannot"}))
    assert heard.text == "I cannot"
    assert heard.finished is not None
    assert heard.finished.reason is FinishReason.REFUSED


def test_odd_choices_do_no_harm(server: Loopback) -> None:
    odd: list[Any] = [None, [], [None], [{}], [{"delta": None}], "text"]
    strange: list[Any] = [[None], [{}], "text", [{"index": 5}]]
    odd += [[{"delta": {"tool_calls": each}}] for each in strange]
    noise = b"".join(f"data: {json.dumps({'choices': each})}\n\n".encode() for each in odd)
    heard = ask(server, CHAT, raw(noise), text("fine"))
    assert (heard.text, heard.calls, heard.error) == ("fine", [], None)


def test_anthropic_deltas_for_a_block_that_never_began_are_shown(server: Loopback) -> None:
    stray = {
        "type": "content_block_delta",
        "index": 7,
        "delta": {"type": "text_delta", "text": "x"},
    }
    bare = {"type": "content_block_delta", "delta": None}
    data = "".join(f"event: e\ndata: {json.dumps(each)}\n\n" for each in (stray, bare))
    heard = ask(server, MESSAGES, raw(data.encode()))
    assert heard.text == "x"
    assert heard.finished is not None


def test_what_comes_after_the_terminal_marker_is_not_waited_for_in_vain(server: Loopback) -> None:
    final = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    server.reply(raw(f"data: {json.dumps(final)}\n\n".encode()), stall(), no_marker())
    heard = hear(provider(CHAT, server.v1, times=SHORT_ONCE_BEGUN))
    assert heard.text == "yes"
    assert heard.finished is not None
    assert heard.error is None


def test_a_reply_that_ends_without_its_marker_is_interrupted(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("Half an"), no_marker())
    assert heard.text == "Half an"
    assert heard.finished is None
    assert isinstance(heard.error, ConnectionLost)
    assert len(server.posts) == 1

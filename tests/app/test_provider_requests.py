"""What is sent over the three wires: a conversation in each vendor's words, and no more than needed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.conversations import (
    Attachment,
    Image,
    Message,
    RawReply,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.providers.anthropic_messages import Messages
from app.providers.openai_chat import ChatCompletions
from app.providers.openai_responses import Responses
from app.providers.streaming import Wire
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    WEATHER,
    WIRES,
    Heard,
    hear,
    hear_all,
    message,
    provider,
    request,
    user,
)
from tests.fakes.loopback_script import Step, error, json_reply, text, thinking, tool_call
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def ask(server: Loopback, wire: str, *steps: Step, **more: Any) -> Heard:
    server.reply(*steps)
    return hear(provider(wire, address(server, wire)), request(**more))


def address(server: Loopback, wire: str) -> str:
    return server.url if wire == MESSAGES else server.v1


CALL = ToolCall("call_1", "weather", '{"city": "Bern"}')
RESULT = ToolResult("call_1", "weather", "Sunny")


def round_trip(server: Loopback, wire: str) -> tuple[Message, ...]:
    """A tool round as the exchange loop stores it: question, reply with its raw form, result."""
    heard = ask(server, wire, thinking("hm", signature="Zm9v+/=="), text("I look"), tool_call(
        "weather", {"city": "Bern"}
    ))  # fmt: skip
    assert heard.finished is not None
    blocks = (Thinking("hm"), Text("I look"), CALL)
    reply = message(Role.ASSISTANT, *blocks, raw=heard.finished.raw, model="testing:test-model")
    return user("How is the weather?"), reply, message(Role.TOOL, RESULT)


def sent_after(server: Loopback, wire: str, **more: Any) -> Any:
    messages = round_trip(server, wire)
    server.reply(text("Sunny"))
    asked = request(*messages, **({"tools": (WEATHER,)} | more))
    hear(provider(wire, address(server, wire)), asked)
    body = server.posts[-1].body
    return body["input"] if wire == RESPONSES else body["messages"]


def test_anthropic_thinking_goes_back_byte_for_byte_to_the_same_model(server: Loopback) -> None:
    sent = sent_after(server, MESSAGES)
    assert sent[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "Zm9v+/=="}
    assert [block["type"] for block in sent[1]["content"]] == ["thinking", "text", "tool_use"]
    assert sent[2]["content"][0]["tool_use_id"] == "call_1"


def test_anthropic_thinking_is_dropped_when_the_model_changes(server: Loopback) -> None:
    sent = sent_after(server, MESSAGES, model="test-model-mini")
    assert [block["type"] for block in sent[1]["content"]] == ["text", "tool_use"]


def test_responses_items_go_back_with_their_encrypted_reasoning(server: Loopback) -> None:
    sent = sent_after(server, RESPONSES)
    assert [item.get("type") for item in sent] == [
        None, "reasoning", "message", "function_call", "function_call_output",
    ]  # fmt: skip
    assert sent[1]["encrypted_content"] == "Zm9v+/=="
    assert server.posts[-1].body["store"] is False


def test_responses_reasoning_is_dropped_when_the_model_changes(server: Loopback) -> None:
    sent = sent_after(server, RESPONSES, model="test-model-mini")
    assert [item.get("type") for item in sent] == [
        None, None, "function_call", "function_call_output",
    ]  # fmt: skip


def test_a_reasoning_item_without_content_is_left_out_with_the_ids_that_need_it() -> None:
    items = [{"type": "reasoning", "id": "rs_1"}, {"type": "message", "id": "msg_1", "x": 1}]
    reply = message(
        Role.ASSISTANT, Text("hi"), raw=RawReply("openai.responses", "o:m", json.dumps(items))
    )
    body = Responses().body(request(user("a"), reply, user("b"), model="m"), "o")
    assert body["input"][1] == {"type": "message", "x": 1}


def test_chat_sends_back_reasoning_and_signatures_of_a_tool_call(server: Loopback) -> None:
    sent = sent_after(server, CHAT)
    assert sent[1]["reasoning_content"] == "hm"
    assert sent[1]["tool_calls"][0]["id"] == "call_1"
    assert sent[2] == {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_with_a_lone_surrogate_can_go_back(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("a\ud800b"), tool_call("weather", {"x": "\udc00"}))
    assert heard.finished is not None
    call = ToolCall("call_1", "weather", "{}")
    reply = message(Role.ASSISTANT, Text("ab"), call, raw=heard.finished.raw)
    server.reply(text("yes"))
    sent = request(user("a"), reply, message(Role.TOOL, RESULT), tools=(WEATHER,))
    again = hear(provider(wire, address(server, wire)), sent)
    assert (again.text, again.error) == ("yes", None)
    assert "a\\ufffdb" in json.dumps(server.posts[-1].body)


def test_chat_sends_the_minimum(server: Loopback) -> None:
    ask(server, CHAT, text("yes"))
    assert server.posts[0].body == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_what_was_asked_for_is_sent(server: Loopback) -> None:
    wishes = {"system": "Be brief", "temperature": 0.5, "max_output_tokens": 99}
    ask(server, CHAT, text("yes"), **wishes)
    ask(server, RESPONSES, text("yes"), **wishes)
    ask(server, MESSAGES, text("yes"), **wishes)
    chat, responses, messages = (seen.body for seen in server.posts)
    assert (chat["messages"][0]["content"], chat["temperature"], chat["max_tokens"]) == (
        "Be brief", 0.5, 99,
    )  # fmt: skip
    assert (responses["instructions"], responses["max_output_tokens"]) == ("Be brief", 99)
    assert (messages["system"][0]["text"], messages["max_tokens"]) == ("Be brief", 99)


def test_effort_becomes_what_each_wire_calls_it(server: Loopback) -> None:
    effort = {"reasoning_effort": "high", "temperature": 0.5}
    bodies = [
        ChatCompletions().body(request(model="m", **effort), "p"),
        Responses().body(request(model="gpt-5", **effort), "p"),
        Messages().body(request(model="claude-opus-4-1", **effort), "p"),
        Messages().body(request(model="claude-opus-4-7", **effort), "p"),
    ]
    assert bodies[0]["reasoning_effort"] == "high"
    assert bodies[1]["reasoning"] == {"summary": "auto", "effort": "high"}
    assert bodies[2]["thinking"]["type"] == "enabled"
    assert bodies[2]["max_tokens"] > bodies[2]["thinking"]["budget_tokens"]
    assert bodies[3]["output_config"] == {"effort": "high"}
    assert "temperature" not in bodies[3]


def test_models_without_reasoning_are_not_asked_for_it() -> None:
    body = Responses().body(request(model="gpt-4o-mini", reasoning_effort="low"), "openai")
    assert not {"include", "reasoning"} & body.keys()


def test_the_cache_ends_before_the_last_question(server: Loopback) -> None:
    turns = (user("one"), message(Role.ASSISTANT, Text("two")), user("three"))
    body = Messages().body(request(*turns, system="Be brief"), "p")
    marked = [bool(item["content"][-1].get("cache_control")) for item in body["messages"]]
    assert marked == [False, True, False]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}


def test_the_cache_breakpoints_can_be_placed_elsewhere() -> None:
    turns = (user("one"), message(Role.ASSISTANT, Text("two")), user("three"))
    body = Messages(cache_points=lambda _: (2,)).body(request(*turns), "p")
    assert "cache_control" in body["messages"][2]["content"][-1]


def test_a_conversation_that_begins_with_the_model_gets_a_user_message_before_it() -> None:
    body = Messages().body(request(message(Role.ASSISTANT, Text("hi")), user("yes")), "p")
    assert [item["role"] for item in body["messages"]] == ["user", "assistant", "user"]


BODIES: dict[str, Wire] = {CHAT: ChatCompletions(), RESPONSES: Responses(), MESSAGES: Messages()}


@pytest.mark.parametrize("wire", WIRES)
def test_calls_without_results_and_results_without_calls_are_not_sent(wire: str) -> None:
    orphan = message(Role.TOOL, ToolResult("nobody", "weather", "lost result"))
    dangling = message(Role.ASSISTANT, Text("I look"), ToolCall("call_9", "weather", "{}"))
    body = BODIES[wire].body(request(user("a"), orphan, dangling, user("b")), "p")
    shown = json.dumps(body)
    assert "lost result" not in shown
    assert "call_9" not in shown
    assert "I look" in shown


@pytest.mark.parametrize("wire", WIRES)
def test_broken_arguments_go_back_as_an_object(wire: str) -> None:
    call = message(Role.ASSISTANT, ToolCall("call_1", "weather", '{"city'))
    sent = request(user("a"), call, message(Role.TOOL, RESULT), tools=(WEATHER,))
    body = BODIES[wire].body(sent, "p")
    assert "malformed_arguments" in json.dumps(body)


@pytest.mark.parametrize("wire", WIRES)
def test_the_last_request_offers_no_tool_and_still_explains_the_calls(wire: str) -> None:
    call = message(Role.ASSISTANT, CALL)
    sent = request(user("a"), call, message(Role.TOOL, RESULT), tools=(WEATHER,), tools_closed=True)
    body = BODIES[wire].body(sent, "p")
    if wire == MESSAGES:  # refuses calls among the messages where no tools are defined
        assert (len(body["tools"]), body["tool_choice"]) == (1, {"type": "none"})
    else:
        assert "tools" not in body
    assert "call_1" in json.dumps(body)


def test_anthropic_is_told_of_calls_in_words_where_no_tools_are_offered() -> None:
    call = message(Role.ASSISTANT, Text("I look"), CALL)
    body = Messages().body(request(user("a"), call, message(Role.TOOL, RESULT)), "p")
    assert "tool_use" not in json.dumps(body)
    assert body["messages"][2]["content"][0]["text"] == "[The tool weather answered: Sunny]"


def test_a_server_that_refuses_tools_hears_of_earlier_calls_in_words(server: Loopback) -> None:
    refusal = {"error": {"message": "test-model does not support tools", "type": "api_error"}}
    server.reply(json_reply(refusal, 400)).reply(text("Sunny."))
    call = message(Role.ASSISTANT, CALL)
    sent = request(user("a"), call, message(Role.TOOL, RESULT), tools=(WEATHER,))
    assert hear(provider(CHAT, server.v1), sent).text == "Sunny."
    roles = [each["role"] for each in server.posts[-1].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert "tools" not in server.posts[-1].body


@pytest.mark.parametrize("wire", WIRES)
def test_attachments_are_quoted_and_unreadable_images_named(wire: str) -> None:
    asked = message(
        Role.USER, Text("Look"), Attachment("a.txt", "text/plain", text="content"),
        Image("b.png", "image/png"),
    )  # fmt: skip
    shown = json.dumps(BODIES[wire].body(request(asked), "p"))
    assert 'attachment name=\\"a.txt\\"' in shown.replace("\\\\", "\\")
    assert "[image: b.png]" in shown


@pytest.mark.parametrize("make", [ChatCompletions, Responses, Messages])
def test_images_are_sent_as_base64(make: Any) -> None:
    asked = message(Role.USER, Text("Look"), Image("b.png", "image/png", "hash"))
    body = make(lambda _image: b"\x89PNG").body(request(asked), "p")
    assert "iVBORw==" in json.dumps(body)


def test_neighbouring_messages_of_one_speaker_become_one() -> None:
    body = ChatCompletions().body(request(user("one"), user("two")), "p")
    assert body["messages"] == [{"role": "user", "content": "one\n\ntwo"}]


@pytest.mark.parametrize(
    ("parameter", "body", "status"),
    [
        ("stream_options", {"detail": [{"loc": ["body", "stream_options"], "type": "extra_forbidden", "msg": "Extra inputs are not permitted: stream_options"}]}, 422),
        ("stream_options", {"error": {"message": "Unrecognized request argument supplied: stream_options", "type": "invalid_request_error"}}, 400),
        ("tools", {"error": {"message": "test-model does not support tools", "type": "api_error"}}, 400),
        ("temperature", {"error": {"message": "Unsupported value", "param": "temperature", "code": "unsupported_value"}}, 400),
    ],
)  # fmt: skip
def test_a_parameter_the_server_does_not_know_is_left_out_once_and_remembered(
    server: Loopback, parameter: str, body: dict[str, Any], status: int
) -> None:
    server.reply(json_reply(body, status)).always(text("yes"))
    asked = request(tools=(WEATHER,), temperature=0.3)
    heard = hear_all(provider(CHAT, server.v1), [asked, asked])
    assert [each.text for each in heard] == ["yes", "yes"]
    assert [parameter in seen.body for seen in server.posts] == [True, False, False]


def test_a_complaint_about_something_else_is_not_retried(server: Loopback) -> None:
    heard = ask(server, CHAT, error(400, "invalid_request_error", message="messages: too odd"))
    assert "does not accept the request" in str(heard.error)
    assert len(server.posts) == 1


def test_responses_drops_what_an_organisation_may_not_have(server: Loopback) -> None:
    said = "Your organization must be verified to generate reasoning summaries."
    server.reply(error(400, "invalid_request_error", message=said, param="reasoning.summary"))
    heard = ask(server, RESPONSES, text("yes"), model="gpt-5", reasoning_effort="low")
    assert heard.text == "yes"
    assert server.posts[-1].body["reasoning"] == {"effort": "low"}


def test_kind_openai_elsewhere_falls_back_to_chat_when_there_are_no_responses(
    server: Loopback,
) -> None:
    server.reply(json_reply({"detail": "Not Found"}, 404)).always(text("yes"))
    heard = hear_all(provider(RESPONSES, server.v1), [request(), request()])
    assert [each.text for each in heard] == ["yes", "yes"]
    assert [seen.wire for seen in server.posts] == [RESPONSES, CHAT, CHAT]


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_recalled_goes_inside_the_question_and_changes_no_message(wire: str) -> None:
    turns = (user("one"), message(Role.ASSISTANT, Text("two")), user("three"))
    asked = request(*turns, recalled="<recalled-1>quoted</recalled-1>", asked_at=2)
    body = BODIES[wire].body(asked, "p")
    sent = body["input"] if wire == RESPONSES else body["messages"]
    last = json.dumps(sent[-1])
    assert last.index("quoted") < last.index("three")
    assert "quoted" not in json.dumps(sent[:-1])
    assert asked.messages == turns


def test_the_cache_ends_before_the_question_in_every_tool_round(server: Loopback) -> None:
    asked = (user("one"), message(Role.ASSISTANT, Text("two")), user("three"))
    said = message(Role.ASSISTANT, CALL)
    rounds = (*asked, said, message(Role.TOOL, RESULT), user("Answer now."))
    body = Messages().body(request(*rounds, recalled="quoted", asked_at=2, tools=(WEATHER,)), "p")
    marked = [bool(item["content"][-1].get("cache_control")) for item in body["messages"]]
    assert marked[:3] == [False, True, False]
    assert "quoted" in json.dumps(body["messages"][2])
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}

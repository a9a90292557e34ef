"""Requests over the three wires: conversations in each vendor's form, and the minimum of parameters."""

import base64
import json
import re
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
from app.domain.errors import ImagesRefused
from app.domain.records.presets import Effort
from app.providers.wire.anthropic_messages import MessagesWire
from app.providers.wire.chat_completions import ChatCompletionsWire
from app.providers.wire.reader import Wire
from app.providers.wire.responses import ResponsesWire
from tests.fakes.files import png
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import (
    WEATHER,
    ask,
    hear,
    hear_all,
    message,
    provider,
    request,
    user,
)
from tests.fakes.loopback_script import error, json_reply, text, thinking, tool_call
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES

CALL = ToolCall("call_1", "weather", '{"city": "Bern"}')
RESULT = ToolResult("call_1", "weather", "Sunny")


def round_trip(server: Loopback, wire: str) -> tuple[Message, ...]:
    """A tool round as the exchange loop stores it: question, reply with its raw form, result."""
    call = tool_call("weather", {"city": "Bern"})
    heard = ask(server, wire, thinking("hm", signature="Zm9v+/=="), text("I look"), call)
    blocks = (Thinking("hm"), Text("I look"), CALL)
    reply = message(Role.ASSISTANT, *blocks, raw=heard.finished.raw, model="testing:test-model")
    return user("How is the weather?"), reply, message(Role.TOOL, RESULT)


def sent_after(server: Loopback, wire: str, **more: Any) -> Any:
    messages = round_trip(server, wire)
    ask(server, wire, text("Sunny"), asked=request(*messages, **({"tools": (WEATHER,)} | more)))
    body = server.posts[-1].body
    return body["input"] if wire == RESPONSES else body["messages"]


BODIES: dict[str, Wire] = {
    CHAT: ChatCompletionsWire(), RESPONSES: ResponsesWire(), MESSAGES: MessagesWire(),
}  # fmt: skip
IMAGES = {"copy": png()}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "Zm9v+/=="}


def types(items: list[dict[str, Any]]) -> list[Any]:
    return [item.get("type") for item in items]


def test_a_raw_reply_is_sent_back_to_the_same_model_only(server: Loopback) -> None:
    sent = sent_after(server, MESSAGES)
    assert sent[1]["content"][0] == THINKING
    assert types(sent[1]["content"]) == ["thinking", "text", "tool_use"]
    assert sent[2]["content"][0]["tool_use_id"] == "call_1"
    sent = sent_after(server, MESSAGES, model="test-model-mini")
    assert types(sent[1]["content"]) == ["text", "tool_use"]
    sent = sent_after(server, RESPONSES)
    calls = ["function_call", "function_call_output"]
    assert types(sent) == [None, "reasoning", "message", *calls]
    assert sent[1]["encrypted_content"] == "Zm9v+/=="
    assert server.posts[-1].body["store"] is False
    sent = sent_after(server, RESPONSES, model="test-model-mini")
    assert types(sent) == [None, None, *calls]
    sent = sent_after(server, CHAT)
    assert sent[1]["reasoning_content"] == "hm"
    assert sent[1]["tool_calls"][0]["id"] == "call_1"
    assert sent[2] == {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"}


@pytest.mark.parametrize("said", ["<think>hm</think>\n\nI look", "hm\n</think>\n\nI look"])
@pytest.mark.parametrize("chunks", [1, 9])
def test_thinking_in_tags_is_not_sent_back(
    server: Loopback, wire: str, said: str, chunks: int
) -> None:
    heard = ask(server, wire, text(said, chunks=chunks), tool_call("weather", {"city": "Bern"}))
    assert (heard.text, heard.thinking) == ("I look", "hm")
    reply = message(
        Role.ASSISTANT, Thinking("hm"), Text("I look"), CALL,
        raw=heard.finished.raw, model="testing:test-model",
    )  # fmt: skip
    asked = request(user("a"), reply, message(Role.TOOL, RESULT), tools=(WEATHER,))
    sent = json.dumps(BODIES[wire].body(asked, "testing:test-model"))
    assert "I look" in sent
    assert "hm" not in sent


def test_a_reasoning_item_without_content_is_omitted_with_the_ids_that_refer_to_it() -> None:
    items = [{"type": "reasoning", "id": "rs_1"}, {"type": "message", "id": "msg_1", "x": 1}]
    reply = message(
        Role.ASSISTANT, Text("hi"), raw=RawReply("openai.responses", "o:m", json.dumps(items))
    )
    body = ResponsesWire().body(request(user("a"), reply, user("b"), model="m"), "o:m")
    assert body["input"][1] == {"type": "message", "x": 1}


def test_a_raw_reply_with_a_lone_surrogate_can_be_sent_back(server: Loopback, wire: str) -> None:
    heard = ask(server, wire, text("a\ud800b"), tool_call("weather", {"x": "\udc00"}))
    call = ToolCall("call_1", "weather", "{}")
    reply = message(Role.ASSISTANT, Text("ab"), call, raw=heard.finished.raw)
    sent = request(user("a"), reply, message(Role.TOOL, RESULT), tools=(WEATHER,))
    again = ask(server, wire, text("yes"), asked=sent)
    assert (again.text, again.error) == ("yes", None)
    assert "a\\ufffdb" in json.dumps(server.posts[-1].body)


def test_the_minimum_and_options_are_sent_in_the_form_of_each_wire(server: Loopback) -> None:
    ask(server, CHAT, text("yes"))
    assert server.posts[0].body == {
        "model": "test-model", "messages": [{"role": "user", "content": "Hello"}], "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    options: dict[str, Any] = {"system": "Be brief", "temperature": 0.5, "max_output_tokens": 99}
    asked = request(user("one"), **options)
    chat, responses, messages = (BODIES[wire].body(asked, "p:m") for wire in BODIES)
    system = {"role": "system", "content": "Be brief"}
    assert chat["messages"] == [system, {"role": "user", "content": "one"}]
    assert (chat["temperature"], chat["max_tokens"]) == (0.5, 99)
    assert (responses["instructions"], responses["max_output_tokens"]) == ("Be brief", 99)
    assert (messages["system"][0]["text"], messages["max_tokens"]) == ("Be brief", 99)


def test_reasoning_effort_has_the_form_of_each_wire_and_model() -> None:
    def body(wire: str, model: str, effort: Effort = Effort.HIGH) -> dict[str, Any]:
        asked = request(model=model, reasoning_effort=effort, max_output_tokens=99)
        return BODIES[wire].body(asked, "p:m")

    assert body(CHAT, "m")["reasoning_effort"] == "high"
    assert body(RESPONSES, "gpt-5")["reasoning"] == {"summary": "auto", "effort": "high"}
    assert not {"include", "reasoning"} & body(RESPONSES, "gpt-4o-mini").keys()
    older, newer = body(MESSAGES, "claude-opus-4-1"), body(MESSAGES, "claude-opus-4-7")
    assert older["thinking"]["type"] == "enabled"
    assert older["max_tokens"] > older["thinking"]["budget_tokens"]
    assert newer["output_config"] == {"effort": "high"}
    assert newer["thinking"]["type"] == "adaptive"
    without = body(MESSAGES, "claude-opus-4-7", Effort.NONE)
    assert (without["thinking"], without["output_config"]) == (
        {"type": "disabled"},
        {"effort": "low"},
    )
    assert not {"thinking", "output_config"} & body(MESSAGES, "claude-opus-4-1", Effort.NONE).keys()
    limits = {"max_tokens", "max_completion_tokens"}
    assert limits & body(CHAT, "openai/gpt-5").keys() == {"max_completion_tokens"}
    assert limits & body(CHAT, "gpt-oss:20b").keys() == {"max_tokens"}


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("claude-opus-4-20250514", 32_000), ("claude-opus-4-1", 32_000),
     ("claude-opus-4-1-20250805", 32_000), ("claude-opus-4-5", 32_768),
     ("claude-sonnet-4-5-20250929", 32_768)],
)  # fmt: skip
def test_thinking_and_answer_stay_within_the_output_of_the_model(model: str, tokens: int) -> None:
    body = BODIES[MESSAGES].body(request(model=model, reasoning_effort=Effort.HIGH), "p:m")
    assert body["max_tokens"] == tokens


def test_a_conversation_never_begins_with_the_assistant() -> None:
    body = MessagesWire().body(request(message(Role.ASSISTANT, Text("hi")), user("yes")), "p:m")
    assert [item["role"] for item in body["messages"]] == ["user", "assistant", "user"]


def test_calls_without_results_and_results_without_calls_are_not_sent(wire: str) -> None:
    orphan = message(Role.TOOL, ToolResult("nobody", "weather", "lost result"))
    dangling = message(Role.ASSISTANT, Text("I look"), ToolCall("call_9", "weather", "{}"))
    shown = json.dumps(BODIES[wire].body(request(user("a"), orphan, dangling, user("b")), "p:m"))
    assert "lost result" not in shown
    assert "call_9" not in shown
    assert "I look" in shown


def test_malformed_arguments_are_sent_as_an_object(wire: str) -> None:
    call = message(Role.ASSISTANT, ToolCall("call_1", "weather", '{"city'))
    sent = request(user("a"), call, message(Role.TOOL, RESULT), tools=(WEATHER,))
    assert "malformed_arguments" in json.dumps(BODIES[wire].body(sent, "p:m"))


def test_without_tools_anthropic_gets_calls_as_text() -> None:
    call = message(Role.ASSISTANT, Text("I look"), CALL)
    body = MessagesWire().body(request(user("a"), call, message(Role.TOOL, RESULT)), "p:m")
    assert "tool_use" not in json.dumps(body)
    assert body["messages"][2]["content"][0]["text"] == "[The tool weather answered: Sunny]"


def test_a_server_that_rejects_tools_gets_calls_as_text(server: Loopback) -> None:
    refusal = {"error": {"message": "test-model does not support tools", "type": "api_error"}}
    server.reply(json_reply(refusal, 400)).reply(text("Sunny."))
    call = message(Role.ASSISTANT, CALL)
    sent = request(user("a"), call, message(Role.TOOL, RESULT), tools=(WEATHER,))
    assert hear(provider(CHAT, server.v1), sent).text == "Sunny."
    roles = [each["role"] for each in server.posts[-1].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert "tools" not in server.posts[-1].body


def test_attachments_are_quoted_and_unreadable_images_named(wire: str) -> None:
    asked = message(
        Role.USER, Text("Look"), Attachment("a.txt", "text/plain", text="content"),
        Image("b.png", "image/png"),
    )  # fmt: skip
    shown = json.dumps(BODIES[wire].body(request(asked), "p:m"))
    (tag,) = re.findall("<attachment-[0-9a-f]{12}>", shown)
    assert tag.replace("<", "</") in shown
    assert "> content" in shown
    assert "[image: b.png]" in shown


def test_images_of_the_user_are_sent_first_in_a_vendors_form(server: Loopback, wire: str) -> None:
    image = Image("b.png", "image/png", "original", sent_hash="copy")
    asked = message(Role.USER, Text("Look"), image)
    drawn = message(Role.ASSISTANT, image)
    heard = ask(server, wire, text("yes"), asked=request(asked, drawn, user("And?"), images=IMAGES))
    assert heard.text == "yes"
    body = server.posts[-1].body
    sent = body["input"] if wire == RESPONSES else body["messages"]
    data = base64.b64encode(IMAGES["copy"]).decode()
    url = f"data:image/png;base64,{data}"
    assert sent[0]["content"][0] == {
        CHAT: {"type": "image_url", "image_url": {"url": url}},
        RESPONSES: {"type": "input_image", "image_url": url, "detail": "auto"},
        MESSAGES: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
    }[wire]  # fmt: skip
    assert sent[0]["content"][1]["text"] == "Look"
    assert json.dumps(sent).count(data) == 1, "an assistant's image is sent as its name"
    assert "[image: b.png]" in json.dumps(sent[1])
    repeated = BODIES[wire].body(request(asked, drawn, user("And?"), images=IMAGES), "p:m")
    assert repeated["input" if wire == RESPONSES else "messages"] == sent


@pytest.mark.parametrize(
    ("said", "status"),
    [("Invalid content type. image_url is only supported by certain models.", 400),
     ("No endpoints found that support image input", 404),
     ("image input is not supported - hint: you may need to provide the mmproj", 500),
     ("messages[0].content must be a string", 400)],
)  # fmt: skip
def test_a_refusal_of_images_says_so_and_is_kept(server: Loopback, said: str, status: int) -> None:
    server.always(json_reply({"error": {"message": said}}, status))
    asked = request(message(Role.USER, Image("b.png", "image/png", "copy")), images=IMAGES)
    client = provider(CHAT, server.v1)
    assert client.sees_images("test-model") is None
    (heard,) = hear_all(client, [asked])
    assert isinstance(heard.error, ImagesRefused)
    assert client.sees_images("test-model") is False
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("parameter", "body", "status"),
    [
        ("stream_options", {"detail": [{"loc": ["body", "stream_options"], "type": "extra_forbidden", "msg": "Extra inputs are not permitted: stream_options"}]}, 422),
        ("stream_options", {"error": {"message": "Unrecognized request argument supplied: stream_options", "type": "invalid_request_error"}}, 400),
        ("tools", {"error": {"message": "test-model does not support tools", "type": "api_error"}}, 400),
        ("temperature", {"error": {"message": "Unsupported value", "param": "temperature", "code": "unsupported_value"}}, 400),
    ],
)  # fmt: skip
def test_a_rejected_parameter_is_omitted_from_then_on(
    server: Loopback, parameter: str, body: dict[str, Any], status: int
) -> None:
    server.reply(json_reply(body, status)).always(text("yes"))
    asked = request(tools=(WEATHER,), temperature=0.3)
    heard = hear_all(provider(CHAT, server.v1), [asked, asked])
    assert [each.text for each in heard] == ["yes", "yes"]
    assert [parameter in seen.body for seen in server.posts] == [True, False, False]


def test_a_nested_parameter_is_omitted_alone(server: Loopback) -> None:
    said = "Your organization must be verified to generate reasoning summaries."
    server.reply(error(400, "invalid_request_error", message=said, param="reasoning.summary"))
    heard = ask(
        server, RESPONSES, text("yes"), asked=request(model="gpt-5", reasoning_effort=Effort.LOW)
    )
    assert heard.text == "yes"
    assert server.posts[-1].body["reasoning"] == {"effort": "low"}


def test_a_message_after_one_without_a_reply_changes_nothing_before_it(wire: str) -> None:
    lists = []
    for turns in ((user("one"),), (user("one"), message(Role.ASSISTANT), user("two"))):
        body = BODIES[wire].body(request(*turns), "p:m")
        lists.append(body["input"] if wire == RESPONSES else body["messages"])
    first, second = lists
    assert second[: len(first)] == first
    assert [each["role"] for each in second[-3:]] == ["user", "assistant", "user"]


def test_a_last_round_keeps_the_tools_and_forbids_calls(wire: str) -> None:
    body = BODIES[wire].body(request(tools=(WEATHER,), tools_disabled=True), "p:m")
    assert body["tools"] == BODIES[wire].body(request(tools=(WEATHER,)), "p:m")["tools"]
    assert body["tool_choice"] == ({"type": "none"} if wire == MESSAGES else "none")


def test_the_cache_ends_before_the_question_in_every_tool_round() -> None:
    asked = (user("one"), message(Role.ASSISTANT, Text("two")), user("three"))
    body = MessagesWire().body(request(*asked, system="Be brief", history_count=2), "p:m")
    assert cached(body) == [False, True, False]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    rounds = (*asked, message(Role.ASSISTANT, CALL), message(Role.TOOL, RESULT))
    sent = request(*rounds, history_count=2, tools=(WEATHER,))
    body = MessagesWire().body(sent, "p:m")
    assert cached(body) == [False, True, False, False, True]
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}


def cached(body: dict[str, Any]) -> list[bool]:
    return [bool(item["content"][-1].get("cache_control")) for item in body["messages"]]

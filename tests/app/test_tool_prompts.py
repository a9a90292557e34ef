"""Tool calls in prompts: pairs are never split, on any wire, and long results are cut."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.tools.cutting import with_cut_results
from app.domain.chat import ChatRequest, ToolSchema
from app.domain.conversations import Block, Message, Role, Text, ToolCall, ToolResult
from app.domain.ids import ConversationId, MessageId
from app.providers.anthropic_messages import Messages
from app.providers.openai_chat import ChatCompletions
from app.providers.openai_responses import Responses

AT = datetime(2024, 3, 1, tzinfo=UTC)
TOOLS = (ToolSchema("look", "Looks.", '{"type":"object","properties":{}}'),)


def told(messages: list[tuple[Role, tuple[Block, ...]]]) -> tuple[Message, ...]:
    return tuple(
        Message(MessageId(n), f"u{n}", ConversationId(1), None, role, blocks, AT)
        for n, (role, blocks) in enumerate(messages)
    )


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of a question, rounds of one to three calls, and mostly an answer."""
    messages: list[tuple[Role, tuple[Block, ...]]] = []
    for turn in range(draw(st.integers(1, 6))):
        words = Text("q" * draw(st.integers(1, 400)))
        messages.append((Role.USER, (words,)))
        for place in range(draw(st.integers(0, 3))):
            ids = [f"c{turn}_{place}_{n}" for n in range(draw(st.integers(1, 3)))]
            asked = tuple(ToolCall(each, "look", "{}") for each in ids)
            size = draw(st.integers(0, 800))
            found = tuple(ToolResult(each, "look", "r" * size) for each in ids)
            messages += [(Role.ASSISTANT, asked), (Role.TOOL, found)]
        if draw(st.booleans()):
            messages.append((Role.ASSISTANT, (Text("answer"),)))
    return told(messages)


@given(conversations(), st.data())
def test_no_wire_sends_a_call_without_its_result(
    path: tuple[Message, ...], data: st.DataObject
) -> None:
    begins_at = data.draw(st.integers(0, len(path) - 1))
    ends_at = data.draw(st.integers(begins_at + 1, len(path)))
    sent = with_cut_results(path, 100)[begins_at:ends_at]
    called = {b.call_id for m in sent for b in m.blocks if isinstance(b, ToolCall)}
    answered = {b.call_id for m in sent for b in m.blocks if isinstance(b, ToolResult)}
    for wire in WIRES:
        pairs = pairs_in(wire.body(ChatRequest("m", sent, tools=TOOLS), "p"))
        assert pairs == dict.fromkeys(called & answered, True)


WIRES = (ChatCompletions(), Responses(), Messages())


def pairs_in(body: dict[str, Any]) -> dict[str, bool]:
    """Return for each call whether its result comes before anybody else speaks."""
    items = body["input"] if "input" in body else body["messages"]
    pairs: dict[str, bool] = {}
    for place, item in enumerate(items):
        parts = item["content"] if isinstance(item.get("content"), list) else []
        ids = [call["id"] for call in item.get("tool_calls") or ()]
        ids += [part["id"] for part in parts if part.get("type") == "tool_use"]
        if item.get("type") == "function_call":
            ids.append(item["call_id"])
        rest = json.dumps(items[place + 1 : place + 1 + 6])
        pairs |= {each: f'"{each}"' in rest for each in ids}
    return pairs


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [("{}", "offset=100"), ('{"offset": 250}', "offset=350"), ("[]", "Ask for less")],
)
def test_a_cut_result_says_its_size_and_how_to_read_on(arguments: str, hint: str) -> None:
    path = told(
        [
            (Role.ASSISTANT, (ToolCall("c", "look", arguments),)),
            (Role.TOOL, (ToolResult("c", "look", "y" * 1234),)),
        ]
    )
    (_, cut) = with_cut_results(path, 100)
    (block,) = cut.blocks
    assert isinstance(block, ToolResult)
    assert block.text.startswith("y" * 100 + "\n[Cut: 100 of 1,234 characters")
    assert hint in block.text


def test_what_is_short_enough_is_left_as_it_is() -> None:
    path = told([(Role.TOOL, (ToolResult("c", "look", "y" * 100),))])
    assert with_cut_results(path, 100) == path

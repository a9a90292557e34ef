"""Our own export and back: nothing is lost on the way, in JSON or JSONL."""

import io
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TextIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.conversations import (
    Attachment,
    Block,
    Conversation,
    Image,
    Message,
    RawReply,
    Role,
    Text,
    Thinking,
    TitleOrigin,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, MessageId
from app.domain.text import clean
from app.domain.transfer import CarriedSummary, ImportedConversation, Skipped
from app.transfer.importers.commonplace import read_commonplace
from app.transfer.markdown import write_markdown
from app.transfer.own_format import Exported, write_json, write_jsonl

_NOW = datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=UTC)
_Writer = Callable[[TextIO, Iterable[Exported], datetime], int]
_WRITERS = pytest.mark.parametrize("write", [write_json, write_jsonl])


def _message(number: int, parent: int | None, role: Role, *blocks: Block) -> Message:
    return Message(
        id=MessageId(number),
        uid=f"uid-{number}",
        conversation_id=ConversationId(1),
        parent_id=None if parent is None else MessageId(parent),
        role=role,
        blocks=blocks,
        created_at=_NOW + timedelta(seconds=number),
        model="anthropic:claude" if role is Role.ASSISTANT else None,
        raw=RawReply("anthropic.messages", "anthropic:claude", '[{"type":"text"}]')
        if role is Role.ASSISTANT
        else None,
    )


def _conversation(**more: object) -> Conversation:
    fields: dict[str, object] = {
        "id": ConversationId(1), "uid": "uid-c", "title": "Of boats", "source": "chatgpt",
        "title_origin": TitleOrigin.SUMMARISER, "created_at": _NOW, "updated_at": _NOW,
        "visible_leaf_id": MessageId(6), "pinned": True, "archived": True, "private": True,
        "model": "openai:gpt-9",
    }  # fmt: skip
    return Conversation(**(fields | more))  # type: ignore[arg-type]


def _exported() -> Exported:
    messages = (
        _message(1, None, Role.SYSTEM, Text("Be kind.")),
        _message(2, 1, Role.USER, Text("Look"), Image("a.png", "image/png", "ff00")),
        _message(3, 2, Role.ASSISTANT, Thinking("Hm"), ToolCall("c1", "look", '{"a": 1}')),
        _message(4, 3, Role.TOOL, ToolResult("c1", "look", "```\nseen", True, 12)),
        _message(5, 2, Role.ASSISTANT, Text("An older answer")),
        _message(
            6, 4, Role.ASSISTANT, Text("Grüße, 東京 🙂 <b>"), Attachment("n", "t/x", 5, "words")
        ),
    )
    summaries = (
        CarriedSummary("Of the whole.", "extractive", _NOW),
        CarriedSummary("Of one exchange.", "openai:gpt-9", _NOW, "uid-6"),
    )
    return Exported(_conversation(), messages, ("sea", "wood"), summaries)


def _back(write: _Writer, *exported: Exported) -> list[ImportedConversation | Skipped]:
    out = io.StringIO()
    assert write(out, exported, _NOW) == len(exported)
    return list(read_commonplace(io.BytesIO(out.getvalue().encode()), "export"))


@_WRITERS
def test_a_conversation_comes_back_with_all_it_had(write: _Writer) -> None:
    exported = _exported()
    (back,) = _back(write, exported)
    assert isinstance(back, ImportedConversation)
    row = exported.conversation
    assert (back.uid, back.source_id, back.source) == (row.uid, row.uid, "commonplace")
    assert (back.title, back.title_origin) == (row.title, row.title_origin)
    assert (back.created_at, back.updated_at) == (row.created_at, row.updated_at)
    assert (back.pinned, back.archived, back.private) == (True, True, True)
    assert (back.model, back.first_source, back.visible_leaf) == (row.model, "chatgpt", "uid-6")
    assert (back.tags, back.summaries) == (exported.tags, exported.summaries)
    assert back.summary == "Of the whole."
    assert back.skipped == ()


@_WRITERS
def test_every_message_comes_back_as_it_was(write: _Writer) -> None:
    exported = _exported()
    (back,) = _back(write, exported)
    assert isinstance(back, ImportedConversation)
    uids = {message.id: message.uid for message in exported.messages}
    for message, found in zip(exported.messages, back.messages, strict=True):
        assert found.source_id == message.uid
        assert found.parent == (uids[message.parent_id] if message.parent_id else None)
        assert (found.role, found.blocks) == (message.role, message.blocks)
        assert (found.created_at, found.model) == (message.created_at, message.model)
        assert found.raw == message.raw


@_WRITERS
def test_several_conversations_and_empty_ones_come_back_in_order(write: _Writer) -> None:
    empty = Exported(_conversation(uid="uid-e", title="Empty", visible_leaf_id=None), ())
    back = _back(write, empty, _exported(), empty)
    assert [each.title for each in back if isinstance(each, ImportedConversation)] == [
        "Empty",
        "Of boats",
        "Empty",
    ]


@_WRITERS
def test_an_export_of_nothing_is_read_as_nothing(write: _Writer) -> None:
    assert _back(write) == []


def test_the_order_of_messages_stays_even_when_a_clock_jumped() -> None:
    first = _message(1, None, Role.USER, Text("one"))
    late = _message(-90, 1, Role.ASSISTANT, Text("an hour before"))
    last = _message(3, 1, Role.ASSISTANT, Text("three"))
    (back,) = _back(write_json, Exported(_conversation(), (first, last, late)))
    assert isinstance(back, ImportedConversation)
    assert [message.source_id for message in back.messages] == ["uid-1", "uid-3", "uid--90"]


def test_json_is_one_document_and_jsonl_one_a_line() -> None:
    out = io.StringIO()
    write_json(out, [_exported(), _exported()], _NOW)
    document = json.loads(out.getvalue())
    assert (document["format"], document["version"]) == ("commonplace", 1)
    assert len(document["conversations"]) == 2
    lines = io.StringIO()
    write_jsonl(lines, [_exported(), _exported()], _NOW)
    parsed = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert parsed[0]["format"] == "commonplace"
    assert parsed[1:] == document["conversations"]


def test_a_block_of_a_later_version_is_named_and_the_rest_goes_on() -> None:
    out = io.StringIO()
    write_json(out, [_exported()], _NOW)
    text = out.getvalue().replace('"type": "thinking"', '"type": "hologram"')
    (back,) = read_commonplace(io.BytesIO(text.encode()), "export")
    assert isinstance(back, ImportedConversation)
    assert back.skipped == (
        Skipped("'Of boats', message uid-3", "a block of the kind 'hologram' in it is not known"),
    )
    assert back.messages[2].parent == "uid-2"


_WORDS = st.text(max_size=20).map(clean)
_BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, _WORDS),
    st.builds(Thinking, _WORDS),
    st.builds(ToolCall, _WORDS, _WORDS, _WORDS),
    st.builds(ToolResult, _WORDS, _WORDS, _WORDS, st.booleans(), st.none() | st.integers(0, 9999)),
    st.builds(Image, _WORDS, _WORDS, st.none() | _WORDS),
    st.builds(Attachment, _WORDS, _WORDS, st.none() | st.integers(0, 9**12), _WORDS),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.lists(_BLOCKS, max_size=3), st.integers(0, 99)), max_size=6))
def test_any_tree_of_any_blocks_round_trips(made: list[tuple[list[Block], int]]) -> None:
    messages = tuple(
        _message(number, place % number if number > 1 else None, Role.USER, *blocks)
        for number, (blocks, place) in enumerate(made, 1)
    )
    messages = tuple(
        message
        if message.parent_id != 0
        else _message(message.id, None, Role.USER, *message.blocks)
        for message in messages
    )
    (back,) = _back(write_json, Exported(_conversation(visible_leaf_id=None), messages))
    assert isinstance(back, ImportedConversation)
    assert [(each.source_id, each.blocks) for each in back.messages] == [
        (each.uid, each.blocks) for each in messages
    ]


def test_markdown_tells_the_shown_path_with_reasoning_and_tools_folded() -> None:
    out = io.StringIO()
    write_markdown(out, _exported())
    told = out.getvalue()
    assert told.startswith(
        "# Of boats\n\n*Begun 2026-05-04 03:02 UTC; from chatgpt; tags: sea, wood*\n\n> Of the whole.\n"
    )
    assert "older answer" not in told
    assert "## Assistant (2026-05-04 03:02, anthropic:claude)" in told
    assert "<details><summary>Reasoning</summary>\n\nHm\n\n</details>" in told
    assert "````\n```\nseen\n````" in told
    assert "*Picture: a.png*" in told

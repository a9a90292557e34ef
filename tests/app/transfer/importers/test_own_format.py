"""The JSON and JSONL formats: complete round trips, damaged blocks, and the Markdown format."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
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
from app.domain.transfer import ImportedConversation, PortableSummary, Skipped
from app.transfer.exporting import write_markdown
from app.transfer.importers.commonplace import read_commonplace
from app.transfer.json_format import Exported, ExportHead, write_json

_NOW = datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=UTC)
_RAW = RawReply("anthropic.messages", "anthropic:claude", '[{"type":"text"}]')
_CONVERSATION = Conversation(
    id=ConversationId(1), uid="uid-c", title="Of boats", source="chatgpt",
    title_origin=TitleOrigin.SUMMARISER, created_at=_NOW, updated_at=_NOW,
    visible_leaf_id=MessageId(6), pinned=True, archived=True, private=True, model="openai:gpt-9",
)  # fmt: skip
_FORMS = pytest.mark.parametrize("as_lines", [False, True])


def _message(number: int, parent: int | None, role: Role, *blocks: Block) -> Message:
    is_reply = role is Role.ASSISTANT
    return Message(
        MessageId(number), f"uid-{number}", ConversationId(1), MessageId(parent) if parent else None, role,
        blocks, _NOW + timedelta(seconds=number), model="anthropic:claude" if is_reply else None,
        raw=_RAW if is_reply else None,
    )  # fmt: skip


_EXPORTED = Exported(
    _CONVERSATION,
    (
        _message(1, None, Role.SYSTEM, Text("Be kind.")),
        _message(2, 1, Role.USER, Text("Look"), Image("a.png", "image/png", "ff00")),
        _message(3, 2, Role.ASSISTANT, Thinking("Hm"), ToolCall("c1", "look", '{"a": 1}')),
        _message(4, 3, Role.TOOL, ToolResult("c1", "look", "```\nseen", True, 12)),
        _message(5, 2, Role.ASSISTANT, Text("An older answer")),
        _message(
            6, 4, Role.ASSISTANT, Text("Grüße, 東京 🙂 <b>"), Attachment("n", "t/x", 5, "words")
        ),
    ),
    ("sea", "wood"),
    (
        PortableSummary("Of the whole.", "extractive", _NOW),
        PortableSummary("Of one exchange.", "openai:gpt-9", _NOW, "uid-6"),
    ),
)
_EMPTY = Exported(replace(_CONVERSATION, uid="uid-e", title="Empty", visible_leaf_id=None), ())


def _written(*exported: Exported, as_lines: bool = False) -> str:
    out = io.StringIO()
    assert write_json(out, exported, ExportHead(_NOW), as_lines=as_lines) == len(exported)
    return out.getvalue()


def document() -> dict[str, Any]:
    """Return an export with a conversation of every kind of block."""
    found: dict[str, Any] = json.loads(_written(_EXPORTED))
    return found


def _read(text: str) -> list[ImportedConversation | Skipped]:
    return list(read_commonplace(io.BytesIO(text.encode()), "export"))


def _one(text: str) -> ImportedConversation:
    (found,) = _read(text)
    assert isinstance(found, ImportedConversation)
    return found


@_FORMS
def test_conversations_and_messages_round_trip(as_lines: bool) -> None:
    back, empty = _read(_written(_EXPORTED, _EMPTY, as_lines=as_lines))
    assert isinstance(back, ImportedConversation)
    row = _CONVERSATION
    assert (back.uid, back.source_id, back.source) == (row.uid, row.uid, "commonplace")
    assert (back.title, back.title_origin) == (row.title, row.title_origin)
    assert (back.created_at, back.updated_at) == (row.created_at, row.updated_at)
    assert (back.pinned, back.archived, back.private) == (True, True, True)
    assert (back.model, back.first_source, back.visible_leaf) == (row.model, "chatgpt", "uid-6")
    assert (back.tags, back.summaries) == (_EXPORTED.tags, _EXPORTED.summaries)
    assert back.skipped == ()
    uids = {message.id: message.uid for message in _EXPORTED.messages}
    for message, found in zip(_EXPORTED.messages, back.messages, strict=True):
        assert found.source_id == message.uid
        assert found.parent == (uids[message.parent_id] if message.parent_id else None)
        assert (found.role, found.blocks) == (message.role, message.blocks)
        assert (found.created_at, found.model) == (message.created_at, message.model)
        assert found.raw == message.raw
    assert isinstance(empty, ImportedConversation)
    assert (empty.title, empty.messages) == ("Empty", ())
    assert _read(_written(as_lines=as_lines)) == []


def test_json_is_a_document_and_jsonl_has_a_line_per_conversation() -> None:
    whole = json.loads(_written(_EXPORTED, _EMPTY))
    lines = list(map(json.loads, _written(_EXPORTED, _EMPTY, as_lines=True).splitlines()))
    assert (whole["format"], whole["version"]) == ("commonplace", 1)
    assert lines[0]["format"] == "commonplace"
    assert lines[1:] == whole["conversations"]
    assert len(lines) == 3


def test_a_block_of_an_unknown_kind_is_reported() -> None:
    back = _one(_written(_EXPORTED).replace('"type": "thinking"', '"type": "hologram"'))
    assert back.skipped == (
        Skipped("'Of boats', message uid-3", "it contains a block of the unknown kind 'hologram'"),
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


@given(
    st.lists(
        st.tuples(st.lists(_BLOCKS, max_size=3), st.integers(0, 99), st.integers(-99, 99)),
        max_size=6,
    )
)
def test_any_tree_of_blocks_keeps_its_order(made: list[tuple[list[Block], int, int]]) -> None:
    messages = tuple(
        replace(
            _message(number, place % number or None, Role.USER, *blocks),
            created_at=_NOW + timedelta(seconds=at),
        )
        for number, (blocks, place, at) in enumerate(made, 1)
    )
    back = _one(_written(replace(_EMPTY, messages=messages)))
    parents = [each.parent_id and f"uid-{each.parent_id}" for each in messages]
    assert [(each.source_id, each.blocks) for each in back.messages] == [
        (each.uid, each.blocks) for each in messages
    ]
    assert [each.parent for each in back.messages] == parents


def test_markdown_contains_the_visible_path_with_collapsed_tools() -> None:
    out = io.StringIO()
    write_markdown(out, _EXPORTED)
    text = out.getvalue()
    assert text.startswith(
        "# Of boats\n\n*Started 2026-05-04 03:02 UTC; from chatgpt; tags: sea, wood*\n\n> Of the whole.\n"
    )
    assert "older answer" not in text
    assert "## Assistant (2026-05-04 03:02, anthropic:claude)" in text
    assert "<details><summary>Reasoning</summary>\n\nHm\n\n</details>" in text
    assert "````\n```\nseen\n````" in text
    assert "*Image: a.png*" in text

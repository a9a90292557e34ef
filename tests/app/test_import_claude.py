"""Claude's exports: rows of old, trees of 2026, and what stands beside them."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Attachment, Image, Role, Text, Thinking, ToolCall, ToolResult
from app.domain.transfer import CarriedSummary, ImportedConversation, Skipped
from app.transfer.importers import read_export
from app.transfer.importers.claude import read_claude

_DATA = Path(__file__).parents[1] / "data" / "imports"


@pytest.fixture(scope="module")
def found() -> list[ImportedConversation | Skipped]:
    return list(read_export(_DATA / "claude_kinds.json"))


@pytest.fixture(scope="module")
def tree(found: list[ImportedConversation | Skipped]) -> ImportedConversation:
    assert isinstance(found[0], ImportedConversation)
    return found[0]


def _one(*messages: dict[str, Any], **header: object) -> ImportedConversation:
    value = {"uuid": "c", "name": "n", "created_at": "2025-01-01T00:00:00Z", **header}
    text = json.dumps([value | {"chat_messages": list(messages)}])
    (imported,) = read_claude(io.BytesIO(text.encode()), "conversations.json")
    assert isinstance(imported, ImportedConversation)
    return imported


def _message(uuid: str, text: str = "words", **more: object) -> dict[str, Any]:
    return {"uuid": uuid, "sender": "human", "text": text, "content": [], **more}


def test_a_conversation_keeps_name_summary_and_times(tree: ImportedConversation) -> None:
    assert (tree.source, tree.source_id, tree.title) == ("claude", "c-tree", "Choosing a boat")
    assert tree.summary == "Which boat suits a family of four."
    assert tree.updated_at is not None
    assert tree.summaries == (CarriedSummary(tree.summary, "claude", tree.updated_at),)
    assert tree.created_at == datetime(2026, 2, 3, 10, tzinfo=UTC)
    assert tree.messages[0].created_at == datetime(2026, 2, 3, 10, 1, 0, 123456, tzinfo=UTC)


def test_the_newest_branch_is_shown_and_the_abandoned_one_kept(tree: ImportedConversation) -> None:
    parents = {message.source_id: message.parent for message in tree.messages}
    assert parents == {
        "m1": None, "m2": "m1", "m3": "m2", "m4": "m3", "m3b": "m2", "m4b": "m3b",
    }  # fmt: skip
    assert tree.visible_leaf == "m4b"


def test_a_named_leaf_is_shown_instead_of_the_newest() -> None:
    imported = _one(
        _message("a", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
        _message("b", parent_message_uuid="a", created_at="2025-01-02T00:00:00Z"),
        _message("c", parent_message_uuid="a", created_at="2025-01-03T00:00:00Z"),
        current_leaf_message_uuid="b",
    )
    assert imported.visible_leaf == "b"


def test_blocks_are_preferred_to_the_flat_text(tree: ImportedConversation) -> None:
    assert tree.messages[1].blocks == (
        Thinking("Small crew, calm water."),
        ToolCall("toolu_1", "web_search", '{"query": "family dinghy"}'),
        ToolResult(
            "toolu_1", "web_search", "Dinghies\nhttps://example.org/dinghy\nA wide hull forgives."
        ),
        Text("A wide dinghy."),
    )


def test_a_large_paste_is_an_attachment_with_its_text(tree: ImportedConversation) -> None:
    assert tree.messages[0].blocks[1:] == (
        Attachment(
            "Pasted text", "text/plain", 5321, "Four people, two of them small.\nLakes, no sea."
        ),
        Image("lake.png", "image/png"),
    )


def test_a_file_listed_twice_is_taken_once() -> None:
    imported = _one(
        _message(
            "a",
            attachments=[{"file_name": "n.txt", "file_size": 3, "extracted_content": "abc"}],
            files=[{"file_name": "n.txt"}],
        )
    )
    assert imported.messages[0].blocks == (
        Text("words"),
        Attachment("n.txt", "text/plain", 3, "abc"),
    )


def test_an_unknown_block_is_named_and_a_budget_note_is_not(tree: ImportedConversation) -> None:
    assert tree.skipped == (
        Skipped(
            "'Choosing a boat', message m4b", "a block of the kind 'hologram' in it is not known"
        ),
    )


def test_an_old_export_is_a_row(found: list[ImportedConversation | Skipped]) -> None:
    old = found[1]
    assert isinstance(old, ImportedConversation)
    assert [(message.source_id, message.parent, message.role) for message in old.messages] == [
        ("o1", None, Role.USER),
        ("o2", "o1", Role.ASSISTANT),
    ]
    assert old.messages[0].blocks == (Text("What is a gaff rig?"),)


def test_an_empty_conversation_is_named(found: list[ImportedConversation | Skipped]) -> None:
    assert found[2] == Skipped("'Nothing'", "it is empty")


def test_a_message_of_an_unknown_sender_is_named_and_the_row_goes_on() -> None:
    imported = _one(_message("a"), _message("b", sender="ghost"), _message("c"))
    assert [(each.source_id, each.parent) for each in imported.messages] == [
        ("a", None),
        ("c", "a"),
    ]
    assert imported.skipped[0].why == "its sender is 'ghost'"


def test_a_second_message_of_the_same_id_is_named() -> None:
    imported = _one(_message("a", "one"), _message("a", "two"))
    assert [each.blocks for each in imported.messages] == [(Text("one"),)]
    assert imported.skipped[0].why == "there is another message of the same id"


def test_a_message_without_an_id_is_placed_where_it_stands() -> None:
    imported = _one(_message("a"), {"sender": "assistant", "text": "b"}, _message("c"))
    assert [each.parent for each in imported.messages] == [None, "a", "at-1"]


def test_a_broken_message_leaves_its_place_to_the_next() -> None:
    text = (
        '[{"uuid": "c", "chat_messages": [{"uuid": "a", "sender": "human", "text": "x"},'
        '{"uuid": "b", "sender": "human" "text": "y"}, {"uuid": "d", "sender": "human", "text": "z",'
        '"parent_message_uuid": "b"}]}]'
    )
    (imported,) = read_claude(io.BytesIO(text.encode()), "x")
    assert isinstance(imported, ImportedConversation)
    assert [(each.source_id, each.parent) for each in imported.messages] == [
        ("a", None),
        ("d", "a"),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [("plain", "plain"), ([{"type": "text", "text": "in parts"}], "in parts"), (None, ""), (3, "")],
)
def test_a_tool_result_may_be_text_parts_or_nothing(content: object, told: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "name": "n", "content": content}
    imported = _one(_message("a", content=[block | {"is_error": True}]))
    assert imported.messages[0].blocks == (ToolResult("t", "n", told, is_error=True),)

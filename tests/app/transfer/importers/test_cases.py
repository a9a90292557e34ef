"""The ChatGPT and Claude importers: a table of exports and of what is imported from them.

Each line of `tests/data/imports/cases.json` has an export, or the name of a file beside it, and the
imported values in the form of `app.domain.codec`.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from app.domain import codec
from app.domain.conversations import Attachment, Image, ToolResult
from app.domain.transfer import ImportedConversation
from app.transfer.importers.chatgpt import read_chatgpt
from app.transfer.importers.claude import read_claude

_DATA = Path(__file__).parents[3] / "data" / "imports"
_CASES = json.loads((_DATA / "cases.json").read_text(encoding="utf-8"))
_READERS = {"chatgpt": read_chatgpt, "claude": read_claude}


@pytest.mark.parametrize("case", _CASES, ids=[each["id"] for each in _CASES])
def test_an_export_is_imported_completely(case: dict[str, Any]) -> None:
    where = case.get("file", "conversations.json")
    export = case.get("input")
    if export is None:
        content = (_DATA / where).read_bytes()
    else:  # a text is JSON with damage
        content = (export if isinstance(export, str) else json.dumps(export)).encode()
    found = _READERS[case["format"]](io.BytesIO(content), where)
    assert [json.loads(codec.dumps(each)) for each in found] == case["expected"]


@pytest.mark.parametrize(
    ("title", "kept"),
    [("New chat", ""), ("新聊天", ""), ("Chat about new tea", "Chat about new tea")],
)
def test_a_title_that_the_exporter_gives_by_itself_is_none(title: str, kept: str) -> None:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Tea?"]}}
    export = [{"id": "c", "title": title, "mapping": {"m": {"id": "m", "message": message}}}]
    (found,) = read_chatgpt(io.BytesIO(json.dumps(export).encode()), "conversations.json")
    assert isinstance(found, ImportedConversation)
    assert found.title == kept


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ({"content_type": "citable_code_output", "output_str": "42"}, "42"),
        ({"content_type": "code", "language": "python", "text": "6 * 7"}, "6 * 7"),
        (
            {
                "content_type": "computer_output",
                "state": {"title": "Ohms", "url": "https://ohms.example"},
                "screenshot": {
                    "content_type": "image_asset_pointer",
                    "asset_pointer": "sediment://file_1",
                },
            },
            "Ohms\nhttps://ohms.example",
        ),
        (
            {
                "content_type": "super_widget",
                "widgets": {"navlinks": [{"title": "Ohms", "url": "https://ohms.example"}]},
            },
            "- [Ohms](https://ohms.example)",
        ),
        ({"content_type": "computer_initialize_state", "a": "b"}, None),
        ({"content_type": "of_the_future", "a": "b"}, ""),
    ],
)
def test_results_of_chatgpt_are_kept_or_named(content: dict[str, Any], kept: str | None) -> None:
    asked = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Ohm?"]}}
    tool = {"author": {"role": "tool", "name": "web"}, "content": content}
    nodes = {"u": {"message": asked}, "t": {"message": tool, "parent": "u"}}
    export = json.dumps([{"id": "c", "mapping": nodes}]).encode()
    (found,) = read_chatgpt(io.BytesIO(export), "conversations.json")
    assert isinstance(found, ImportedConversation)
    texts = [
        block.text
        for each in found.messages
        for block in each.blocks
        if isinstance(block, ToolResult)
    ]
    assert texts == ([kept] if kept else [])
    assert len(found.skipped) == (kept == "")


def test_files_of_claude_with_the_same_name_are_all_kept() -> None:
    pasted = [{"file_name": "paste.txt", "extracted_content": each} for each in ("one", "two")]
    shown = [{"file_kind": "image", "file_uuid": each, "file_name": "image.png"} for each in "12"]
    result = {"type": "tool_result", "content": [
        {"type": "local_resource", "file_path": "/outputs/a.docx"},
        {"type": "image", "source": {"media_type": "image/png"}},
    ]}  # fmt: skip
    message = {"uuid": "m", "sender": "human", "content": [result], "attachments": pasted,
               "files": [*shown, {"file_name": "paste.txt"}]}  # fmt: skip
    export = json.dumps([{"uuid": "c", "chat_messages": [message]}]).encode()
    (found,) = read_claude(io.BytesIO(export), "conversations.json")
    assert isinstance(found, ImportedConversation)
    kinds = [type(each) for each in found.messages[0].blocks]
    assert kinds == [ToolResult, Image, Attachment, Attachment, Image, Image]
    assert "a.docx" in str(found.messages[0].blocks[0])


def test_files_of_claude_that_an_attachment_does_not_repeat_are_kept() -> None:
    pasted = [{"file_name": "", "extracted_content": "one"}, {"file_name": "a.png"}]
    names = ("", "a.png", "a.png")
    files = [
        {"file_kind": "image", "file_uuid": f"f{number}", "file_name": name}
        for number, name in enumerate(names)
    ]
    message = {"uuid": "m", "sender": "human", "attachments": pasted, "files": files}
    export = json.dumps([{"uuid": "c", "chat_messages": [message]}]).encode()
    (found,) = read_claude(io.BytesIO(export), "conversations.json")
    assert isinstance(found, ImportedConversation)
    kinds = [type(each) for each in found.messages[0].blocks]
    assert kinds == [Attachment, Image, Image, Image]

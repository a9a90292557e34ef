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
from app.domain.transfer import ImportedConversation
from app.transfer.importers.chatgpt import read_chatgpt
from app.transfer.importers.claude import read_claude

_DATA = Path(__file__).parents[1] / "data" / "imports"
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

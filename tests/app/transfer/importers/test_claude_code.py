"""The Claude Code importer: chains that are no chains, and what the program adds to a session."""

import json
from pathlib import Path
from typing import Any

from app.domain.conversations import Image, Role, Text, ToolCall, ToolResult
from app.domain.transfer import ImportedConversation
from app.transfer.importers import read_export
from tests.fakes.export_files import shown_blocks


def _record(kind: str, name: str, parent: str | None, **more: object) -> dict[str, Any]:
    return {"sessionId": "s1", "cwd": "/home/me/heron", "isSidechain": False, "type": kind,
            "uuid": name, "parentUuid": parent, "timestamp": "2026-08-01T10:00:00Z", **more}  # fmt: skip


def _asked(name: str, parent: str | None, content: object) -> dict[str, Any]:
    return _record("user", name, parent, message={"role": "user", "content": content})


def _reply(name: str, parent: str, message: str, *content: object, model: str = "claude") -> Any:
    return _record(
        "assistant", name, parent,
        message={"id": message, "role": "assistant", "model": model, "content": content,
                 "stop_reason": "end_turn"},
    )  # fmt: skip


def _read(folder: Path, *records: dict[str, Any]) -> ImportedConversation:
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    (found,) = read_export(path)
    assert isinstance(found, ImportedConversation)
    return found


def _call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}


def _result(number: int, content: object) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": f"t{number}", "content": content}]


def test_results_of_calls_at_the_same_time_are_on_theshown_blocks(tmp_path: Path) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
    }
    text = {"type": "text", "text": "one"}
    found = _read(
        tmp_path, _asked("u1", None, "Read both."),
        _reply("a1", "u1", "m1", _call(1)), _reply("a2", "a1", "m1", _call(2)),
        _asked("r1", "a1", _result(1, [text, image])), _asked("r2", "a2", _result(2, "two")),
        _reply("a3", "r2", "m2", {"type": "text", "text": "Done."}),
    )  # fmt: skip
    kinds = [type(each) for each in shown_blocks(found)]
    assert kinds == [Text, ToolCall, ToolCall, ToolResult, Image, ToolResult, Text]
    assert [each.text for each in shown_blocks(found) if isinstance(each, ToolResult)] == [
        "one",
        "two",
    ]


def _queued(text: str) -> dict[str, Any]:
    prompt = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
    return _record("attachment", "", None, attachment=prompt)


def test_a_prompt_that_was_queued_is_kept_between_the_records_of_a_reply(tmp_path: Path) -> None:
    found = _read(
        tmp_path, _asked("u1", None, "Ohm?"), _queued("And the volt?"),
        _queued("<task-notification>\n<task-id>a</task-id></task-notification>"),
        _reply("a1", "u1", "m1", _call(1)), _asked("r1", "a1", _result(1, "one")),
        _reply("a2", "a1", "m1", _call(2)), _queued("Ampere?"),
        _asked("r2", "a2", _result(2, "two")),
        _reply("a3", "r2", "m2", {"type": "text", "text": "Units."}),
    )  # fmt: skip
    texts = [getattr(each, "text", "") for each in shown_blocks(found)]
    assert texts == ["Ohm?", "And the volt?", "", "", "one", "Ampere?", "two", "Units."]


def test_what_the_program_writes_is_neither_the_users_nor_the_models(tmp_path: Path) -> None:
    said = "Why does <command-name>/x</command-name> appear?"
    found = _read(
        tmp_path, _asked("u1", None, said), _asked("u2", "u1", "<bash-input>ls</bash-input>"),
        _asked("u3", "u2", "<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>"),
        _reply("a1", "u3", "m1", {"type": "text", "text": "API Error"}, model="<synthetic>"),
    )  # fmt: skip
    assert shown_blocks(found) == [Text(said), Text("! ls")]
    assert all(each.role is Role.USER for each in found.messages)
    assert len(found.skipped) == 1


def test_a_summary_of_another_session_is_no_title(tmp_path: Path) -> None:
    other = {"type": "summary", "summary": "Other", "leafUuid": "x"}
    own = {"type": "summary", "summary": "About ohms", "leafUuid": "u1"}
    assert _read(tmp_path, other, _asked("u1", None, "Ohm?")).title == ""
    assert _read(tmp_path, other, _asked("u1", None, "Ohm?"), own).title == "About ohms"

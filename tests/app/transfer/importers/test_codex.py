"""The Codex importer: rollouts that continue others, of older versions, and the app's database."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from app.domain.conversations import Image, Role, Text, ToolCall
from tests.fakes.export_files import read_parts, shown_blocks, write

_ROOT, _REVISION = "019a0000-0000-7000-8000-000000000001", "019a0000-0000-7000-8000-000000000002"


def _meta(ordinal: int, thread: str, **more: object) -> dict[str, Any]:
    payload = {"id": thread, "originator": "codex-tui", "cwd": "/home/me/heron", **more}
    return {"timestamp": "2026-09-01T10:00:00Z", "ordinal": ordinal, "type": "session_meta",
            "payload": payload}  # fmt: skip


def _said(ordinal: int, role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": each} for each in texts]
    return _item(ordinal, type="message", role=role, content=content)


def _item(ordinal: int, **payload: object) -> dict[str, Any]:
    return {"timestamp": f"2026-09-01T10:0{ordinal}:00Z", "ordinal": ordinal,
            "type": "response_item", "payload": payload}  # fmt: skip


def _rollout(home: Path, name: str, records: list[dict[str, Any]]) -> Path:
    path = home / "sessions" / "2026" / "09" / "01" / f"rollout-2026-09-01T10-00-00-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    return path


_SESSION = [
    _meta(0, _ROOT), _said(1, "user", "Ohm?"), _said(2, "assistant", "A unit."),
    _said(3, "user", "Volt?"), _said(4, "assistant", "Another."),
]  # fmt: skip


def test_a_rollout_continues_the_one_that_it_names_from_there(tmp_path: Path) -> None:
    whole = _rollout(tmp_path, _ROOT, _SESSION)
    base = {"thread_id": _ROOT, "end_ordinal_exclusive": 3, "end_byte_offset": 1}
    part = _rollout(
        tmp_path,
        f"{_ROOT}_{_REVISION}",
        [_meta(3, _ROOT, history_base=base), _said(4, "user", "Ampere?")],
    )
    (first,), _ = read_parts(whole)
    (found,), skipped = read_parts(part)
    assert shown_blocks(found) == [Text("Ohm?"), Text("A unit."), Text("Ampere?")]
    assert found.source_id == first.source_id
    assert {m.source_id for m in found.messages[:2]} <= {m.source_id for m in first.messages}
    assert not skipped
    whole.unlink()
    (alone,), skipped = read_parts(part)
    assert shown_blocks(alone) == [Text("Ampere?")]
    assert len(skipped) == 1


def test_a_session_that_was_archived_is_archived_here(tmp_path: Path) -> None:
    path = _rollout(tmp_path, _ROOT, _SESSION)
    (tmp_path / "archived_sessions").mkdir()
    path = path.rename(tmp_path / "archived_sessions" / path.name)
    (found,), _ = read_parts(path)
    assert found.archived


def test_a_rollout_whose_beginning_cannot_be_opened_is_read_from_there(tmp_path: Path) -> None:
    base = {"thread_id": _ROOT, "end_ordinal_exclusive": 3, "end_byte_offset": 1}
    records = [_meta(3, _ROOT, history_base=base), _said(4, "user", "Ampere?")]
    part = _rollout(tmp_path, f"{_ROOT}_{_REVISION}", records)
    (part.parent / f"rollout-2026-09-01T10-00-00-{_ROOT}.jsonl").write_bytes(b"PK\x03\x04")
    (found,), skipped = read_parts(part)
    assert shown_blocks(found) == [Text("Ampere?")]
    assert len(skipped) == 1


def test_a_thread_that_a_rollout_has_is_not_read_again_from_the_database(tmp_path: Path) -> None:
    write("codex_app", tmp_path)
    assert [each.source_id for each in read_parts(tmp_path)[0]] == ["s1"]
    _rollout(tmp_path, "s1", _SESSION)
    assert [each.source_id for each in read_parts(tmp_path)[0]] == [_ROOT]


def test_what_follows_in_an_unfinished_turn_of_the_database_is_open(tmp_path: Path) -> None:
    path = write("codex_app", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE thread_turns SET status = 'inProgress'")
    (found,), _ = read_parts(path)
    assert found.messages[-1].is_open


def test_what_the_program_adds_to_a_message_is_not_what_was_typed(tmp_path: Path) -> None:
    asked = (
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nOhm?"
    )
    aborted = _said(3, "user", "<turn_aborted>\nThe user interrupted.\n</turn_aborted>")
    picture = _said(4, "user", '<image name="[Image #1]">', "</image>", "See?")
    path = _rollout(tmp_path, _ROOT, [_meta(0, _ROOT), _said(1, "user", asked), aborted, picture])
    (found,), _ = read_parts(path)
    assert shown_blocks(found) == [Text("Ohm?"), Text("See?")]


def test_a_picture_that_was_made_is_kept_and_an_unknown_item_is_named(tmp_path: Path) -> None:
    made = _item(2, type="image_generation_call", status="completed", result="aGk=")
    records = [*_SESSION[:2], made, _item(3, type="tool_search_call", call_id="c", arguments={}),
               _item(4, type="novelty"), _item(5, type="compaction", encrypted_content="x")]  # fmt: skip
    (found,), _ = read_parts(_rollout(tmp_path, _ROOT, records))
    assert [type(each) for each in shown_blocks(found)] == [Text, Image, ToolCall]
    assert found.messages[-1].file_keys == ("data:image/png;base64,aGk=",)
    assert len(found.skipped) == 1


def test_an_empty_request_and_a_picture_without_content_add_nothing(tmp_path: Path) -> None:
    asked = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\n"
    made = _item(3, type="image_generation_call", status="failed", revised_prompt="A heron")
    records = [*_SESSION[:2], _said(2, "user", asked), made]
    (found,), _ = read_parts(_rollout(tmp_path, _ROOT, records))
    assert shown_blocks(found) == [Text("Ohm?"), Text("A heron")]
    path = write("codex_app", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE thread_items SET item_json = ?"
            " WHERE item_id = (SELECT max(item_id) FROM thread_items)",
            (json.dumps({"type": "imageGeneration", "result": ""}),),
        )
    (found,), _ = read_parts(path)
    assert not any(message.file_keys for message in found.messages)


def test_a_log_of_2025_has_items_as_they_are(tmp_path: Path) -> None:
    records = [
        {"id": _ROOT, "timestamp": "2025-05-07T17:24:21Z", "instructions": None},
        {"record_type": "state"}, _said(0, "user", "Ohm?")["payload"],
        _said(0, "assistant", "A unit.")["payload"],
    ]  # fmt: skip
    (found,), skipped = read_parts(_rollout(tmp_path, _ROOT, records))
    assert [each.role for each in found.messages] == [Role.USER, Role.ASSISTANT]
    assert found.source_id == _ROOT
    assert found.created_at is not None
    assert found.messages[0].created_at == found.created_at
    assert not skipped

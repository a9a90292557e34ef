"""The importers of other chat programs and coding agents: one file of each generation of each format."""

import json
import re
import shutil
import sqlite3
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Image, Role, Text, Thinking, ToolCall, ToolResult, plain_text
from app.domain.transfer import ImportedConversation
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.transfer.importing import import_files
from tests.fakes.export_files import (
    ANSWER,
    FILES,
    QUESTION,
    log_records,
    read_parts,
    with_trait,
    write,
)


def _write_log(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    return path


def _path(found: ImportedConversation) -> list[tuple[Role, str]]:
    """Return the roles and texts of the messages from the first to the visible last one."""
    by_id = {message.source_id: message for message in found.messages}
    name, path = found.visible_leaf, []
    while name is not None:
        message = by_id[name]
        path.append((message.role, plain_text(message.blocks)))
        name = message.parent
    return [each for each in reversed(path) if each[1]]


@pytest.mark.parametrize("name", FILES)
def test_conversations_are_read_with_path_title_date_and_source(name: str, tmp_path: Path) -> None:
    found, skipped = read_parts(write(name, tmp_path))
    talk, (_, source, traits) = found[0], FILES[name]
    expected = [(Role.USER, QUESTION), (Role.ASSISTANT, ANSWER)]
    assert [each for each in _path(talk) if each[0] is not Role.SYSTEM] == expected
    assert talk.source == source
    assert talk.title == ("About ohms" if "title" in traits else "")
    dates = {each.created_at for each in talk.messages} | {talk.created_at}
    assert (datetime(2026, 3, 4, 10, tzinfo=UTC) in dates) == ("dated" in traits)
    assert bool(skipped or talk.skipped) == ("report" in traits)
    assert talk.pinned == ("pinned" in traits)


@pytest.mark.parametrize("name", with_trait("branch"))
def test_a_replaced_answer_is_kept_as_a_branch(name: str, tmp_path: Path) -> None:
    found, _ = read_parts(write(name, tmp_path))
    answers = [m for m in found[0].messages if m.role is Role.ASSISTANT]
    assert {plain_text(each.blocks) for each in answers} == {"An old answer.", ANSWER}
    assert len({each.parent for each in answers}) == 1


@pytest.mark.parametrize("name", with_trait("thought"))
def test_reasoning_is_kept_apart(name: str, tmp_path: Path) -> None:
    found, _ = read_parts(write(name, tmp_path))
    blocks = [block for message in found[0].messages for block in message.blocks]
    assert [each.text for each in blocks if isinstance(each, Thinking)][-1:] == ["Easy."]


@pytest.mark.parametrize("name", with_trait("project"))
def test_the_folder_of_a_project_is_a_tag(name: str, tmp_path: Path) -> None:
    found, _ = read_parts(write(name, tmp_path))
    assert found[0].tags == ("heron",)


@pytest.mark.parametrize("name", with_trait("call"))
def test_a_tool_call_is_kept_with_its_result(name: str, tmp_path: Path) -> None:
    found, _ = read_parts(write(name, tmp_path))
    blocks = [block for message in found[0].messages for block in message.blocks]
    (call,) = (each for each in blocks if isinstance(each, ToolCall))
    (result,) = (each for each in blocks if isinstance(each, ToolResult))
    assert call.call_id == result.call_id
    assert call.name in {"Read", "code_execution", "shell", "units"}
    assert result.text in {"R = U / I", "ohm"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_an_archive_is_read_like_one_in_a_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    path = write(name, folder)
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(path, path.name)
    alone, in_archive = read_parts(path)[0], read_parts(packed)[0]
    assert [_path(each) for each in in_archive] == [_path(each) for each in alone]


_VOLT = {
    "type": "response_item", "timestamp": "2026-03-04T11:00:00Z",
    "payload": {"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "And the volt?"}]},
}  # fmt: skip


def test_a_session_that_was_forked_continues_the_same_conversation(tmp_path: Path) -> None:
    records = [each for each in log_records("claude_code") if each.get("uuid")]
    again = [{**each, "sessionId": "s2"} for each in records]
    more = {**again[-2], "uuid": "q2", "parentUuid": "a3", "type": "user",
            "message": {"role": "user", "content": "And the volt?"}}  # fmt: skip
    for name, log in (("s1", records), ("s2", [*again, more])):
        _write_log(tmp_path / f"{name}.jsonl", log)
    found, _ = read_parts(tmp_path)
    ids = [each.source_id for each in found if "subagent" not in each.tags]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert "subagent" in found[1].tags


@pytest.mark.parametrize("copied", [0, 1], ids=["with the header", "without"])
@pytest.mark.parametrize(
    "source", ["cli", {"subagent": {"thread_spawn": {}}}], ids=["fork", "agent"]
)
def test_a_rollout_that_begins_like_another_adds_only_what_is_new(
    store: Store, tmp_path: Path, copied: int, source: object
) -> None:
    own = log_records("codex")
    changed = {"id": "s2", "forked_from_id": "s1", "source": source}
    header = {**own[0], "payload": {**own[0]["payload"], **changed}}
    for name, log in (("a", own), ("b", [header, *own[copied:], _VOLT])):
        _write_log(tmp_path / f"{name}.jsonl", log)
    (first, fork), _ = read_parts(tmp_path)
    assert first.source_id == fork.source_id
    assert {m.source_id for m in first.messages} < {m.source_id for m in fork.messages}
    import_files(store, [tmp_path / "a.jsonl"])
    report = import_files(store, [tmp_path / "b.jsonl"])
    assert (report.conversations, report.messages) == (0, 1)
    (stored,) = Conversations(store).listed()
    assert "subagent" not in Conversations(store).tags_of([stored.id]).get(stored.id, ())


def test_a_turn_that_was_rolled_back_is_a_branch(tmp_path: Path) -> None:
    records = log_records("codex")
    back = {"timestamp": "2026-03-04T11:00:00Z", "type": "event_msg",
            "payload": {"type": "thread_rolled_back", "num_turns": 1}}  # fmt: skip
    (found,), _ = read_parts(_write_log(tmp_path / "r.jsonl", [*records, back, _VOLT]))
    assert _path(found) == [(Role.USER, "And the volt?")]
    assert any(plain_text(each.blocks) == ANSWER for each in found.messages)


@pytest.mark.parametrize(
    ("name", "change"),
    [("claude_code", {"promptSource": "sdk"}), ("codex", {"originator": "codex_exec"})],
)
def test_a_run_of_one_turn_is_skipped(name: str, change: dict[str, str], tmp_path: Path) -> None:
    log = log_records(name)
    for each in log:
        target = each["payload"] if each["type"] == "session_meta" else each
        if each["type"] in {"user", "session_meta"} and not each.get("isSidechain"):
            target.update(change)
    found, skipped = read_parts(_write_log(tmp_path / "run.jsonl", log))
    assert all("subagent" in each.tags for each in found)
    assert skipped


def test_a_slash_command_is_what_was_typed(tmp_path: Path) -> None:
    said = "<command-name>/review</command-name>\n<command-message>m</command-message>\n<command-args>the diff</command-args>"
    record = log_records("claude_code")[2] | {"message": {"role": "user", "content": said}}
    (found,), _ = read_parts(_write_log(tmp_path / "s.jsonl", [record]))
    assert found.messages[0].blocks == (Text("/review the diff"),)


def test_a_database_that_is_open_elsewhere_is_read(tmp_path: Path) -> None:
    path = write("goose", tmp_path)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE sessions SET name = 'Newer'")
    writer.commit()
    found, _ = read_parts(path)
    writer.close()
    assert found[0].title == "Newer"


def test_a_damaged_database_is_reported(tmp_path: Path) -> None:
    path = write("goose", tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    shutil.copy(write("jan", tmp_path), tmp_path / "messages.jsonl")
    found, skipped = read_parts(tmp_path)
    assert found
    assert any(each.where == "sessions.db" for each in skipped)


def test_an_older_export_of_chatbox_has_its_sessions_in_one_list(tmp_path: Path) -> None:
    asked = {"id": "q", "role": "user", "contentParts": [{"type": "text", "text": QUESTION}],
             "pictures": [{"url": "data:image/png;base64,aGk="}],
             "links": [{"title": "Ohms", "url": "https://ohms.example"}]}  # fmt: skip
    failed = {"id": "a", "role": "assistant", "contentParts": [], "error": "Overloaded"}
    session = {"id": "s", "name": "About ohms", "messages": [asked, failed]}
    path = tmp_path / "chatbox.json"
    path.write_text(json.dumps({"chat-sessions": [session], "__exported_items": []}), "utf-8")
    (found,), _ = read_parts(path)
    assert [type(each) for each in found.messages[0].blocks] == [Text, Image, Text]
    assert found.messages[0].file_keys == ("data:image/png;base64,aGk=",)
    assert len(found.skipped) == 1


def test_a_log_may_begin_with_a_byte_order_mark_and_have_windows_line_ends(tmp_path: Path) -> None:
    records = [each for each in log_records("codex") if each.get("type")]
    path = tmp_path / "rollout-s1.jsonl"
    path.write_text("\ufeff" + "\r\n".join(map(json.dumps, records)), "utf-8", newline="")
    (found,), skipped = read_parts(path)
    assert found.source_id == "s1"
    assert not skipped


def test_a_session_of_opencode_may_be_many_files(tmp_path: Path) -> None:
    home = Path(__file__).parents[3] / "data" / "exports" / "opencode_storage"
    found, skipped = read_parts(home)
    (database,), _ = read_parts(write("opencode", tmp_path))
    assert [_path(each) for each in found] == [_path(database)]
    assert [type(each) for each in found[0].messages[1].blocks] == [
        Thinking, ToolCall, ToolResult, Text,
    ]  # fmt: skip
    assert found[0].tags == ("heron",)
    assert len(found[0].skipped) == len(skipped) == 1
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in home.rglob("*.json"):
            archive.write(path, path.relative_to(home))
    assert "unpack" in read_parts(packed)[1][0].why


def test_an_exported_session_of_opencode_is_read(tmp_path: Path) -> None:
    changed = {"diffs": [{"file": "a", "before": "b" * 200_000}]}  # more than what tells the format
    info = {"id": "ses_1", "projectID": "p", "directory": "/a/heron", "summary": changed,
            "title": "About ohms", "version": "1.2", "time": {"created": 1772618400000, "updated": 1772618401000}}  # fmt: skip
    messages = [
        {"info": {"id": f"msg_{role}", "sessionID": "ses_1", "role": role,
                  "time": {"created": 1772618400000, "completed": 1772618401000}},
         "parts": [{"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": text}]}
        for role, text in (("user", QUESTION), ("assistant", ANSWER))
    ]  # fmt: skip
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"info": info, "messages": messages}, indent=2), "utf-8")
    (found,), skipped = read_parts(path)
    assert (found.source, found.source_id, found.tags) == ("opencode", "ses_1", ("heron",))
    assert _path(found) == [(Role.USER, QUESTION), (Role.ASSISTANT, ANSWER)]
    assert found.created_at == datetime(2026, 3, 4, 10, tzinfo=UTC)
    assert not skipped


def test_a_transcript_of_cursor_may_be_text(tmp_path: Path) -> None:
    path = tmp_path / "home-a-heron" / "agent-transcripts" / "s1.txt"
    path.parent.mkdir(parents=True)
    reply = "[Thinking] Hm.\n  Deep.\n[Tool call] read\n  path=a\n[Tool result] read\n  b\nuser: is text.\n"
    path.write_text(f"user:\n<user_query>\n{QUESTION}\n</user_query>\nassistant:\n{reply}")
    (found,), skipped = read_parts(path)
    assert (found.source_id, found.tags, skipped) == ("s1", ("heron",), [])
    asked, answered = found.messages
    assert asked.blocks == (Text(QUESTION),)
    assert answered.blocks == (
        Thinking("Hm.\nDeep."), ToolCall("", "read", "path=a"), Text("user: is text."),
    )  # fmt: skip


def test_in_a_text_of_cursor_only_what_was_typed_is_the_users(tmp_path: Path) -> None:
    path = tmp_path / "agent-transcripts" / "s1.txt"
    path.parent.mkdir(parents=True)
    turns = (
        f"user:\n<open_files>\na.md\n</open_files>\n<user_query>\n{asked}\n</user_query>\nassistant:\n{said}\n"
        for asked, said in ((QUESTION, "Log:\nuser:\nI am Bob.\n"), ("Why?", "So."))
    )
    path.write_text("".join(turns))
    (found,), _ = read_parts(path)
    assert [each.role for each in found.messages] == [Role.USER, Role.ASSISTANT] * 2
    assert found.messages[1].blocks == (Text("Log:\nuser:\nI am Bob."),)
    path.write_text("user:\nOhm?\nassistant:\nA unit.\nuser:\nVolt?\n")
    (found,), _ = read_parts(path)
    assert [each.role for each in found.messages] == [Role.USER, Role.ASSISTANT, Role.USER]


@pytest.mark.parametrize("exists", [True, False])
def test_the_folder_of_a_transcript_of_cursor_is_found_on_this_computer(
    tmp_path: Path, clean_home: Path, exists: bool
) -> None:
    folder = clean_home / "src" / "my-heron.io"
    if exists:
        folder.mkdir(parents=True)
    dashed = re.sub(r"\W", "-", str(folder)[1:].replace("_", "-"))
    path = tmp_path / dashed / "agent-transcripts" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"role": "user", "message": {"content": QUESTION}}) + "\n")
    (found,), _ = read_parts(path)
    assert found.tags == (("my-heron.io",) if exists else ("src-my-heron-io",))


def test_a_transcript_of_cursor_has_the_times_that_its_questions_say(tmp_path: Path) -> None:
    stamp = "<timestamp>Wednesday, Sep 9, 2026, 12:52 PM (UTC+5:30)</timestamp>"
    asked = f"{stamp}\n<user_query>\n{QUESTION}\n</user_query>"
    records = [
        {"role": role, "message": {"content": [{"type": "text", "text": text}]}}
        for role, text in (("user", asked), ("assistant", ANSWER))
    ]
    (found,), skipped = read_parts(
        _write_log(tmp_path / "c1.jsonl", [*records, {"type": "turn_ended", "status": "success"}])
    )
    assert [each.created_at for each in found.messages] == [
        datetime(2026, 9, 9, 7, 22, tzinfo=UTC)
    ] * 2
    assert found.created_at == found.messages[0].created_at
    assert _path(found) == [(Role.USER, QUESTION), (Role.ASSISTANT, ANSWER)]
    assert not skipped


def test_a_chunk_of_ai_studio_dates_its_message_and_the_conversation(tmp_path: Path) -> None:
    chunks = [
        {"role": "user", "text": QUESTION, "createTime": "2026-03-04T10:00:00Z"},
        {"role": "model", "text": ANSWER, "createTime": "2026-03-04T10:00:05Z"},
    ]
    path = tmp_path / "About ohms"
    path.write_text(json.dumps({"runSettings": {}, "chunkedPrompt": {"chunks": chunks}}), "utf-8")
    [talk], _ = read_parts(path)
    asked, answered = (datetime(2026, 3, 4, 10, 0, second, tzinfo=UTC) for second in (0, 5))
    assert talk.created_at == asked
    assert [each.created_at for each in talk.messages] == [asked, answered]

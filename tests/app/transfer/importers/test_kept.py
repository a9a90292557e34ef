"""Parts that imports keep beyond texts: pictures inside messages, sources, instructions and files."""

import base64
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import (
    Attachment,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.errors import ImportRefused
from app.domain.transfer import ImportedConversation, Skipped
from app.storage.engine.store import Store
from app.storage.safety.attachments import AttachmentFiles
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.transfer.existing import message_uid, uid_of
from app.transfer.importers import read_export
from app.transfer.importing import import_files
from tests.fakes.export_files import log_records, write
from tests.fakes.exports import chatgpt_message, chatgpt_row
from tests.fakes.files import png

PNG = png()
_DATA = base64.b64encode(PNG).decode()
_URL = f"data:image/png;base64,{_DATA}"


def _claude_code(content: Any) -> list[dict[str, Any]]:
    return [
        {"uuid": "u1", "parentUuid": None, "sessionId": "s", "type": "user",
         "timestamp": "2026-03-04T10:00:00Z", "message": {"role": "user", "content": content}},
    ]  # fmt: skip


def _codex(content: Any) -> list[dict[str, Any]]:
    message = {"type": "message", "role": "user", "content": content}
    header = {"id": "s1", "cwd": "/w", "originator": "codex-tui"}
    return [
        {"timestamp": "2026-03-04T10:00:00Z", "type": "session_meta", "payload": header},
        {"timestamp": "2026-03-04T10:00:01Z", "type": "response_item", "payload": message},
    ]


def _jan(content: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": "m1", "thread_id": "t1", "role": "user", "content": content,
            "created_at": 1772618400,
        }
    ]  # fmt: skip


def _open_webui(message: dict[str, Any]) -> list[dict[str, Any]]:
    node = {"id": "m1", "parentId": None, "childrenIds": [], "timestamp": 1772618400, **message}
    history = {"currentId": "m1", "messages": {"m1": node}}
    return [{"id": "c1", "title": "Ohms", "chat": {"history": history}}]


def _written(folder: Path, name: str, content: object, *, as_lines: bool) -> Path:
    path = folder / name
    records = content if as_lines and isinstance(content, list) else [content]
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def _read(path: Path) -> tuple[list[ImportedConversation], list[str]]:
    found = list(read_export(path))
    talks = [each for each in found if isinstance(each, ImportedConversation)]
    skipped = [each for each in found if isinstance(each, Skipped)]
    return talks, [each.why for each in (*skipped, *(s for talk in talks for s in talk.skipped))]


def _blocks(path: Path, kind: type) -> list[Any]:
    talks, _ = _read(path)
    every = (block for talk in talks for message in talk.messages for block in message.blocks)
    return [block for block in every if isinstance(block, kind)]


def _stored(store: Store) -> list[Message]:
    exchanges = Exchanges(store)
    return [m for talk in Conversations(store).listed() for m in exchanges.messages_in(talk.id)]


_SOURCE = {"type": "base64", "media_type": "image/png", "data": _DATA}
_PICTURES: dict[str, list[dict[str, Any]]] = {
    "claude_code": _claude_code([{"type": "image", "source": _SOURCE}]),
    "claude_code_result": _claude_code(
        [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": _SOURCE}]}]
    ),
    "claude_code_piece": [
        {**_claude_code("?")[0], "uuid": name, "type": "assistant",
         "message": {"id": "m", "content": [part]}}
        for name, part in (("u1", {"type": "text", "text": "Look"}), ("u2", {"type": "image", "source": _SOURCE}))
    ],
    "codex": _codex([{"type": "input_image", "image_url": _URL}]),
    "jan": _jan([{"type": "image_url", "image_url": {"url": _URL}}]),
    "open_webui": [
        *_open_webui({"role": "user", "content": "?", "files": [{"type": "image", "url": _URL}]})
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", _PICTURES)
def test_a_picture_inside_a_message_is_stored(name: str, store: Store, tmp_path: Path) -> None:
    path = _written(tmp_path, "log.jsonl", _PICTURES[name], as_lines=name != "open_webui")
    import_files(store, [path], dry_run=True)
    assert not list(store.paths.attachments.rglob("*.*"))
    import_files(store, [path])
    (picture,) = (b for message in _stored(store) for b in message.blocks if isinstance(b, Image))
    assert picture.media_type == "image/png"
    assert picture.content_hash is not None
    assert AttachmentFiles(store.paths).path(picture.content_hash).read_bytes() == PNG


@pytest.mark.parametrize("url", ["data:image/png;base64,%%%", "data:image/png,raw", "data:"])
def test_a_picture_of_no_format_keeps_its_place(url: str, store: Store, tmp_path: Path) -> None:
    content = _codex([{"type": "input_image", "image_url": url}])
    import_files(store, [_written(tmp_path, "log.jsonl", content, as_lines=True)])
    (message,) = _stored(store)
    assert message.blocks == (Image("image", "image/*"),)


def test_an_unknown_part_of_a_message_is_named(tmp_path: Path) -> None:
    content = _claude_code([{"type": "text", "text": "Look"}, {"type": "hologram"}])
    path = _written(tmp_path, "log.jsonl", content, as_lines=True)
    assert _blocks(path, Text) == [Text("Look")]
    assert any("'hologram'" in why for why in _read(path)[1])


def test_a_document_inside_a_message_is_an_attachment(tmp_path: Path) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "R = U / I"}
    content = _claude_code([{"type": "document", "title": "ohm.txt", "source": source}])
    path = _written(tmp_path, "log.jsonl", content, as_lines=True)
    assert _blocks(path, Attachment) == [Attachment("ohm.txt", "text/plain", None, "R = U / I")]


def test_an_old_reply_with_reasoning_keeps_its_text(tmp_path: Path) -> None:
    reply = {"id": "m1", "role": "assistant", "content": "A unit.", "reasoningContent": "Easy."}
    session = {"id": "c1", "name": "Ohms", "threadName": "now", "messages": [reply]}
    path = _written(
        tmp_path, "data.json", {"chat-sessions-list": [], "session:c1": session}, as_lines=False
    )
    assert _blocks(path, Text) == [Text("A unit.")]
    assert _blocks(path, Thinking) == [Thinking("Easy.")]
    assert _read(path)[0][0].title == "Ohms"


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ("g-p-67c2a1d4e8b08191", ("Project 67c2a1d4",)), ("g-2fkFE8rbu", ("GPT 2fkFE8rb",)),
        ("x, y\nz", ()), ("  ", ()), ("g-" + "long" * 5000, ("GPT longlong",)), (["g-1"], ()), (None, ()),
    ],
)  # fmt: skip
def test_a_project_or_gpt_of_chatgpt_is_a_short_tag(
    tmp_path: Path, given: object, tags: tuple[str, ...]
) -> None:
    row = {**chatgpt_row(chatgpt_message("m1", "user", "Ohm?")), "gizmo_id": given}
    path = _written(tmp_path, "conversations.json", [row], as_lines=False)
    assert _read(path)[0][0].tags == tags


def test_an_assistant_of_cherry_studio_is_a_tag(tmp_path: Path) -> None:
    told = {"topics": [{"id": "c1", "name": "Ohms"}]}
    for name, tags in (("default", ()), ("a1", ("Tutor / physics",))):
        assistant = {"id": name, "name": "Tutor / physics", **told}
        state = json.dumps({"assistants": json.dumps({"assistants": [assistant]})})
        message = {"id": "m1", "role": "user", "content": "Ohm?"}
        stored = {"topics": [{"id": "c1", "messages": [message]}], "message_blocks": []}
        document = {"localStorage": {"persist:cherry-studio": state}, "indexedDB": stored}
        path = _written(tmp_path, "data.json", document, as_lines=False)
        assert _read(path)[0][0].tags == tags


@pytest.mark.parametrize(
    ("named", "shown"), [("Ohms", "Units: Ohms"), ("units", "Units"), (None, "Units")]
)
def test_the_newest_of_several_threads_has_its_own_name_too(
    tmp_path: Path, named: str | None, shown: str
) -> None:
    def said(name: str) -> list[dict[str, Any]]:
        return [{"id": name, "role": "user", "content": "Ohm?"}]

    older = {"id": "t1", "name": "Volts", "messages": said("m1")}
    session = {"id": "c1", "name": "Units", "threadName": named, "threads": [older]}
    document = {"chat-sessions-list": [], "session:c1": {**session, "messages": said("m2")}}
    path = _written(tmp_path, "data.json", document, as_lines=False)
    assert [each.title for each in _read(path)[0]] == [shown, "Volts"]


def test_a_reply_has_the_model_that_began_it(tmp_path: Path) -> None:
    def context(model: str) -> dict[str, Any]:
        return {
            "timestamp": "2026-03-04T10:00:01Z",
            "type": "turn_context",
            "payload": {"model": model},
        }

    question, reply = _codex("What is the ohm?"), _codex("A unit.")[1:]
    reply[0]["payload"]["role"] = "assistant"
    content = [*question, context("gpt-a"), *reply, context("gpt-b"), *_codex("And the volt?")[1:]]
    (talk,) = _read(_written(tmp_path, "log.jsonl", content, as_lines=True))[0]
    assert [each.model for each in talk.messages if each.role is Role.ASSISTANT] == ["gpt-a"]


def test_reasoning_of_jan_is_no_text_and_its_model_is_that_of_its_assistant(tmp_path: Path) -> None:
    content = _jan([{"type": "reasoning", "text": {"value": "Easy."}}])
    content[0]["role"] = "assistant"
    path = _written(tmp_path, "messages.jsonl", content, as_lines=True)
    header = {"id": "t1", "title": "Ohms", "assistants": [{"model": {"id": "llama"}}]}
    _written(tmp_path, "thread.json", header, as_lines=False)
    assert _blocks(path, Thinking) == [Thinking("Easy.")]
    assert _read(path)[0][0].messages[0].model == "llama"


def test_sources_and_arguments_of_open_webui_are_kept(tmp_path: Path) -> None:
    arguments = json.dumps(json.dumps({"q": "ohm"})).replace('"', "&quot;")
    call = f'<details type="tool_calls" id="c" name="find" arguments="{arguments}"></details>'
    found = {"source": "https://web.example/volt", "title": "Volt"}
    cited = [
        {"source": {"name": "SI", "url": "https://si.example/ohm"}},
        {"source": {"name": "a search", "type": "web_search"}, "metadata": [found]},
    ]
    reply = {"role": "assistant", "content": call, "sources": cited}
    path = _written(tmp_path, "chat.json", _open_webui(reply), as_lines=False)
    assert _blocks(path, ToolCall) == [ToolCall("c", "find", '{"q": "ohm"}')]
    links = "- [SI](https://si.example/ohm)\n- [Volt](https://web.example/volt)"
    assert _blocks(path, Text) == [Text(links)]


def test_files_of_librechat_are_kept(tmp_path: Path) -> None:
    asked = {"messageId": "m1", "isCreatedByUser": True, "files": [{"filename": "ohm.pdf"}]}
    talk = {"conversationId": "c1", "messages": [asked]}
    path = _written(tmp_path, "c.json", talk, as_lines=False)
    assert _blocks(path, Attachment) == [Attachment("ohm.pdf", "application/pdf")]


def test_lm_studio_s_system_prompt_is_kept_and_an_empty_conversation_named(tmp_path: Path) -> None:
    empty = {
        "name": "Ohms", "pinned": False, "createdAt": 1772618400000, "tokenCount": 0,
        "messages": [],
    }  # fmt: skip
    version = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Hello"}]}
    messages = [{"versions": [version], "currentlySelected": 0}]
    prompted = {**empty, "systemPrompt": "Be brief.", "messages": messages}
    path = _written(tmp_path, "1.conversation.json", prompted, as_lines=False)
    assert [each.role for each in _read(path)[0][0].messages] == [Role.SYSTEM, Role.USER]
    path = _written(tmp_path, "2.json", empty, as_lines=False)
    assert list(read_export(path)) == [Skipped("'Ohms'", "it is empty")]


def test_fragments_files_and_calls_of_llm_are_kept(tmp_path: Path) -> None:
    path = write("llm", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE fragments(id, content); INSERT INTO fragments VALUES (1, 'R = U / I');
            CREATE TABLE prompt_fragments(response_id, fragment_id, "order");
            INSERT INTO prompt_fragments VALUES ('r1', 1, 0);
            CREATE TABLE attachments(id, type, path, url, content);
            CREATE TABLE prompt_attachments(response_id, attachment_id, "order");
            INSERT INTO prompt_attachments VALUES ('r1', 'a', 0);
            CREATE TABLE tool_calls(id, response_id, name, arguments, tool_call_id);
            INSERT INTO tool_calls VALUES (1, 'r1', 'units', '{}', 't');
            CREATE TABLE tool_results(id, response_id, name, output, tool_call_id);
            INSERT INTO tool_results VALUES (1, 'r1', 'units', 'ohm', 't');
            """
        )
        connection.execute(
            "INSERT INTO attachments VALUES ('a', 'image/png', NULL, NULL, ?)", (PNG,)
        )
    assert _blocks(path, Text)[:2] == [Text("R = U / I"), Text("What is the ohm?")]
    assert _blocks(path, ToolCall) == [ToolCall("t", "units", "{}")]
    assert _blocks(path, ToolResult) == [ToolResult("t", "units", "ohm")]
    assert _blocks(path, Image) == [Image("image", "image/png")]


def test_a_file_of_a_session_is_kept(tmp_path: Path) -> None:
    path = write("opencode", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        part = {"type": "file", "filename": "ohm.pdf", "mime": "application/pdf", "url": ""}
        row = connection.execute("SELECT id, message_id, session_id FROM part").fetchone()
        connection.execute(
            "INSERT INTO part (id, message_id, session_id, data) VALUES ('zz', ?, ?, ?)",
            (*row[1:], json.dumps(part)),
        )
    assert _blocks(path, Attachment) == [Attachment("ohm.pdf", "application/pdf")]


def test_what_a_tool_of_gemini_returned_is_unwrapped(tmp_path: Path) -> None:
    result = [{"functionResponse": {"id": "c", "response": {"output": "ohm"}}}]
    call = {"id": "c", "name": "units", "args": {}, "result": result}
    records = [{"sessionId": "s", "projectHash": "p"},
               {"id": "m", "type": "gemini", "content": "A unit.", "toolCalls": [call]}]  # fmt: skip
    path = _written(tmp_path, "session.jsonl", records, as_lines=True)
    assert _blocks(path, ToolResult) == [ToolResult("c", "units", "ohm")]


@pytest.mark.parametrize("pack", [lambda path: path, lambda path: path.parent])
def test_activity_as_a_web_page_is_named(pack: Callable[[Path], Path], tmp_path: Path) -> None:
    page = tmp_path / "MyActivity.html"
    page.write_text('<html><div class="outer-cell mdl-cell">Prompted What is it?</div></html>')
    with pytest.raises(ImportRefused, match="choose JSON"):
        list(read_export(pack(page)))


def test_the_note_beside_a_subagent_is_no_unknown_file(tmp_path: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    records = [each for each in log_records("claude_code") if each.get("uuid")]
    _written(folder, "s1.jsonl", records, as_lines=True)
    _written(folder, "agent-a.meta.json", {"agentType": "Explore"}, as_lines=False)
    assert _read(tmp_path)[1] == []


def test_a_preview_counts_turns_of_a_fork_as_its_import_does(store: Store, tmp_path: Path) -> None:
    records = [each for each in log_records("claude_code") if each.get("uuid")]
    more = {**records[-2], "uuid": "q2", "parentUuid": "a3", "type": "user",
            "message": {"role": "user", "content": "And the volt?"}}  # fmt: skip
    _written(tmp_path, "s1.jsonl", records, as_lines=True)
    _written(tmp_path, "s2.jsonl", [*records, more], as_lines=True)
    preview = import_files(store, [tmp_path], dry_run=True)
    report = import_files(store, [tmp_path])
    assert (preview.turns, preview.messages) == (report.turns, report.messages)


@pytest.mark.parametrize("name", ["gemini_studio", "cursor_agent"])
def test_a_conversation_without_times_has_that_of_its_file_and_the_same_uids_in_a_copy(
    name: str, tmp_path: Path
) -> None:
    path = write(name, tmp_path)
    uids = set()
    for hour in (10, 11):
        at = datetime(2026, 3, 4, hour, tzinfo=UTC)
        os.utime(path, (at.timestamp(), at.timestamp()))
        (talk,) = _read(path)[0]
        assert talk.created_at == at
        uids.add((uid_of(talk, at), *(message_uid(talk, each, at) for each in talk.messages)))
    assert len(uids) == 1


@pytest.mark.parametrize("names", [("cursor", "cursor_agent"), ("codex", "codex_app")])
@pytest.mark.parametrize("step", [1, -1])
def test_a_conversation_that_its_program_keeps_twice_is_imported_once(
    names: tuple[str, str], step: int, store: Store, tmp_path: Path
) -> None:
    paths = [write(name, tmp_path / name) for name in names][::step]
    alone = import_files(store, paths[:1], dry_run=True)
    preview, report = import_files(store, paths, dry_run=True), import_files(store, paths)
    expected = (1, alone.turns, alone.messages)
    assert (report.conversations, report.turns, report.messages) == expected
    assert (preview.conversations, preview.turns, preview.messages) == expected


def test_a_transcript_that_was_rewritten_has_new_messages(store: Store, tmp_path: Path) -> None:
    path = write("cursor_agent", tmp_path)
    import_files(store, [path])
    path.write_text(path.read_text().replace("A unit.", "The unit of resistance."))
    report = import_files(store, [path])
    assert (report.messages, report.duplicates) == (1, 1)


def test_activity_keeps_lists_code_and_emphasis(tmp_path: Path) -> None:
    page = "<p>Ohm is <b>R</b>:</p><ul><li>a unit</li><li>of V/A</li></ul><pre><code>r = u / i</code></pre>"
    entry = {"header": "Gemini Apps", "title": "Prompted What is it?", "products": [],
             "time": "2026-03-04T10:00:00Z", "safeHtmlItem": [{"html": page}]}  # fmt: skip
    answer = _blocks(_written(tmp_path, "MyActivity.json", [entry], as_lines=False), Text)[1]
    assert answer.text == "Ohm is **R**:\n\n- a unit\n- of V/A\n\n```\nr = u / i\n```"


def test_a_voice_note_is_text(tmp_path: Path) -> None:
    message = {
        "uuid": "m1", "sender": "human", "content": [{"type": "voice_note", "text": "Hello"}],
    }  # fmt: skip
    talk = {"uuid": "c1", "name": "Ohms", "chat_messages": [message]}
    path = _written(tmp_path, "conversations.json", [talk], as_lines=False)
    assert _blocks(path, Text) == [Text("Hello")]
    assert _read(path)[1] == []


def test_what_claude_showed_of_a_result_is_kept_once(tmp_path: Path) -> None:
    shown = {"content": [{"title": "SI", "url": "https://si.example"}, {"title": "Ohm's law"}]}
    result = {"type": "tool_result", "tool_use_id": "t", "display_content": shown,
              "content": [{"type": "text", "text": "SI: https://si.example"}]}  # fmt: skip
    message = {"uuid": "m1", "sender": "assistant", "content": [result]}
    talk = {"uuid": "c1", "name": "Ohms", "chat_messages": [message]}
    (found,) = _blocks(_written(tmp_path, "c.json", [talk], as_lines=False), ToolResult)
    assert found.text == "SI: https://si.example\n\nOhm's law"


def test_tabs_of_the_first_versions_of_cursor_are_read(tmp_path: Path) -> None:
    path = write("cursor", tmp_path)
    bubbles = [{"type": "user", "text": "What is it?"}, {"type": "ai", "rawText": "A unit."}]
    tabs = {"tabs": [{"tabId": "t1", "chatTitle": "Ohms", "bubbles": bubbles}, {"tabId": "t2"}]}
    key = "workbench.panel.aichat.view.aichat.chatdata"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS ItemTable (key TEXT, value BLOB)")
        connection.execute("INSERT INTO ItemTable VALUES (?, ?)", (key, json.dumps(tabs)))
    talk = _read(path)[0][-1]
    assert (talk.source_id, talk.title) == ("t1", "Ohms")
    assert [(each.role, each.blocks) for each in talk.messages] == [
        (Role.USER, (Text("What is it?"),)),
        (Role.ASSISTANT, (Text("A unit."),)),
    ]


def test_the_folder_of_a_chat_of_open_webui_is_a_tag(tmp_path: Path) -> None:
    path = write("open_webui_database", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        known = {each[1] for each in connection.execute("PRAGMA table_info(chat)")}
        if "folder_id" not in known:
            connection.execute("ALTER TABLE chat ADD COLUMN folder_id")
        connection.execute("CREATE TABLE IF NOT EXISTS folder (id, name)")
        connection.execute("INSERT INTO folder (id, name) VALUES ('f1', 'Physics')")
        connection.execute("UPDATE chat SET folder_id = 'f1'")
    assert _read(path)[0][0].tags[-1] == "Physics"

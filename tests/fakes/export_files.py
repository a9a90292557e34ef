"""Files of other chat programs, one for each generation of each format, each with one damaged record.

`write` makes the file of a name in a folder. Every conversation has the question "What is the ohm?" and
the answer "A unit.", in the form of the program.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from backports.zstd import compress

QUESTION, ANSWER = "What is the ohm?", "A unit."
_AT, _AT_S, _AT_MS = "2026-03-04T10:00:00Z", 1772618400, 1772618400000
_DAMAGED = "{damaged"


def write(name: str, folder: Path) -> Path:
    """Write the file of that name, and return the path to import."""
    return FILES[name].write(folder)


def _json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def _lines(path: Path, *records: Any) -> Path:
    """Write a log whose second line is damaged and whose last line is incomplete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(each) for each in records]
    text = "\n".join([lines[0], _DAMAGED, *lines[1:], '{"type": "us'])
    path.write_text(text, encoding="utf-8")
    return path


def _database(path: Path, script: str, **tables: list[tuple[Any, ...]]) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(script)
        for table, rows in tables.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
    return path


def claude_code_records(session: str = "s1", prefix: str = "") -> list[dict[str, Any]]:
    """Return the records of a session: a question, a reply in three pieces with a tool, a subagent."""

    def record(
        name: str, parent: str | None, kind: str, content: Any, **more: Any
    ) -> dict[str, Any]:
        message = {"role": kind, "content": content, **more.pop("message", {})}
        common = {
            "sessionId": session,
            "timestamp": _AT,
            "cwd": "/home/me/heron",
            "isSidechain": False,
        }
        return {
            **common,
            "uuid": prefix + name,
            "parentUuid": prefix + parent if parent else None,
            "type": kind,
            "message": message,
            **more,
        }

    reply = {"message": {"id": "r1", "model": "claude-x"}}
    envelope = "<system-reminder>be brief</system-reminder>\n"
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "ohm.txt"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "R = U / I"}
    return [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        record("meta", None, "user", "Caveat: commands", isMeta=True),
        record("q", "meta", "user", [{"type": "text", "text": envelope + QUESTION}]),
        record("a1", "q", "assistant", [{"type": "thinking", "thinking": "Easy."}], **reply),
        record("a2", "a1", "assistant", [call], **reply),
        record("t", "a2", "user", [result]),
        record("a3", "t", "assistant", [{"type": "text", "text": ANSWER}], message={"id": "r2"}),
        record("side", None, "user", "Search the units.", isSidechain=True, agentId="g1"),
        {"type": "ai-title", "aiTitle": "About ohms"},
    ]


def _claude_code(folder: Path) -> Path:
    return _lines(folder / "projects" / "-home-me-heron" / "s1.jsonl", *claude_code_records())


def codex_records(session: str = "s1") -> list[dict[str, Any]]:
    """Return the records of a rollout: context, a question, a call with its result, an answer."""

    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": _AT, "type": "response_item", "payload": payload}

    def message(role: str, kind: str, text: str) -> dict[str, Any]:
        return item(type="message", role=role, content=[{"type": kind, "text": text}])

    meta = {"id": session, "timestamp": _AT, "cwd": "/home/me/heron", "originator": "codex_cli"}
    return [
        {"timestamp": _AT, "type": "session_meta", "payload": meta},
        {"timestamp": _AT, "type": "turn_context", "payload": {"model": "gpt-x"}},
        message("user", "input_text", "<environment_context>linux</environment_context>"),
        message("user", "input_text", QUESTION),
        item(type="reasoning", summary=[{"type": "summary_text", "text": "Easy."}]),
        item(type="function_call", name="shell", arguments='{"cmd": "units"}', call_id="c1"),
        item(type="function_call_output", call_id="c1", output='{"output": "ohm"}'),
        message("assistant", "output_text", ANSWER),
        {
            "timestamp": _AT,
            "type": "event_msg",
            "payload": {"type": "agent_message", "message": ANSWER},
        },
    ]


def _codex(folder: Path) -> Path:
    _lines(folder / "session_index.jsonl", {"id": "s0"}, {"id": "s1", "thread_name": "About ohms"})
    path = folder / "sessions" / "2026" / "03" / "04" / "rollout-s1.jsonl"
    return _lines(path, *codex_records())


def _codex_packed(folder: Path) -> Path:
    path = _codex(folder)
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(compress(path.read_bytes()))
    return packed


def _codex_app(folder: Path) -> Path:
    rows = [
        (
            "s1",
            "t",
            "i1",
            "userMessage",
            json.dumps({"content": [{"type": "text", "text": QUESTION}]}),
            _AT_MS,
            1,
        ),
        ("s1", "t", "i2", "agentMessage", json.dumps({"text": ANSWER}), _AT_MS, 2),
        ("s2", "t", "i3", "userMessage", _DAMAGED, _AT_MS, 1),
    ]
    return _database(
        folder / "thread_history_1.sqlite",
        "CREATE TABLE thread_items(thread_id, turn_id, item_id, item_type, item_json, created_at_ms, rollout_ordinal)",
        thread_items=rows,
    )


def _gemini_cli(folder: Path) -> Path:
    call = {"id": "c1", "name": "units", "args": {"of": "R"}, "result": [{"text": "ohm"}]}
    return _lines(
        folder / "session-1.jsonl",
        {
            "sessionId": "s1",
            "projectHash": "h",
            "startTime": _AT,
            "directories": ["/home/me/heron"],
        },
        {"id": "q", "timestamp": _AT, "type": "user", "content": "What is ohm"},
        {"id": "q", "timestamp": _AT, "type": "user", "content": [{"text": QUESTION}]},
        {
            "id": "a",
            "timestamp": _AT,
            "type": "gemini",
            "content": ANSWER,
            "model": "gemini-x",
            "toolCalls": [call],
        },
        {"id": "r", "timestamp": _AT, "type": "user", "content": "Taken back"},
        {"$rewindTo": "r"},
        {"$set": {"summary": "About ohms"}},
    )


def _gemini_cli_old(folder: Path) -> Path:
    messages = [
        {"id": "q", "timestamp": _AT, "type": "user", "content": QUESTION},
        {"id": "a", "timestamp": _AT, "type": "gemini", "content": ANSWER},
        "damaged",
    ]
    value = {"sessionId": "s1", "projectHash": "h", "messages": messages, "startTime": _AT}
    return _json(folder / "session-1.json", value)


def _open_webui_chat() -> dict[str, Any]:
    thought = (
        '<details type="reasoning" done="true"><summary>Thought</summary>\n> Easy.\n</details>\n'
    )
    messages = {
        "q": {
            "id": "q",
            "parentId": None,
            "childrenIds": ["a", "b"],
            "role": "user",
            "content": QUESTION,
        },
        "b": {
            "id": "b",
            "parentId": "q",
            "childrenIds": [],
            "role": "assistant",
            "content": "An old answer.",
        },
        "a": {
            "id": "a",
            "parentId": "q",
            "childrenIds": [],
            "role": "assistant",
            "content": thought + ANSWER,
            "model": "qwen",
            "timestamp": _AT_S,
        },
        "x": {"id": "x", "parentId": "q", "role": "strange", "content": ""},
    }
    return {
        "title": "About ohms",
        "history": {"currentId": "a", "messages": messages},
        "messages": [{"id": "q"}],
    }


def _open_webui(folder: Path) -> Path:
    chat = {
        "id": "c1",
        "title": "About ohms",
        "chat": _open_webui_chat(),
        "meta": {"tags": ["units"]},
    }
    return _json(folder / "chat-export.json", [{**chat, "created_at": _AT_S, "pinned": True}])


def _open_webui_old(folder: Path) -> Path:
    return _json(folder / "chat.json", _open_webui_chat())


_WEBUI = """
CREATE TABLE user(id); CREATE TABLE auth(id);
CREATE TABLE chat(id, user_id, title, chat, created_at, updated_at, archived, pinned, meta);
"""


def _open_webui_database(folder: Path) -> Path:
    row = (
        "c1",
        "u",
        "About ohms",
        json.dumps(_open_webui_chat()),
        _AT_S,
        _AT_S,
        0,
        1,
        '{"tags": ["units"]}',
    )
    return _database(folder / "webui.db", _WEBUI, chat=[row])


def _open_webui_database_rows(folder: Path) -> Path:
    row = ("c1", "u", "About ohms", '{"history": {"currentId": "a"}}', _AT_S, _AT_S, 0, 1, "{}")
    messages = [
        ("c1-q", "c1", "user", None, json.dumps(QUESTION), None, _AT_S),
        ("c1-a", "c1", "assistant", "c1-q", json.dumps(ANSWER), "qwen", _AT_S),
        ("c1-x", "c1", "strange", "c1-q", _DAMAGED, None, _AT_S),
    ]
    script = (
        "CREATE TABLE chat_message(id, chat_id, role, parent_id, content, model_id, created_at);"
    )
    return _database(folder / "webui.db", _WEBUI + script, chat=[row], chat_message=messages)


def _librechat(folder: Path) -> Path:
    answer = {
        "messageId": "a",
        "parentMessageId": "q",
        "isCreatedByUser": False,
        "text": "",
        "content": [
            {"type": "think", "think": "Easy."},
            {"type": "text", "text": {"value": ANSWER}},
        ],
        "model": "gpt-x",
        "createdAt": _AT,
    }
    broken = {
        "messageId": "x",
        "parentMessageId": "q",
        "error": True,
        "text": "Overloaded",
        "createdAt": _AT,
    }
    question = {
        "messageId": "q",
        "parentMessageId": "00000000-0000-0000-0000-000000000000",
        "isCreatedByUser": True,
        "text": QUESTION,
        "createdAt": _AT,
        "children": [broken, answer],
    }
    record = {
        "conversationId": "c1",
        "title": "About ohms",
        "recursive": True,
        "messagesTree": [question],
    }
    return _json(folder / "librechat.json", record)


def _librechat_dump(folder: Path) -> Path:
    messages = [
        {
            "messageId": "q",
            "conversationId": "c1",
            "isCreatedByUser": True,
            "text": QUESTION,
            "createdAt": {"$date": _AT},
        },
        {
            "messageId": "a",
            "conversationId": "c1",
            "parentMessageId": "q",
            "isCreatedByUser": False,
            "text": ANSWER,
        },
    ]
    return _json(folder / "messages.json", [*messages, {"messageId": "y", "conversationId": "c2"}])


def _chatbox(folder: Path) -> Path:
    def message(name: str, role: str, text: str) -> dict[str, Any]:
        return {
            "id": name,
            "role": role,
            "contentParts": [{"type": "text", "text": text}],
            "timestamp": _AT_MS,
        }

    session = {
        "id": "c1",
        "name": "About ohms",
        "messages": [
            message("q", "user", QUESTION),
            message("a", "assistant", ANSWER),
            {"id": "x", "role": "odd"},
        ],
        "threads": [
            {"id": "old", "name": "Volts", "messages": [message("v", "user", "What is the volt?")]}
        ],
        "messageForksHash": {
            "q": {
                "position": 1,
                "lists": [
                    {"messages": [message("b", "assistant", "An old answer.")]},
                    {"messages": []},
                ],
            }
        },
    }
    listed = [{"id": "c1", "name": "About ohms", "starred": True}]
    return _json(
        folder / "chatbox-exported-data-2026-3-4.json",
        {"chat-sessions-list": listed, "session:c1": json.dumps(session)},
    )


def _jan(folder: Path) -> Path:
    home = folder / "threads" / "c1"
    _json(
        home / "thread.json",
        {
            "id": "c1",
            "title": "About ohms",
            "assistants": [],
            "created": _AT_S,
            "updated": _AT_S,
            "model": {"id": "qwen"},
        },
    )

    def message(name: str, role: str, text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": {"value": text, "annotations": []}}]
        return {
            "id": name,
            "thread_id": "c1",
            "role": role,
            "content": content,
            "created_at": _AT_MS,
        }

    return _lines(
        home / "messages.jsonl", message("q", "user", QUESTION), message("a", "assistant", ANSWER)
    )


def _cherry(folder: Path) -> Path:
    messages = [
        {"id": "q", "role": "user", "createdAt": _AT, "blocks": ["b1"]},
        {
            "id": "b",
            "role": "assistant",
            "askId": "q",
            "createdAt": _AT,
            "blocks": ["b3"],
            "model": {"id": "old"},
        },
        {
            "id": "a",
            "role": "assistant",
            "askId": "q",
            "createdAt": _AT,
            "blocks": ["b4", "b2"],
            "model": {"id": "qwen"},
            "foldSelected": True,
        },
        {"id": "x", "role": "odd"},
    ]
    blocks = [
        {"id": "b1", "messageId": "q", "type": "main_text", "content": QUESTION},
        {"id": "b2", "messageId": "a", "type": "main_text", "content": ANSWER},
        {"id": "b3", "messageId": "b", "type": "main_text", "content": "An old answer."},
        {"id": "b4", "messageId": "a", "type": "thinking", "content": "Easy."},
    ]
    topics = {
        "assistants": [],
        "defaultAssistant": {"topics": [{"id": "c1", "name": "About ohms", "pinned": True}]},
    }
    state = json.dumps({"assistants": json.dumps(topics)})
    stored = {
        "topics": [{"id": "c1", "messages": messages}, {"id": "empty", "messages": []}],
        "message_blocks": blocks,
    }
    return _json(
        folder / "data.json",
        {"version": 5, "localStorage": {"persist:cherry-studio": state}, "indexedDB": stored},
    )


def _cherry_database(folder: Path) -> Path:
    def parts(text: str) -> str:
        return json.dumps({"parts": [{"type": "text", "text": text}]})

    messages = [
        ("q", "c1", None, "user", parts(QUESTION), None, _AT_MS),
        ("b", "c1", "q", "assistant", parts("An old answer."), "p::old", _AT_MS),
        ("a", "c1", "q", "assistant", parts(ANSWER), "p::qwen", _AT_MS),
        ("x", "c1", "q", "assistant", _DAMAGED, None, _AT_MS),
    ]
    script = (
        "CREATE TABLE topic(id, name, active_node_id, is_pinned, created_at, updated_at, deleted_at);"
        "CREATE TABLE message(id, topic_id, parent_id, role, data, model_id, created_at);"
    )
    topic = ("c1", "About ohms", "a", 1, _AT_MS, _AT_MS, None)
    return _database(folder / "cherrystudio.sqlite", script, topic=[topic], message=messages)


def _lm_studio(folder: Path) -> Path:
    def reply(text: str) -> dict[str, Any]:
        thought = {
            "type": "contentBlock",
            "stepIdentifier": f"{_AT_MS}-0.1",
            "content": [{"type": "text", "text": "Easy."}],
            "style": {"type": "thinking"},
        }
        step = {
            "type": "contentBlock",
            "stepIdentifier": f"{_AT_MS}-0.2",
            "content": [{"type": "text", "text": text}],
        }
        return {
            "type": "multiStep",
            "role": "assistant",
            "senderInfo": {"senderName": "qwen"},
            "steps": [thought, step],
        }

    asked = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": QUESTION}]}
    value = {
        "name": "About ohms",
        "createdAt": _AT_MS,
        "pinned": True,
        "messages": [
            {"versions": [asked], "currentlySelected": 0},
            {"versions": [reply("An old answer."), reply(ANSWER)], "currentlySelected": 1},
            {"versions": [{"role": "odd"}], "currentlySelected": 0},
        ],
    }
    return _json(folder / "1772618400000.conversation.json", value)


def _llm(folder: Path) -> Path:
    script = (
        "CREATE TABLE conversations(id, name, model);"
        "CREATE TABLE responses(id, model, prompt, system, response, conversation_id, datetime_utc);"
    )
    rows = [
        ("r1", "gpt-x", QUESTION, None, ANSWER, "c1", "2026-03-04T10:00:00"),
        ("r2", "gpt-x", None, None, None, "c2", None),
    ]
    return _database(
        folder / "logs.db", script, conversations=[("c1", "About ohms", "gpt-x")], responses=rows
    )


def _llm_new(folder: Path) -> Path:
    script = (
        "CREATE TABLE threads(id, name, tip_message_hash, forked_from);"
        "CREATE TABLE turns(id, thread_id, parent_message_hash, tip_message_hash, model, datetime_utc);"
        "CREATE TABLE messages(hash, parent_hash, role);"
        "CREATE TABLE parts(message_hash, position, type, text, payload, tool_name);"
    )
    return _database(
        folder / "logs.db",
        script,
        threads=[("c1", "About ohms", "h2", None), ("c2", "Broken", "gone", None)],
        turns=[("t1", "c1", None, "h2", "gpt-x", "2026-03-04T10:00:00")],
        messages=[("h1", None, "user"), ("h2", "h1", "assistant")],
        parts=[("h1", 0, "text", QUESTION, None, None), ("h2", 1, "text", ANSWER, None, None)],
    )


def _takeout(folder: Path) -> Path:
    entries = [
        {
            "header": "Gemini Apps",
            "title": "Prompted And in Germany?",
            "time": "2026-03-04T12:00:00Z",
            "products": ["Gemini Apps"],
        },
        {
            "header": "Gemini Apps",
            "title": f"Prompted {QUESTION} Attached 2 files.",
            "time": _AT,
            "products": [],
            "safeHtmlItem": [{"html": f"<p>{ANSWER}</p>"}],
        },
        {"header": "Gemini Apps", "title": "Gave feedback", "time": _AT, "products": []},
        {"header": "YouTube", "title": "Watched a film", "time": _AT, "products": []},
    ]
    return _json(folder / "MyActivity.json", entries)


def _workspace(folder: Path) -> Path:
    turns = [
        {"user_turn": {"prompt": QUESTION, "turn_last_modified": _AT}},
        {"system_turn": {"text": [{"data": ANSWER}], "model_thoughts": [{"description": "Easy."}]}},
        {"user_turn": {"prompt": "Deleted", "turn_deleted_time": _AT}},
    ]
    value = {
        "title": "About ohms",
        "creation_time": _AT,
        "last_modification_time": _AT,
        "conversation_turns": turns,
    }
    return _json(folder / "conversation_1.txt", value)


def _studio(folder: Path) -> Path:
    chunks = [
        {"role": "user", "text": QUESTION},
        {"role": "model", "text": "Easy.", "isThought": True},
        {"role": "model", "parts": [{"text": ANSWER}]},
        "damaged",
    ]
    value = {
        "runSettings": {"model": "models/gemini-x"},
        "systemInstruction": {"text": "Be brief."},
        "chunkedPrompt": {"chunks": chunks},
    }
    return _json(folder / "About ohms", value)


def _goose(folder: Path) -> Path:
    def content(text: str) -> str:
        return json.dumps([{"type": "text", "text": text}])

    script = (
        "CREATE TABLE sessions(id, description, working_dir, created_at, updated_at);"
        "CREATE TABLE messages(session_id, role, content_json, created_timestamp, message_id);"
    )
    messages = [
        ("c1", "user", content(QUESTION), _AT_S, "q"),
        ("c1", "assistant", _DAMAGED, _AT_S, "x"),
        ("c1", "assistant", content(ANSWER), _AT_S, "a"),
    ]
    session = ("c1", "About ohms", "/home/me/heron", "2026-03-04 10:00:00", "2026-03-04 10:00:00")
    return _database(folder / "sessions.db", script, sessions=[session], messages=messages)


def _opencode(folder: Path) -> Path:
    script = (
        "CREATE TABLE session(id, title, directory, time_created, time_updated);"
        "CREATE TABLE message(id, session_id, data); CREATE TABLE part(id, message_id, session_id, data);"
    )
    messages = [
        ("m1", "c1", '{"role": "user"}'),
        ("m2", "c1", '{"role": "assistant", "modelID": "qwen"}'),
    ]
    parts = [
        ("p1", "m1", "c1", json.dumps({"type": "text", "text": QUESTION})),
        ("p2", "m2", "c1", json.dumps({"type": "text", "text": ANSWER})),
        ("p3", "m2", "c1", _DAMAGED),
    ]
    session = ("c1", "About ohms", "/home/me/heron", _AT_MS, _AT_MS)
    return _database(
        folder / "opencode.db", script, session=[session], message=messages, part=parts
    )


def _cursor(folder: Path) -> Path:
    composer = {
        "composerId": "c1",
        "name": "About ohms",
        "createdAt": _AT_MS,
        "fullConversationHeadersOnly": [{"bubbleId": "q"}, {"bubbleId": "x"}, {"bubbleId": "a"}],
    }
    rows = [
        ("composerData:c1", json.dumps(composer)),
        (
            "bubbleId:c1:q",
            json.dumps(
                {
                    "bubbleId": "q",
                    "type": 1,
                    "text": QUESTION,
                    "workspaceProjectDir": "/home/me/heron",
                }
            ),
        ),
        ("bubbleId:c1:x", _DAMAGED),
        (
            "bubbleId:c1:a",
            json.dumps(
                {"bubbleId": "a", "type": 2, "text": ANSWER, "modelInfo": {"modelName": "gpt-x"}}
            ),
        ),
    ]
    return _database(
        folder / "state.vscdb", "CREATE TABLE cursorDiskKV(key, value)", cursorDiskKV=rows
    )


def _deepseek(folder: Path) -> Path:
    def node(name: str, parent: str | None, *fragments: tuple[str, str]) -> dict[str, Any]:
        parts = [{"type": kind, "content": text} for kind, text in fragments]
        message = {"model": "deepseek-chat", "inserted_at": _AT, "fragments": parts, "files": []}
        return {"id": name, "parent": parent, "children": [], "message": message if parts else None}

    mapping = {
        "root": node("root", None),
        "1": node("1", "root", ("REQUEST", QUESTION)),
        "2": node("2", "1", ("THINK", "Easy."), ("RESPONSE", ANSWER)),
        "3": node("3", "1", ("STRANGE", "?")),
    }
    about = {"id": "c1", "title": "About ohms", "inserted_at": _AT, "updated_at": _AT}
    return _json(folder / "conversations.json", [{**about, "mapping": mapping}])


def _grok(folder: Path) -> Path:
    at = {"$date": {"$numberLong": str(_AT_MS)}}

    def response(name: str, sender: str, text: str) -> dict[str, Any]:
        said = {"_id": name, "sender": sender, "message": text, "create_time": at, "model": "grok"}
        return {"response": said}

    about = {
        "id": "c1",
        "title": "About ohms",
        "create_time": _AT,
        "modify_time": _AT,
        "starred": True,
    }
    responses = [response("q", "human", QUESTION), "damaged", response("a", "assistant", ANSWER)]
    value = {"conversations": [{"conversation": about, "responses": responses}]}
    return _json(folder / "prod-grok-backend.json", value)


class ExportFile(NamedTuple):
    """A file of a format: the function that writes it, the source of its conversations, and its traits.

    Traits: title, dated, report (something damaged is named), branch, thought, project, call, pinned.
    """

    write: Callable[[Path], Path]
    source: str
    traits: frozenset[str]


def _file(write_file: Callable[[Path], Path], source: str, traits: str) -> ExportFile:
    return ExportFile(write_file, source, frozenset(traits.split()))


FILES: dict[str, ExportFile] = {
    "claude_code": _file(_claude_code, "claude_code", "title dated report thought project call"),
    "codex": _file(_codex, "codex", "title dated report thought project call"),
    "codex_packed": _file(_codex_packed, "codex", "title dated report thought project call"),
    "codex_app": _file(_codex_app, "codex", "dated report"),
    "gemini_cli": _file(_gemini_cli, "gemini_cli", "title dated report project call"),
    "gemini_cli_old": _file(_gemini_cli_old, "gemini_cli", "dated"),
    "open_webui": _file(_open_webui, "open_webui", "title dated report branch thought pinned"),
    "open_webui_old": _file(_open_webui_old, "open_webui", "title dated report branch thought"),
    "open_webui_database": _file(
        _open_webui_database, "open_webui", "title dated report branch thought pinned"
    ),
    "open_webui_database_rows": _file(
        _open_webui_database_rows, "open_webui", "title dated report pinned"
    ),
    "librechat": _file(_librechat, "librechat", "title dated report thought"),
    "librechat_dump": _file(_librechat_dump, "librechat", "dated report"),
    "chatbox": _file(_chatbox, "chatbox", "title dated report branch pinned"),
    "deepseek": _file(_deepseek, "deepseek", "title dated report thought"),
    "grok": _file(_grok, "grok", "title dated pinned"),
    "jan": _file(_jan, "jan", "title dated report"),
    "cherry_studio": _file(_cherry, "cherry_studio", "title dated report branch thought pinned"),
    "cherry_studio_database": _file(_cherry_database, "cherry_studio", "title dated branch pinned"),
    "lm_studio": _file(_lm_studio, "lm_studio", "title dated report branch thought pinned"),
    "llm": _file(_llm, "llm", "title dated report"),
    "llm_new": _file(_llm_new, "llm", "title dated report"),
    "gemini_takeout": _file(_takeout, "gemini", "dated report"),
    "gemini_workspace": _file(_workspace, "gemini", "title dated thought"),
    "gemini_studio": _file(_studio, "gemini", "title thought"),
    "goose": _file(_goose, "goose", "title dated project"),
    "opencode": _file(_opencode, "opencode", "title dated project"),
    "cursor": _file(_cursor, "cursor", "title dated project"),
}


def with_trait(trait: str) -> list[str]:
    """Return the names of the files that have a trait."""
    return [name for name, file in FILES.items() if trait in file.traits]

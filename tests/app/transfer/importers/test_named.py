"""Parts of exports beside the texts: what has a place here is kept, and the report names what has none."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Attachment, Block, Image, Role, Text, Thinking, ToolResult
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers import read_export
from tests.fakes.export_files import write


def _read(content: object, folder: Path) -> tuple[list[ImportedConversation], list[str]]:
    """Return the conversations of an export and the reasons in its report."""
    path = folder / "export.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    found = list(read_export(path))
    talks = [each for each in found if isinstance(each, ImportedConversation)]
    skipped = [each for each in found if isinstance(each, Skipped)]
    return talks, [each.why for each in (*skipped, *(s for talk in talks for s in talk.skipped))]


def _open_webui(*messages: dict[str, Any], **chat: Any) -> list[dict[str, Any]]:
    nodes = {f"m{number}": each for number, each in enumerate(messages, 1)}
    history = {"currentId": f"m{len(nodes)}", "messages": nodes, "childrenIds": []}
    return [{"id": "c1", "title": "Ohms", "chat": {"history": history, **chat}}]


def _librechat(*messages: dict[str, Any], **options: str) -> dict[str, Any]:
    listed = [
        {"messageId": f"m{number}", "isCreatedByUser": False, **each}
        for number, each in enumerate(messages, 1)
    ]
    return {"conversationId": "c1", "title": "Ohms", "options": options, "messages": listed}


def _chatbox(*messages: dict[str, Any], **session: Any) -> dict[str, Any]:
    listed = [{"id": f"m{number}", **each} for number, each in enumerate(messages, 1)]
    return {
        "chat-sessions-list": [],
        "session:c1": {
            "id": "c1",
            "name": "Ohms",
            "threadName": "now",
            "messages": listed,
            **session,
        },
    }


def _cherry_studio(*blocks: dict[str, Any], prompt: str = "") -> dict[str, Any]:
    said = {"type": "main_text", "content": "A unit."}
    listed = [{"id": n, "messageId": "m1", **each} for n, each in enumerate([said, *blocks])]
    topics = {"id": "a1", "prompt": prompt, "topics": [{"id": "c1", "name": "Ohms"}]}
    state = json.dumps({"assistants": json.dumps({"assistants": [topics]})})
    messages = [{"id": "m1", "role": "assistant"}]
    stored = {"topics": [{"id": "c1", "messages": messages}], "message_blocks": listed}
    return {"localStorage": {"persist:cherry-studio": state}, "indexedDB": stored}


def _grok(reply: dict[str, Any], **more: Any) -> dict[str, Any]:
    response = {"_id": "m1", "sender": "assistant", "message": "A unit.", **reply}
    talk = {"conversation": {"id": "c1"}, "responses": [{"response": response}]}
    return {"conversations": [talk], **more}


def _studio(chunk: dict[str, Any]) -> dict[str, Any]:
    asked = {"role": "user", "text": "What is it?"}
    return {"runSettings": {}, "chunkedPrompt": {"chunks": [asked, {"role": "model", **chunk}]}}


def _takeout(asked: str, **more: Any) -> list[object]:
    said = {"safeHtmlItem": [{"html": "A unit."}], "products": [], "time": "2026-03-04T10:00:00Z"}
    return [{"header": "Gemini Apps", "title": asked, **said, **more}]


def _workspace(**answer: Any) -> dict[str, Any]:
    return {"conversation_turns": [{"user_turn": {"prompt": "Ohm?"}}, {"system_turn": answer}]}


_DEEPSEEK: dict[str, Any] = {
    "id": "c1",
    "inserted_at": "2026-03-04T10:00:00Z",
    "mapping": {
        "1": {"id": "1", "message": {"fragments": [{"type": "REQUEST", "content": "What is it?"}]}}
    },
}


def _lm_studio(step: dict[str, Any]) -> dict[str, Any]:
    said = {"type": "contentBlock", "content": [{"type": "text", "text": "A unit."}]}
    version = {"role": "assistant", "steps": [said, step]}
    messages = [{"versions": [version], "currentlySelected": 0}]
    return {"pinned": False, "createdAt": 1772618400000, "tokenCount": 1, "messages": messages}


def _opencode(*parts: dict[str, Any], **about: Any) -> dict[str, Any]:
    info = {"id": "s1", "projectID": "p", "directory": "/w", "title": "Ohms"}
    return {"info": info, "messages": [{"info": {"id": "m1", **about}, "parts": list(parts)}]}


_ASKED: dict[str, Any] = {"role": "user", "content": "What is it?"}
_ASKED_LIBRECHAT = {"isCreatedByUser": True, "text": "What is it?"}
_INSTRUCTIONS: dict[str, object] = {
    "chatbox": {
        **_chatbox(_ASKED, copilotId="p1"),
        "myCopilots": [{"id": "p1", "name": "Brief", "prompt": "Be brief."}],
    },
    "librechat": _librechat(_ASKED_LIBRECHAT, promptPrefix="Be brief."),
    "librechat_assistant": _librechat(_ASKED_LIBRECHAT, instructions="Be brief."),
    "open_webui": _open_webui(_ASKED, params={"system": "Be brief."}),
    "cherry_studio": _cherry_studio(prompt="Be brief."),
}


@pytest.mark.parametrize("name", _INSTRUCTIONS)
def test_instructions_of_a_conversation_are_its_system_prompt(name: str, tmp_path: Path) -> None:
    (talk,), report = _read(_INSTRUCTIONS[name], tmp_path)
    system, asked = talk.messages
    assert (system.role, system.blocks) == (Role.SYSTEM, (Text("Be brief."),))
    assert (asked.parent, report) == (system.source_id, [])


def test_files_of_a_whole_chat_are_those_of_its_first_question(tmp_path: Path) -> None:
    own, of_chat = (
        {"type": "file", "id": name, "file": {"filename": f"{name}.md", "data": {"content": name}}}
        for name in ("ohm", "volt")
    )
    chat = _open_webui({"role": "user", "files": [own]}, files=[own, of_chat])
    (talk,), _ = _read(chat, tmp_path)
    assert talk.messages[0].blocks == tuple(
        Attachment(f"{name}.md", "text/markdown", None, name) for name in ("ohm", "volt")
    )


_LINK = {"title": "SI", "url": "https://si.example"}
_LINKED = Text("- [SI](https://si.example)")
_KEPT: dict[str, tuple[object, Block]] = {
    "cherry_studio": (
        _cherry_studio({"type": "citation", "knowledge": [{**_LINK, "sourceUrl": _LINK["url"]}]}),
        _LINKED,
    ),
    "grok_thought": (_grok({"thinking_trace": "Easy."}), Thinking("Easy.")),
    "grok_source": (_grok({"cited_web_search_results": [_LINK]}), _LINKED),
    "grok_file": (_grok({"file_attachments": ["f1"]}), Attachment("f1", "text/plain")),
    "studio_part": (
        _studio({"parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]}),
        Image("image", "image/png"),
    ),
    "workspace_thought": (
        _workspace(model_thoughts=[{"headline": "Units", "description": "Easy."}]),
        Thinking("Units\n\nEasy."),
    ),
    "workspace_image": (_workspace(images=["images_0"]), Image("images_0", "image/*")),
    "takeout_source": (
        _takeout("Prompted What is it?", subtitles=[{**_LINK, "name": "SI"}, {"name": "a.png"}]),
        _LINKED,
    ),
    "librechat_source": (
        _librechat(
            {
                "attachments": [
                    {
                        "type": "web_search",
                        "web_search": {"organic": [{**_LINK, "link": _LINK["url"]}]},
                    }
                ]
            }
        ),
        _LINKED,
    ),
    "chatbox_text_of_picture": (
        _chatbox({**_ASKED, "contentParts": [{"type": "image", "ocrResult": "A unit."}]}),
        Text("A unit."),
    ),
    "open_webui_code": (
        _open_webui(
            {**_ASKED, "code_executions": [{"id": "e", "code": "1", "result": {"output": "1"}}]}
        ),
        ToolResult("e", "code_interpreter", "1"),
    ),
    "claude_thought": (
        [
            {
                "uuid": "c1",
                "chat_messages": [
                    {
                        "uuid": "m1",
                        "sender": "assistant",
                        "content": [
                            {
                                "type": "thinking",
                                "thinking": "Easy.",
                                "summaries": [{"summary": "Units"}],
                            }
                        ],
                    }
                ],
            }
        ],
        Thinking("Easy.\n\nUnits"),
    ),
    "lm_studio_failure": (
        _lm_studio(
            {
                "type": "toolStatus",
                "callId": "c",
                "statusState": {"status": {"type": "toolCallFailed", "error": "No tool"}},
            }
        ),
        ToolResult("c", "", "No tool", is_error=True),
    ),
    "open_webui_merged": (
        _open_webui({"role": "assistant", "merged": {"content": "Both."}}),
        Text("Both."),
    ),
    "takeout_detail": (_takeout("Asked Ohm?", details=[{**_LINK, "name": "SI"}]), _LINKED),
    "takeout_picture": (_takeout("Prompted ", imageFile=["a.png"]), Image("a.png", "image/png")),
    "librechat_plain": (_librechat({"text": "A unit.", "content": "A unit."}), Text("A unit.")),
    "opencode_task": (_opencode({"type": "subtask", "prompt": "Ohm?"}, role="user"), Text("Ohm?")),
}


@pytest.mark.parametrize("name", _KEPT)
def test_what_is_beside_a_text_is_kept(name: str, tmp_path: Path) -> None:
    content, kept = _KEPT[name]
    talks, report = _read(content, tmp_path)
    assert kept in [block for each in talks[0].messages for block in each.blocks]
    assert report == []


_REPLY = {"role": "assistant", "content": "A unit.", "error": "Overloaded"}
_NAMED: dict[str, tuple[object, str]] = {
    "chatbox": (_chatbox(_REPLY), "Overloaded"),
    "chatbox_note": (
        _chatbox(
            _ASKED, {"role": "assistant", "contentParts": [{"type": "info", "text": "Too long"}]}
        ),
        "Too long",
    ),
    "chatbox_app": (
        _chatbox(_ASKED, {"role": "assistant", "contentParts": [{"type": "app", "appId": "plot"}]}),
        "'app'",
    ),
    "chatbox_copilot": (
        {**_chatbox(_ASKED), "myCopilots": [{"id": "p1", "name": "Brief", "prompt": "Be brief."}]},
        "'Brief'",
    ),
    "librechat": (
        _librechat(_ASKED_LIBRECHAT, {"error": True, "text": "Overloaded"}),
        "Overloaded",
    ),
    "librechat_part": (
        _librechat(_ASKED_LIBRECHAT, {"content": [{"type": "error", "error": "Overloaded"}]}),
        "Overloaded",
    ),
    "cherry_studio": (
        _cherry_studio({"type": "error", "error": {"message": "Overloaded"}}),
        "Overloaded",
    ),
    "cherry_studio_sources": (
        _cherry_studio({"type": "citation", "response": {"results": {"chunks": []}}}),
        "unknown shape",
    ),
    "cherry_studio_memories": (
        _cherry_studio(
            {"type": "citation", "knowledge": [{**_LINK, "content": "A"}], "memories": [1]}
        ),
        "texts of sources (1), memories (1)",
    ),
    "cherry_studio_notes": (
        {
            **_cherry_studio(),
            "indexedDB": {**_cherry_studio()["indexedDB"], "knowledge_notes": [1]},
        },
        "knowledge notes (1)",
    ),
    "claude_shape": (
        [
            {
                "uuid": "c1",
                "chat_messages": [
                    {"uuid": "m1", "sender": "human", "content": "What is it?"},
                    {
                        "uuid": "m2",
                        "sender": "assistant",
                        "content": [{"type": "text", "text": {"a": 1}}],
                    },
                ],
            }
        ],
        "kind 'text'",
    ),
    "lm_studio_notes": ({**_lm_studio({"type": "debugInfoBlock"}), "notes": [1]}, "notes (1)"),
    "open_webui_sources": (
        _open_webui({**_ASKED, "sources": [{"document": ["A unit."]}], "embeds": ["<p>"]}),
        "texts of its sources (1), embeds (1)",
    ),
    "studio_draft": (
        {
            **_studio({"text": "A."}),
            "chunkedPrompt": {
                "chunks": [{"role": "user", "text": "Ohm?"}],
                "pendingInputs": [{"text": "Volt?"}],
            },
        },
        "draft",
    ),
    "claude_result": (
        [
            {
                "uuid": "c1",
                "chat_messages": [
                    {
                        "uuid": "m1",
                        "sender": "assistant",
                        "content": [
                            {"type": "text", "text": "A unit."},
                            {"type": "tool_result", "content": [{"type": "hologram", "a": 1}]},
                        ],
                    }
                ],
            }
        ],
        "'hologram'",
    ),
    "gemini_cli": (
        {
            "sessionId": "s1",
            "projectHash": "h",
            "messages": [
                {"id": "m1", "type": "user", "content": "Ohm?"},
                {"id": "m2", "type": "hologram", "content": "A unit."},
            ],
        },
        "'hologram'",
    ),
    "grok": (_grok({"error": "Overloaded"}), "Overloaded"),
    "grok_steps": (_grok({"steps": [{"tagged_text": {}}]}), "steps"),
    "grok_projects": (_grok({}, projects=[{"custom_personality": "Be brief."}]), "projects"),
    "lm_studio": (_lm_studio({"type": "hologram"}), "'hologram'"),
    "opencode": (
        _opencode(
            {"type": "text", "text": "A unit."},
            role="assistant",
            error={"name": "ApiError", "data": {"message": "Overloaded"}},
        ),
        "Overloaded",
    ),
    "open_webui": (_open_webui({**_REPLY, "error": {"content": "Overloaded"}}), "Overloaded"),
    "open_webui_rating": (
        _open_webui(
            {
                "role": "assistant",
                "content": "A unit.",
                "annotation": {"rating": -1, "comment": "Wrong", "tags": [], "reason": ""},
            }
        ),
        "rating -1, comment Wrong",
    ),
    "librechat_rating": (
        _librechat({"text": "A.", "feedback": {"rating": "thumbsUp", "text": None}}),
        "rating thumbsUp",
    ),
    "takeout_detail": (_takeout("Asked Ohm?", details=[{"name": "From the app"}]), "From the app"),
    "librechat_attachment": (
        _librechat({"text": "A.", "attachments": [{"type": "hologram", "hologram": {}}]}),
        "'hologram'",
    ),
    "damaged_part": (_open_webui({**_ASKED, "files": [None, 1]}), "damaged"),
    "damaged_message": (_chatbox(_ASKED, threads=["Ohm?"]), "damaged"),
    "damaged_deepseek": ([_DEEPSEEK, 7], "not a conversation"),
    "damaged_open_webui": ([*_open_webui(_ASKED), "Ohm?"], "not a conversation"),
    "damaged_conversation": ([_librechat(_ASKED_LIBRECHAT), "Ohm?"], "damaged"),
}


@pytest.mark.parametrize("name", _NAMED)
def test_what_is_not_kept_is_named(name: str, tmp_path: Path) -> None:
    content, named = _NAMED[name]
    (why,) = _read(content, tmp_path)[1]
    assert named in why


def test_what_many_messages_lack_is_named_once_with_their_number(tmp_path: Path) -> None:
    rated = {"role": "assistant", "content": "A unit.", "annotation": {"rating": 1}}
    nodes = [{**rated, "parentId": f"m{number}" if number else None} for number in range(5)]
    (_,), (why,) = _read(_open_webui(*nodes), tmp_path)
    assert "rating 1" in why


def test_a_damaged_list_of_conversations_is_said_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    talks = [_librechat(_ASKED_LIBRECHAT), "Ohm?"]
    path.write_text(json.dumps(talks))
    (skipped,) = (each for each in read_export(path) if isinstance(each, Skipped))
    assert skipped.where == "talks.json"


def test_parts_of_cherry_studio_s_database_are_kept_or_named(tmp_path: Path) -> None:
    path = write("cherry_studio_database", tmp_path)
    cited = {"category": "citation", "content": {"results": [_LINK], "source": "web"}}
    parts = [
        {"type": "text", "text": "A.", "providerMetadata": {"cherry": {"references": [cited]}}},
        {"type": "data-code", "data": {"content": "r = u / i", "language": "python"}},
        {"type": "data-translation", "data": {"content": "Eine Einheit."}},
        {"type": "source-url", "title": "BIPM", "url": "https://bipm.example"},
        {"type": "data-skill-scope", "data": {"skills": ["a"]}},
        {"type": "data-error", "data": {"message": "Overloaded"}},
        {"type": "data-hologram", "data": {}},
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE assistant (id, prompt)")
        connection.execute("INSERT INTO assistant VALUES ('a1', 'Be brief.')")
        connection.execute("ALTER TABLE topic ADD COLUMN assistant_id")
        connection.execute("UPDATE topic SET assistant_id = 'a1'")
        connection.execute("DELETE FROM message WHERE id = 'x'")
        content = json.dumps({"parts": parts})
        connection.execute("UPDATE message SET data = ? WHERE id = 'a'", (content,))
    (talk,) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    by_id = {each.source_id: each for each in talk.messages}
    assert (by_id["system"].role, by_id["system"].blocks) == (Role.SYSTEM, (Text("Be brief."),))
    assert by_id["q"].parent == "system"
    code = Text("```python\nr = u / i\n```")
    source = Text("- [BIPM](https://bipm.example)")
    assert by_id["a"].blocks == (Text("A."), _LINKED, code, Text("Eine Einheit."), source)
    error, unknown = talk.skipped
    assert "Overloaded" in error.why
    assert "'hologram'" in unknown.why


def test_instructions_of_jan_s_assistant_are_the_system_prompt(tmp_path: Path) -> None:
    path = write("jan", tmp_path)
    header = {"id": "c1", "title": "Ohms", "assistants": [{"instructions": "Be brief."}]}
    path.with_name("thread.json").write_text(json.dumps(header), encoding="utf-8")
    (talk,) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    system, asked, *_ = talk.messages
    assert (system.role, system.blocks) == (Role.SYSTEM, (Text("Be brief."),))
    assert asked.parent == system.source_id


def test_a_system_prompt_that_changes_is_kept_each_time(tmp_path: Path) -> None:
    path = write("llm", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM responses WHERE id = 'r2'")
        connection.execute("UPDATE responses SET system = 'Be brief.'")
        connection.executemany(
            "INSERT INTO responses VALUES (?, 'gpt-x', 'And?', ?, 'Too.', 'c1', '2026-03-05')",
            [("r3", "Be brief."), ("r4", "Be long."), ("r5", None)],
        )
    (talk,) = read_export(path)
    assert isinstance(talk, ImportedConversation)
    told = [each for each in talk.messages if each.role is Role.SYSTEM]
    assert [each.blocks for each in told] == [(Text("Be brief."),), (Text("Be long."),)]


def test_a_call_of_goose_that_was_never_made_is_named(tmp_path: Path) -> None:
    path = write("goose", tmp_path)
    failed = {"type": "toolRequest", "id": "c", "toolCall": {"status": "error", "error": "No tool"}}
    with closing(sqlite3.connect(path)) as connection, connection:
        content = json.dumps([{"type": "text", "text": "A unit."}, failed])
        connection.execute(
            "UPDATE messages SET content_json = ? WHERE message_id = 'q'", (content,)
        )
    (talk,) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    assert any("No tool" in each.why for each in talk.skipped)


def test_what_open_webui_s_database_has_beside_chats_is_named(tmp_path: Path) -> None:
    path = write("open_webui_database", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE note (id)")
        connection.execute("INSERT INTO note VALUES ('n')")
        connection.execute("CREATE TABLE prompt (id)")
    reports = [each.why for each in read_export(path) if isinstance(each, Skipped)]
    assert "it has notes (1) that are not imported" in reports

"""Parts of exports beside the texts: what has a place here is kept, and the report names what has none."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Attachment, Block, Image, Role, Text, Thinking, ToolResult
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers import read_export


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
    "open_webui_notes": (
        _open_webui({**_ASKED, "statusHistory": [{"done": True}], "status_history": [{"a": 1}]}),
        "how it was made",
    ),
    "open_webui_questions": (_open_webui({**_ASKED, "followUps": ["Volt?"]}), "follow-up"),
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

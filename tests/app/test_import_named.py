"""Parts of exports that have no place here, which the report names; and instructions, which are system prompts."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Attachment, Role, Text
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
    "open_webui": (_open_webui({**_REPLY, "error": {"content": "Overloaded"}}), "Overloaded"),
}


@pytest.mark.parametrize("name", _NAMED)
def test_what_is_not_kept_is_named(name: str, tmp_path: Path) -> None:
    content, named = _NAMED[name]
    (why,) = _read(content, tmp_path)[1]
    assert named in why

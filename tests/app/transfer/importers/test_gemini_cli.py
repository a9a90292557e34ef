"""The Gemini CLI importer: logs with rewinds, compressed histories and parts of the API."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.domain.conversations import Image, Role, Text, Thinking, plain_text
from app.domain.transfer import ImportedConversation
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.transfer.importer import ConversationImporter
from app.transfer.importers import read_export

_HEADER = {"sessionId": "s1", "projectHash": "heron-2", "startTime": "2026-08-01T10:00:00Z",
           "kind": "main"}  # fmt: skip


def _message(name: str, kind: str, *content: object, **more: object) -> dict[str, Any]:
    parts = [{"text": each} if isinstance(each, str) else each for each in content]
    return {"id": name, "timestamp": "2026-08-01T10:00:01Z", "type": kind, "content": parts, **more}


def _history(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(messages), "lastUpdated": "2026-08-01T10:00:09Z"}}


def _read(folder: Path, records: list[dict[str, Any]]) -> ImportedConversation:
    path = folder / "tmp" / "heron-2" / "chats" / "session-1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    (found,) = read_export(path)
    assert isinstance(found, ImportedConversation)
    return found


def _path(found: ImportedConversation) -> list[tuple[Role, str]]:
    by_id = {message.source_id: message for message in found.messages}
    name, path = found.visible_leaf, []
    while name is not None:
        path.append((by_id[name].role, plain_text(by_id[name].blocks)))
        name = by_id[name].parent
    return path[::-1]


_CONTEXT = _message("c", "user", "<session_context>\nThis is the Gemini CLI.\n</session_context>")
_TALK = [
    _HEADER, _history(_CONTEXT),
    _message("u1", "user", "Ohm?"), _message("a1", "gemini", "A unit."),
    _message("u2", "user", "Yes"), _message("a2", "gemini", "Good."),
    _message("u3", "user", "Yes"), _message("a3", "gemini", "Good again."),
]  # fmt: skip
_SAID = [
    (Role.USER, "Ohm?"), (Role.ASSISTANT, "A unit."), (Role.USER, "Yes"),
    (Role.ASSISTANT, "Good."), (Role.USER, "Yes"), (Role.ASSISTANT, "Good again."),
]  # fmt: skip


def test_a_compressed_history_takes_nothing_away(tmp_path: Path) -> None:
    compressed = _history(
        {**_CONTEXT, "id": "n0"},
        _message("n1", "user", "<state_snapshot>Ohms.</state_snapshot>"),
        _message("n2", "gemini", "Got it. Thanks for the additional context!"),
        _message("n3", "user", "Yes"), _message("n4", "gemini", "Good again."),
    )  # fmt: skip
    more = [_message("u4", "user", "Volt?"), _message("a4", "gemini", "Another.")]
    before = _read(tmp_path, _TALK)
    found = _read(tmp_path, [*_TALK, compressed, *more])
    assert _path(before) == _SAID
    assert _path(found) == [*_SAID, (Role.USER, "Volt?"), (Role.ASSISTANT, "Another.")]
    assert {m.source_id for m in before.messages} < {m.source_id for m in found.messages}


def test_a_history_that_is_logged_again_is_not_doubled(tmp_path: Path) -> None:
    again = [{**each, "id": f"x{number}"} for number, each in enumerate(_TALK[2:])]
    found = _read(tmp_path, [*_TALK, *again, _history(*again), _message("u4", "user", "Volt?")])
    assert _path(found) == [*_SAID, (Role.USER, "Volt?")]
    assert len(found.messages) == len(_SAID) + 1


def test_a_kept_message_that_repeats_the_words_of_an_older_one_stays_where_it_is(
    tmp_path: Path,
) -> None:
    said = ("start", "plan", "continue", "did 1", "continue", "did 2", "thanks", "bye")
    kinds = ("user", "gemini") * 4
    talk = [_message(f"m{n}", *each) for n, each in enumerate(zip(kinds, said, strict=True))]
    snapshot = _message("s", "user", "<state_snapshot>All.</state_snapshot>")
    agreed = _message("g", "gemini", "Got it. Thanks for the additional context!")
    found = _read(tmp_path, [_HEADER, *talk, _history(snapshot, agreed, *talk[4:])])
    assert [text for _, text in _path(found)] == list(said)
    assert len(found.messages) == len(said)


def test_a_rewind_begins_a_branch(tmp_path: Path) -> None:
    found = _read(tmp_path, [*_TALK, {"$rewindTo": "u3"}, _message("u4", "user", "Volt?")])
    assert _path(found) == [*_SAID[:4], (Role.USER, "Volt?")]
    assert len(found.messages) == len(_SAID) + 1


def test_parts_of_the_api_are_kept_as_what_they_are(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    asked = _message("u", "user", "Ohm? @a.txt", "file", picture, displayContent=["Ohm?"])
    thought = {"text": "Easy.", "thought": True}
    answer = _message("a", "gemini", thought, "A unit.", {"functionCall": {"name": "units"}})
    found = _read(tmp_path, [_HEADER, asked, answer, _message("e", "error", "Quota")])
    kinds = [type(block) for message in found.messages for block in message.blocks]
    assert kinds == [Text, Image, Thinking, Text]
    assert plain_text(found.messages[0].blocks).startswith("Ohm?")
    assert found.messages[0].file_keys == ("data:image/png;base64,aGk=",)
    assert len(found.skipped) == 1


def test_the_project_is_that_of_the_folder(tmp_path: Path) -> None:
    assert _read(tmp_path, _TALK).tags == ("heron-2",)
    (tmp_path / "tmp" / "heron-2" / ".project_root").write_text("/home/me/Heron\n", "utf-8")
    assert _read(tmp_path, _TALK).tags == ("Heron",)


def test_a_log_that_was_read_by_an_earlier_version_grows_below_its_reply(
    store: Store, tmp_path: Path
) -> None:
    """It stored the tools that a reply calls before the reply, and none that only thinks."""
    call = {"id": "t", "name": "ls", "args": {}, "result": "notes.md"}
    thought = {"subject": "Files", "description": "Which?"}
    first = [
        _HEADER, _message("u1", "user", "Ohm?"),
        _message("a1", "gemini", toolCalls=[call], thoughts=[thought]),
        _message("a2", "gemini", "A unit.", toolCalls=[call]),
    ]  # fmt: skip
    now = _read(tmp_path, first)
    _, _, calls1, results1, said, calls2, results2 = now.messages
    earlier = (
        now.messages[0], replace(calls1, parent="u1"), results1, replace(calls2, parent="a1/results"),
        results2, replace(said, parent="a2/results"),
    )  # fmt: skip
    importer = ConversationImporter(store)
    for found in (
        replace(now, messages=earlier, visible_leaf="a2"),
        now,
        _read(
            tmp_path, [*first, _message("u2", "user", "Volt?"), _message("a3", "gemini", "Too.")]
        ),
    ):
        (pending,) = importer.store([found])
        pending.wait()
    (stored,) = Conversations(store).listed()
    exchanges = Exchanges(store).of(stored.id)
    assert len(exchanges) == 2
    shown = [
        e for turn in shown_path(stored, exchanges) for e in Exchanges(store).messages_of(turn)
    ]
    assert [each.text for each in shown if each.text] == ["Ohm?", "A unit.", "Volt?", "Too."]
    assert len(shown) == 8

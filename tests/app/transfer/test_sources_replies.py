"""Followed sources whose replies are written piece by piece while they are read."""

import json
import os
import sqlite3
import time
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.check import check
from app.domain.conversations import Image
from app.domain.records.sources import SOURCES, SourceName
from app.storage.deletion.forget import forget_messages
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.transfer import open_replies
from app.transfer.importing import import_files
from tests.fakes.export_files import write
from tests.fakes.files import png
from tests.fakes.followed import Followed, as_lines
from tests.fakes.stored import opened


def _piece(name: str, parent: str, reply: str, content: dict[str, str]) -> dict[str, Any]:
    message = {"id": reply, "role": "assistant", "model": "claude", "content": [content]}
    return {"uuid": name, "parentUuid": parent, "type": "assistant", "message": message}


def _asked(name: str, parent: str | None, content: object) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"uuid": name, "parentUuid": parent, "type": "user", "message": message}


_IN_PIECES = (
    _asked("u1", None, "How do I bake bread?"),
    _piece("a1", "u1", "m1", {"type": "thinking", "thinking": "Flour and water"}),
    _piece("a2", "a1", "m1", {"type": "text", "text": "I look it up."}),
    _piece("a3", "a2", "m1", {"type": "tool_use", "id": "t", "name": "Read", "input": ""}),
    _asked("u2", "a3", [{"type": "tool_result", "tool_use_id": "t", "content": "a recipe"}]),
    _piece("a4", "u2", "m2", {"type": "text", "text": "Mix flour"}),
    _piece("a5", "a4", "m2", {"type": "text", "text": "Mix flour and water."}),
    _asked("u3", "a5", "And then?"),
    _piece("a6", "u3", "m3", {"type": "thinking", "thinking": "Heat"}),
    _piece("a7", "a6", "m3", {"type": "text", "text": "Bake it."}),
)


def _shown(store: Store) -> list[str]:
    """The texts of the turns of the only conversation, as they are shown."""
    (found,) = Conversations(store).listed()
    exchanges = Exchanges(store)
    return [
        "".join(
            getattr(block, "text", "")
            for message in exchanges.messages_of(each)
            for block in message.blocks
        )
        for each in shown_path(found, exchanges.of(found.id))
    ]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_reply_that_is_logged_in_pieces_is_kept_whole_while_it_is_followed(
    followed: Followed, step: int, tmp_path: Path
) -> None:
    records = [each | {"sessionId": "s1", "isSidechain": False} for each in _IN_PIECES]
    for read in (*range(1, len(records), step), len(records)):
        followed.session.write_text(as_lines(records[:read]))
        os.utime(followed.session, ns=(read, read))
        followed.read()
        stored = len(Exchanges(followed.store).messages_in(1))
        followed.restart()
        followed.read()
        assert len(Exchanges(followed.store).messages_in(1)) == stored
    with opened(tmp_path / "other") as other:
        import_files(other, [followed.session])
        assert _shown(followed.store) == _shown(other)
        assert "Mix flour and water." in _shown(other)[0]
    assert check(followed.store).problems == ()


@pytest.mark.parametrize("pieces", [(3,), (2, 3)], ids=["its beginning", "what was added"])
def test_what_was_forgotten_of_a_reply_does_not_return_when_it_grows(
    followed: Followed, pieces: tuple[int, ...]
) -> None:
    records = [each | {"sessionId": "s1", "isSidechain": False} for each in _IN_PIECES[:4]]
    for count in pieces:
        followed.session.write_text(as_lines(records[:count]))
        followed.read()
    assert any("look it up" in text for _, text in followed.texts())
    forget_messages(followed.store, [Exchanges(followed.store).messages_in(1)[-1].id])
    followed.session.write_text(as_lines(records))
    followed.read()
    assert not any("look it up" in text for _, text in followed.texts())


def test_a_picture_in_a_later_piece_of_a_reply_is_kept(followed: Followed) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(png()).decode()}
    picture: Any = {"type": "image", "source": source}
    pieces = ({"type": "text", "text": "Look:"}, picture, {"type": "text", "text": "There."})
    records = [
        _asked("u1", None, "Draw"),
        *(_piece(f"a{n}", f"a{n - 1}" if n else "u1", "m1", each) for n, each in enumerate(pieces)),
    ]
    records = [each | {"sessionId": "s1", "isSidechain": False} for each in records]
    folder = followed.store.paths.attachments
    for count in (2, 3, 4):
        followed.session.write_text(as_lines(records[:count]))
        followed.read()
    (kept,) = folder.iterdir()
    assert kept.read_bytes() == png()
    (image,) = (
        block
        for each in Exchanges(followed.store).messages_in(1)
        for block in each.blocks
        if isinstance(block, Image)
    )
    assert kept.name.startswith(image.content_hash or "?")
    kept.unlink()  # as when its message is forgotten
    records += [_asked("u2", "a2", "Seen?") | {"sessionId": "s1", "isSidechain": False}]
    followed.session.write_text(as_lines(records))
    assert followed.read() == 1
    assert not list(folder.iterdir())


_OPEN: dict[SourceName, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    SourceName.CLAUDE_CODE: (
        ".claude/projects/-w/s1.jsonl",
        [
            {**_asked("u1", None, "Why?"), "sessionId": "s1", "isSidechain": False},
            *(
                {
                    **_piece(name, parent, "m1", {"type": "text", "text": text}),
                    "sessionId": "s1",
                }
                for name, parent, text in (("a1", "u1", "Because"), ("a2", "a1", "Because it is."))
            ),
        ],
        {"type": "assistant", "uuid": "a3", "parentUuid": "a2", "sessionId": "s1",
         "message": {"id": "m1", "role": "assistant", "content": [], "stop_reason": "end_turn"}},
    ),
    SourceName.CODEX: (
        ".codex/sessions/2026/03/04/rollout-s1.jsonl",
        [
            {"timestamp": "2026-03-04T10:00:00Z", "type": kind, "payload": payload}
            for kind, payload in (
                ("session_meta", {"id": "s1", "cwd": "/w", "originator": "codex_cli"}),
                ("response_item", {"type": "message", "role": "user",
                                   "content": [{"type": "input_text", "text": "Why?"}]}),
                ("response_item", {"type": "message", "role": "assistant",
                                   "content": [{"type": "output_text", "text": "Because"}]}),
                ("response_item", {"type": "message", "role": "assistant",
                                   "content": [{"type": "output_text", "text": " it is."}]}),
            )
        ],
        {"timestamp": "", "type": "event_msg", "payload": {"type": "task_complete"}},
    ),
}  # fmt: skip


class Following(NamedTuple):
    """A file that is followed from `lines`, of which the last two are pieces of a reply; `end` ends it."""

    followed: Followed
    path: Path
    lines: list[dict[str, Any]]
    end: dict[str, Any]

    def reads(self, *lines: dict[str, Any]) -> list[str]:
        """Read a file with these lines, written just now; return the texts of replies and branches."""
        self.path.write_text(as_lines(list(lines)))
        self.followed.read()
        return self.replies()

    def replies(self) -> list[str]:
        (found,) = Conversations(self.followed.store).listed()
        messages = Exchanges(self.followed.store).messages_in(found.id)
        return [each.text for each in messages if each.role == "assistant"]


@pytest.fixture(params=list(_OPEN))
def following(followed: Followed, clean_home: Path, request: pytest.FixtureRequest) -> Following:
    place, lines, end = _OPEN[request.param]
    if request.param is SourceName.CLAUDE_CODE:
        for each in lines[1:]:
            each["message"]["stop_reason"] = None
    path = clean_home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    followed.settings.set(SOURCES[request.param].setting, True)
    return Following(followed, path, lines, end)


def test_a_reply_is_stored_once_its_program_has_ended_it(following: Following) -> None:
    lines = following.lines
    assert following.reads(*lines[:-1]) == []
    assert following.reads(*lines) == []
    (reply,) = following.reads(*lines, following.end)
    assert reply.split() == ["Because", "it", "is."]
    assert following.followed.read() == 0


def test_a_reply_that_was_never_ended_is_stored_when_it_no_longer_changes(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert following.reads(*following.lines) == []
    assert following.followed.read() == 0, "it is postponed"
    following.followed.restart()
    monkeypatch.setattr(open_replies, "SETTLED_S", 0.0)
    assert following.followed.read() == 1
    assert len(following.replies()) == 1
    assert following.followed.read() == 0


def test_tools_that_a_reply_of_gemini_calls_follow_it_when_they_have_run(
    followed: Followed, clean_home: Path
) -> None:
    """It writes a reply once that is whole, and its tool calls minutes later if the user is asked."""
    followed.settings.set(SOURCES[SourceName.GEMINI_CLI].setting, True)
    log = clean_home / ".gemini/tmp/h/chats/session-1.jsonl"
    log.parent.mkdir(parents=True)
    reply: dict[str, Any] = {"id": "a", "type": "gemini", "content": "I look."}
    records: list[dict[str, Any]] = [
        {"sessionId": "s1", "projectHash": "h"}, {"id": "q", "type": "user", "content": "Why?"}, reply,
    ]  # fmt: skip
    call = {"id": "t", "name": "ls", "args": {}, "result": "notes.md"}
    texts = []
    for more in (
        [],
        [{**reply, "toolCalls": [call]}, {"id": "b", "type": "gemini", "content": "So."}],
    ):
        records += more
        log.write_text(as_lines(records))
        followed.read()
        (found,) = Conversations(followed.store).listed()
        (turn,) = shown_path(found, Exchanges(followed.store).of(found.id))
        texts.append([each.text for each in Exchanges(followed.store).messages_of(turn)])
    assert texts[0] == ["Why?", "I look."]
    assert [each for each in texts[1] if each] == ["Why?", "I look.", "So."]
    assert len(texts[1]) == 5, "with the call and its result"


def test_a_growing_message_of_opencode_is_one_message(followed: Followed, clean_home: Path) -> None:
    followed.settings.set(SOURCES[SourceName.OPENCODE].setting, True)
    path = write("opencode", clean_home / ".local/share/opencode")
    texts = ("A", "A unit", "A unit of resistance.")
    for number, text in enumerate(texts):
        times = {"created": 1} | ({"completed": 2} if text == texts[-1] else {})
        with closing(sqlite3.connect(path)) as connection, connection:
            data = json.dumps({"role": "assistant", "time": times})
            connection.execute("UPDATE message SET data = ? WHERE id = 'm2'", [data])
            part = json.dumps({"type": "text", "text": text})
            connection.execute("DELETE FROM part WHERE id IN ('p2', 'p4', 'p5', 'p7')")
            connection.execute("UPDATE part SET data = ? WHERE id = 'p6'", [part])
        os.utime(path, (time.time(), time.time() + number))
        followed.read()
    assert {text for _, text in followed.texts()} == {"What is the ohm?", texts[-1]}

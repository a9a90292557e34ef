"""Followed sources: sessions of other programs are imported as they are written, and kept."""

import json
import os
import random
import sqlite3
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from app.check import check
from app.domain.changes import ConversationEdited
from app.domain.conversations import Image
from app.domain.errors import StorageError
from app.domain.records.sources import SOURCES, SourceName
from app.domain.transfer import ImportedConversation
from app.domain.workers import WorkerName
from app.storage.deletion.forget import forget_messages
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, shown_path
from app.storage.tables.settings import Settings
from app.transfer import open_replies, source_files
from app.transfer.importers import read_export
from app.transfer.importing import import_files
from app.workers.followed import FollowedSources
from app.workers.job_interface import OpenConversation
from app.workers.jobs import JobParts
from app.workers.jobs.source_reader import SourceReader
from tests.fakes.command_line import Console
from tests.fakes.export_files import ANSWER, QUESTION, log_records, write
from tests.fakes.files import png
from tests.fakes.stored import made, opened
from tests.fakes.summarizers import go_on

_NOW = datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """List folders at every look, and read a file again at once."""
    monkeypatch.setattr(source_files, "LIST_EVERY_S", 0.0)
    monkeypatch.setattr(source_files, "_READ_SHARE", 0)
    monkeypatch.setattr(source_files, "_DATABASE_LAG_S", 0.0)


class Followed:
    """A library that follows Claude Code, and a session of it."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store, self.settings = store, Settings(store)
        self.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, True)
        self.session = home / ".claude" / "projects" / "-home-me-heron" / "s1.jsonl"
        self.session.parent.mkdir(parents=True)
        self.restart()

    def restart(self) -> None:
        self.job = SourceReader(
            JobParts(self.store, self.settings, OpenConversation(self.store, self.settings))
        )

    def read(self) -> int:
        """Read what changed; return the number of files."""
        found = self.job.find(_NOW)
        if found:
            self.job.save([self.job.make([file], lambda: False) for file in found])
        self.job.find(_NOW)  # writes the notes
        return len(found)

    def texts(self) -> set[tuple[str, str]]:
        """Return the titles of conversations with the texts of their messages."""
        exchanges = Exchanges(self.store)
        return {
            (each.title, message.text)
            for each in Conversations(self.store).listed()
            for message in exchanges.messages_in(each.id)
        }


@pytest.fixture
def followed(store: Store, clean_home: Path) -> Followed:
    return Followed(store, clean_home)


def _text(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


def test_a_session_is_read_once_and_again_when_it_grows(followed: Followed) -> None:
    records = log_records("claude_code")
    followed.session.write_text(_text(records[:3]))
    assert [followed.read(), followed.read()] == [1, 0]
    followed.session.write_text(_text(records))
    assert [followed.read(), followed.read()] == [1, 0]
    assert ("About ohms", "A unit.") in followed.texts()


def _with_picture(data: bytes) -> list[dict[str, Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(data).decode()}
    records = log_records("claude_code")
    asked = next(each for each in records if each["type"] == "user" and not each.get("isMeta"))
    asked["message"]["content"] = [{"type": "image", "source": source}]
    return records


def test_a_session_whose_picture_cannot_be_stored_is_read_again(followed: Followed) -> None:
    folder = followed.store.paths.attachments
    folder.write_bytes(b"")
    followed.session.write_text(_text(_with_picture(png())))
    with pytest.raises(StorageError):
        followed.read()
    folder.unlink()
    assert followed.read() == 1
    assert [each.read_bytes() for each in folder.iterdir()] == [png()]


def test_a_bad_picture_is_logged_once(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    records = _with_picture(png()[:-20])
    for count in (-1, None):
        followed.session.write_text(_text(records[:count]))
        with caplog.at_level("INFO"):
            assert followed.read() == 1
    assert ["s1.jsonl" in each.getMessage() for each in caplog.records] == [True]


def test_a_picture_in_a_session_is_kept_and_once_forgotten_stays_out(followed: Followed) -> None:
    records = _with_picture(png())
    followed.session.write_text(_text(records[:-1]))
    followed.read()
    (picture,) = followed.store.paths.attachments.iterdir()
    assert picture.read_bytes() == png()
    picture.unlink()  # as when its message is forgotten
    followed.session.write_text(_text(records))
    assert followed.read() == 1
    assert not picture.exists()


def test_what_was_read_is_known_after_a_restart(followed: Followed) -> None:
    followed.session.write_text(_text(log_records("claude_code")))
    followed.read()
    followed.restart()
    assert followed.read() == 0


def test_without_its_notes_everything_is_read_again_and_nothing_twice(followed: Followed) -> None:
    followed.session.write_text(_text(log_records("claude_code")))
    followed.read()
    before = followed.texts()
    (followed.store.paths.index / "sources.json").write_text("{damaged")
    followed.restart()
    assert followed.read() == 1
    assert followed.texts() == before
    assert len(Conversations(followed.store).listed()) == 2


def test_what_is_written_beside_an_open_database_is_read(store: Store, clean_home: Path) -> None:
    settings = Settings(store)
    settings.set(SOURCES[SourceName.OPENCODE].setting, True)
    job = SourceReader(JobParts(store, settings, OpenConversation(store, settings)))
    path = write("opencode", clean_home / ".local/share/opencode")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        os.utime(path, ns=(1, 1))
        assert job.save([job.make(job.find(_NOW), lambda: False)]).completed == 1
        assert not job.find(_NOW)
        with connection:
            connection.execute("UPDATE session SET title = 'About volts'")
        assert [file.path for file in job.find(_NOW)] == [path]


def test_a_session_that_vanished_stays_and_is_counted(followed: Followed) -> None:
    followed.session.write_text(_text(log_records("claude_code")))
    followed.read()
    before = followed.texts()
    followed.session.unlink()
    assert followed.read() == 0
    assert followed.texts() == before
    files = source_files.SourceFiles(followed.store.paths)
    files.look(list(SOURCES))
    assert files.kept_only_here(SourceName.CLAUDE_CODE) == 1
    assert followed.job.tally().total == 0


@pytest.mark.parametrize("seed", range(6))
def test_reading_on_ends_like_reading_once(followed: Followed, seed: int, tmp_path: Path) -> None:
    """Cuts are anywhere, in the middle of lines too."""
    drawn = random.Random(seed)
    whole = _text(log_records("claude_code")).encode()
    cuts = sorted(drawn.sample(range(1, len(whole)), 5))
    for cut in (*cuts, len(whole)):
        followed.session.write_bytes(whole[:cut])
        os.utime(followed.session, ns=(cut, cut))
        followed.read()
    with opened(tmp_path / "other") as other:
        import_files(other, [followed.session])
        expected = {
            message.text
            for each in Conversations(other).listed()
            for message in Exchanges(other).messages_in(each.id)
        }
    assert {text for _, text in followed.texts()} >= expected - {""}


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
        followed.session.write_text(_text(records[:read]))
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
        followed.session.write_text(_text(records[:count]))
        followed.read()
    assert any("look it up" in text for _, text in followed.texts())
    forget_messages(followed.store, [Exchanges(followed.store).messages_in(1)[-1].id])
    followed.session.write_text(_text(records))
    followed.read()
    assert not any("look it up" in text for _, text in followed.texts())


# -- replies that are being written


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
        self.path.write_text(_text(list(lines)))
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
        log.write_text(_text(records))
        followed.read()
        (found,) = Conversations(followed.store).listed()
        (turn,) = shown_path(found, Exchanges(followed.store).of(found.id))
        texts.append([each.text for each in Exchanges(followed.store).messages_of(turn)])
    assert texts[0] == ["Why?", "I look."]
    assert [each for each in texts[1] if each] == ["Why?", "I look.", "So."]
    assert len(texts[1]) == 5, "with the call and its result"


def test_a_session_that_cursor_keeps_twice_is_one_conversation(
    followed: Followed, clean_home: Path
) -> None:
    followed.settings.set(SOURCES[SourceName.CURSOR].setting, True)
    write("cursor", clean_home / ".config/Cursor/User/globalStorage")
    folder = clean_home / ".cursor/projects/x-heron/agent-transcripts"
    followed.read()
    (one, *_) = before = Conversations(followed.store).listed()
    questions = [text for title, text in followed.texts() if title == one.title]
    (own, *_) = followed.store.rows(
        "SELECT source_id FROM origin WHERE kind = 'conversation' AND local_id = ?", [one.id]
    )
    for name, text in ((own[0], questions[0]), ("only-here", "Which anchor holds?")):
        log = folder / name / f"{name}.jsonl"
        log.parent.mkdir(parents=True)
        said = [{"role": "user", "message": {"content": text}}]
        log.write_text(_text([*said, {"role": "assistant", "message": {"content": "Mine."}}]))
    followed.read()
    titles = [each.title for each in Conversations(followed.store).listed()]
    assert sorted(titles) == sorted([*(each.title for each in before), "Which anchor holds?"])


@pytest.mark.parametrize(("has_more", "goes_on"), [(False, False), (True, False), (False, True)])
def test_a_transcript_of_cursor_that_was_read_first_gives_way_to_the_database(
    followed: Followed, clean_home: Path, has_more: bool, goes_on: bool
) -> None:
    """It has no results of tools. What was asked in it alone is never lost."""
    folder = clean_home / ".cursor/projects/p/agent-transcripts"
    path = write("cursor", clean_home / "away")
    (talk, *_) = (each for each in read_export(path) if isinstance(each, ImportedConversation))
    said = [("user", QUESTION), ("assistant", "Mine."), *([("user", "More?")] if has_more else [])]
    log = folder / talk.source_id / f"{talk.source_id}.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(_text([{"role": r, "message": {"content": text}} for r, text in said]))
    followed.settings.set(SOURCES[SourceName.CURSOR].setting, True)
    assert followed.read() == 1
    (first,) = Conversations(followed.store).listed()
    followed.store.commit(ConversationEdited(first.id, pinned=True)).result()
    if goes_on:  # here, with words that the database has too
        go_on(followed.store, first, Exchanges(followed.store).of(first.id)[-1], QUESTION)
        has_more = True
    place = clean_home / ".config/Cursor/User/globalStorage"
    place.mkdir(parents=True)
    path.rename(place / path.name)
    for _ in range(2):  # the log is read once more, and adds nothing
        followed.read()
        os.utime(log)
        texts = {text for title, text in followed.texts() if title in (talk.title, QUESTION)}
        assert ("Mine." in texts, ANSWER in texts) == (has_more, not has_more)
    kept = [each for each in Conversations(followed.store).listed() if each.pinned]
    assert [each.id == first.id for each in kept] == [has_more]
    (gone,) = Conversations(followed.store).by_ids([first.id]).values()
    assert (gone.deleted_at is None) == has_more


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_transcript_of_cursor_waits_until_its_database_is_read(
    followed: Followed, clean_home: Path, monkeypatch: pytest.MonkeyPatch, is_waiting: bool
) -> None:
    """Of a session that both have only what is read first is kept."""
    folder = clean_home / ".config/Cursor/User/globalStorage"
    path, changed = write("cursor", folder), time.time() - 60
    log = write("cursor_agent", clean_home / ".cursor/projects/p/agent-transcripts/c1")
    followed.settings.set(SOURCES[SourceName.CURSOR].setting, True)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM cursorDiskKV").fetchall()
        with connection:
            connection.execute("DELETE FROM cursorDiskKV")
        os.utime(path, (changed, changed))
        log.rename(log.with_suffix(".away"))
        followed.read()
        log.with_suffix(".away").rename(log)
        if is_waiting:  # it took long to read, and has changed
            followed.job._files._wait_until[str(path)] = time.monotonic() + 600
            with connection:
                connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
        else:  # the session is written to it in a moment
            monkeypatch.setattr(source_files, "_DATABASE_LAG_S", 600.0)
        os.utime(log, (changed + 30, changed + 30))
        assert followed.read() == 0
        monkeypatch.setattr(source_files, "_DATABASE_LAG_S", 0.0)
        if is_waiting:
            followed.job._files._wait_until.clear()
            assert followed.read() == 1
        assert followed.read() == 1
    assert {title for title, _ in followed.texts()} == (
        {"About ohms"} if is_waiting else {"What is the ohm?"}
    )


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
        followed.session.write_text(_text(records[:count]))
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
    followed.session.write_text(_text(records))
    assert followed.read() == 1
    assert not list(folder.iterdir())


def test_a_source_that_is_off_is_not_looked_at(followed: Followed) -> None:
    followed.session.write_text(_text(log_records("claude_code")))
    followed.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, False)
    assert not followed.job.find(_NOW)


def test_what_is_suggested_says_how_many_messages_there_are(
    followed: Followed, clean_home: Path
) -> None:
    followed.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, False)
    kinds = ("user", "assistant", "assistant", "file-history-snapshot")
    message = {"type": "message", "role": "assistant"}
    followed.session.write_text(_text([{"type": each, "message": message} for each in kinds]))
    write("goose", clean_home / ".local/share/goose/sessions")
    found = FollowedSources(followed.store.paths, followed.settings, cast(Any, None))
    assert [(each.name, each.files, each.messages) for each in found.suggestions()] == [
        (SourceName.CLAUDE_CODE, 1, 3), (SourceName.GOOSE, 1, 0),
    ]  # fmt: skip
    found.note_suggested([SourceName.CLAUDE_CODE])
    assert [each.name for each in found.suggestions()] == [SourceName.GOOSE]


def test_logs_are_counted_until_the_first_megabytes_are_read(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (followed.session.parent / f"{name}.jsonl").write_text(_text(log_records("claude_code")))
    files = source_files.SourceFiles(followed.store.paths)
    files.look([SourceName.CLAUDE_CODE])
    monkeypatch.setattr(source_files, "_COUNTED_BYTES", 1000)
    opened_files = []
    really_open = Path.open

    def counted(path: Path, *args: Any, **more: Any) -> Any:
        opened_files.append(path)
        return really_open(path, *args, **more)

    monkeypatch.setattr(Path, "open", counted)
    spec = SOURCES[SourceName.CLAUDE_CODE]
    assert source_files.estimated_messages(spec, files.files.values())
    assert len(opened_files) == 1


def test_a_damaged_file_is_left_alone_until_it_changes(followed: Followed) -> None:
    followed.session.write_bytes(b"\x00\xff nonsense")
    assert [followed.read(), followed.read()] == [1, 0]
    followed.session.write_text(_text(log_records("claude_code")))
    assert followed.read() == 1
    assert followed.texts()


@pytest.mark.parametrize(
    ("name", "file", "place"),
    [(SourceName.CODEX, "codex", ".codex"),
     (SourceName.GEMINI_CLI, "gemini_cli", ".gemini/tmp/h/chats"),
     (SourceName.CURSOR, "cursor", ".config/Cursor/User/globalStorage"),
     (SourceName.CURSOR, "cursor_agent", ".cursor/projects/p/agent-transcripts/c1"),
     (SourceName.CLAUDE_CODE, "claude_code",
      ".config/Claude/local-agent-mode-sessions/a/local_b/.claude/projects/p"),
     (SourceName.GOOSE, "goose", ".local/share/goose/sessions"),
     (SourceName.OPENCODE, "opencode", ".local/share/opencode")],
)  # fmt: skip
def test_sessions_are_found_where_each_program_keeps_them(
    followed: Followed, clean_home: Path, name: SourceName, file: str, place: str
) -> None:
    folder = clean_home / place
    folder.mkdir(parents=True)
    write(file, folder)
    followed.settings.set(SOURCES[name].setting, True)
    assert followed.read() >= 1
    assert {each.source for each in Conversations(followed.store).listed()} == {name.value}


@pytest.fixture
def console(tmp_path: Path, clean_home: Path) -> Iterator[Console]:
    session = clean_home / ".claude" / "projects" / "-home-me-heron" / "s1.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text(_text(log_records("claude_code")))
    with closing(Console(made(tmp_path / "library").root)) as console:
        yield console


def test_the_command_line_lists_switches_and_reads(console: Console) -> None:
    (state,) = console.json("sources", "list")["sources"]
    assert (state["source"], state["on"], state["files"], state["read"]) == (
        "claude_code", False, 1, 0,
    )  # fmt: skip
    assert console.json("sources", "on", "claude_code") == {"source": "claude_code", "on": True}
    console.done("work", "--until-idle", "--only", WorkerName.SOURCE_READER)
    (state,) = console.json("sources", "list")["sources"]
    assert (state["on"], state["read"]) == (True, 1)
    assert "About ohms" in console.titles()
    console.done("sources", "off", "claude_code")
    assert not console.json("sources", "list")["sources"][0]["on"]
    assert console("sources", "on").code == 2
    assert console("sources", "on", "nonsense").code == 2

"""Followed sources: sessions of other programs are imported as they are written, and kept."""

import os
import random
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from app.domain.errors import StorageError
from app.domain.records.sources import SOURCES, SourceName
from app.domain.workers import WorkerName
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.settings import Settings
from app.transfer import source_files
from app.transfer.importing import import_files
from app.workers.followed import FollowedSources
from app.workers.jobs import JobParts
from app.workers.jobs.source_reader import SourceReader
from tests.fakes.command_line import Console
from tests.fakes.export_files import log_records, write
from tests.fakes.files import png
from tests.fakes.followed import NOW, Followed, as_lines
from tests.fakes.stored import made, opened


def test_a_session_is_read_once_and_again_when_it_grows(followed: Followed) -> None:
    records = log_records("claude_code")
    followed.session.write_text(as_lines(records[:3]))
    assert [followed.read(), followed.read()] == [1, 0]
    followed.session.write_text(as_lines(records))
    assert [followed.read(), followed.read()] == [1, 0]
    assert ("About ohms", "A unit.") in followed.texts()
    followed.restart()
    assert followed.read() == 0


def _with_picture(data: bytes) -> list[dict[str, Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(data).decode()}
    records = log_records("claude_code")
    asked = next(each for each in records if each["type"] == "user" and not each.get("isMeta"))
    asked["message"]["content"] = [{"type": "image", "source": source}]
    return records


def test_a_session_whose_picture_cannot_be_stored_is_read_again(followed: Followed) -> None:
    folder = followed.store.paths.attachments
    folder.write_bytes(b"")
    followed.session.write_text(as_lines(_with_picture(png())))
    with pytest.raises(StorageError):
        followed.read()
    folder.unlink()
    assert followed.read() == 1
    assert [each.read_bytes() for each in folder.iterdir()] == [png()]


def test_a_bad_picture_is_logged_once(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    records = _with_picture(png()[:-20])
    for count in (-1, None):
        followed.session.write_text(as_lines(records[:count]))
        with caplog.at_level("INFO"):
            assert followed.read() == 1
    assert ["s1.jsonl" in each.getMessage() for each in caplog.records] == [True]


def test_without_its_notes_everything_is_read_again_and_nothing_twice(followed: Followed) -> None:
    followed.session.write_text(as_lines(log_records("claude_code")))
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
    job = SourceReader(JobParts(store, settings))
    path = write("opencode", clean_home / ".local/share/opencode")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        os.utime(path, ns=(1, 1))
        assert job.save([job.make(job.find(NOW), lambda: False)]).completed == 1
        assert not job.find(NOW)
        with connection:
            connection.execute("UPDATE session SET title = 'About volts'")
        assert [file.path for file in job.find(NOW)] == [path]


def test_a_session_that_vanished_stays_and_is_counted(followed: Followed) -> None:
    followed.session.write_text(as_lines(log_records("claude_code")))
    nothing = followed.session.with_name("s2.jsonl")
    nothing.write_text("{}")
    followed.read()
    before = followed.texts()
    followed.session.unlink()
    nothing.unlink()
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
    whole = as_lines(log_records("claude_code")).encode()
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


def test_a_source_that_is_off_is_not_looked_at(followed: Followed) -> None:
    followed.session.write_text(as_lines(log_records("claude_code")))
    followed.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, False)
    assert not followed.job.find(NOW)


def test_what_is_suggested_says_how_many_messages_there_are(
    followed: Followed, clean_home: Path
) -> None:
    followed.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, False)
    kinds = ("user", "assistant", "assistant", "file-history-snapshot")
    message = {"type": "message", "role": "assistant"}
    followed.session.write_text(as_lines([{"type": each, "message": message} for each in kinds]))
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
        (followed.session.parent / f"{name}.jsonl").write_text(as_lines(log_records("claude_code")))
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
    followed.session.write_text(as_lines(log_records("claude_code")))
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
    session.write_text(as_lines(log_records("claude_code")))
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

"""Followed sessions of Cursor, which keeps them in its database and as transcripts."""

import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited
from app.domain.records.sources import SOURCES, SourceName
from app.domain.transfer import ImportedConversation
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.transfer import source_files
from app.transfer.importers import read_export
from tests.fakes.export_files import ANSWER, QUESTION, write
from tests.fakes.followed import Followed, as_lines
from tests.fakes.summarizers import go_on


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
        log.write_text(as_lines([*said, {"role": "assistant", "message": {"content": "Mine."}}]))
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
    log.write_text(as_lines([{"role": r, "message": {"content": text}} for r, text in said]))
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


@pytest.mark.parametrize(
    ("folder", "said", "project"),
    [
        ("home-anna-code-my-app", "", "code-my-app"),
        ("Users-anna-code-my-app", "/Users/anna/code/my-app/src/a.py", "my-app"),
        ("c-Users-anna-my-app", "c:\\Users\\anna\\my app\\a.py", "my app"),
        ("home-anna-my", "/home/anna/my-app/a.py and /home/anna/my.", "my"),
        ("{home}-code-my-app", "", "my-app"),
        ("{home}-code-old-app", "", "old-app"),
    ],
)
def test_a_project_whose_folder_is_gone_has_a_name(
    clean_home: Path, folder: str, said: str, project: str
) -> None:
    (clean_home / "code" / "my-app").mkdir(parents=True)
    dashed = re.sub(r"[^A-Za-z0-9]", "-", str(clean_home)).lstrip("-")
    name = folder.format(home=dashed)
    log = clean_home / ".cursor/projects" / name / "agent-transcripts/c1/c1.jsonl"
    log.parent.mkdir(parents=True)
    call = {"type": "tool_use", "name": "Read", "input": {"path": said}}
    asked = {"role": "user", "message": {"content": "Read it."}}
    log.write_text(as_lines([asked, {"role": "assistant", "message": {"content": [call]}}]))
    (found,) = read_export(log)
    assert isinstance(found, ImportedConversation)
    assert found.tags == (project,)

"""Start and end of the window: quit in the middle, killed, started twice, refused by its folder."""

import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from PySide6.QtCore import Qt

from app.bootstrap import RunMode, Services, build
from app.chat.models import ModelDirectory
from app.domain.conversations import ExchangeStatus
from app.providers.configuration import ProviderConfig
from app.system.paths import DataPaths
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import slow, stall, text
from tests.fakes.user import LOOPBACK_MODEL, User
from ui.presenters.imports import SAMPLE
from ui.widgets.transcript.heights import AtItem
from ui.widgets.transcript.message_frame import UserFrame
from ui.widgets.transcript.panels import InterruptionPanel

STORY = "Once upon a time there was a book that remembered everything it had ever been told."


def program(*arguments: str) -> "subprocess.Popen[str]":
    """Start a Python program of ours beside the window."""
    return subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


async def ended(user: User, process: "subprocess.Popen[str]") -> str:
    """Wait for a program to end well; return what it printed."""
    await user.until(lambda: process.poll() is not None, "the other program")
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


async def test_a_window_that_is_left_during_a_reply_comes_back_with_it(
    user: User, server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    server.reply(text(STORY), stall())
    await user.start_with_model(server.v1)
    await user.bring(SAMPLE)
    await user.say("Tell me a story.")
    await user.until(lambda: STORY in user.turn_text(0))
    user.press("Ctrl+J")
    user.type("And then")

    user.press("Ctrl+Q")
    await user.gone()

    assert "in time" not in caplog.text
    await user.start()
    await user.until(lambda: STORY in user.turn_text(0))
    assert user.turn(0).findChild(InterruptionPanel) is not None
    await user.until(lambda: user.window.chat.composer.text == "And then")


async def test_a_restored_backup_is_what_the_next_start_shows(user: User) -> None:
    await user.start()
    await user.say("The quince is planted")
    await user.until(lambda: user.titles() and not user.transcript.is_streaming)
    before = user.titles()
    backup = await user.ask(lambda services: services.back_up())
    user.action("new").trigger()
    await user.say("The roof is leaking")
    await user.until(lambda: len(user.titles()) == 2 and not user.transcript.is_streaming)
    running = user.running
    user.window.restore_requested.emit(backup.path)
    await user.gone()
    assert running.restored == backup.path
    await user.start()
    await user.until(lambda: user.titles() == before)


async def test_a_backup_that_cannot_be_restored_is_named_before_the_window_comes_back(
    user: User, tmp_path: Path
) -> None:
    await user.start()
    await user.say("The quince is planted")
    await user.until(lambda: user.titles() and not user.transcript.is_streaming)
    before = user.titles()
    damaged = tmp_path / "damaged.duckdb"
    damaged.write_bytes(b"no database")
    user.window.restore_requested.emit(damaged)
    await user.sees(damaged.name)
    user.click("Close")
    await user.gone()
    await user.start()
    await user.until(lambda: user.titles() == before)


async def test_a_killed_window_comes_back_with_the_reply_it_was_reading(
    user: User, server: Loopback, data_dir: Path
) -> None:
    server.reply(text(STORY, chunks=16), slow(15), stall())
    with closing(build(DataPaths(data_dir), RunMode.COMMAND_LINE)) as services:
        services.models.add_provider(ProviderConfig("loop", "compatible", server.v1))
        services.settings.set("default_model", LOOPBACK_MODEL)
    window = program("tests.fakes.driven_window", str(data_dir), "Tell me a story.")
    journal = DataPaths(data_dir).journal
    try:
        await user.until(lambda: holds(journal, b"told."), "the journal")
    finally:
        window.send_signal(signal.SIGKILL)
        window.communicate()

    await user.start()

    await user.until(lambda: STORY in user.turn_text(0))
    assert user.turn(0).findChild(InterruptionPanel) is not None
    assert user.window.chat.title.text() == "Tell me a story"
    assert user.presenters.conversation.view.path[0].status is ExchangeStatus.INTERRUPTED


async def test_an_idle_window_imports_what_the_first_message_needs(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = threading.Event()
    monkeypatch.setattr(ModelDirectory, "preload", lambda _: loaded.set())
    await user.start()
    await user.until(loaded.is_set)


def holds(journal: Path, words: bytes) -> bool:
    return any(words in segment.read_bytes() for segment in journal.iterdir())


async def test_a_second_start_raises_the_first_that_answers(user: User, data_dir: Path) -> None:
    await user.start()
    user.window.setWindowState(Qt.WindowState.WindowMinimized)
    await user.until(user.window.isMinimized)

    await ended(user, program("ui.main", "--data-dir", str(data_dir)))
    assert not user.window.isMinimized()

    command = ("--data-dir", str(data_dir), "config", "set", "theme", "dark")
    await ended(user, program("app", *command))
    await user.until(lambda: user.running.appearance.theme.dark, "the dark theme")
    said = ("--data-dir", str(data_dir), "ask", "What about the deposit?", "--json")
    assert "conversation_id" in await ended(user, program("app", *said))
    await user.until(lambda: "What about the deposit?" in user.titles())


async def test_a_database_from_a_newer_program_is_left_as_it_is(user: User, data_dir: Path) -> None:
    await user.start()
    await user.leave()
    paths = DataPaths(data_dir)
    with duckdb.connect(str(paths.database)) as connection:
        connection.execute("UPDATE meta SET value = '9999' WHERE key = 'schema_version'")
    before = paths.database.read_bytes()

    await user.start_only()

    await user.sees("newer", "Try again", "Quit")
    assert not user.window.chat.composer.isEnabled()
    assert not user.action("import").isEnabled()
    user.click("Quit")
    await user.gone()
    assert paths.database.read_bytes() == before


async def test_a_read_only_folder_is_named_and_tried_again(user: User, data_dir: Path) -> None:
    put_file(data_dir)
    await user.start_only()
    await user.sees(str(data_dir), "Try again")

    put_file(data_dir, gone=True)
    user.click("Try again")

    await user.until(lambda: user.running.presenters is not None)
    await user.sees("A chat that remembers")
    await user.say("Anybody there?")
    await user.until(lambda: len(user.transcript.heights) == 1)


def put_file(path: Path, *, gone: bool = False) -> None:
    """Put a file where the folder should be, or take it away."""
    if gone:
        path.unlink()
    else:
        path.write_text("This is no folder.", encoding="utf-8")


async def test_leaving_while_the_folder_is_opened_leaves_nothing_open(
    user: User, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, go_on = threading.Event(), threading.Event()
    opened: list[Services] = []

    def slowly(*given: Any) -> Services:
        opening.set()
        assert go_on.wait(20)
        opened.append(build(*given))
        return opened[-1]

    monkeypatch.setattr("ui.main.application.build", slowly)
    await user.start_only()
    await user.until(opening.is_set)
    user.window.close()
    await user.until(lambda: user.running.bridge.is_settled, "the shutdown")

    go_on.set()
    await user.gone()

    assert opened
    build(DataPaths(data_dir), RunMode.COMMAND_LINE).close()  # raises if somebody has it open


async def test_a_command_s_messages_keep_position_and_edit(user: User, data_dir: Path) -> None:
    await user.start()
    await user.say("First question")
    await user.until(lambda: len(user.transcript.heights) == 1 and not user.transcript.is_streaming)
    opened = str(user.presenters.conversation.conversation_id)
    long = "\n\n".join(f"Line {number}" for number in range(60))
    said = ("--data-dir", str(data_dir), "ask", long, "--conversation", opened)
    await ended(user, program("app", *said))
    await user.until(lambda: len(user.transcript.heights) == 2)
    await user.until(lambda: "Line 59" in user.turn_text(1) and user.transcript.is_settled)
    frame = user.turn(0).findChild(UserFrame)
    user.transcript.scroll_to_anchor(AtItem(0, 0))
    frame.setFocus()
    user.click("Edit", frame)
    await user.until(lambda: user.window.chat.composer.is_editing)
    user.type(", said differently")
    place = user.transcript.reading_position()

    said = ("--data-dir", str(data_dir), "ask", "Third question", "--conversation", opened)
    await ended(user, program("app", *said))

    await user.until(lambda: len(user.transcript.heights) == 3 and user.transcript.is_settled)
    assert user.transcript.reading_position() == place
    assert user.window.chat.composer.is_editing
    assert user.window.chat.composer.text == "First question, said differently"

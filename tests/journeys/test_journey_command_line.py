"""Whole stories at the command line: real processes, a real database, real signals."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from app.bootstrap import Role, build
from app.cli.entry import execute
from app.cli.remote import CommandServer, raise_window
from app.domain.conversations import ExchangeStatus
from app.domain.ids import ConversationId
from app.system.paths import DataPaths
from tests.fakes.exports import Shape, write_chatgpt_export, write_claude_export
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, text
from tests.fakes.stored import made

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0


class Shell:
    """Runs `python -m app` on one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._command = [sys.executable, "-m", "app", "--data-dir", str(data_dir)]
        self._started: list[subprocess.Popen[str]] = []

    def __call__(self, *words: object, given: str = "", code: int = 0) -> str:
        """Run a command to its end; return its standard output."""
        ran = subprocess.run(
            [*self._command, *map(str, words)],
            cwd=ROOT, input=given, capture_output=True, text=True, timeout=WAIT_S,
        )  # fmt: skip
        assert ran.returncode == code, ran
        return ran.stdout

    def json(self, *words: object) -> Any:
        """Run a command; return its JSON document."""
        return json.loads(self(*words, "--json"))

    def begin(self, *words: object) -> "subprocess.Popen[str]":
        """Start a command that is not waited for; `end` does not let it outlive the test."""
        started = subprocess.Popen(
            [*self._command, *map(str, words)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._started.append(started)
        return started

    def end(self) -> None:
        """Kill what is still running."""
        for each in self._started:
            each.kill()
            each.communicate()


@pytest.fixture
def shell(data_dir: Path) -> Iterator[Shell]:
    shell = Shell(data_dir)
    yield shell
    shell.end()


def line_of(stream: IO[str] | None) -> str:
    """Return the next line of a running command."""
    assert stream is not None
    return stream.readline()


def wait_until(condition: Callable[[], bool], running: "subprocess.Popen[str]") -> None:
    """Look again and again while a command runs."""
    pause = threading.Event()
    while not condition():
        assert running.poll() is None, running.communicate()
        pause.wait(0.005)


def test_a_past_is_brought_found_kept_and_carried_to_another_machine(
    shell: Shell, tmp_path: Path
) -> None:
    chatgpt = write_chatgpt_export(tmp_path / "chatgpt.zip", Shape(4, 6, 20), shards=2)
    claude = write_claude_export(tmp_path / "claude.zip", Shape(3, 4, 20, seed=2))
    report = shell.json("import", chatgpt, claude)
    assert report["conversations"] == 7
    assert shell.json("import", chatgpt, claude)["duplicates"] == report["messages"]

    everything = shell.json("show", 1)
    words = everything["turns"][2]["messages"][0]["text"].split()[:8]
    phrase = f'"{" ".join(words)}"'
    (first, *_) = shell.json("search", phrase)["results"]
    assert (first["conversation_id"], first["turn_number"]) == (1, 2)
    shell("archive", 1)
    assert shell.json("search", phrase)["results"] == []

    question = "What did we say?\n" + " ".join(words)
    assert "commonplace://" in shell("ask", "-", given=question)
    shell("tag", 2, "carried")
    shell("work", "--until-idle")
    assert shell.json("check")["ok"]

    shell("export", tmp_path / "book.json")
    elsewhere = Shell(tmp_path / "elsewhere")
    elsewhere("import", tmp_path / "book.json")
    elsewhere("export", tmp_path / "again.json")
    book, again = (
        json.loads((tmp_path / name).read_text()) for name in ("book.json", "again.json")
    )
    assert again["conversations"] == book["conversations"]


def test_an_import_that_is_killed_is_finished_by_the_next_one(
    shell: Shell, tmp_path: Path, data_dir: Path
) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(300, 4, 20))
    importing = shell.begin("import", export)
    journal = DataPaths(data_dir).journal
    wait_until(
        lambda: any(each.stat().st_size > 100_000 for each in journal.glob("*.journal")), importing
    )
    importing.kill()
    importing.communicate()
    kept = len(shell.json("list")["conversations"]) + len(
        shell.json("list", "--archived")["conversations"]
    )
    assert 0 < kept < 300
    report = shell.json("import", export)
    assert report["conversations"] == 300 - kept
    assert shell.json("check")["ok"]
    assert shell.json("status")["searchable_percent"] == 100.0


def test_work_that_is_interrupted_ends_in_order(shell: Shell, tmp_path: Path) -> None:
    shell("import", write_chatgpt_export(tmp_path / "some.json", Shape(40, 6, 60)))
    working = shell.begin("work", "--json")
    lock = Path(tmp_path, "data", "open")
    wait_until(lock.exists, working)
    working.send_signal(signal.SIGINT)
    out, err = working.communicate(timeout=WAIT_S)
    assert working.returncode == 130
    assert err == ""
    # It may have been too early for anything but leaving.
    assert out == "" or json.loads(out)["workers"].keys() >= {"exchange_summarizer"}
    assert not lock.exists()


# -- beside work


def test_work_that_goes_on_answers_other_commands_and_gives_way_to_a_window(
    shell: Shell, data_dir: Path, tmp_path: Path
) -> None:
    shell("import", write_chatgpt_export(tmp_path / "some.json", Shape(3, 2, 20)))
    paths = DataPaths(data_dir)
    working = shell.begin("work")
    wait_until(paths.socket.exists, working)

    assert len(shell.json("list")["conversations"]) == 3
    shell("tag", 1, "garden")
    assert "garden" in shell("tag", 1)
    shell("restore", tmp_path / "none.duckdb", code=1)

    assert not raise_window(paths)
    out, err = working.communicate(timeout=WAIT_S)
    assert (working.returncode, err) == (0, "A window was opened: its workers go on.\n")
    assert "exchange_summarizer" in out
    assert not paths.socket.exists()
    assert "garden" in shell("tag", 1)


# -- beside a window


@pytest.fixture
def window(data_dir: Path) -> Iterator[Callable[[], Any]]:
    """Return what gives the services of a window that is open, with a socket."""
    services = build(DataPaths(made(data_dir).root), Role.WINDOW)
    server = CommandServer(
        services.paths, lambda argv, terminal: execute(services, argv, terminal), lambda: True
    )
    yield lambda: services
    server.close()
    services.close()


def test_a_caller_that_is_killed_leaves_a_stopped_reply(
    window: Callable[[], Any], shell: Shell
) -> None:
    with Loopback() as server:
        server.always(text("Once upon a time", chunks=4), Stall())
        shell("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
        asking = shell.begin("ask", "Tell me a story", "--model", "local:test-model")
        assert asking.stdout is not None
        assert asking.stdout.read(4) == "Once"
        asking.kill()
        asking.communicate()
        reply = window().chat.running(ConversationId(1))
        if reply is not None:
            reply.done.result(WAIT_S)
    (exchange,) = window().exchanges.of(1)
    assert exchange.status is ExchangeStatus.INTERRUPTED
    assert shell.json("show", 1)["turns"][0]["messages"][1]["text"].startswith("Once")


def test_an_interrupt_at_the_caller_stops_the_window_s_work(
    window: Callable[[], Any], shell: Shell, tmp_path: Path
) -> None:
    with Loopback() as server:
        server.always(text("Once upon a time", chunks=4), Stall())
        shell("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
        asking = shell.begin("ask", "Tell me a story", "--model", "local:test-model")
        assert asking.stdout is not None
        assert asking.stdout.read(4) == "Once"
        asking.send_signal(signal.SIGINT)
        assert line_of(asking.stderr).startswith("You stopped this reply.")
        asking.communicate(timeout=WAIT_S)
    assert asking.returncode == 130
    assert shell.json("status")["passages"] == {"turn": 1}

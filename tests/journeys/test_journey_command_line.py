"""The command line as real processes: a library's life, a kill, an interrupt, a window beside it."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.cli.remote import raise_window
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine, Console
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.fixtures import fixture_of

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0


class Shell:
    """Runs `python -m app` on one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._command = [sys.executable, "-m", "app", "--data-dir", str(data_dir)]
        self._started: list[subprocess.Popen[str]] = []

    def __call__(self, *words: object, given: str = "") -> str:
        """Run a command to its end; return its standard output."""
        ran = subprocess.run(
            [*self._command, *map(str, words)],
            cwd=ROOT, input=given, capture_output=True, text=True, timeout=WAIT_S,
        )  # fmt: skip
        assert ran.returncode == 0, ran
        return ran.stdout

    def begin(self, *words: object) -> "subprocess.Popen[str]":
        """Start a command without waiting for it."""
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


shell = fixture_of(Shell, "data_dir", then="end")


def wait_until(condition: Callable[[], bool], running: "subprocess.Popen[str]") -> None:
    """Wait for a condition while a command runs."""
    pause = threading.Event()
    while not condition():
        assert running.poll() is None, running.communicate()
        pause.wait(0.005)


def test_a_library_is_imported_after_a_kill_searched_worked_on_and_moved(
    shell: Shell, tmp_path: Path, data_dir: Path
) -> None:
    export = write_chatgpt_export(tmp_path / "many.json", Shape(120, 4, 20))
    importing = shell.begin("import", export)
    journals = DataPaths(data_dir).journal
    wait_until(
        lambda: any(each.stat().st_size > 40_000 for each in journals.glob("*.journal")), importing
    )
    importing.kill()
    importing.communicate()
    with closing(Console(data_dir)) as cli:
        stored = len(cli.titles()) + len(cli.titles("--archived"))
        assert 0 < stored <= 120  # all, if the import ended before the kill
        assert cli.json("import", export)["conversations"] == 120 - stored
        assert cli.json("check")["ok"]
        assert cli.json("status")["searchable_percent"] == 100.0
        turn = cli.json("show", 1)["turns"][2]
        words = " ".join(turn["messages"][0]["text"].split()[:8])
        first = cli.json("search", f'"{words}"')["results"][0]
        assert (first["conversation_id"], first["turn_number"]) == (1, 2)

    assert "commonplace://" in shell("ask", "-", given=f"What did we say?\n{words}")
    working = shell.begin("work", "--json")
    closed = DataPaths(data_dir).closed
    wait_until(lambda: not closed.exists(), working)
    working.send_signal(signal.SIGINT)
    out, err = working.communicate(timeout=WAIT_S)
    assert (working.returncode, err, closed.exists()) == (130, "", True)
    # It may have been too early for anything but ending.
    assert out == "" or json.loads(out)["workers"].keys() >= {"exchange_summarizer"}

    with closing(Console(data_dir)) as cli, closing(Console(tmp_path / "other")) as other:
        cli.done("export", tmp_path / "library.json")
        other.done("import", tmp_path / "library.json")
        before, after = (
            each.done("export", "-").document["conversations"] for each in (cli, other)
        )
    assert after == before


def test_work_executes_other_commands_and_ends_when_a_window_opens(
    shell: Shell, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = CommandLine(data_dir, capsys)
    here.done("import", write_chatgpt_export(tmp_path / "some.json", Shape(3, 2, 20)))
    paths = DataPaths(data_dir)
    working = shell.begin("work")
    wait_until(paths.socket.exists, working)
    assert shell("list").count("\n") == 3
    here.done("tag", 1, "garden")
    assert here("restore", tmp_path / "none.duckdb").code == 1
    assert not raise_window(paths)
    out, err = working.communicate(timeout=WAIT_S)
    assert (working.returncode, err) == (0, "A window was opened: its workers continue.\n")
    assert "exchange_summarizer" in out
    assert not paths.socket.exists()
    assert "garden" in here.done("tag", 1).out

"""The socket: a command beside an open window is answered by it, streamed, stopped, or refused."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.context_fetcher import RecallLimits
from app.cli import entry, remote
from app.cli.remote import CommandServer, ServerClosed, forward_command, raise_window
from app.cli.terminal import Terminal
from app.domain.conversations import Exchange, ExchangeStatus
from app.domain.ids import ConversationId
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine, typed
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.fixtures import fixture_of
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, text
from tests.fakes.stored import add_conversation, made, opened

WAIT_S = 60.0


@dataclass
class Window:
    """The services and the command server of a window; `raised` is set when it comes to the front."""

    services: Services
    raised: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.server = CommandServer(
            self.services.paths,
            lambda argv, terminal: entry.execute(self.services, argv, terminal),
            self.bring_to_front, self.services.serve_mcp, self.bring_to_front,
        )  # fmt: skip

    def bring_to_front(self) -> bool:
        self.raised.set()
        return True

    def close(self) -> None:
        self.server.close()
        self.services.close()


@pytest.fixture
def window(data_dir: Path) -> Iterator[Window]:
    with opened(data_dir) as store:
        add_conversation(store, "How do I keep basil alive", title="Herbs")
    running = Window(build(DataPaths(data_dir), RunMode.WINDOW))
    running.services.context_fetcher._limits = RecallLimits(60.0, 60.0, 60.0)  # no notice of haste
    yield running
    running.close()


@pytest.fixture
def paths(data_dir: Path) -> DataPaths:
    """A data directory without a window."""
    return made(data_dir)


@contextmanager
def serving(paths: DataPaths, execute: Callable[[list[str], Terminal], int]) -> Iterator[None]:
    """Serve commands with a function."""
    server = CommandServer(paths, execute, lambda: True, lambda _reader, _writer: None)
    try:
        yield
    finally:
        server.close()


cli = fixture_of(CommandLine, "data_dir", "capsys")


@dataclass
class Caller:
    """A process that forwards a command from a thread; setting `stop` is its user's Ctrl+C."""

    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    has_output: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)
    code: int | None = None

    def forward(self, paths: DataPaths, *argv: str) -> int:
        def hear(text: str) -> None:
            self.out.append(text)
            self.has_output.set()

        terminal = Terminal(hear, self.err.append, lambda: "", Path("/"), self.stop.is_set)
        self.code = forward_command(paths, list(argv), terminal, False)
        assert self.code is not None
        return self.code

    @contextmanager
    def forwarding(self, paths: DataPaths, *argv: str) -> Iterator[None]:
        """Forward a command that prints during the block and ends with it."""
        thread = threading.Thread(target=self.forward, args=(paths, *argv))
        thread.start()
        assert self.has_output.wait(WAIT_S)
        yield
        thread.join(WAIT_S)


def request(*argv: str) -> bytes:
    """Return the line that asks for a command."""
    return json.dumps({"argv": argv, "cwd": "/", "input": ""}).encode() + b"\n"


def calling(paths: DataPaths) -> socket.socket:
    """Return a connection to a window."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(WAIT_S)
    connection.connect(str(paths.socket))
    return connection


def answers(paths: DataPaths, line: bytes, *, is_all: bool = False) -> list[Any]:
    """Return all that a window answers to one line; with `is_all`, the caller sends no more."""
    with calling(paths) as connection:
        connection.sendall(line)
        if is_all:
            connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as stream:
            return [json.loads(each) for each in stream]


# -- answered by the window
def test_the_window_answers_commands_and_errors(window: Window, cli: CommandLine) -> None:
    assert [row["title"] for row in cli.json("list")["conversations"]] == ["Herbs"]
    (result,) = cli.json("search", "basil")["results"]
    assert result["conversation_title"] == "Herbs"
    assert cli.done("tag", 1, "garden").out == "garden\n"
    assert window.services.conversations.tags_of([1]) == {1: ("garden",)}
    missing = cli("show", 99)
    assert (missing.code, missing.out) == (1, "")
    assert "99" in missing.err
    assert cli("config", "get").code == 2
    assert cli.json("check")["ok"] is True
    assert Path(cli.json("backup")["backup"]).exists()


def test_paths_are_relative_to_the_caller_and_imports_are_found_at_once(
    window: Window, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_chatgpt_export(tmp_path / "chats.zip", Shape(2, 2, 8))
    monkeypatch.chdir(tmp_path)
    assert cli.json("import", "chats.zip")["conversations"] == 2
    status = cli.json("status")
    assert (status["passages"]["turn"], status["searchable_percent"]) == (5, 100.0)
    assert cli.json("export", "all.json")["out"] == str(tmp_path / "all.json")
    assert len(json.loads((tmp_path / "all.json").read_text())["conversations"]) == 3


def test_a_window_runs_workers_for_the_command_line(window: Window, cli: CommandLine) -> None:
    workers = cli.json("work", "--until-idle")["workers"]
    assert workers["exchange_summarizer"]["done"] == 1


def test_standard_input_reaches_the_window_and_large_output_the_caller(
    window: Window, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for question in ("What of\nbasil?", "Größe " * 60_000):
        monkeypatch.setattr(sys, "stdin", typed(question))
        conversation = cli.json("ask", "-")["conversation_id"]
        (turn,) = cli.json("show", conversation)["turns"]
        assert turn["messages"][0]["text"].strip() == question.strip()


def test_two_commands_are_answered_at_once(paths: DataPaths) -> None:
    both = threading.Barrier(2, timeout=WAIT_S)

    def execute(argv: list[str], terminal: Terminal) -> int:
        both.wait()
        terminal.line(argv[0])
        return 0

    callers = [Caller(), Caller()]
    with serving(paths, execute):
        threads = [
            threading.Thread(target=caller.forward, args=(paths, str(number)))
            for number, caller in enumerate(callers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
    assert [caller.out for caller in callers] == [["0\n"], ["1\n"]]


def test_while_ask_runs_other_commands_are_answered_and_work_waits_for_its_end(
    paths: DataPaths, cli: CommandLine
) -> None:
    with Loopback() as server:
        cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
        server.always(text("Once upon", chunks=2), Stall())
        words = ("ask", "Tell me a story", "--model", "local:test-model")
        command = [sys.executable, "-m", "app", "--data-dir", str(paths.root), *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as asking:
            assert asking.stdout.read(1) == b"O"
            try:
                assert [each["title"] for each in cli.json("list")["conversations"]]
                assert cli("restore", "x").code == 1
                assert raise_window(paths) is False, "a window waits until it ends"
                with pytest.raises(ServerClosed):
                    Caller().forward(paths, "work", "--until-idle")
            finally:
                asking.send_signal(signal.SIGINT)
            assert asking.wait(WAIT_S) == 128 + signal.SIGINT
    assert cli.done("work", "--until-idle").code == 0


def test_a_command_that_ends_waits_for_those_that_it_executes(paths: DataPaths) -> None:
    begun, ends = threading.Event(), threading.Event()

    def execute(_argv: list[str], terminal: Terminal) -> int:
        begun.set()
        assert ends.wait(WAIT_S)
        terminal.line("done")
        return 0

    server = CommandServer(paths, execute, lambda: False, lambda _reader, _writer: None)
    caller = Caller()
    thread = threading.Thread(target=caller.forward, args=(paths, "list"))
    thread.start()
    assert begun.wait(WAIT_S)
    server.stop_accepting()
    assert not paths.socket.exists()
    threading.Timer(0.1, ends.set).start()
    server.wait(lambda: False)
    server.close()
    thread.join(WAIT_S)
    assert (caller.code, caller.out) == (0, ["done\n"])


# -- the socket itself
def test_a_socket_in_a_long_path_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60) / "data"
    deep.parent.mkdir(parents=True)
    assert len(os.fsencode(deep)) > 108
    made(deep)
    running = Window(build(DataPaths(deep), RunMode.WINDOW))
    ran = CommandLine(deep, capsys)("list", "--json")
    raised = raise_window(DataPaths(deep))
    running.close()
    assert (ran.code, ran.document, raised) == (0, {"conversations": []}, True)
    assert not (deep / "socket").exists()


def test_the_socket_is_its_owners_alone_and_raises_the_window(window: Window) -> None:
    assert stat.S_IMODE(window.services.paths.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(window.services.paths.root.stat().st_mode) == 0o700
    assert raise_window(window.services.paths) is True
    assert window.raised.is_set()


@pytest.mark.parametrize("kind", ["socket", "file"])
def test_a_stale_socket_is_replaced(paths: DataPaths, cli: CommandLine, kind: str) -> None:
    assert raise_window(paths) is False
    if kind == "socket":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(str(paths.socket))
        assert cli.done("list").out == ""
    else:
        paths.socket.write_text("not a socket")
    with serving(paths, lambda _argv, _terminal: 7):
        assert Caller().forward(paths, "list") == 7
    assert not paths.socket.exists()


def test_a_disk_without_sockets_leaves_the_window_working(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(remote, "_listening", refuse)
    with serving(paths, lambda _argv, _terminal: 0):
        assert raise_window(paths) is False
    assert "commands cannot be executed" in caplog.text


# -- refused beside a window
def test_no_backup_is_restored_while_the_window_is_open(window: Window, cli: CommandLine) -> None:
    backup = cli.json("backup")["backup"]
    ran = cli("restore", backup)
    assert (ran.code, ran.out) == (1, "")
    assert f"process {os.getpid()}" in ran.err
    assert [row["title"] for row in cli.json("list")["conversations"]] == ["Herbs"]


def test_a_window_does_not_open_or_replace_itself(window: Window) -> None:
    for argv in (["restore", "x"], [], ["--json"]):
        refused, ended = answers(window.services.paths, request(*argv))
        assert (argv, bool(refused["err"]), ended) == (argv, True, {"exit": 1})


# -- stopping
@pytest.fixture
def slow(window: Window, cli: CommandLine) -> Iterator[Loopback]:
    """A server whose reply begins and never ends, set as the default model."""
    with Loopback() as server:
        cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
        cli.done("config", "set", "default_model", "local:test-model")
        server.always(text("Once upon", chunks=2), Stall())
        yield server


def ended(window: Window) -> Exchange:
    """Return the exchange of the new conversation once it has ended."""
    reply = window.services.chat.running(ConversationId(2))
    return reply.done.result(WAIT_S) if reply else window.services.exchanges.of(2)[-1]


@pytest.mark.parametrize("stopped_by", ["caller", "window"])
def test_a_streaming_answer_stops(window: Window, slow: Loopback, stopped_by: str) -> None:
    caller = Caller()
    with caller.forwarding(window.services.paths, "ask", "Tell me a story"):
        if stopped_by == "caller":
            caller.stop.set()
        else:
            window.server.close()
    assert caller.code == 1
    assert "".join(caller.out).rstrip("\n") in "Once upon"
    assert len(caller.err) == 1
    assert ended(window).status is ExchangeStatus.INTERRUPTED


def test_a_caller_that_is_killed_stops_its_answer(window: Window, slow: Loopback) -> None:
    with calling(window.services.paths) as connection:
        connection.sendall(request("ask", "Tell me a story"))
        assert b'"out"' in connection.recv(4096)
    exchange = ended(window)
    assert (exchange.status, len(exchange.message_ids)) == (ExchangeStatus.INTERRUPTED, 2)


def test_a_caller_that_is_killed_stops_endless_work(paths: DataPaths) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def execute(_argv: list[str], terminal: Terminal) -> int:
        begun.set()
        while not terminal.cancelled():
            stopped.wait(0.01)
        stopped.set()
        return 0

    with serving(paths, execute):
        with calling(paths) as connection:
            connection.sendall(request("work"))
            assert begun.wait(WAIT_S)
            assert not stopped.is_set()
        assert stopped.wait(WAIT_S)


def test_an_interrupt_still_prints_the_windows_last_output(
    window: Window, slow: Loopback, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = remote._responses

    def interrupted(connection: Any, cancelled: Callable[[], bool]) -> Iterator[Any]:
        for answer in real(connection, cancelled):
            if answer.get("out") == "Once upon":
                os.kill(os.getpid(), signal.SIGINT)
            yield answer

    monkeypatch.setattr(remote, "_responses", interrupted)
    slow.reply(text("Once upon", chunks=1), Stall())
    ran = cli("ask", "Tell me a story")
    assert (ran.code, ran.out.rstrip()) == (130, "Once upon")
    assert "stopped" in ran.err


def test_a_window_that_dies_in_the_middle_is_an_error(paths: DataPaths) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(paths.socket))
        listener.listen()

        def die() -> None:
            connection, _ = listener.accept()
            connection.sendall(b'{"out": "half an ans"}\n{"out": ')
            connection.close()

        dying = threading.Thread(target=die)
        dying.start()
        caller = Caller()
        with pytest.raises(ServerClosed):
            caller.forward(paths, "list")
        dying.join()
    assert caller.out == ["half an ans"]


# -- hostile lines

HOSTILE = {
    "nothing": b"", "an empty line": b"\n", "no JSON": b"hello\n", "no UTF-8": b"\xff\xfe\n",
    "a list": b"[]\n", "a number": b"12\n", "an empty object": b"{}\n",
    "no words": b'{"argv": null, "cwd": "/", "input": ""}\n',
    "numbers for words": b'{"argv": [1, 2], "cwd": "/", "input": ""}\n',
    "a number for a folder": b'{"argv": ["list"], "cwd": 7, "input": ""}\n',
    "a list for input": b'{"argv": ["ask", "-"], "cwd": "/", "input": []}\n',
    "deep": b"[" * 100_000 + b"\n", "a text for raise": b'{"raise": "please"}\n',
    "cut off": b'{"argv": ["list"], "cwd": "/", "inp',
}  # fmt: skip
UNTYPEABLE = [("import", "a\0b"), ("import", "\ud800"), ("search", "\ud800 x"), ("ask", "\ud800")]


def test_hostile_requests_are_refused_and_the_next_one_answered(
    window: Window, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = window.services.paths
    refusal = [{"err": "The window does not understand this request."}, {"exit": 2}]
    for name, line in HOSTILE.items():
        assert answers(paths, line, is_all=True) == refusal, name
    for argv in UNTYPEABLE:
        assert answers(paths, request(*argv))[-1]["exit"] in (0, 1), argv
    with calling(paths):  # a silent caller holds up nobody
        assert answers(paths, request("list", "--json"))[-1] == {"exit": 0}
        monkeypatch.setattr(remote, "_REQUEST_LIMIT_BYTES", 1000)
        assert answers(paths, b'{"argv": ["' + b"x" * 990)[-1] == {"exit": 2}
        window.server.close()


def test_a_bug_in_a_command_is_reported(paths: DataPaths, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_argv: list[str], _terminal: Terminal) -> int:
        raise ZeroDivisionError

    with serving(paths, fail):
        failure, ended = answers(paths, request("list"))
    assert failure["err"].startswith("Commonplace failed")
    assert ended == {"exit": 1}
    assert "ZeroDivisionError" in caplog.text


def test_quick_search_is_shown_without_loading_the_program(window: Window) -> None:
    code = (
        "import sys; from app.__main__ import main; print(main(), 'app.cli.entry' in sys.modules)"
    )
    words = ["--data-dir", str(window.services.paths.root), "quick"]

    def asked() -> list[str]:
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.split()

    assert asked() == ["0", "False"]
    assert window.raised.is_set()
    window.close()
    assert asked() == ["1", "True"]

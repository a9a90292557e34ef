"""The socket: a command beside an open window is answered by it, streamed, stopped, or refused."""

import json
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import Role, Services, build
from app.cli import entry, remote
from app.cli.remote import CommandServer, WindowWentAway, ask_window, raise_window
from app.cli.terminal import Terminal
from app.domain.conversations import Exchange, ExchangeStatus
from app.domain.ids import ConversationId
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine, typed
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Stall, text
from tests.fakes.stored import made, opened, told

WAIT_S = 20.0


@dataclass
class Window:
    """What stands in for a window: the services and the server, and how often it was raised."""

    services: Services
    raised: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.server = CommandServer(
            self.services.paths,
            lambda argv, terminal: entry.execute(self.services, argv, terminal),
            self.come_forward,
        )

    def come_forward(self) -> bool:
        self.raised.set()
        return True

    def close(self) -> None:
        self.server.close()
        self.services.close()


@pytest.fixture
def window(data_dir: Path) -> Iterator[Window]:
    made(data_dir)
    with opened(data_dir) as store:
        told(store, "How do I keep basil alive", title="Herbs")
    running = Window(build(DataPaths(data_dir), Role.WINDOW))
    yield running
    running.close()


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(data_dir, capsys)


@dataclass
class Heard:
    """A caller's terminal that keeps what it hears; `stop` is its user's wish."""

    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    spoken: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def terminal(self) -> Terminal:
        def hear(text: str) -> None:
            self.out.append(text)
            self.spoken.set()

        return Terminal(hear, self.err.append, lambda: "", Path("/"), self.stop.is_set)


def request(*argv: str, **more: object) -> bytes:
    """Return the line that asks for a command."""
    return json.dumps({"argv": argv, "cwd": "/", "input": "", **more}).encode() + b"\n"


def calling(paths: DataPaths) -> socket.socket:
    """Return a connection to a window."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(WAIT_S)
    connection.connect(str(paths.socket))
    return connection


def answers(paths: DataPaths, line: bytes) -> list[Any]:
    """Return all that a window answers to one line."""
    with calling(paths) as connection:
        connection.sendall(line)
        with connection.makefile("rb") as stream:
            return [json.loads(each) for each in stream]


# -- answered by the window


def test_a_command_beside_an_open_window_is_answered_by_it(
    window: Window, cli: CommandLine
) -> None:
    assert [row["title"] for row in cli.json("list")["conversations"]] == ["Herbs"]
    (result,) = cli.json("search", "basil")["results"]
    assert result["conversation_title"] == "Herbs"
    assert cli.done("tag", 1, "garden").out == "garden\n"
    assert window.services.conversations.tags_of([1]) == {1: ("garden",)}


def test_exit_codes_and_messages_come_from_the_window(window: Window, cli: CommandLine) -> None:
    missing = cli("show", 99)
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("There is no conversation 99")
    assert cli("config", "get").code == 2
    assert cli("search", "b").err.startswith("The query 'b' is too short.")


def test_paths_are_relative_to_the_caller(
    window: Window, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_chatgpt_export(tmp_path / "chats.zip", Shape(2, 2, 8))
    monkeypatch.chdir(tmp_path)
    assert cli.json("import", "chats.zip")["conversations"] == 2
    assert cli.json("export", "all.json")["out"] == str(tmp_path / "all.json")
    assert len(json.loads((tmp_path / "all.json").read_text())["conversations"]) == 3


def test_what_a_window_imported_is_found_at_once(
    window: Window, cli: CommandLine, tmp_path: Path
) -> None:
    cli.done("import", write_chatgpt_export(tmp_path / "chats.zip", Shape(3, 3, 8)))
    turns = cli.json("status")["passages"]["turn"]
    assert (turns, cli.json("status")["searchable_percent"]) == (10, 100.0)


def test_a_window_runs_workers_for_the_command_line(window: Window, cli: CommandLine) -> None:
    workers = cli.json("work", "--until-idle")["workers"]
    assert workers["exchange_summarizer"]["done"] == 1


def test_a_window_checks_and_backs_up(window: Window, cli: CommandLine) -> None:
    assert cli.json("check")["ok"] is True
    assert Path(cli.json("backup")["backup"]).exists()


def test_a_question_by_standard_input_reaches_the_window(
    window: Window, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", typed("What of\nbasil?"))
    conversation = cli.json("ask", "-")["conversation_id"]
    (turn,) = cli.json("show", conversation)["turns"]
    assert turn["messages"][0]["text"] == "What of\nbasil?"


def test_large_output_comes_whole(window: Window, cli: CommandLine) -> None:
    told(window.services.store, "Größe " * 60_000, title="Long")
    assert cli.json("show", 2)["turns"][0]["messages"][0]["text"] == "Größe " * 60_000


def test_two_commands_are_answered_at_once(data_dir: Path) -> None:
    both = threading.Barrier(2, timeout=WAIT_S)
    paths = made(data_dir)

    def execute(argv: list[str], terminal: Terminal) -> int:
        both.wait()
        terminal.line(argv[0])
        return 0

    server = CommandServer(paths, execute, lambda: True)
    heard = [Heard(), Heard()]
    callers = [
        threading.Thread(target=ask_window, args=(paths, [str(place)], each.terminal, False))
        for place, each in enumerate(heard)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(WAIT_S)
    server.close()
    assert [each.out for each in heard] == [["0\n"], ["1\n"]]


def test_a_long_path_is_no_hindrance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60) / "data"
    deep.parent.mkdir(parents=True)
    assert len(os.fsencode(deep)) > 108
    made(deep)
    running = Window(build(DataPaths(deep), Role.WINDOW))
    ran = CommandLine(deep, capsys)("list", "--json")
    raised = raise_window(DataPaths(deep))
    running.close()
    assert (ran.code, ran.document, raised) == (0, {"conversations": []}, True)
    assert not (deep / "socket").exists()


# -- the socket itself


def test_the_socket_is_its_owners_alone(window: Window) -> None:
    assert stat.S_IMODE(window.services.paths.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(window.services.paths.root.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["socket", "file"])
def test_a_socket_that_a_killed_window_left_is_replaced(data_dir: Path, kind: str) -> None:
    paths = made(data_dir)
    if kind == "socket":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(str(paths.socket))
    else:
        paths.socket.write_text("not a socket")
    server = CommandServer(paths, lambda _argv, _terminal: 7, lambda: True)
    heard = Heard()
    assert ask_window(paths, ["list"], heard.terminal, False) == 7
    server.close()
    assert not paths.socket.exists()


def test_a_stale_socket_does_not_keep_commands_away(cli: CommandLine, data_dir: Path) -> None:
    paths = made(data_dir)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(paths.socket))
    assert cli.done("list").out == ""


def test_a_disk_without_sockets_leaves_the_window_working(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    paths = made(data_dir)

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(remote, "_listening", refuse)
    server = CommandServer(paths, lambda _argv, _terminal: 0, lambda: True)
    assert raise_window(paths) is False
    server.close()
    assert "the command line cannot be answered" in caplog.text


def test_a_second_window_raises_the_first(window: Window) -> None:
    assert raise_window(window.services.paths) is True
    assert window.raised.is_set()


def test_nobody_is_raised_where_nobody_is(data_dir: Path) -> None:
    assert raise_window(made(data_dir)) is False


# -- what is not done beside a window


def test_a_backup_is_not_restored_while_the_window_is_open(
    window: Window, cli: CommandLine
) -> None:
    kept = cli.json("backup")["backup"]
    ran = cli("restore", kept)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Another program (process {os.getpid()}) is using")
    assert "Close it" in ran.err
    assert [row["title"] for row in cli.json("list")["conversations"]] == ["Herbs"]


@pytest.mark.parametrize("argv", [["restore", "x"], [], ["--json"]], ids=str)
def test_a_window_does_not_open_or_replace_itself(window: Window, argv: list[str]) -> None:
    told_, ended = answers(window.services.paths, request(*argv))
    assert told_ == {"err": "That cannot be done beside an open window or `work`. End it first."}
    assert ended == {"exit": 1}


# -- stopping


@pytest.fixture
def slow(window: Window, cli: CommandLine) -> Iterator[Loopback]:
    """Return a server whose reply begins and never ends, set as the default model."""
    with Loopback() as server:
        cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
        cli.done("config", "set", "default_model", "local:test-model")
        server.always(text("Once upon", chunks=2), Stall())
        yield server


def ended(window: Window, conversation_id: int) -> Exchange:
    """Return the last exchange of a conversation once nothing runs there any more."""
    reply = window.services.chat.running(ConversationId(conversation_id))
    if reply is not None:
        return reply.done.result(WAIT_S)
    return window.services.exchanges.of(conversation_id)[-1]


def test_an_answer_streams_through_the_socket_and_can_be_stopped(
    window: Window, slow: Loopback
) -> None:
    heard = Heard()
    codes: list[int] = []
    paths = window.services.paths
    caller = threading.Thread(
        target=lambda: codes.append(
            ask_window(paths, ["ask", "Tell me a story"], heard.terminal, False)
        )
    )
    caller.start()
    assert heard.spoken.wait(WAIT_S), "words come before the end"
    heard.stop.set()
    caller.join(WAIT_S)
    assert codes == [1]
    assert "".join(heard.out).rstrip("\n") in "Once upon"
    (last,) = heard.err
    assert last.startswith("You stopped this reply.")
    assert ended(window, 2).status is ExchangeStatus.INTERRUPTED


def test_a_caller_that_is_killed_stops_its_answer(window: Window, slow: Loopback) -> None:
    with calling(window.services.paths) as connection:
        connection.sendall(request("ask", "Tell me a story"))
        assert b'"out"' in connection.recv(4096)
    exchange = ended(window, 2)
    assert (exchange.status, len(exchange.message_ids)) == (ExchangeStatus.INTERRUPTED, 2)


def test_a_caller_that_is_killed_stops_endless_work(data_dir: Path) -> None:
    paths = made(data_dir)
    begun, stopped = threading.Event(), threading.Event()

    def execute(_argv: list[str], terminal: Terminal) -> int:
        begun.set()
        while not terminal.cancelled():
            stopped.wait(0.01)
        stopped.set()
        return 0

    server = CommandServer(paths, execute, lambda: True)
    with calling(paths) as connection:
        connection.sendall(request("work"))
        assert begun.wait(WAIT_S)
        assert not stopped.is_set()
    assert stopped.wait(WAIT_S)
    server.close()


def test_an_interrupt_lets_the_window_finish_what_it_says(
    window: Window, slow: Loopback, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = remote._answers

    def interrupted(connection: Any, cancelled: Callable[[], bool]) -> Iterator[Any]:
        for answer in real(connection, cancelled):
            if answer.get("out") == "Once upon":
                os.kill(os.getpid(), signal.SIGINT)
            yield answer

    monkeypatch.setattr(remote, "_answers", interrupted)
    slow.reply(text("Once upon", chunks=1), Stall())
    ran = cli("ask", "Tell me a story")
    assert (ran.code, ran.out.rstrip()) == (130, "Once upon")
    assert ran.err.startswith("You stopped this reply.")


def test_a_closing_window_ends_its_commands_first(window: Window, slow: Loopback) -> None:
    heard = Heard()
    codes: list[int] = []
    paths = window.services.paths
    caller = threading.Thread(
        target=lambda: codes.append(
            ask_window(paths, ["ask", "Tell me a story"], heard.terminal, False)
        )
    )
    caller.start()
    assert heard.spoken.wait(WAIT_S)
    window.server.close()
    caller.join(WAIT_S)
    assert codes == [1]
    assert ended(window, 2).status is ExchangeStatus.INTERRUPTED


def test_a_window_that_dies_in_the_middle_is_told_from_an_answer(data_dir: Path) -> None:
    paths = made(data_dir)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(paths.socket))
        listener.listen()

        def die() -> None:
            connection, _ = listener.accept()
            connection.sendall(b'{"out": "half an ans"}\n{"out": ')
            connection.close()

        dying = threading.Thread(target=die)
        dying.start()
        heard = Heard()
        with pytest.raises(WindowWentAway, match="ended before it had answered"):
            ask_window(paths, ["list"], heard.terminal, False)
        dying.join()
    assert heard.out == ["half an ans"]


# -- hostile lines

HOSTILE = {
    "nothing": b"",
    "an empty line": b"\n",
    "no JSON": b"hello\n",
    "no UTF-8": b"\xff\xfe\n",
    "a list": b"[]\n",
    "a number": b"12\n",
    "an empty object": b"{}\n",
    "no words": b'{"argv": null, "cwd": "/", "input": ""}\n',
    "numbers for words": b'{"argv": [1, 2], "cwd": "/", "input": ""}\n',
    "a number for a folder": b'{"argv": ["list"], "cwd": 7, "input": ""}\n',
    "a list for input": b'{"argv": ["ask", "-"], "cwd": "/", "input": []}\n',
    "deep": b"[" * 100_000 + b"\n",
    "wishes to be raised in vain": b'{"raise": "please"}\n',
    "cut off": b'{"argv": ["list"], "cwd": "/", "inp',
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_request_is_refused_and_the_next_one_answered(
    window: Window, line: bytes
) -> None:
    paths = window.services.paths
    with calling(paths) as connection:
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as stream:
            said = [json.loads(each) for each in stream]
    assert said == [{"err": "This is no request that a window understands."}, {"exit": 2}]
    assert answers(paths, request("list", "--json"))[-1] == {"exit": 0}


@pytest.mark.parametrize(
    "argv", [("import", "a\0b"), ("import", "\ud800"), ("search", "\ud800 x"), ("ask", "\ud800")]
)
def test_words_that_no_shell_can_send_do_no_harm(window: Window, argv: tuple[str, ...]) -> None:
    paths = window.services.paths
    assert answers(paths, request(*argv))[-1]["exit"] in (0, 1)
    assert answers(paths, request("list", "--json"))[-1] == {"exit": 0}


def test_a_request_without_end_is_cut_off(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_REQUEST_LIMIT_BYTES", 1000)
    said = answers(window.services.paths, b'{"argv": ["' + b"x" * 990)
    assert said[-1] == {"exit": 2}


def test_a_silent_caller_holds_up_nobody(window: Window, cli: CommandLine) -> None:
    with calling(window.services.paths):
        assert len(cli.json("list")["conversations"]) == 1
        window.server.close()


def test_a_bug_in_a_command_reaches_its_caller(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = made(data_dir)

    def fail(_argv: list[str], _terminal: Terminal) -> int:
        raise ZeroDivisionError

    server = CommandServer(paths, fail, lambda: True)
    said = answers(paths, request("list"))
    server.close()
    assert said[0]["err"].startswith("The program failed")
    assert said[1] == {"exit": 1}
    assert "ZeroDivisionError" in caplog.text

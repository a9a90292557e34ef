"""The socket between the command line and a running window: the window executes, the caller prints.

A request is one line of JSON, {"argv", "cwd", "input"} or {"raise": true}; answers are lines
{"out"}, {"err"} and at last {"exit"}. The socket lies in the data directory and belongs to its
owner alone.
"""

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from app.cli.terminal import Terminal
from app.system.paths import DataPaths

_log = logging.getLogger(__name__)
_REQUEST_LIMIT_BYTES = 64 << 20
_CONNECT_TIMEOUT_S = 5.0

Execute = Callable[[list[str], Terminal], int]


class CommandServer:
    """Answers the command line for a running window.

    `execute(argv, terminal)` runs a command and returns its exit code, on a thread of this
    server; `raise_window()` is called when a second window was started.
    """

    def __init__(
        self, paths: DataPaths, execute: Execute, raise_window: Callable[[], None]
    ) -> None:
        self._paths = paths
        self._execute = execute
        self._raise_window = raise_window
        self._closing = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        paths.socket.unlink(missing_ok=True)
        with _short_path(paths.socket) as address:
            self._listener.bind(address)
        paths.socket.chmod(0o600)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, name="command-line", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no more; commands under way see themselves cancelled."""
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self._paths.socket.unlink(missing_ok=True)

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._answer, args=(connection,), name="command", daemon=True
            ).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw", encoding="utf-8") as stream:
            gone = threading.Event()
            try:
                request = json.loads(stream.readline(_REQUEST_LIMIT_BYTES))
                if request.get("raise"):
                    self._raise_window()
                    _say(stream, {"exit": 0})
                    return
                code = self._execute(request["argv"], self._terminal(request, stream, gone))
                _say(stream, {"exit": code})
            except (OSError, ValueError, KeyError):
                _log.info("a command line went away or spoke nonsense")
                gone.set()

    def _terminal(self, request: Any, stream: Any, gone: threading.Event) -> Terminal:
        def say(kind: str, text: str) -> None:
            try:
                _say(stream, {kind: text})
            except OSError:
                gone.set()

        return Terminal(
            out=lambda text: say("out", text),
            err=lambda text: say("err", text),
            read_input=lambda: str(request.get("input", "")),
            cwd=Path(request["cwd"]),
            cancelled=lambda: gone.is_set() or self._closing.is_set(),
            as_json="--json" in request["argv"],
        )


def ask_window(paths: DataPaths, argv: list[str], terminal: Terminal, needs_input: bool) -> int:
    """Let the window that holds the data directory execute a command; return its exit code.

    Raises OSError when nobody answers there.
    """
    request = {
        "argv": argv,
        "cwd": str(terminal.cwd),
        "input": terminal.read_input() if needs_input else "",
    }
    for answer in _talk(paths, request):
        if "out" in answer:
            terminal.out(answer["out"])
        elif "err" in answer:
            terminal.err(answer["err"])
        elif "exit" in answer:
            return int(answer["exit"])
    raise ConnectionResetError("the window went away")


def raise_window(paths: DataPaths) -> bool:
    """Bring the window that holds the data directory to the front; False when none answers."""
    try:
        return any("exit" in answer for answer in _talk(paths, {"raise": True}))
    except OSError:
        return False


def _talk(paths: DataPaths, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_TIMEOUT_S)
        with _short_path(paths.socket) as address:
            connection.connect(address)
        connection.settimeout(None)
        with connection.makefile("rw", encoding="utf-8") as stream:
            _say(stream, request)
            for line in stream:
                yield json.loads(line)


def _say(stream: Any, message: dict[str, Any]) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


@contextmanager
def _short_path(path: Path) -> Iterator[str]:
    """Give an address for `path` that fits the 108 bytes of a Unix socket's name (unix(7))."""
    if len(os.fsencode(path)) < 100 or not Path("/proc/self/fd").exists():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

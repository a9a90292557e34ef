"""The socket between the command line and a running window: the window executes, the caller prints.

`work`, which may last for hours, answers there too, and gives way to a window.

A request is one line of JSON, {"argv", "cwd", "input", "watched"} or {"raise": true}; answers are
lines {"out"}, {"err"} and at last {"exit"}. A caller that sends anything more, closes its side or
goes away has cancelled. The socket lies in the data directory and belongs to its owner alone.
"""

import errno
import json
import logging
import os
import selectors
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.cli.terminal import Terminal
from app.domain.errors import KnownError
from app.system.paths import DataPaths

_log = logging.getLogger(__name__)
_REQUEST_LIMIT_BYTES = 64 << 20
_PATIENCE_S = 5.0
_LOOK_EVERY_S = 0.1
_GOODBYE_S = 3.0
_ADDRESS_BYTES = 100  # 108 with the closing zero on Linux, 104 on macOS (unix(7), unix(4))
_SOME_BYTES = 65_536

Execute = Callable[[list[str], Terminal], int]


class NobodyAnswers(Exception):
    """No window listens at the data directory's socket."""


class WindowWentAway(KnownError):
    """The window, or `work`, ended while it was executing a command."""


class CommandServer:
    """Answers the command line for whoever holds the data directory.

    `execute(argv, terminal)` runs a command and returns its exit code, on a thread of this
    server; `raise_window()` is called when a window was started, and returns False where there is
    none that came forward. Where the file system knows no sockets, nobody is answered.
    """

    def __init__(
        self, paths: DataPaths, execute: Execute, raise_window: Callable[[], bool]
    ) -> None:
        self._paths = paths
        self._execute = execute
        self._raise_window = raise_window
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._callers: dict[socket.socket, threading.Thread] = {}
        self._woken, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="command-line", daemon=True)
        try:
            self._listener = _listening(paths.socket)
        except OSError as error:
            _log.warning("the command line cannot be answered: %s", error)
            return
        self._thread.start()

    def close(self) -> None:
        """Accept no more; commands under way see themselves cancelled. Blocking, at most 3 s."""
        self._closing.set()
        self._waker.close()
        if self._thread.ident is not None:
            self._thread.join()
            self._listener.close()
            with suppress(OSError):
                self._paths.socket.unlink(missing_ok=True)
        self._woken.close()
        self._end_all(socket.SHUT_RD, _GOODBYE_S)
        self._end_all(socket.SHUT_RDWR, _LOOK_EVERY_S)

    def _end_all(self, how: int, timeout_s: float) -> None:
        with self._lock:
            callers = dict(self._callers)
        for connection in callers:
            with suppress(OSError):
                connection.shutdown(how)
        for thread in callers.values():
            thread.join(timeout_s)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                selector.select()
                if self._closing.is_set():
                    return
                with suppress(OSError):  # who called may have gone again
                    self._begin(self._listener.accept()[0])

    def _begin(self, connection: socket.socket) -> None:
        thread = threading.Thread(
            target=self._answer, args=(connection,), name="command", daemon=True
        )
        with self._lock:
            self._callers[connection] = thread
        thread.start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            self._obey(connection, _request_from(connection))
        except OSError:
            _log.info("a command line went away")
        except Exception:  # noqa: BLE001 - the edge of a command: its caller must hear of it
            _log.exception("a command failed")
            with suppress(OSError):
                _send(connection, {"err": "The program failed; the window's log tells more."})
                _send(connection, {"exit": 1})
        finally:
            with self._lock:
                del self._callers[connection]
            connection.close()

    def _obey(self, connection: socket.socket, request: "_Request | None") -> None:
        if request is None:
            _send(connection, {"err": "This is no request that a window understands."})
            _send(connection, {"exit": 2})
        elif request.wants_window:
            if self._raise_window():
                _send(connection, {"exit": 0})
        else:
            code = self._execute(list(request.argv), self._terminal(request, connection))
            _send(connection, {"exit": code})

    def _terminal(self, request: "_Request", connection: socket.socket) -> Terminal:
        def err(text: str) -> None:
            with suppress(OSError):  # then `cancelled` is true
                _send(connection, {"err": text})

        return Terminal(
            out=lambda text: _send(connection, {"out": text}),
            err=err,
            read_input=lambda: request.input,
            cwd=Path(request.cwd),
            cancelled=lambda: self._closing.is_set() or _has_cancelled(connection),
            is_watched=request.is_watched,
            is_far=True,
        )


def ask_window(paths: DataPaths, argv: list[str], terminal: Terminal, needs_input: bool) -> int:
    """Let the window that holds the data directory execute a command; return its exit code.

    Raises NobodyAnswers, WindowWentAway.
    """
    request = {
        "argv": argv,
        "cwd": str(terminal.cwd),
        "input": terminal.read_input() if needs_input else "",
        "watched": terminal.is_watched,
    }
    with _connected(paths) as connection:
        with suppress(OSError):  # then there is no answer either
            _send(connection, request)
        connection.settimeout(_LOOK_EVERY_S)
        for answer in _answers(connection, terminal.cancelled):
            if "out" in answer:
                terminal.out(answer["out"])
            elif "err" in answer:
                terminal.err(answer["err"])
            elif "exit" in answer:
                return int(answer["exit"])
    raise WindowWentAway(
        "The program that has the book open ended before it had answered",
        "What it had done by then is kept.",
    )


def raise_window(paths: DataPaths) -> bool:
    """Bring the window that holds the data directory to the front; False when none answers."""
    try:
        with _connected(paths) as connection:
            _send(connection, {"raise": True})
            return bool(connection.recv(_SOME_BYTES))
    except (NobodyAnswers, OSError):
        return False


@dataclass(frozen=True, slots=True)
class _Request:
    """What a caller wants. `argv` are its words, `input` what it was given on standard input."""

    argv: tuple[str, ...] = ()
    cwd: str = ""
    input: str = ""
    is_watched: bool = False
    wants_window: bool = False


def _request_from(connection: socket.socket) -> _Request | None:
    """Return the request, or None for what is none; raises OSError when none comes."""
    connection.settimeout(_PATIENCE_S)
    with connection.makefile("rb") as stream:
        line = stream.readline(_REQUEST_LIMIT_BYTES)
    connection.settimeout(None)
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match plain:
        case {"raise": True}:
            return _Request(wants_window=True)
        case {"argv": [*argv], "cwd": str(cwd), "input": str(given)}:
            if all(isinstance(word, str) for word in argv):
                return _Request(tuple(argv), cwd, given, plain.get("watched") is True)
    return None


def _has_cancelled(connection: socket.socket) -> bool:
    """Whether the caller has sent more than its request, closed its side or gone away."""
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _answers(connection: socket.socket, cancelled: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Yield the window's answers to their end; tell it once when the user cancels."""
    pending, told = bytearray(), False
    while True:
        if not told and cancelled():
            told = True
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        try:
            received = connection.recv(_SOME_BYTES)
        except TimeoutError:
            continue
        except OSError:
            return
        if not received:
            return
        pending += received
        if b"\n" in received:
            *lines, pending = pending.split(b"\n")
            for line in lines:
                yield json.loads(line)


def _listening(path: Path) -> socket.socket:
    """Return a socket bound at `path`, in the place of one that a killed window left there."""
    listener = _unix_socket()
    try:
        path.unlink(missing_ok=True)
        with _short(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def _connected(paths: DataPaths) -> Iterator[socket.socket]:
    try:
        connection = _unix_socket()
    except OSError as error:
        raise NobodyAnswers from error
    with connection:
        connection.settimeout(_PATIENCE_S)
        try:
            with _short(paths.socket) as address:
                connection.connect(address)
        except OSError as error:
            raise NobodyAnswers from error
        yield connection


def _unix_socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Give an address for `path` that fits into a Unix socket's name."""
    if len(os.fsencode(path)) < _ADDRESS_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        link = Path(folder, "data")
        link.symlink_to(path.parent, target_is_directory=True)
        yield str(link / path.name)

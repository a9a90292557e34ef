"""The socket through which whoever holds the library executes commands for others: a window or a command.

A request is one line of JSON, {"argv", "cwd", "input", "watched"}, {"raise": true}, {"quick": true} or {"mcp": 1};
responses are lines {"out"}, {"err"} and finally {"exit"}. After {"mcp": 1}, which is answered by the same line, the
connection speaks MCP. A caller cancels by sending more, closing its side or
disconnecting. The socket is in the data directory and only its owner can use it. `work` ends when a
window is started; any other command ends first, and then waits for those that it executes.
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
from pathlib import Path
from typing import Any, TextIO

from app.cli.terminal import Terminal
from app.domain.errors import KnownError
from app.mcp.relay import OPENING
from app.system.paths import DataPaths

_log = logging.getLogger(__name__)
_REQUEST_LIMIT_BYTES = 64 << 20
_TIMEOUT_S = 5.0
_POLL_S = 0.1
_CLOSE_TIMEOUT_S = 3.0
_ADDRESS_BYTES = 100  # 108 with the closing zero on Linux, 104 on macOS (unix(7), unix(4))
_CHUNK_BYTES = 65_536

Execute = Callable[[list[str], Terminal], int]
ServeMcp = Callable[[TextIO, TextIO], None]


class NoServer(Exception):
    """No program listens at the data directory's socket."""


class ServerClosed(KnownError):
    """The window, or `work`, ended during a command."""


class CommandServer:
    """Executes commands for the program that holds the data directory.

    `execute(argv, terminal)` runs a command and returns its exit code, on a thread of this server.
    `raise_window()` is called when a window was started; it returns False if there is none to
    raise, `show_quick_find()` likewise. `serve_mcp(reader, writer)` answers a program over MCP. Where the file system has no sockets, the server does nothing.
    """

    def __init__(
        self,
        paths: DataPaths,
        execute: Execute,
        raise_window: Callable[[], bool],
        serve_mcp: ServeMcp,
        show_quick_find: Callable[[], bool] = lambda: False,
    ) -> None:
        self._paths = paths
        self._execute = execute
        self._raise_window = raise_window
        self._serve_mcp = serve_mcp
        self._show_quick_find = show_quick_find
        self._closing = threading.Event()
        self._is_closed = False
        self._lock = threading.Lock()
        self._callers: dict[socket.socket, threading.Thread] = {}
        self._mcp_clients: set[socket.socket] = set()
        self._woken, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="command-line", daemon=True)
        try:
            self._listener = _listening(paths.socket)
        except OSError as error:
            _log.warning("commands cannot be executed for the command line: %s", error)
            return
        self._thread.start()

    def stop_accepting(self) -> None:
        """Refuse new callers; they find another program, or open the library. Safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._waker.close()
        if self._thread.ident is not None:
            self._thread.join()
            self._listener.close()
            with suppress(OSError):
                self._paths.socket.unlink(missing_ok=True)
        self._woken.close()

    def wait(self, cancelled: Callable[[], bool]) -> None:
        """Wait for the running commands, or until `cancelled`; MCP clients connect anew. Blocking."""
        while not cancelled():
            with self._lock:
                commands = self._callers.keys() - self._mcp_clients
                threads = [self._callers[each] for each in commands]
            if not threads:
                return
            threads[0].join(_POLL_S)

    def close(self) -> None:
        """Stop accepting, and cancel running commands. Blocking, at most 3 s."""
        self._closing.set()
        self.stop_accepting()
        self._end_all(socket.SHUT_RD, _CLOSE_TIMEOUT_S)
        self._end_all(socket.SHUT_RDWR, _POLL_S)

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
                if self._is_closed:
                    return
                with suppress(OSError):  # the caller may have disconnected
                    self._begin(self._listener.accept()[0])

    def _begin(self, connection: socket.socket) -> None:
        thread = threading.Thread(
            target=self._serve_caller, args=(connection,), name="command", daemon=True
        )
        with self._lock:
            self._callers[connection] = thread
        thread.start()

    def _serve_caller(self, connection: socket.socket) -> None:
        try:
            self._respond(connection)
        except OSError:
            _log.info("a caller disconnected")
        except Exception:  # noqa: BLE001 - the edge of a command: its caller must hear of it
            _log.exception("a command failed")
            with suppress(OSError):
                _send(
                    connection,
                    {"err": "Commonplace failed; the log of the window has the details."},
                )
                _send(connection, {"exit": 1})
        finally:
            with self._lock:
                del self._callers[connection]
                self._mcp_clients.discard(connection)
            connection.close()

    def _respond(self, connection: socket.socket) -> None:
        match _request_from(connection):
            case {"raise": True}:
                if self._raise_window():
                    _send(connection, {"exit": 0})
            case {"quick": True}:
                if self._show_quick_find():
                    _send(connection, {"exit": 0})
            case {"mcp": 1}:
                with self._lock:
                    self._mcp_clients.add(connection)
                connection.sendall(OPENING)
                with (
                    connection.makefile("r", encoding="utf-8", errors="replace") as reader,
                    connection.makefile("w", encoding="utf-8") as writer,
                ):
                    self._serve_mcp(reader, writer)
            case {"argv": [*argv], "cwd": str(cwd), "input": str(typed), **more} if all(
                isinstance(word, str) for word in argv
            ):
                is_watched = more.get("watched") is True
                terminal = self._terminal(connection, Path(cwd), typed, is_watched)
                _send(connection, {"exit": self._execute(argv, terminal)})
            case _:
                _send(connection, {"err": "The window does not understand this request."})
                _send(connection, {"exit": 2})

    def _terminal(
        self, connection: socket.socket, cwd: Path, typed: str, is_watched: bool
    ) -> Terminal:
        def err(text: str) -> None:
            with suppress(OSError):  # then `cancelled` is true
                _send(connection, {"err": text})

        return Terminal(
            out=lambda text: _send(connection, {"out": text}),
            err=err,
            read_input=lambda: typed,
            cwd=cwd,
            cancelled=lambda: self._closing.is_set() or _has_cancelled(connection),
            is_watched=is_watched,
            is_remote=True,
        )


def forward_command(
    paths: DataPaths, argv: list[str], terminal: Terminal, needs_input: bool
) -> int:
    """Execute a command in the program that holds the data directory; return its exit code.

    Raises NoServer, ServerClosed.
    """
    request = {
        "argv": argv,
        "cwd": str(terminal.cwd),
        "input": terminal.read_input() if needs_input else "",
        "watched": terminal.is_watched,
    }
    with _connected(paths) as connection:
        with suppress(OSError):  # then there is no response either
            _send(connection, request)
        connection.settimeout(_POLL_S)
        for response in _responses(connection, terminal.cancelled):
            if "out" in response:
                terminal.out(response["out"])
            elif "err" in response:
                terminal.err(response["err"])
            elif "exit" in response:
                return int(response["exit"])
    raise ServerClosed(
        "The program that has the library open ended during the command",
        "What it did before is kept.",
    )


def raise_window(paths: DataPaths) -> bool:
    """Raise the window that holds the data directory; return False if none responds."""
    return _is_done(paths, {"raise": True})


def show_quick_find(paths: DataPaths) -> bool:
    """Show the quick search of the window that holds the data directory; return False if none does."""
    return _is_done(paths, {"quick": True})


def _is_done(paths: DataPaths, request: dict[str, Any]) -> bool:
    try:
        with _connected(paths) as connection:
            _send(connection, request)
            return bool(connection.recv(_CHUNK_BYTES))
    except (NoServer, OSError):
        return False


def connection_to(paths: DataPaths) -> socket.socket | None:
    """Return a connection to the program that holds the data directory; None if none listens."""
    with suppress(OSError):
        connection = _unix_socket()
        try:
            connection.settimeout(_TIMEOUT_S)
            with _short(paths.socket) as address:
                connection.connect(address)
            connection.settimeout(None)
        except OSError:
            connection.close()
        else:
            return connection
    return None


def _request_from(connection: socket.socket) -> Any:
    """Read the request as plain JSON; None if it is none. Raises OSError when none arrives."""
    connection.settimeout(_TIMEOUT_S)
    with connection.makefile("rb") as stream:
        line = stream.readline(_REQUEST_LIMIT_BYTES)
    connection.settimeout(None)
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _has_cancelled(connection: socket.socket) -> bool:
    """Return whether the caller has sent more, closed its side or disconnected."""
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _responses(
    connection: socket.socket, cancelled: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """Yield the responses; when the user cancels, close our side once."""
    pending, is_cancelled = bytearray(), False
    while True:
        if not is_cancelled and cancelled():
            is_cancelled = True
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        try:
            received = connection.recv(_CHUNK_BYTES)
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
    """Return a socket bound at `path`, replacing one that a killed program left."""
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
    if (connection := connection_to(paths)) is None:
        raise NoServer
    with connection:
        connection.settimeout(_TIMEOUT_S)
        yield connection


def _unix_socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield an address for `path` that is short enough for a Unix socket."""
    if len(os.fsencode(path)) < _ADDRESS_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        link = Path(folder, "data")
        link.symlink_to(path.parent, target_is_directory=True)
        yield str(link / path.name)

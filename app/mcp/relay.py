"""The relay that other programs start: `commonplace mcp` copies bytes between them and the library's owner.

Nothing but the standard library is imported, so that it starts at once. If no program has the library
open, one is started that serves it and ends when a window is opened, or after a while without programs.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

_CHUNK_BYTES = 65_536
_START_TIMEOUT_S = 30.0
_RETRY_S = 0.1

OPENING = b'{"mcp": 1}\n'
"""The first line on a connection that switches it over to MCP; the owner answers with the same line."""


def relay(connect: Callable[[], socket.socket | None], start: Callable[[], object]) -> int:
    """Copy bytes until either side ends; return the exit code.

    `connect` returns a connection to the library's owner or None, `start` starts one.
    """
    connection = connect()
    if connection is None:
        start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while (connection := connect()) is None:
            if time.monotonic() > deadline:
                sys.stderr.write("The library could not be opened. See its log.\n")
                return 1
            time.sleep(_RETRY_S)
    with connection:
        connection.sendall(OPENING)
        with connection.makefile("rb") as incoming:
            if not _is_accepted(incoming.readline()):
                sys.stderr.write("The program that has the library open is of another version.\n")
                return 1
            threading.Thread(target=_send, args=(connection,), daemon=True).start()
            out = sys.stdout.buffer
            with suppress(OSError):
                while data := incoming.read1(_CHUNK_BYTES):
                    out.write(data)
                    out.flush()
    return 0


def start_owner(data_dir: str) -> None:
    """Start a program that serves the library at `data_dir`, independent of this one."""
    quiet = subprocess.DEVNULL
    subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-m", "app", "mcp", "--serve", "--data-dir", data_dir],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
        close_fds=True,
    )


def is_opening(line: object) -> bool:
    """Return whether a request switches a connection over to MCP."""
    return isinstance(line, dict) and line.get("mcp") == 1


def _is_accepted(line: bytes) -> bool:
    try:
        return is_opening(json.loads(line))
    except ValueError:
        return False


def _send(connection: socket.socket) -> None:
    source: BinaryIO = sys.stdin.buffer
    with suppress(OSError):
        while data := os.read(source.fileno(), _CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

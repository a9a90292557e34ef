"""Terminals: the input and output of a command, in this process or at the other end of a socket."""

import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import Any, TextIO

from app.domain.errors import InvalidInput, KnownError

KEY_PROMPT = "API key: "
_PIECE_CHARS = 65_536
# C0 except tab and line feed, DEL, C1 (ECMA-48, section 5).
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


class OutputFailed(KnownError):
    """Standard output cannot be written, for another reason than a closed pipe."""


class NotConfirmed(KnownError):
    """The command needs a confirmation that was not given."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The input and output of a command.

    Attributes:
        out: Writes to standard output. Raises BrokenPipeError when the pipe is closed, and
            OutputFailed.
        err: Writes a line to standard error; never raises.
        read_input: Returns all of standard input.
        ask_secret: Prompts for a text that is not shown; returns None where nobody can be asked.
        cwd: The folder of relative paths.
        cancelled: Whether the user has cancelled. A command that calls this must then end by itself.
        as_json: Whether standard output carries one JSON document.
        is_watched: Whether a person reads standard error, for progress and questions.
        is_remote: Whether the terminal is at the other end of a socket, where nothing can be asked.
    """

    out: Callable[[str], None]
    err: Callable[[str], None]
    read_input: Callable[[], str]
    cwd: Path
    cancelled: Callable[[], bool]
    as_json: bool = False
    is_watched: bool = False
    is_remote: bool = False
    ask_secret: Callable[[str], str | None] = lambda _: None

    def document(self, document: Any) -> None:
        """Print the one JSON document; dates and times are written in ISO format."""
        text = json.dumps(document, ensure_ascii=False, indent=2, default=lambda at: at.isoformat())
        self.out(text + "\n")

    def show(self, document: Any, *lines: str) -> None:
        """Print the document if JSON is wanted, else the lines."""
        if self.as_json:
            self.document(document)
        else:
            for line in lines:
                self.line(line)

    def note(self, *lines: str) -> None:
        """Print lines to standard error, unless JSON is wanted."""
        for line in () if self.as_json else lines:
            self.err(line)

    def show_forgotten(self, ids: Sequence[int | str], remains: Sequence[str]) -> None:
        """Print what was deleted for good, and what remains elsewhere."""
        if self.as_json:
            self.document({"forgotten": ids, "remains": list(remains)})
        for remark in remains:
            self.err(remark)

    def line(self, text: str = "") -> None:
        self.out(text + "\n")

    def read_secret(self, prompt: str) -> str:
        """Return a text that is typed without being shown, else all of standard input."""
        typed = self.ask_secret(prompt)
        return self.read_input().strip() if typed is None else typed

    def confirm(self) -> bool:
        """Ask the user to confirm by typing yes; False in a script, which passes --yes."""
        if not self.is_watched or self.is_remote:
            return False
        self.err("Type yes and end the input (Ctrl-D) to confirm:")
        return self.read_input().strip().casefold() == "yes"

    def require_confirmation(self, is_confirmed: bool, unchanged: str) -> None:
        """Ask for a confirmation unless there is one; raise NotConfirmed, which says `unchanged`."""
        if not is_confirmed and not self.confirm():
            raise NotConfirmed(f"{unchanged}: it was not confirmed", "Add --yes to confirm.")

    def confirm_deletion(self, is_confirmed: bool, *about: str) -> None:
        """Print what will be deleted, and ask for a confirmation, unless there is one."""
        if not is_confirmed:
            for line in about:
                self.err(line)
        self.require_confirmation(is_confirmed, "Nothing was forgotten")

    def path(self, given: str) -> Path:
        """Return a typed path as an absolute one; raise InvalidInput for an invalid one.

        An empty path is refused: it may be an unset variable of a script.
        """
        if not given:
            raise InvalidInput("'' is not a file name", "Name a file.")
        path = Path(given)
        with suppress(RuntimeError):  # there is no such user
            path = path.expanduser()
        whole = self.cwd / path
        try:
            whole.exists()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise InvalidInput(
                    f"'{given}' is too long for a file name", "Choose another."
                ) from error
        return whole


def members(value: object, *names: str) -> dict[str, Any]:
    """Return fields of a value as members of a JSON object; None for those that it lacks."""
    return {name: getattr(value, name, None) for name in names}


class OutputFile(io.TextIOBase):
    """A terminal's standard output as a text file; `close` writes the rest."""

    def __init__(self, terminal: Terminal) -> None:
        self._out = terminal.out
        self._buffer: list[str] = []
        self._size_chars = 0

    def write(self, text: str, /) -> int:
        """Buffer text; it is written in larger pieces."""
        self._buffer.append(text)
        self._size_chars += len(text)
        if self._size_chars >= _PIECE_CHARS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write the buffered text."""
        text = "".join(self._buffer)
        self._buffer.clear()
        self._size_chars = 0
        if text:
            self._out(text)


def reserve_standard_streams() -> None:
    """Open closed standard streams, so that no file gets a number that native code writes to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def own_terminal(cancelled: Callable[[], bool]) -> Terminal:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that a terminal lacks become "?"; a file or pipe gets all of them.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    is_watched = sys.stderr is not None and sys.stderr.isatty()
    return Terminal(
        _print, _print_error, _standard_input, _here(), cancelled, is_watched=is_watched,
        ask_secret=_ask_secret,
    )  # fmt: skip


def _print(text: str) -> None:
    if sys.stdout is None:
        raise OutputFailed("Standard output is closed", "Redirect it elsewhere.")
    try:
        sys.stdout.write(_printable(text, sys.stdout))
        sys.stdout.flush()
    except OSError as error:
        _silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputFailed(
            f"Standard output cannot be written: {error.strerror or error}",
            "Redirect it elsewhere.",
        ) from error


def _print_error(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(_printable(text, sys.stderr) + "\n")
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _printable(text: str, stream: TextIO) -> str:
    """Return text without control characters for a terminal; unchanged for anything else."""
    return _CONTROL.sub(_picture, text) if stream.isatty() else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def _silence(stream: TextIO) -> None:
    """Discard the rest: Python flushes streams once more at its end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)


def _standard_input() -> str:
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:
        return sys.stdin.read() if sys.stdin is not None else ""
    return bytes(buffer.read()).decode("utf-8", "replace")


def _ask_secret(prompt: str) -> str | None:
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    try:
        return getpass(prompt)
    except EOFError:
        return ""


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the folder was deleted
        return Path(Path.home().anchor)

"""Where a command's words go: this process's own streams, or the far end of a socket."""

import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from app.domain.errors import InvalidInput, KnownError

_PIECE_CHARS = 65_536
# What a terminal obeys: C0 but tab and line feed, DEL, C1 (ECMA-48, section 5).
_COMMANDING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


class OutputRefused(KnownError):
    """Standard output cannot be written, for another reason than that nobody reads it."""


class NotAgreed(KnownError):
    """What was asked for needs a yes that was not given."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """What a command may do to the outside.

    Attributes:
        out: Writes to standard output, as is. Raises BrokenPipeError when nobody reads it any
            more, and OutputRefused.
        err: Writes a message for people to standard error, one line; never raises.
        read_input: Returns all of standard input.
        cwd: The folder that relative paths start from.
        cancelled: Whether the user has asked for the end. A command that asks this is trusted to
            end by itself.
        as_json: Whether standard output carries one JSON document.
        is_watched: Whether a person looks on, who may be told of progress.
        is_far: Whether that person sits at the other end of a socket, where nothing can be asked.
    """

    out: Callable[[str], None]
    err: Callable[[str], None]
    read_input: Callable[[], str]
    cwd: Path
    cancelled: Callable[[], bool]
    as_json: bool = False
    is_watched: bool = False
    is_far: bool = False

    def document(self, document: Any) -> None:
        """Print the one JSON document."""
        self.out(json.dumps(document, ensure_ascii=False, indent=2) + "\n")

    def line(self, text: str = "") -> None:
        """Print a line."""
        self.out(text + "\n")

    def says_yes(self) -> bool:
        """Ask whoever looks on to agree by typing yes; nobody does in a script, which says --yes."""
        if not self.is_watched or self.is_far:
            return False
        self.err("Type yes and end the input (Ctrl-D) to agree:")
        return self.read_input().strip().casefold() == "yes"

    def path(self, given: str) -> Path:
        """Return a path as the user meant it, absolute; raise InvalidInput for what cannot be one.

        An empty one would be the folder they are in: a script's variable that was not set.
        """
        if not given:
            raise InvalidInput("'' is the name of no file", "Name one.")
        path = Path(given)
        with suppress(RuntimeError):  # there is no such user
            path = path.expanduser()
        whole = self.cwd / path
        try:
            whole.exists()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise InvalidInput(f"'{given}' is too long for a name", "Name another.") from error
        return whole


class OutputFile(io.TextIOBase):
    """A text file that a terminal's standard output is; `close` writes the rest."""

    def __init__(self, terminal: Terminal) -> None:
        self._out = terminal.out
        self._waiting: list[str] = []
        self._size_chars = 0

    def write(self, text: str, /) -> int:
        """Take words; they are passed on in larger pieces."""
        self._waiting.append(text)
        self._size_chars += len(text)
        if self._size_chars >= _PIECE_CHARS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Pass on what waits."""
        words = "".join(self._waiting)
        self._waiting.clear()
        self._size_chars = 0
        if words:
            self._out(words)


def hold_standard_streams() -> None:
    """Let no file of ours get the number of a closed stream, which native code writes to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def own_terminal(cancelled: Callable[[], bool]) -> Terminal:
    """Return the terminal of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a terminal's encoding lacks becomes "?"; a file or pipe gets all of it.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    is_watched = sys.stderr is not None and sys.stderr.isatty()
    return Terminal(_print, _tell, _standard_input, _here(), cancelled, is_watched=is_watched)


def _print(text: str) -> None:
    if sys.stdout is None:
        raise OutputRefused("Standard output is closed", "Send it to another place.")
    try:
        sys.stdout.write(_harmless(text, sys.stdout))
        sys.stdout.flush()
    except OSError as error:
        _silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputRefused(
            f"Standard output cannot be written: {error.strerror or error}",
            "Send it to another place.",
        ) from error


def _tell(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(_harmless(text, sys.stderr) + "\n")
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _harmless(text: str, stream: TextIO) -> str:
    """Return what a terminal can show without doing as it says; for anything else all of it."""
    return _COMMANDING.sub(_picture, text) if stream.isatty() else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def _silence(stream: TextIO) -> None:
    """Let the rest go nowhere: Python writes what is left of a stream once more at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def _standard_input() -> str:
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:
        return sys.stdin.read() if sys.stdin is not None else ""
    return bytes(buffer.read()).decode("utf-8", "replace")


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the folder was deleted under us
        return Path(Path.home().anchor)

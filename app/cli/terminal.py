"""Where a command's words go: this process's own streams, or the far end of a socket."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Terminal:
    """What a command may do to the outside.

    Attributes:
        out: Writes to standard output, as is.
        err: Writes a message for people to standard error, one line.
        read_input: Returns all of standard input.
        cwd: The folder that relative paths start from.
        cancelled: Whether the user has asked for the end.
        as_json: Whether standard output carries one JSON document.
    """

    out: Callable[[str], None]
    err: Callable[[str], None]
    read_input: Callable[[], str]
    cwd: Path
    cancelled: Callable[[], bool]
    as_json: bool

    def document(self, document: Any) -> None:
        """Print the one JSON document."""
        self.out(json.dumps(document, ensure_ascii=False, indent=2) + "\n")

    def line(self, text: str = "") -> None:
        """Print a line."""
        self.out(text + "\n")

    def path(self, given: str) -> Path:
        """Return a path as the user meant it."""
        return self.cwd / Path(given).expanduser()


def own_terminal(as_json: bool, cancelled: Callable[[], bool]) -> Terminal:
    """Return the terminal of this process."""

    def out(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def err(text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    return Terminal(out, err, sys.stdin.read, Path.cwd(), cancelled, as_json)

"""The command line in this process: words in, exit code and both streams out."""

import atexit
import io
import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import RunMode, build
from app.cli.entry import execute, main
from app.cli.terminal import Terminal
from app.system.paths import DataPaths
from tests.fakes.stored import add_conversation, opened

BASIL = "How do I keep basil alive on a windowsill in winter"


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


class _Commands:
    def __call__(self, *words: object) -> Ran:
        """Run a command, whether it succeeds or not."""
        raise NotImplementedError

    def done(self, *words: object) -> Ran:
        """Run a command that must succeed."""
        ran = self(*words)
        assert ran.code == 0, ran
        return ran

    def json(self, *words: object) -> Any:
        """Run a command that must succeed; return its JSON document."""
        return self.done(*words, "--json").document

    def titles(self, *words: object) -> list[str]:
        """Return the titles that `list` prints, in alphabetical order."""
        return sorted(row["title"] for row in self.json("list", *words)["conversations"])


class CommandLine(_Commands):
    """Each command opens and closes the data directory, as a process would."""

    def __init__(self, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data_dir = data_dir
        self._capsys = capsys

    def __call__(self, *words: object) -> Ran:
        """Run a command, whether it succeeds or not."""
        self._capsys.readouterr()
        code = main(["--data-dir", str(self.data_dir), *map(str, words)])
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)


class Console(_Commands):
    """The data directory stays open, as in a window that executes commands: quicker by 0.2 s each.

    Attributes:
        typed: The standard input of the next commands.
        is_watched: Whether a person reads their standard error.
        secrets: What a person types without it being shown, in turn; nobody can be asked when empty.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.services = build(DataPaths(data_dir), RunMode.COMMAND_LINE)
        self.typed = ""
        self.is_watched = False
        self.secrets: list[str] = []

    def __call__(self, *words: object) -> Ran:
        """Run a command, whether it succeeds or not."""
        out: list[str] = []
        err: list[str] = []
        terminal = Terminal(
            out.append, lambda line: err.append(f"{line}\n"), lambda: self.typed, Path.cwd(),
            lambda: False, is_watched=self.is_watched,
            ask_secret=lambda _: self.secrets.pop(0) if self.secrets else None,
        )  # fmt: skip
        code = execute(self.services, list(map(str, words)), terminal)
        return Ran(code, "".join(out), "".join(err))

    def close(self) -> None:
        """Close the data directory."""
        self.services.close()


@cache
def herbs() -> Path:
    """Return a data directory to copy: Herbs (two turns), Bicycle and Secret, which is private."""
    root = Path(tempfile.mkdtemp(prefix="commonplace-herbs-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    with opened(root / "data") as store:
        add_conversation(store, BASIL, "And the mint beside it", title="Herbs")
        add_conversation(store, "Which bolt fits the saddle", title="Bicycle")
        add_conversation(store, "A basil nobody may know of", title="Secret", private=True)
    return root / "data"


def typed(words: str | bytes) -> io.TextIOWrapper:
    """Return words as standard input."""
    return io.TextIOWrapper(io.BytesIO(words if isinstance(words, bytes) else words.encode()))

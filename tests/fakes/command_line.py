"""The command line as a test sees it: words in, exit code and both streams out, in this process."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.cli.entry import main


@dataclass(frozen=True)
class Ran:
    """What a command has left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


class CommandLine:
    """Runs commands on one data directory; each opens and closes it, as a process would."""

    def __init__(self, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data_dir = data_dir
        self._capsys = capsys

    def __call__(self, *words: object) -> Ran:
        """Run a command, whatever comes of it."""
        self._capsys.readouterr()
        code = main(["--data-dir", str(self.data_dir), *map(str, words)])
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def done(self, *words: object) -> Ran:
        """Run a command that must succeed."""
        ran = self(*words)
        assert ran.code == 0, ran
        return ran

    def json(self, *words: object) -> Any:
        """Run a command that must succeed; return its JSON document."""
        return self.done(*words, "--json").document


def typed(words: str | bytes) -> io.TextIOWrapper:
    """Return words as standard input."""
    content = words if isinstance(words, bytes) else words.encode()
    return io.TextIOWrapper(io.BytesIO(content))

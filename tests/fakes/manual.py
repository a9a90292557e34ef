"""A manual of the test's own: a program called `man` on PATH, and the pages it knows."""

import os
import time
from pathlib import Path

import pytest

_MAN = """#!/bin/sh
cd '{folder}' || exit 1
echo "$*" >> calls
case "$1" in
-k) if [ -e hang/-k ]; then sleep 1000; fi; cat list 2>/dev/null ;;
-w) echo "$PWD/share" ;;
*)
    if [ -e "hang/$2.$1" ]; then sleep 1000 & wait; fi
    if [ -e "endless/$2.$1" ]; then exec yes; fi
    cat "share/man$1/$2.$1" 2>/dev/null || exit 16 ;;
esac
"""


class FakeManual:
    """What `man` shows: pages by name and section, as they would be printed.

    Attributes:
        folder: Where all of it is.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for name in ("bin", "share", "hang", "endless"):
            (folder / name).mkdir(parents=True)
        program = folder / "bin" / "man"
        program.write_text(_MAN.format(folder=folder))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        self._lines: dict[str, str] = {}

    def add(self, source: str, summary: str, description: str | None, rest: str = "") -> None:
        """Put a page into the manual or change it; None for one without a DESCRIPTION."""
        name, _, section = source.rpartition(".")
        head = f"{name.upper()}({section})    User Commands    {name.upper()}({section})"
        text = f"{head}\n\nNAME\n       {name} - {summary}\n\n"
        if description is not None:
            lines = "\n".join(f"       {line}" for line in description.splitlines())
            text += f"DESCRIPTION\n{lines}\n\n"
        self.add_raw(source, summary, f"{text}{rest}SEE ALSO\n       nothing\n\n1.0    {head}\n")

    def add_raw(self, source: str, summary: str, printed: str | bytes) -> None:
        name, _, section = source.rpartition(".")
        path = self.folder / "share" / f"man{section}" / source
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(printed if isinstance(printed, bytes) else printed.encode())
        stamp = time.time_ns() + len(self._lines)  # never the same twice
        os.utime(path, ns=(stamp, stamp))
        self.list_as(source, f"{name} ({section})  - {summary}")

    def list_as(self, source: str, line: str) -> None:
        self._lines[source] = line
        self._write_list()

    def remove(self, source: str) -> None:
        (self.folder / "share" / f"man{source.rpartition('.')[2]}" / source).unlink()
        del self._lines[source]
        self._write_list()

    def let(self, how: str, source: str) -> None:
        """Let showing a page "hang", or be "endless"."""
        (self.folder / how / source).touch()

    def mend(self, how: str, source: str) -> None:
        (self.folder / how / source).unlink()

    def calls(self) -> list[str]:
        """Return what `man` was called with since the last time, in order."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def was_called(self, words: str) -> bool:
        path = self.folder / "calls"
        return path.exists() and words in path.read_text().splitlines()

    def _write_list(self) -> None:
        (self.folder / "list").write_text("".join(f"{line}\n" for line in self._lines.values()))

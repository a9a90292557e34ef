"""Silence of the native dependencies: no file outside the data directory and no network access.

A child process imports every dependency that could send something, embeds a text and opens the
window. The network guard of the other tests sees Python's sockets only, hence `strace` here.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
_CHILD = """
import sys
import time
from pathlib import Path
import anthropic, genai_prices.data_snapshot, keyring, openai
from app.providers.embedders.local import LocalEmbedder
LocalEmbedder(Path("resources/models/all-MiniLM-L6-v2")).embed(["A text."])
embedded_at = time.monotonic()
from ui.main import main
_, data, linger_s = sys.argv
sys.argv[1:] = ["--smoke", "--data-dir", data]
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication
from ui.views.main_window import MainWindow
painted = MainWindow.paintEvent
def copy(window, event):
    painted(window, event)
    copied = QMimeData()
    copied.setText("a selection, as the transcript copies it")
    QGuiApplication.clipboard().setMimeData(copied)
MainWindow.paintEvent = copy
code = main()
time.sleep(max(0.0, embedded_at + float(linger_s) - time.monotonic()))
sys.exit(code)
"""
_LINGER_S = 12  # onnxruntime looks up the host of its telemetry 8 s after it was loaded
_CONTACT = re.compile(r"\bconnect\(|AF_INET|AF_NETLINK")


class Run(NamedTuple):
    """The folders a child process could write to, and its network calls, one a line."""

    home: Path
    temporary: Path
    data: Path
    calls: list[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A child process that has come to its end, with `CI` unset and an empty home."""
    base = tmp_path_factory.mktemp("child")
    home, temporary, data, trace = (base / name for name in ("home", "tmp", "data", "trace"))
    home.mkdir()
    temporary.mkdir()
    tracer = shutil.which("strace")
    command = [sys.executable, "-c", _CHILD, str(data), str(_LINGER_S if tracer else 0)]
    if tracer:
        command = [
            tracer, "-f", "--seccomp-bpf", "-qq", "-e", "trace=network", "-o", str(trace), *command,
        ]  # fmt: skip
    environment = {
        "HOME": str(home), "TMPDIR": str(temporary), "PATH": "/usr/bin:/bin",
        "QT_QPA_PLATFORM": "offscreen", "LANG": "C.UTF-8",
    }  # fmt: skip
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=240)
    return Run(home, temporary, data, trace.read_text().splitlines() if tracer else [])


def test_nothing_is_written_outside_the_data_directory(run: Run) -> None:
    assert (run.data / "commonplace.duckdb").is_file()
    # fontconfig caches the system's fonts there when the user may not write the system's own cache.
    fonts = run.home / ".cache" / "fontconfig"
    written = [path for path in (*run.home.rglob("*"), *run.temporary.rglob("*")) if path.is_file()]
    assert [path for path in written if fonts not in path.parents] == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_host_is_looked_up_and_no_connection_is_made(run: Run) -> None:
    assert any("AF_UNIX" in call for call in run.calls), "the trace holds the command socket"
    assert [call for call in run.calls if _CONTACT.search(call)] == []

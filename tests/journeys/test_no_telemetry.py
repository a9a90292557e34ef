"""Silence of the native dependencies: no file outside the data directory and no network access.

A child process imports every dependency that could send something, embeds a text and opens the
window. The network guard of the other tests sees Python's sockets only, hence `strace` here.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

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


def test_nothing_is_written_elsewhere_and_no_host_is_looked_up(tmp_path: Path) -> None:
    """A child process comes to its end, with `CI` unset and an empty home; without strace, files alone count."""
    home, temporary, data, trace = (tmp_path / name for name in ("home", "tmp", "data", "trace"))
    home.mkdir()
    temporary.mkdir()
    tracer = shutil.which("strace")
    command = [sys.executable, "-c", _CHILD, str(data), str(_LINGER_S if tracer else 0)]
    if tracer:
        options = ("-f", "--seccomp-bpf", "-qq", "-e", "trace=network", "-o", str(trace))
        command = [tracer, *options, *command]
    environment = {
        "HOME": str(home), "TMPDIR": str(temporary), "PATH": "/usr/bin:/bin",
        "QT_QPA_PLATFORM": "offscreen", "LANG": "C.UTF-8",
    }  # fmt: skip
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=240)
    assert (data / "commonplace.duckdb").is_file()
    # fontconfig caches the system's fonts there when the user may not write the system's own cache.
    fonts = home / ".cache" / "fontconfig"
    written = [path for path in (*home.rglob("*"), *temporary.rglob("*")) if path.is_file()]
    assert [path for path in written if fonts not in path.parents] == []
    if tracer:
        calls = trace.read_text().splitlines()
        assert any("AF_UNIX" in call for call in calls), "the trace holds the command socket"
        assert [call for call in calls if _CONTACT.search(call)] == []

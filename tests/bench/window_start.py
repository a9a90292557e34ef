"""How soon the window is visible, as a ratio to a bare QMainWindow, as JSON on standard output.

Run: .venv/bin/python -m tests.bench.window_start [ROUNDS]

Both are processes of their own, started in turn; measured is from the start of the process to the
first paint, on the platform that QT_QPA_PLATFORM names (offscreen by default). Both find their
modules compiled, as installed programs do, whatever PYTHONDONTWRITEBYTECODE says here.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from tests.bench.shared.measuring import print_json

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

_BARE = """
import sys, time
from PySide6.QtWidgets import QApplication, QMainWindow
class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        print(time.monotonic(), flush=True)
        application.quit()
application = QApplication(sys.argv[:1])
window = Window()
window.resize(1180, 780)
window.show()
application.exec()
"""
_OURS = """
import sys, time
import ui.main
from ui.views.main_window import MainWindow
def painted(self, event, before=MainWindow.paintEvent):
    before(self, event)
    if not told:
        told.append(True)
        heavy = {"duckdb", "tantivy", "openai", "anthropic", "numpy", "app.bootstrap"}
        print(time.monotonic(), *sorted(heavy & set(sys.modules)), flush=True)
told = []
MainWindow.paintEvent = painted
ui.main.main()
"""


def main(rounds: int) -> None:
    bare, ours, heavy = [], [], set()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            bare_ms, _ = _first_paint_ms([sys.executable, "-c", _BARE], folder)
            arguments = [sys.executable, "-c", _OURS, "--smoke", "--data-dir", f"{folder}/data"]
            ours_ms, loaded = _first_paint_ms(arguments, folder)
            heavy |= set(loaded)
            if number:  # the first round fills the disk's cache
                bare.append(bare_ms)
                ours.append(ours_ms)
    ratios = [mine / other for mine, other in zip(ours, bare, strict=True)]
    print_json(
        {
            "rounds": rounds,
            "bare_ms": round(statistics.median(bare)),
            "window_ms": round(statistics.median(ours)),
            "ratio_median": round(statistics.median(ratios), 2),
            "ratio_of_best": round(min(ours) / min(bare), 2),
            "heavy_modules_before_the_first_paint": sorted(heavy),
            "goal_ratio": 1.5,
        }
    )


def _first_paint_ms(arguments: list[str], folder: str) -> tuple[float, list[str]]:
    """Start a process; return how long its first paint took, and what it said beside the time."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    ended = subprocess.run(
        arguments, capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    at, *words = ended.stdout.splitlines()[0].split()
    return (float(at) - started) * 1000, words


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)

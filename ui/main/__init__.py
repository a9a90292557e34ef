"""The composition root of the window. Here: the window itself, on screen before all else.

Nothing is imported for it that its first frame does not show: no event loop of asyncio, no DuckDB,
no vendor's SDK, no rendering of Markdown. What comes after is in `running`.
`python -m ui.main [--data-dir DIR] [--smoke]`.
"""

import argparse
import gc
import sys

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.system.ending import wait_for_threads_at_exit
from app.system.memory import give_back_freed_memory
from app.system.paths import DataPaths
from ui.theme import STYLE, Appearance
from ui.views.main_window import MainWindow

_SWITCH_INTERVAL_S = 0.0005
_OPEN_UNSEEN_MS = 1_000


def main() -> int:
    """Run the window; return the exit code."""
    given = _arguments()
    give_back_freed_memory()
    wait_for_threads_at_exit()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.disable()  # the cyclic collector may destroy QObjects in a worker's thread: a timer collects
    # By argument: setStyle() hands back a QStyle, and its many enums take Python 15 ms to make.
    application = QApplication([sys.argv[0], "-style", STYLE])
    application.setApplicationName("commonplace")
    application.setApplicationDisplayName("Commonplace")
    application.setDesktopFileName("commonplace")
    application.setQuitOnLastWindowClosed(False)
    paths = DataPaths.choose(given.data_dir)
    appearance = Appearance(application)
    window = first_window(paths)
    _wait_for_the_first_frame(window)
    from ui.main.running import run

    return run(application, paths, appearance, window, smoke=given.smoke)


def first_window(paths: DataPaths) -> MainWindow:
    """Return the window as it was left last time, on screen, with nothing behind it yet."""
    window = MainWindow()
    window.restore_state(paths.window)
    window.show_usable(False)
    window.show()
    return window


def _wait_for_the_first_frame(window: MainWindow) -> None:
    """Wait until it is painted, or a moment: one that starts minimised never is.

    What the user does meanwhile stays in the queue, for whoever can answer it.
    """
    waiting = QEventLoop()
    window.painted.connect(waiting.quit)
    QTimer.singleShot(_OPEN_UNSEEN_MS, waiting.quit)
    waiting.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="commonplace", description="The window of Commonplace.")
    parser.add_argument("--data-dir", metavar="DIR", help="the data directory")
    parser.add_argument("--smoke", action="store_true", help="start, wait until ready, leave")
    return parser.parse_args()

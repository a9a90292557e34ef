"""Parts that benches of the window share: the real window, offscreen, a heartbeat and a model server."""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import qasync
from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from app.domain.workers import WorkerName, WorkerStatus
from app.system.process import limit_malloc_retention
from tests.bench.shared.measuring import SWITCH_INTERVAL_S, Figures

if TYPE_CHECKING:  # loaded by those alone who open the window, as memory is measured too
    from app.bootstrap import Services
    from tests.fakes.user import User

_BEAT_MS = 5


class Heartbeat(QObject):
    """A timer of the GUI thread: gaps from beat to beat and the thread's own work in them, in ms."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps_ms: list[float] = []
        self.own_ms: list[float] = []
        self.at, self._worked = time.perf_counter(), time.thread_time()
        self._timer = QTimer(self, interval=_BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_timeout)
        self._timer.start()

    def take(self) -> tuple[list[float], list[float]]:
        """Return gaps and own work since the last call; zeros when there was no beat."""
        taken = self.gaps_ms or [0.0, 0.0], self.own_ms or [0.0, 0.0]
        self.gaps_ms, self.own_ms = [], []
        return taken

    def stop(self) -> None:
        self._timer.stop()

    def _on_timeout(self) -> None:
        now, worked = time.perf_counter(), time.thread_time()
        self.gaps_ms.append((now - self.at) * 1000)
        self.own_ms.append((worked - self._worked) * 1000)
        self.at, self._worked = now, worked


def measured_in_window(measure: Callable[["User", Path], Awaitable[Figures]]) -> Figures:
    """Return the figures of the program with an empty data directory; the folder is temporary."""
    from tests.fakes.user import User
    from ui.theme import STYLE

    limit_malloc_retention()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        application = QApplication([sys.argv[0], "-style", STYLE])
        application.setQuitOnLastWindowClosed(False)
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
            user = User(application, Path(folder, "data"))

            async def run() -> Figures:
                return await measure(user, Path(folder))

            figures = runner.run(run())
        gc.unfreeze()
    return figures


async def until(condition: Callable[[], object], limit_s: float = 600.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        await asyncio.sleep(0.01)


async def import_files(user: "User", files: list[Path]) -> None:
    """Import as a user does, who agrees to what the preview shows; the report stays open."""

    def is_done() -> bool:
        return not user.presenters.imports.is_running

    user.drop(user.window, files)
    await until(lambda: not is_done())
    await until(is_done)
    user.click("Import")
    await until(is_done)


def status_of(user: "User", name: WorkerName) -> WorkerStatus:
    return next(each for each in user.running.services.workers.statuses() if each.name is name)


@contextmanager
def model_server(*arguments: str) -> Iterator[str]:
    """A model server in a process of its own, for a block; its base URL."""
    command = [sys.executable, "-m", "tests.bench.model_server", *arguments]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


def choose_models(services: "Services", base_url: str, embedder: str, model: str | None) -> None:
    from app.domain.chat import StoredProvider

    services.settings.put_provider(StoredProvider("bench", "compatible", base_url, None))
    services.settings.set("background_model", model)
    services.settings.set("embedder", embedder)
    services.settings.set("embedder_before", embedder)

"""The composition root of the window: loop, window, services, and an orderly goodbye in reverse.

The window comes first: nothing here imports DuckDB, a vendor's SDK or the indexes before it is on
screen. `python -m ui.main [--data-dir DIR] [--smoke]`.
"""

import argparse
import asyncio
import gc
import logging
import signal
import sys
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.domain.errors import AlreadyOpen, KnownError
from app.system.paths import DataPaths
from ui.bridge import Bridge
from ui.errors import ReportDialog, catch_the_rest, report_of, words_for
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView

if TYPE_CHECKING:
    from app.bootstrap import Services
    from app.cli.remote import CommandServer
    from ui.controllers.program import Program

_log = logging.getLogger(__name__)
_SWITCH_INTERVAL_S = 0.0005
_COLLECT_EVERY_MS = 5_000
_GOODBYE_MS = 3_000


class Commonplace:
    """The running program: from an empty window to the goodbye.

    Attributes:
        window: Its window.
        program: The controllers, once the data directory is open.
        begun: Set when the controllers are there.
        finished: Set when everything is closed.
    """

    def __init__(self, application: QApplication, paths: DataPaths) -> None:
        self._paths = paths
        self.appearance = Appearance(application)
        transcript = TranscriptView(self.appearance.theme)
        self.window = MainWindow(self.appearance.theme, transcript)
        self.window.restore_state(paths.window)
        self.window.close_requested.connect(self._on_window_close_requested)
        self.bridge = Bridge(self.window)
        self.bridge.task_failed.connect(self.report)
        self.program: Program | None = None
        self.begun = asyncio.Event()
        self.finished = asyncio.Event()
        self._services: Services | None = None
        self._server: CommandServer | None = None
        self._leaving = False
        self._shown_report: ReportDialog | None = None
        self._collect = QTimer(self.window, interval=_COLLECT_EVERY_MS)
        self._collect.timeout.connect(_collect_garbage)
        self._collect.start()

    def show(self) -> None:
        """Show the window and open the data directory behind it."""
        self.window.chat.show_message("")
        self.window.show()
        QTimer.singleShot(0, self._open)

    def leave(self) -> None:
        """Begin the goodbye; `finished` is set at its end."""
        if not self._leaving:
            self._leaving = True
            asyncio.get_event_loop().create_task(self._say_goodbye())

    def report(self, error: BaseException) -> None:
        """Show a bug of ours, one at a time; the world's faults as a line."""
        if isinstance(error, KnownError):
            title, hint = words_for(error)
            self.window.chat.banner.tell(f"{title}. {hint}", brief=False)
        elif self._shown_report is None and self.window.isVisible():
            self._shown_report = ReportDialog(report_of(error), self.window)
            self._shown_report.finished.connect(self._on_report_finished)
            self._shown_report.open()

    # -- beginning

    def _open(self) -> None:
        self.bridge.start("open", self._open_services())

    async def _open_services(self) -> None:
        try:
            self._services = await self.bridge.run(self._build)
        except AlreadyOpen as error:
            await self._yield_to_the_other(error)
            return
        except KnownError as error:
            title, hint = words_for(error)
            self.window.chat.show_message(f"{title}.\n\n{hint}")
            self.window.chat.composer.setEnabled(False)
            return
        self._begin(self._services)

    def _build(self) -> "Services":
        from app.bootstrap import Role, build

        return build(self._paths, Role.WINDOW)

    async def _yield_to_the_other(self, error: AlreadyOpen) -> None:
        """Another program is there: bring its window forward and leave, or say what is wrong."""
        from app.cli.remote import raise_window

        if await self.bridge.run(lambda: raise_window(self._paths)):
            self.leave()
        else:
            self.window.chat.show_message(f"{error.title}.\n\n{error.hint}")
            self.window.chat.composer.setEnabled(False)

    def _begin(self, services: "Services") -> None:
        from app.cli.entry import execute
        from app.cli.remote import CommandServer
        from ui.controllers.program import Program

        services.store.database.forbid_this_thread()
        services.store.subscribe(self.bridge.take_change)
        self.program = Program(services, self.bridge, self.window, self.appearance)
        self._server = CommandServer(
            self._paths,
            lambda argv, terminal: execute(services, argv, terminal),
            self.bridge.on_gui(self.window.come_forward),
        )
        gc.collect()
        gc.freeze()
        self.begun.set()

    # -- goodbye

    def _on_window_close_requested(self) -> None:
        self.leave()

    async def _say_goodbye(self) -> None:
        self._collect.stop()
        if self.program is not None:
            self.program.flush()
        self.window.save_state(self._paths.window)
        self.window.hide()
        if self._services is not None:
            services, server = self._services, self._server

            def close() -> None:
                if server is not None:
                    server.close()
                services.close()

            try:
                await self.bridge.run(close)
            except Exception:  # noqa: BLE001 - the window must go all the same
                _log.exception("the goodbye failed")
        self.bridge.cancel_all()
        self.bridge.wait_for_pools(_GOODBYE_MS)
        self.window.close_for_good()
        self.finished.set()

    def _on_report_finished(self) -> None:
        if self._shown_report is not None:
            self._shown_report.deleteLater()
            self._shown_report = None


def main() -> int:
    """Run the window; return the exit code."""
    given = _arguments()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.disable()  # the cyclic collector may destroy QObjects in a worker's thread: a timer collects
    application = QApplication(sys.argv[:1])
    application.setApplicationName("commonplace")
    application.setApplicationDisplayName("Commonplace")
    application.setDesktopFileName("commonplace")
    application.setQuitOnLastWindowClosed(False)
    with asyncio.Runner(loop_factory=lambda: _loop(application)) as runner:
        return runner.run(_run(application, given))


async def _run(application: QApplication, given: argparse.Namespace) -> int:
    running = Commonplace(application, DataPaths.choose(given.data_dir))
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: _on_loop_error(running, context))
    restore = catch_the_rest(running.report)
    _leave_on_signals(running, loop)
    running.show()
    if given.smoke:
        running.bridge.start("smoke", _leave_when_ready(running))
    await running.finished.wait()
    restore()
    return 0


async def _leave_when_ready(running: Commonplace) -> None:
    """For the smoke test: wait until everything is there, then leave."""
    await running.begun.wait()
    assert running.program is not None
    await running.program.ready.wait()
    running.leave()


def _loop(application: QApplication) -> asyncio.AbstractEventLoop:
    import qasync

    loop: asyncio.AbstractEventLoop = qasync.QEventLoop(application, already_running=False)
    return loop


def _leave_on_signals(running: Commonplace, loop: asyncio.AbstractEventLoop) -> None:
    """Say goodbye on SIGINT and SIGTERM; Qt lets Python's handlers run only between its events."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(running.leave))
    beat = QTimer(running.window, interval=200)
    beat.timeout.connect(lambda: None)
    beat.start()


def _on_loop_error(running: Commonplace, context: dict[str, Any]) -> None:
    error = context.get("exception")
    _log.error("%s", context.get("message"), exc_info=error)
    if isinstance(error, BaseException):
        running.report(error)


def _collect_garbage() -> None:
    gc.collect(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="commonplace", description="The window of Commonplace.")
    parser.add_argument("--data-dir", metavar="DIR", help="the data directory")
    parser.add_argument("--smoke", action="store_true", help="start, wait until ready, leave")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

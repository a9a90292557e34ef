"""The program behind the window: loop, services, controllers, and an orderly goodbye in reverse."""

import asyncio
import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QApplication

from app.domain.errors import AlreadyOpen, KnownError
from app.system.paths import DataPaths
from ui.bridge import Bridge
from ui.errors import ReportDialog, catch_the_rest, report_of, words_for
from ui.main.collecting import Collector
from ui.rendering.highlight import preload
from ui.theme import Appearance
from ui.views.main_window import MainWindow, keep_state
from ui.widgets.transcript.view import TranscriptView

if TYPE_CHECKING:
    from app.bootstrap import Services
    from app.cli.remote import CommandServer
    from ui.controllers.program import Program

_log = logging.getLogger(__name__)
_SETTLE_S = 1.0
_GOODBYE_MS = 3_000
_LISTEN_EVERY_MS = 200
_TRIES = 20
_TRY_AGAIN_S = 0.25


class Commonplace:
    """The running program: from an empty window on screen to the goodbye.

    Attributes:
        window: Its window.
        program: The controllers, once the data directory is open.
        services: What is below them, from the same moment on.
        refusal: Why the data directory cannot be opened, if it cannot.
        begun: Set when the controllers are there, or it is clear that they cannot be.
        finished: Set when everything is closed.
    """

    def __init__(self, paths: DataPaths, appearance: Appearance, window: MainWindow) -> None:
        self._paths = paths
        self.appearance = appearance
        self.window = window
        self.window.furnish(appearance.theme, TranscriptView(appearance.theme))
        self.window.close_requested.connect(self._on_window_close_requested)
        self.bridge = Bridge(self.window)
        self.bridge.task_failed.connect(self.report)
        self.program: Program | None = None
        self.refusal: KnownError | None = None
        self.begun = asyncio.Event()
        self.finished = asyncio.Event()
        self.services: Services | None = None
        self._server: CommandServer | None = None
        self._leaving = False
        self._door = threading.Lock()  # opening and closing, one after the other
        self._shown_report: ReportDialog | None = None
        self._collector = Collector(self.window)

    def open(self) -> None:
        """Open the data directory behind the window."""
        self.bridge.start("open", self._open_services())

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

    async def _open_services(self) -> None:
        self.refusal = None
        try:
            services = await self._build_patiently()
        except KnownError as error:
            self._stand_still(error)
        else:
            if services is not None:
                self._begin(services)
                await self.bridge.run(preload)

    async def _build_patiently(self) -> "Services | None":
        """Return the services; None when a window that is open already was raised instead.

        One that is just closing answers no more, but will let go of the directory in a moment.
        """
        from app.cli.remote import raise_window

        for _ in range(_TRIES):
            try:
                return await self.bridge.run(self._build)
            except AlreadyOpen:
                if await self.bridge.run(lambda: raise_window(self._paths)):
                    self.leave()
                    return None
            self.window.chat.show_notice("Waiting for another Commonplace to close\u2026")
            await asyncio.sleep(_TRY_AGAIN_S)
        return await self.bridge.run(self._build)

    def _build(self) -> "Services | None":
        """Open the directory, unless the goodbye has begun; blocking, on the pool.

        What is open is noted here: nobody may be waiting for it any more.
        """
        from app.bootstrap import Role, build

        with self._door:
            if not self._leaving:
                self.services = build(self._paths, Role.WINDOW)
            return self.services

    def _stand_still(self, error: KnownError) -> None:
        """Say why the data directory cannot be opened; nothing in it was changed."""
        self.refusal = error
        self.window.chat.composer.setEnabled(False)
        deeds = (("Try again", self.open), ("Quit", self.leave))
        self.window.chat.show_notice(*words_for(error), deeds)
        self.begun.set()

    def _begin(self, services: "Services") -> None:
        from app.cli.entry import execute
        from app.cli.remote import CommandServer
        from ui.controllers.program import Program

        self.window.show_usable(True)
        self.window.chat.composer.setEnabled(True)
        services.store.database.forbid_this_thread()
        services.store.subscribe(self.bridge.take_change)
        self.program = Program(services, self.bridge, self.window, self.appearance)
        self._server = CommandServer(
            self._paths,
            lambda argv, terminal: execute(services, argv, terminal),
            self._come_forward,
        )
        gc.freeze()  # modules above all: to look at them took 64 ms and found next to nothing
        self.begun.set()

    def _come_forward(self) -> bool:
        """Show the window to whoever started another one; called from any thread."""
        self.bridge.on_gui(self.window.come_forward)()
        return True

    # -- goodbye

    def _on_window_close_requested(self) -> None:
        if self.program is not None and not self._leaving:
            self.program.ask_to_leave(self.leave)
        else:
            self.leave()

    async def _say_goodbye(self) -> None:
        self._collector.stop()
        if self.program is not None:
            self.program.flush()
            keep_state(self._paths.window, self.window.state_to_keep())
        self.window.hide()
        await self.bridge.settle(_SETTLE_S)
        try:
            await self.bridge.run(self._close)
        except Exception:  # noqa: BLE001 - the window must go all the same
            _log.exception("the goodbye failed")
        self.bridge.wait_for_pools(_GOODBYE_MS)
        self.window.close_for_good()
        self.window.deleteLater()
        self.appearance.deleteLater()
        self.finished.set()

    def _close(self) -> None:
        """Let go of the directory, once an opening that is under way is over; blocking."""
        with self._door:
            if self._server is not None:
                self._server.close()
            if self.services is not None:
                self.services.close()

    def _on_report_finished(self) -> None:
        if self._shown_report is not None:
            self._shown_report.deleteLater()
            self._shown_report = None


def run(
    application: QApplication,
    paths: DataPaths,
    appearance: Appearance,
    window: MainWindow,
    *,
    smoke: bool,
) -> int:
    """Run the program behind a window that is on screen; return the exit code.

    With `smoke` it leaves as soon as everything is there, or cannot be.
    """
    with asyncio.Runner(loop_factory=lambda: _loop(application)) as runner:
        running = runner.run(_live(paths, appearance, window, smoke=smoke))
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.unfreeze()  # else what is in cycles outlives the interpreter, and DuckDB complains of it
    if running.refusal is not None and smoke:
        sys.stderr.write(f"{running.refusal}\n")
        return 1
    return 0


async def _live(
    paths: DataPaths, appearance: Appearance, window: MainWindow, *, smoke: bool
) -> Commonplace:
    """Return what ran, once it has ended."""
    running = Commonplace(paths, appearance, window)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: _on_loop_error(running, context))
    restore = catch_the_rest(running.report)
    with _leaving_on_signals(running, loop):
        running.open()
        if smoke:
            running.bridge.start("smoke", _leave_when_ready(running))
        await running.finished.wait()
    restore()
    return running


async def _leave_when_ready(running: Commonplace) -> None:
    """For the smoke test: wait until everything is there or cannot be, then leave."""
    await running.begun.wait()
    if running.program is not None:
        await running.program.ready.wait()
    running.leave()


def _loop(application: QApplication) -> asyncio.AbstractEventLoop:
    import qasync

    loop: asyncio.AbstractEventLoop = qasync.QEventLoop(application, already_running=False)
    return loop


@contextmanager
def _leaving_on_signals(running: Commonplace, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Say goodbye on SIGINT and SIGTERM; Qt lets Python's handlers run only between its events."""
    before = {
        number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(running.leave))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    beat = QTimer(running.window, interval=_LISTEN_EVERY_MS)
    beat.timeout.connect(lambda: None)
    beat.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_loop_error(running: Commonplace, context: dict[str, Any]) -> None:
    error = context.get("exception")
    _log.error("%s", context.get("message"), exc_info=error)
    if isinstance(error, BaseException):
        running.report(error)

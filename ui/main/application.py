"""The application behind the window: event loop, startup, startup errors and shutdown."""

import asyncio
import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import qasync
from PySide6.QtCore import QEvent, QObject, QProcess, QTimer
from PySide6.QtWidgets import QApplication

from app.bootstrap import RunMode, Services, build, locked
from app.cli.entry import execute
from app.cli.remote import CommandServer, raise_window
from app.domain.errors import AlreadyOpen, KnownError
from app.domain.translation import tr
from app.storage.safety.restore import restore_backup
from app.system.paths import DataPaths, store_state
from ui.bridge import Bridge
from ui.errors import ReportDialog, crash_report, error_text, install_exception_hook
from ui.main.composition import Presenters
from ui.rendering import formulas, highlight
from ui.theme import Appearance
from ui.views.dialogs.confirm import inform
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView

_log = logging.getLogger(__name__)
_FINISH_TASKS_S = 1.0
_FINISH_POOLS_MS = 3_000
_SIGNAL_CHECK_MS = 200
_OPEN_ATTEMPTS = 20
_RETRY_S = 0.25
_COLLECT_INTERVAL_MS = 1_000
_COLLECT_YOUNG_MIN = 700  # new objects below which nothing is done; Python's own threshold
_COLLECT_PER_OLDER = 10  # collections before one of the next older generation; Python's own, too
_COLLECT_MAX = 20_000  # objects: as many as are examined in 8 ms


class DesktopApplication:
    """The running application, from an empty window on screen to its shutdown.

    Attributes:
        window: Its window.
        program: The controllers, once the data directory is open.
        services: What is below them, from the same moment on.
        refusal: Why the data directory cannot be opened, if it cannot.
        restored: The backup that is restored as the program ends, before it starts again.
        started: Set when the controllers are there, or it is clear that they cannot be.
        finished: Set when everything is closed.
    """

    def __init__(self, paths: DataPaths, appearance: Appearance, window: MainWindow) -> None:
        self._paths = paths
        self.appearance = appearance
        self.window = window
        self.window.close_requested.connect(self._on_window_close_requested)
        self.window.quit_requested.connect(self._on_quit_requested)
        self.window.restore_requested.connect(self._on_restore_requested)
        self.bridge = Bridge(self.window)
        self.bridge.task_failed.connect(self.report)
        self.presenters: Presenters | None = None
        self.refusal: KnownError | None = None
        self.restored: Path | None = None
        self.started = asyncio.Event()
        self.finished = asyncio.Event()
        self.services: Services | None = None
        self._server: CommandServer | None = None
        self._leaving = False
        self._opening = threading.Lock()  # opening and closing, one after the other
        self._shown_report: ReportDialog | None = None
        self._collector = GarbageCollector(self.window)

    def open(self) -> None:
        """Open the data directory behind the window."""
        self.bridge.start("open", self._open_services())

    def leave(self) -> None:
        """Begin the shutdown, once; `finished` is set at its end."""
        if not self._leaving:
            self._leaving = True
            asyncio.get_event_loop().create_task(self._shut_down())

    def report(self, error: BaseException) -> None:
        """Show an expected error in the banner, an unexpected one in a report, one at a time."""
        if isinstance(error, KnownError):
            self.window.chat.banner.show_error(error)
        elif self._shown_report is None and self.window.isVisible():
            self._shown_report = ReportDialog(crash_report(error), self.window)
            self._shown_report.finished.connect(self._on_report_finished)
            self._shown_report.open()

    # -- startup

    async def _open_services(self) -> None:
        if self.refusal is None:
            await self._build_panels()
        self.refusal = None
        try:
            services = await self._build_with_retries()
        except KnownError as error:
            self._show_startup_error(error)
        else:
            if services is not None:
                self._begin(services)
                await self.bridge.run(highlight.preload)
                await self.bridge.run(formulas.preload)
                await self.bridge.run(services.models.preload)

    async def _build_panels(self) -> None:
        """Build what the first frame does not show; the user is answered between the steps."""
        thumbnails = self.window.chat.composer.files.thumbnails
        for _ in self.window.build_panels(TranscriptView(self.appearance.theme, thumbnails)):
            await asyncio.sleep(0)

    async def _build_with_retries(self) -> Services | None:
        """Return the services; None when a window that is already open was raised instead.

        A window that is closing does not answer, but releases the directory soon.
        """
        for _ in range(_OPEN_ATTEMPTS):
            try:
                return await self.bridge.run(self._build)
            except AlreadyOpen:
                if await self.bridge.run(lambda: raise_window(self._paths)):
                    self.leave()
                    return None
            self.window.chat.show_notice(tr("Waiting for another Commonplace to close\u2026"))
            await asyncio.sleep(_RETRY_S)
        return await self.bridge.run(self._build)

    def _build(self) -> Services | None:
        """Open the directory, unless the shutdown has started; blocking.

        The services are stored here because the awaiting task may be cancelled.
        """
        with self._opening:
            if not self._leaving:
                self.services = build(self._paths, RunMode.WINDOW)
            return self.services

    def _show_startup_error(self, error: KnownError) -> None:
        """Show why the data directory cannot be opened; nothing in it was changed."""
        self.refusal = error
        self.window.chat.composer.setEnabled(False)
        self.window.drop_early_action()
        actions = ((tr("Try again"), self.open), (tr("Quit"), self.leave))
        self.window.chat.show_notice(*error_text(error), actions)
        self.started.set()

    def _begin(self, services: Services) -> None:
        self.window.set_usable(True)
        self.window.chat.composer.setEnabled(True)
        services.store.database.forbid_this_thread()
        services.store.subscribe(self.bridge.post_change)
        self.presenters = Presenters(services, self.bridge, self.window, self.appearance)
        self._server = CommandServer(
            self._paths,
            lambda argv, terminal: execute(services, argv, terminal),
            self._bring_to_front,
            services.serve_mcp,
            self._show_quick_find,
        )
        gc.freeze()  # mostly modules: collecting them took 64 ms and freed almost nothing
        self.started.set()

    def _bring_to_front(self) -> bool:
        """Raise the window when another one was started; called from any thread."""
        self.bridge.on_gui(self.window.bring_to_front)()
        return True

    def _show_quick_find(self) -> bool:
        """Show the quick search; called from any thread."""
        assert self.presenters is not None
        self.bridge.on_gui(self.presenters.quick_find.show)()
        return True

    # -- shutdown

    def _on_window_close_requested(self) -> None:
        if self.presenters is not None and not self._leaving:
            self.presenters.tray.close(self._on_quit_requested)
        else:
            self.leave()

    def _on_quit_requested(self) -> None:
        if self.presenters is not None and not self._leaving:
            self.presenters.ask_to_leave(self.leave)
        else:
            self.leave()

    def _on_restore_requested(self, backup: Path) -> None:
        def leave() -> None:
            self.restored = backup
            self.leave()

        if self.presenters is not None and not self._leaving:
            self.presenters.ask_to_leave(leave)

    async def _shut_down(self) -> None:
        self._collector.stop()
        if self.presenters is not None:
            self.presenters.flush()
            store_state(self._paths.window, self.window.state_to_store())
        self.window.hide()
        await self.bridge.settle(_FINISH_TASKS_S)
        try:
            await self.bridge.run(self._close)
        except Exception as error:  # noqa: BLE001 - the window must close in any case
            _log.exception("the shutdown failed")
            if self.restored is not None:
                await self._tell_of_failed_restore(error)
        self.bridge.wait_for_pools(_FINISH_POOLS_MS)
        self.window.close_now()
        self.window.deleteLater()
        self.appearance.deleteLater()
        self.finished.set()

    def _close(self) -> None:
        """Close the directory, after an opening that is running, and restore a backup; blocking."""
        with self._opening:
            if self._server is not None:
                self._server.close()
            if self.services is not None:
                self.services.close()
            if self.restored is not None:
                with locked(self._paths):
                    restore_backup(self._paths, self.restored)

    async def _tell_of_failed_restore(self, error: Exception) -> None:
        """Show why a backup was not restored, until the user closes it."""
        closed = asyncio.Event()
        box = inform(self.window, tr("Restore a backup"), *error_text(error))
        box.finished.connect(lambda _: closed.set())
        await closed.wait()

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
    """Run the application behind a window that is on screen; return the exit code.

    With `smoke` it quits as soon as startup has succeeded or failed.
    """
    with asyncio.Runner(loop_factory=lambda: _loop(application)) as runner:
        running = runner.run(_live(paths, appearance, window, smoke=smoke))
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if application.platformName() == "offscreen":  # it deletes copied data after Python has ended
        application.clipboard().clear()
    if running.restored is not None:
        QProcess.startDetached(sys.executable, sys.orig_argv[1:])
    gc.unfreeze()  # otherwise cycles outlive the interpreter, and DuckDB reports leaks
    if running.refusal is not None and smoke:
        sys.stderr.write(f"{running.refusal}\n")
        return 1
    return 0


async def _live(
    paths: DataPaths, appearance: Appearance, window: MainWindow, *, smoke: bool
) -> DesktopApplication:
    """Return the application, once it has ended."""
    running = DesktopApplication(paths, appearance, window)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: _on_loop_error(running, context))
    restore = install_exception_hook(running.report)
    with _leaving_on_signals(running, loop):
        running.open()
        if smoke:
            running.bridge.start("smoke", _leave_when_ready(running))
        await running.finished.wait()
    restore()
    return running


async def _leave_when_ready(running: DesktopApplication) -> None:
    """Wait until startup has succeeded or failed, then quit; for the smoke test."""
    await running.started.wait()
    if running.presenters is not None:
        await running.presenters.ready.wait()
    running.leave()


def _loop(application: QApplication) -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = qasync.QEventLoop(application, already_running=False)
    return loop


@contextmanager
def _leaving_on_signals(
    running: DesktopApplication, loop: asyncio.AbstractEventLoop
) -> Iterator[None]:
    """Shut down on SIGINT and SIGTERM; a timer lets Python run its signal handlers."""
    before = {
        number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(running.leave))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    timer = QTimer(running.window, interval=_SIGNAL_CHECK_MS)
    timer.timeout.connect(lambda: None)
    timer.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_loop_error(running: DesktopApplication, context: dict[str, Any]) -> None:
    error = context.get("exception")
    _log.error("%s", context.get("message"), exc_info=error)
    if isinstance(error, BaseException):
        running.report(error)


class GarbageCollector(QObject):
    """Collects garbage in the thread it lives in, until `stop`.

    Many new objects at once are not garbage but modules (an SDK creates 100,000 objects, 50 ms per
    collection) or a long list. They are frozen, that is, exempt from collection; reference counting
    still frees them, except for cycles among them.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=_COLLECT_INTERVAL_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def collect(self) -> None:
        """Collect young objects, sometimes older ones; at most about 20,000 each time."""
        young, middle, old = gc.get_count()
        if young < _COLLECT_YOUNG_MIN:
            return
        if young > _COLLECT_MAX:
            gc.freeze()
        elif middle < _COLLECT_PER_OLDER:
            gc.collect(0)
        elif old < _COLLECT_PER_OLDER:
            gc.collect(1)
        elif len(gc.get_objects(generation=2)) > _COLLECT_MAX:
            gc.freeze()
        else:
            gc.collect()

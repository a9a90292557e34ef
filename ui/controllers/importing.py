"""Imports: files chosen or dropped, progress, cancel, and the report of what was skipped."""

import threading
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QFileDialog

from app.bootstrap import Services
from app.domain.errors import KnownError
from app.domain.transfer import ImportProgress
from app.transfer.importing import import_files
from app.workers.background_words import plan_words
from ui.bridge import Bridge
from ui.controllers.background import BackgroundController
from ui.errors import words_for
from ui.views.import_dialog import ImportDialog
from ui.views.main_window import MainWindow

SAMPLE = Path(__file__).resolve().parents[2] / "resources" / "samples" / "sample-archive.json"
_SHOW_EVERY_MS = 100


class ImportController(QObject):
    """Runs imports, one at a time, on the bridge's pool."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        background: BackgroundController,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._background = background
        self._cancelled = threading.Event()
        self._progress: ImportProgress | None = None
        self._dialog: ImportDialog | None = None
        self._show = QTimer(self, interval=_SHOW_EVERY_MS)
        self._show.timeout.connect(self._on_show_timeout)
        window.files_dropped.connect(self.start)
        window.chat.welcome.files_dropped.connect(self.start)
        window.chat.welcome.import_requested.connect(self.choose)
        window.chat.welcome.sample_requested.connect(lambda: self.start([SAMPLE]))
        window.actions_by_name["import"].triggered.connect(self._on_import_triggered)

    @property
    def running(self) -> bool:
        """Whether an import is under way."""
        return self._show.isActive()

    @property
    def dialog(self) -> ImportDialog | None:
        """The dialog of the import under way or just ended."""
        return self._dialog

    def choose(self) -> None:
        """Ask for files."""
        dialog = QFileDialog(self._window, "Import")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters(["Exports (*.zip *.json *.jsonl)", "All files (*)"])
        dialog.filesSelected.connect(lambda names: self.start([Path(name) for name in names]))
        dialog.open()

    def start(self, paths: Sequence[Path]) -> None:
        """Import files or folders, unless an import is under way."""
        if self.running:
            self._window.chat.banner.tell("An import is under way already.", brief=True)
            return
        self._cancelled = threading.Event()
        self._progress = None
        self._dialog = ImportDialog(", ".join(path.name for path in paths), self._window)
        self._dialog.cancel_requested.connect(self._cancelled.set)
        self._dialog.finished.connect(self._dialog.deleteLater)
        self._dialog.open()
        self._show.start()
        self._bridge.start("import", self._import(list(paths), self._dialog))

    def _on_import_triggered(self) -> None:
        self.choose()

    def stop(self) -> None:
        """Ask an import under way to end; what is stored by then stays."""
        self._cancelled.set()

    async def _import(self, paths: list[Path], dialog: ImportDialog) -> None:
        cancelled, background = self._cancelled, self._services.background
        try:
            consents = await self._bridge.write(background.take_consents_back)
            report = await self._bridge.run(
                lambda: import_files(
                    self._services.store,
                    paths,
                    cancelled=cancelled.is_set,
                    on_progress=self._take_progress,
                    give_way=self._services.workers.courtesy.step_aside,
                )
            )
            plan = await self._bridge.run(background.plan) if report.turns else None
            if not report.turns:
                await self._bridge.write(lambda: background.give_consents_back(consents))
        except KnownError as error:
            dialog.show_error(*words_for(error))
        else:
            # Nothing is waited for from here on: the user may close this, and import again.
            dialog.show_report(report, plan_words(plan) if plan is not None else "")
            if plan is not None:
                self._background.ask_to_allow()
        finally:
            self._show.stop()

    def _take_progress(self, progress: ImportProgress) -> None:
        """Keep the newest progress; called on the import's thread, shown by a timer."""
        self._progress = progress

    def _on_show_timeout(self) -> None:
        if self._progress is not None and self._dialog is not None:
            self._dialog.show_progress(self._progress)

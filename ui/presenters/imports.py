"""Imports: choose files, show the progress, cancel, and report what was skipped."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFileDialog

from app.domain.errors import KnownError
from app.domain.transfer import ImportProgress, ImportReport
from app.domain.translation import tr
from app.workers.model_choice import BackgroundModelChoice, plan_text
from ui.presenters.presenter import Presenter
from ui.views.dialogs.import_dialog import ImportDialog
from ui.widgets.banner import Banner

SAMPLE = Path(__file__).resolve().parents[2] / "resources" / "samples" / "sample-archive.json"
_TASK = "import"
_REFRESH_MS = 100


class ImportPresenter(Presenter):
    """Runs imports, one at a time, on the bridge's pool.

    `import_files` is `app.transfer.importing.import_files` for the open store; it blocks.
    `ask_for_consent` asks whether the background model may read what was imported; `questions` returns some
    that the library can answer, it blocks.

    Attributes:
        dialog: That of the import that is running or ended last.

    Signals:
        question_chosen: Ask a question about what was imported.
        sample_closed: The report about the sample archive was closed.
    """

    question_chosen = Signal(str)
    sample_closed = Signal()

    _import_files: Callable[..., ImportReport]
    _background: BackgroundModelChoice
    _messages: Banner
    _ask_for_consent: Callable[[], object]
    _questions: Callable[[], Sequence[str]]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._cancelled = threading.Event()
        self._progress: ImportProgress | None = None
        self.dialog: ImportDialog | None = None
        self._refresh = QTimer(self, interval=_REFRESH_MS)
        self._refresh.timeout.connect(self._on_refresh_timeout)

    @property
    def is_running(self) -> bool:
        """Whether an import is running."""
        return self._refresh.isActive()

    def choose(self) -> None:
        """Ask for files, then import them."""
        dialog = QFileDialog(self._messages.window(), tr("Import"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters([tr("Exports (*.zip *.json *.jsonl)"), tr("All files (*)")])
        dialog.filesSelected.connect(lambda names: self.start([Path(name) for name in names]))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def start(self, paths: Sequence[Path]) -> None:
        """Import files or folders, unless an import is running."""
        if self.is_running:
            self._messages.show_message(tr("An import is already running."), brief=True)
            return
        self._cancelled = threading.Event()
        self._progress = None
        names = ", ".join(path.name for path in paths)
        self.dialog = dialog = ImportDialog(names, self._messages.window())
        dialog.cancel_requested.connect(self._cancelled.set)
        dialog.question_chosen.connect(self.question_chosen)
        dialog.finished.connect(dialog.deleteLater)
        if list(paths) == [SAMPLE]:
            dialog.finished.connect(lambda _: self.sample_closed.emit())
        dialog.show()
        self._refresh.start()
        self._bridge.start(_TASK, self._run(list(paths), dialog))

    def stop(self) -> None:
        """Cancel an import that is running; what is stored by then stays."""
        self._cancelled.set()

    async def _run(self, paths: list[Path], dialog: ImportDialog) -> None:
        cancelled, background = self._cancelled, self._background
        try:
            consents = await self._bridge.write(background.revoke_consents)
            report = await self._bridge.run(
                lambda: self._import_files(
                    paths, cancelled=cancelled.is_set, on_progress=self._take_progress
                )
            )
            plan = await self._bridge.run(background.plan) if report.turns else None
            questions = await self._bridge.run(self._questions) if report.turns else ()
            if not report.turns:
                await self._bridge.write(lambda: background.restore_consents(consents))
        except Exception as error:
            dialog.show_error(error)
            if not isinstance(error, KnownError):
                raise
        else:
            # Nothing is awaited from here on: the user may close the dialog and import again.
            dialog.show_report(report, plan_text(plan) if plan is not None else "")
            dialog.show_questions(questions)
            if plan is not None:
                self._ask_for_consent()
        finally:
            self._refresh.stop()

    def _take_progress(self, progress: ImportProgress) -> None:
        """Keep the newest progress for the timer; called on the import's thread."""
        self._progress = progress

    def _on_refresh_timeout(self) -> None:
        if self._progress is not None and self.dialog is not None:
            self.dialog.show_progress(self._progress)

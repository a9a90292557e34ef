"""Imports: choose files, show what they hold and the progress, cancel, report, undo; new exports in Downloads."""

import json
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QStandardPaths, QTimer, Signal

from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.transfer import ImportProgress, ImportReport
from app.domain.translation import tr, trn
from app.storage.tables.settings import Settings
from app.transfer.export_cache import ExportCache
from app.transfer.found_exports import FoundExport
from app.transfer.import_history import ImportHistory, PastImport, Undone
from app.workers.model_choice import BackgroundModelChoice, plan_text
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import confirm_removal
from ui.views.dialogs.import_dialog import ImportDialog, PastImportsDialog
from ui.widgets.banner import Banner
from ui.widgets.dialog import ask_for_files

SAMPLE = Path(__file__).resolve().parents[2] / "resources" / "samples" / "sample-archive.json"
_TASK = "import"
_REFRESH_MS = 100
SWITCH, SEEN = "watch_downloads", "seen_exports"
_SETTLED_MS = 3000  # after the last change in the folder: a browser is still writing
_SEEN_KEPT = 50
_NEW_EXPORTS = "new exports"
_log = logging.getLogger(__name__)


class ImportPresenter(Presenter):
    """Runs imports, one at a time, on the bridge's pool.

    `import_files` is `app.transfer.importing.import_files` for the open store; it blocks. The sample is
    imported at once, of other files is shown first what they would add.
    `ask_for_consent` asks whether the background model may read what was imported; `questions` returns some
    about conversations, it blocks.

    Attributes:
        dialog: That of the import that is running or ended last.

    Signals:
        question_chosen: Ask a question about what was imported.
        sample_closed: The report about the sample archive was closed without a question.
        imported: The paths of an import that added something; its report was closed.
    """

    question_chosen = Signal(str)
    sample_closed = Signal()
    imported = Signal(list)

    _import_files: Callable[..., ImportReport]
    _background: BackgroundModelChoice
    _messages: Banner
    _ask_for_consent: Callable[[], object]
    _questions: Callable[[Collection[ConversationId]], Sequence[str]]
    _history: ImportHistory

    def _set_up(self) -> None:
        self._cancelled = threading.Event()
        self._progress: ImportProgress | None = None
        self._cache = ExportCache()
        self.dialog: ImportDialog | None = None
        self._refresh = QTimer(self, interval=_REFRESH_MS)
        self._refresh.timeout.connect(self._on_refresh_timeout)

    @property
    def is_running(self) -> bool:
        return self._refresh.isActive()

    def choose(self) -> None:
        """Ask for files, at first in Downloads, where exports arrive; then import them."""
        filters = (tr("Exports (*.zip *.json *.jsonl)"), tr("All files (*)"))
        downloads = QStandardPaths.StandardLocation.DownloadLocation
        folder = Path(QStandardPaths.writableLocation(downloads))
        start = str(folder) if folder.is_dir() else ""
        ask_for_files(self._messages.window(), tr("Import"), filters, self.start, start)

    def start(self, paths: Sequence[Path]) -> None:
        """Import files or folders, unless an import is running."""
        if self.is_running:
            self._messages.show_message(tr("An import is already running."), brief=True)
            return
        if self.dialog is not None:
            self.dialog.reject()  # that of a preview which was left
        names = ", ".join(path.name for path in paths)
        self.dialog = dialog = ImportDialog(names, self._messages.window())
        dialog.cancel_requested.connect(self.stop)
        self._cache = ExportCache()
        dialog.import_requested.connect(lambda: self._begin(list(paths), dialog, reads_only=False))
        dialog.question_chosen.connect(self.question_chosen)
        dialog.finished.connect(lambda _: self._on_closed(dialog))
        is_sample = list(paths) == [SAMPLE]
        if is_sample:
            dialog.rejected.connect(self.sample_closed)
        dialog.show()
        self._begin(list(paths), dialog, reads_only=not is_sample)

    def _begin(self, paths: list[Path], dialog: ImportDialog, *, reads_only: bool) -> None:
        self._cancelled = threading.Event()
        self._progress = None
        dialog.begin(reads_only=reads_only)
        self._refresh.start()
        work = self._preview(paths, dialog) if reads_only else self._run(paths, dialog)
        self._bridge.start(_TASK, work)

    def _on_closed(self, dialog: ImportDialog) -> None:
        if self.dialog is dialog:
            self.dialog = None
            self._cache.close()
        self._bridge.cancel("undo preview")
        dialog.deleteLater()

    def show_past(self) -> None:
        """Show past imports, which can be undone."""
        dialog = PastImportsDialog(self._messages.window())
        dialog.undo_requested.connect(
            lambda past: self._ask_to_undo(past, dialog, lambda _: self._load_past(dialog))
        )
        self._load_past(dialog)
        self._open_dialog(dialog, "past imports")

    def _load_past(self, dialog: PastImportsDialog) -> None:
        self._bridge.load("past imports", self._history.listed, dialog.show_imports)

    def undo(self, number: int, dialog: ImportDialog) -> None:
        """Undo an import once the user agrees, and show that in its dialog."""
        self._bridge.load(
            "undo preview",
            lambda: self._history.get(number),
            lambda past: self._ask_to_undo(past, dialog, dialog.show_undone),
        )

    def _ask_to_undo(
        self,
        past: PastImport,
        dialog: ImportDialog | PastImportsDialog,
        on_done: Callable[[Undone], object],
    ) -> None:
        """Undo an import of a dialog; ask before if it deletes messages."""

        def undo() -> None:
            dialog.show_undoing()
            work = partial(self._history.undo, past.number)
            self._bridge.save(work, on_done, dialog.show_error)

        if not past.messages:
            undo()
            return
        title = tr("Undo import")
        question = tr("Undo the import of {names}?").format(names=", ".join(past.names))
        details = trn(
            "{count} message that it added to conversations which were here before is deleted, with what "
            "was learned from its turn. Messages that were answered here stay.",
            "{count} messages that it added to conversations which were here before are deleted, with what "
            "was learned from their turns. Messages that were answered here stay.",
            past.messages,
        )
        confirm_removal(dialog, title, question, details, undo, title)

    def stop(self) -> None:
        """Cancel an import that is running; what is stored by then stays."""
        self._cancelled.set()

    async def _preview(self, paths: list[Path], dialog: ImportDialog) -> None:
        """Read the files; import at once what adds no message, such as newer titles, else ask."""
        try:
            report = await self._bridge.run(self._import_of(paths, dry_run=True))
        except Exception as error:
            self._refresh.stop()
            dialog.show_error(error)
            if not isinstance(error, KnownError):
                raise
            return
        self._refresh.stop()
        if report.cancelled:
            dialog.show_report(report)
        elif report.messages or report.offered:
            dialog.show_preview(report)
        else:
            self._begin(paths, dialog, reads_only=False)

    async def _run(self, paths: list[Path], dialog: ImportDialog) -> None:
        background = self._background
        work = self._import_of(paths, memories=dialog.memories.isChecked())
        try:
            consents = await self._bridge.write(background.revoke_consents)
            report = await self._bridge.run(work)
            plan = await self._bridge.run(background.plan) if report.turns else None
            ids = {each.id for each in report.new}
            questions = await self._bridge.run(lambda: self._questions(ids)) if ids else ()
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
            if report.messages:
                dialog.finished.connect(lambda _: self.imported.emit(paths))
            dialog.undo_requested.connect(lambda: self.undo(report.number, dialog))
            if plan is not None:
                self._ask_for_consent()
        finally:
            self._refresh.stop()

    def _import_of(self, paths: list[Path], **options: bool) -> Callable[[], ImportReport]:
        return partial(
            self._import_files, paths, cancelled=self._cancelled.is_set,
            on_progress=self._take_progress, read=self._cache.read, **options,
        )  # fmt: skip

    def _take_progress(self, progress: ImportProgress) -> None:
        """Keep the newest progress for the timer; called on the import's thread."""
        self._progress = progress

    def _on_refresh_timeout(self) -> None:
        if self._progress is not None and self.dialog is not None:
            self.dialog.show_progress(self._progress)


class DownloadsPresenter(Presenter):
    """Offers exports that appear in the folder; it never imports one unasked.

    `find` returns the exports in the folder; `read` reads one without storing it. Both block. `start_import`
    shows what an export would add. `make_offer` takes a text, what accepts and what dismisses the offer.
    """

    _settings: Settings
    _folder: Path
    _find: Callable[[], Sequence[FoundExport]]
    _read: Callable[[Path], ImportReport]
    _start_import: Callable[[Sequence[Path]], object]
    _make_offer: Callable[[str, Callable[[], object], Callable[[], object]], object]
    _messages: Banner

    def _set_up(self) -> None:
        self._watcher = QFileSystemWatcher(self)
        self._pause = QTimer(self, singleShot=True, interval=_SETTLED_MS)
        self._pause.timeout.connect(self.look)
        self._watcher.directoryChanged.connect(self._pause.start)
        self._bridge.subscribe(lambda _: self.apply(), SWITCH)
        self.apply()

    def apply(self) -> None:
        """Watch the folder if that is switched on."""
        if self._settings.text(SWITCH) == "on":
            self._watcher.addPath(str(self._folder))
            self._pause.start()
        else:
            self._watcher.removePath(str(self._folder))
            self._pause.stop()

    def note_import(self, paths: Sequence[Path]) -> None:
        """Ask whether to look for new exports, after the first import from the folder."""
        if self._settings.text(SWITCH) == "ask" and any(
            each.parent == self._folder for each in paths
        ):
            text = tr("Offer new exports when they appear in Downloads")
            self._make_offer(text, lambda: self._switch("on"), lambda: self._switch("off"))

    def look(self) -> None:
        """Offer the newest export that was not offered before, if it has anything new."""
        self._bridge.load(_NEW_EXPORTS, self._new, self._offer)

    def _new(self) -> tuple[FoundExport, ImportReport] | None:
        seen: list[str] = json.loads(self._settings.text(SEEN))
        for each in self._find():
            mark = f"{each.path.name} {each.size_bytes} {each.modified_at.isoformat()}"
            if mark not in seen:
                try:
                    report = self._read(each.path)
                except KnownError as error:  # it may still be written: it is read again next time
                    _log.info("an export in Downloads cannot be read: %s", type(error).__name__)
                    continue
                seen.append(mark)
                self._settings.set(SEEN, json.dumps(seen[-_SEEN_KEPT:]))
                if report.messages:
                    return each, report
        return None

    def _offer(self, found: tuple[FoundExport, ImportReport] | None) -> None:
        if found is None:
            return
        export, report = found
        new = (
            trn("{count} new conversation", "{count} new conversations", report.conversations)
            if report.conversations
            else trn("{count} new message", "{count} new messages", report.messages)
        )
        text = tr("A new export of {program} is in Downloads: {new}")
        self._make_offer(
            text.format(program=export.program, new=new),
            lambda: self._start_import([export.path]),
            lambda: None,
        )

    def _switch(self, value: str) -> None:
        done = tr("New exports in Downloads are offered from now on. Nothing is imported unasked.")
        self._bridge.save(
            lambda: self._settings.set(SWITCH, value),
            lambda _: self._messages.show_message(done, brief=True) if value == "on" else None,
        )

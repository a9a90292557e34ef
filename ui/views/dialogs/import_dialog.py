"""The import dialog: progress, cancel button and report."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.domain.formatting import format_count
from app.domain.transfer import ImportProgress, ImportReport
from ui.errors import error_text
from ui.widgets.controls import button, filled
from ui.widgets.plain_label import plain_label

_STEPS = 1000
_SKIPPED_SHOWN = 500


class ImportDialog(QDialog):
    """Shows one import, from its progress to its report.

    Signals:
        cancel_requested: Cancel the import; what is stored by then stays.
        question_chosen: Ask a question about what was imported.
    """

    cancel_requested = Signal()
    question_chosen = Signal(str)

    def __init__(self, names: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Import")
        self.setMinimumWidth(460)
        self._running = True
        self._headline = plain_label(self, "heading", f"Importing {names}", selectable=False)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setAccessibleName("Progress of the import")
        self.words = plain_label(self, selectable=False)
        self._skipped = QPlainTextEdit(self)
        self._skipped.setReadOnly(True)
        self._skipped.setAccessibleName("What was skipped, and why")
        self._skipped.hide()
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._buttons.rejected.connect(self.reject)
        self._questions = filled(QVBoxLayout(), spacing=6)
        parts = (
            self._headline,
            self._bar,
            self.words,
            self._skipped,
            self._questions,
            self._buttons,
        )
        filled(QVBoxLayout(self), *parts)

    def show_progress(self, progress: ImportProgress) -> None:
        """Show the progress."""
        if progress.bytes_total:
            self._bar.setRange(0, _STEPS)
            self._bar.setValue(round(progress.bytes_read / progress.bytes_total * _STEPS))
        conversations = format_count(progress.conversations, "conversation")
        self.words.setText(f"{conversations}, {format_count(progress.messages, 'message')} so far")

    def show_report(self, report: ImportReport, background_text: str = "") -> None:
        """Show the report, what was skipped, and `background_text` about the work to come."""
        self._end()
        self._headline.setText("Import stopped" if report.cancelled else "Import finished")
        self._bar.setRange(0, 1)
        self._bar.setValue(1)
        self.words.setText("\n\n".join(filter(None, (_report_text(report), background_text))))
        if report.skipped:
            lines = [f"{each.where}: {each.why}" for each in report.skipped[:_SKIPPED_SHOWN]]
            if len(report.skipped) > _SKIPPED_SHOWN:
                lines.append(f"and {len(report.skipped) - _SKIPPED_SHOWN:,} more")
            self._skipped.setPlainText("\n".join(lines))
            self._skipped.show()
            self.resize(560, 420)

    def show_questions(self, questions: Sequence[str]) -> None:
        """Offer questions about what was imported."""
        if questions:
            heading = plain_label(self, "heading", "Ask something about it", selectable=False)
            self._questions.addWidget(heading)
        for each in questions:
            made = button(self, each.replace("&", "&&"))
            made.clicked.connect(lambda _=False, each=each: self._choose(each))
            self._questions.addWidget(made)

    def _choose(self, question: str) -> None:
        self.accept()
        self.question_chosen.emit(question)

    def show_error(self, error: BaseException) -> None:
        """Show why the import failed."""
        self._end()
        title, hint = error_text(error)
        self._headline.setText(title)
        self._bar.hide()
        self.words.setText(hint)

    def _end(self) -> None:
        self._running = False
        self._buttons.setEnabled(True)
        self._buttons.setStandardButtons(QDialogButtonBox.StandardButton.Close)

    # Qt overrides

    def reject(self) -> None:
        """Close; while the import runs, cancel it instead."""
        if not self._running:
            super().reject()
            return
        self._headline.setText("Stopping\u2026")
        self._buttons.setEnabled(False)
        self.cancel_requested.emit()


def _report_text(report: ImportReport) -> str:
    parts = ["Nothing new was found."]
    if report.messages or report.conversations:
        conversations = format_count(report.conversations, "conversation")
        turns, messages = (
            format_count(report.turns, "turn"),
            format_count(report.messages, "message"),
        )
        parts = [f"New: {conversations} with {turns}, {messages} in all."]
    if report.duplicates:
        verb = "was" if report.duplicates == 1 else "were"
        parts.append(f"{format_count(report.duplicates, 'message')} {verb} already stored.")
    if report.presets:
        presets = format_count(report.presets, "new preset")
        parts.append(f"{presets}, not used by imported conversations.")
    if report.skipped:
        verb = "was" if len(report.skipped) == 1 else "were"
        parts.append(f"{format_count(len(report.skipped), 'thing')} {verb} skipped:")
    return " ".join(parts)

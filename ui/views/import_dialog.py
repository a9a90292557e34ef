"""An import under way: how far it is, how to stop it, and what came of it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.domain.transfer import ImportProgress, ImportReport
from app.workers.wording import counted
from ui.widgets.plain_label import PlainLabel

_STEPS = 1000
_SKIPPED_SHOWN = 500


class ImportDialog(QDialog):
    """Shows one import from its start to its report.

    Signals:
        cancel_requested: The user wants it to end; what is stored by then stays.
    """

    cancel_requested = Signal()

    def __init__(self, names: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Import")
        self.setMinimumWidth(460)
        self._running = True
        self._headline = PlainLabel(f"Importing {names}", self)
        self._headline.setProperty("tone", "heading")
        self._headline.setWordWrap(True)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setAccessibleName("Progress of the import")
        self.words = PlainLabel(self)
        self.words.setWordWrap(True)
        self._skipped = QPlainTextEdit(self)
        self._skipped.setReadOnly(True)
        self._skipped.setAccessibleName("What was skipped, and why")
        self._skipped.hide()
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._buttons.rejected.connect(self._on_buttons_rejected)
        column = QVBoxLayout(self)
        for part in (self._headline, self._bar, self.words, self._skipped, self._buttons):
            column.addWidget(part)

    def show_progress(self, progress: ImportProgress) -> None:
        """Show how far it is."""
        if progress.bytes_total:
            self._bar.setRange(0, _STEPS)
            self._bar.setValue(round(progress.bytes_read / progress.bytes_total * _STEPS))
        conversations = counted(progress.conversations, "conversation")
        self.words.setText(f"{conversations}, {counted(progress.messages, 'message')} so far")

    def show_report(self, report: ImportReport, takes: str = "") -> None:
        """Show what came of it, name what was skipped, and say what background work it takes."""
        self._end()
        self._headline.setText("Import stopped" if report.cancelled else "Import finished")
        self._bar.setRange(0, 1)
        self._bar.setValue(1)
        self.words.setText("\n\n".join(filter(None, (_report_words(report), takes))))
        if report.skipped:
            lines = [f"{each.where}: {each.why}" for each in report.skipped[:_SKIPPED_SHOWN]]
            if len(report.skipped) > _SKIPPED_SHOWN:
                lines.append(f"and {len(report.skipped) - _SKIPPED_SHOWN:,} more")
            self._skipped.setPlainText("\n".join(lines))
            self._skipped.show()
            self.resize(560, 420)

    def show_error(self, title: str, hint: str) -> None:
        """Tell why there is nothing to import, or why it broke off."""
        self._end()
        self._headline.setText(title)
        self._bar.hide()
        self.words.setText(hint)

    def _end(self) -> None:
        self._running = False
        self._buttons.setEnabled(True)
        self._buttons.setStandardButtons(QDialogButtonBox.StandardButton.Close)

    def _on_buttons_rejected(self) -> None:
        self.reject()

    # Qt overrides

    def reject(self) -> None:
        """Close; while it runs, ask for its end instead."""
        if not self._running:
            super().reject()
            return
        self._headline.setText("Stopping\u2026")
        self._buttons.setEnabled(False)
        self.cancel_requested.emit()


def _report_words(report: ImportReport) -> str:
    parts = ["Nothing is new."]
    if report.messages or report.conversations:
        conversations = counted(report.conversations, "conversation")
        turns, messages = counted(report.turns, "turn"), counted(report.messages, "message")
        parts = [f"New: {conversations} with {turns}, {messages} in all."]
    if report.duplicates:
        verb = "was" if report.duplicates == 1 else "were"
        parts.append(f"{counted(report.duplicates, 'message')} {verb} here already.")
    if report.skipped:
        verb = "was" if len(report.skipped) == 1 else "were"
        parts.append(f"{counted(len(report.skipped), 'thing')} {verb} skipped:")
    return " ".join(parts)

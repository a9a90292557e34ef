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

from app.domain.transfer import ImportProgress, ImportReport
from app.domain.translation import format_number, tr, trn
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
        self.setWindowTitle(tr("Import"))
        self.setMinimumWidth(460)
        self._running = True
        self._headline = plain_label(
            self, "heading", tr("Importing {names}").format(names=names), selectable=False
        )
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setAccessibleName(tr("Progress of the import"))
        self.words = plain_label(self, selectable=False)
        self._skipped = QPlainTextEdit(self)
        self._skipped.setReadOnly(True)
        self._skipped.setAccessibleName(tr("What was skipped, and why"))
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
        conversations = trn("{count} conversation", "{count} conversations", progress.conversations)
        self.words.setText(
            tr("{conversations}, {messages} so far").format(
                conversations=conversations,
                messages=trn("{count} message", "{count} messages", progress.messages),
            )
        )

    def show_report(self, report: ImportReport, background_text: str = "") -> None:
        """Show the report, what was skipped, and `background_text` about the work to come."""
        self._end()
        self._headline.setText(tr("Import stopped") if report.cancelled else tr("Import finished"))
        self._bar.setRange(0, 1)
        self._bar.setValue(1)
        self.words.setText("\n\n".join(filter(None, (_report_text(report), background_text))))
        if report.skipped:
            lines = [f"{each.where}: {each.why}" for each in report.skipped[:_SKIPPED_SHOWN]]
            if len(report.skipped) > _SKIPPED_SHOWN:
                lines.append(
                    tr("and {skipped} more").format(
                        skipped=format_number(len(report.skipped) - _SKIPPED_SHOWN)
                    )
                )
            self._skipped.setPlainText("\n".join(lines))
            self._skipped.show()
            self.resize(560, 420)

    def show_questions(self, questions: Sequence[str]) -> None:
        """Offer questions about what was imported."""
        if questions:
            heading = plain_label(self, "heading", tr("Ask something about it"), selectable=False)
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
        self._headline.setText(tr("Stopping\u2026"))
        self._buttons.setEnabled(False)
        self.cancel_requested.emit()


def _report_text(report: ImportReport) -> str:
    parts = [tr("Nothing new was found.")]
    if report.messages or report.conversations:
        conversations = trn("{count} conversation", "{count} conversations", report.conversations)
        turns, messages = (
            trn("{count} turn", "{count} turns", report.turns),
            trn("{count} message", "{count} messages", report.messages),
        )
        parts = [
            tr("New: {conversations} with {turns}, {messages} in all.").format(
                conversations=conversations, turns=turns, messages=messages
            )
        ]
    if report.duplicates:
        parts.append(
            trn(
                "{count} message was already stored.",
                "{count} messages were already stored.",
                report.duplicates,
            )
        )
    if report.forgotten:
        parts.append(
            trn(
                "{count} conversation was left out because you had forgotten it.",
                "{count} conversations were left out because you had forgotten them.",
                report.forgotten,
            )
        )
    if report.presets:
        presets = trn("{count} new preset", "{count} new presets", report.presets)
        parts.append(tr("{presets}, not used by imported conversations.").format(presets=presets))
    if report.skipped:
        skipped = len(report.skipped)
        parts.append(trn("{count} item was skipped:", "{count} items were skipped:", skipped))
    return " ".join(parts)

"""The dialogs of imports: what one would add, its progress and report; past ones and undoing them."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.domain.errors import KnownError
from app.domain.transfer import AddedConversation, ImportProgress, ImportReport
from app.domain.translation import format_day, format_moment, format_number, tr, trn
from app.transfer.import_history import PastImport, Undone
from ui.errors import error_text
from ui.widgets.controls import (
    button,
    clear,
    closing_buttons,
    column_in,
    filled,
    refill,
    row_of,
    scroll_area,
)
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label

_STEPS = 1000
_SHOWN = 500
_WIDEST = 0.5  # of the screen, for a question: with its margins less than the 2/3 of adjustSize()
_CLOSE = QDialogButtonBox.StandardButton.Close


class ImportDialog(QDialog):
    """Shows one import, from its preview to its report.

    Attributes:
        memories: Whether to take what another program remembers of the user as facts.

    Signals:
        cancel_requested: Cancel the import; what is stored by then stays.
        import_requested: Import what was shown. undo_requested: Undo the import.
        question_chosen: Ask a question about what was imported.
    """

    cancel_requested = Signal()
    import_requested = Signal()
    undo_requested = Signal()
    question_chosen = Signal(str)

    def __init__(self, names: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Import"))
        self.setMinimumWidth(460)
        self._names = names
        self._expected = 0  # messages, once the preview has counted them
        self._headline = plain_label(self, "heading", selectable=False)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setAccessibleName(tr("Progress of the import"))
        self.words = plain_label(self, selectable=False)
        self.list = QPlainTextEdit(self, readOnly=True)
        self.list.setAccessibleName(tr("What is new, and what was skipped and why"))
        self.memories = QCheckBox(self)
        self._buttons = QDialogButtonBox(self)
        self._buttons.rejected.connect(self.reject)
        self._questions = filled(QVBoxLayout(), spacing=6)
        shown = (self._headline, self._bar, self.words, self.list, self.memories)
        column_in(self, *shown, self._questions, self._buttons)
        self.begin(reads_only=True)

    def begin(self, *, reads_only: bool) -> None:
        """Show that files are imported, or for the preview only read."""
        headline = tr("Reading {names}") if reads_only else tr("Importing {names}")
        self._headline.setText(headline.format(names=self._names))
        self._end(QDialogButtonBox.StandardButton.Cancel)
        self._running = True
        self._bar.show()
        self._bar.setRange(0, 0)
        self.list.hide()
        self.memories.hide()
        self.words.clear()
        self.adjustSize()

    def show_preview(self, report: ImportReport) -> None:
        """Show what an import would add, and offer it; nothing is stored yet."""
        self._end(QDialogButtonBox.StandardButton.Cancel)
        self._headline.setText(tr("Import {names}?").format(names=self._names))
        self._bar.hide()
        self._expected = report.messages
        self.words.setText(_report_text(report))
        skipped = _skipped(report)  # below the line that counts them
        self._show_list([*skipped, *[""] * bool(skipped), *_titles(report.new)])
        self.memories.setVisible(report.offered > 0)
        self.memories.setText(
            trn(
                "Keep {count} statement about you as a fact",
                "Keep {count} statements about you as facts",
                report.offered,
            )
        )
        choice = button(self, tr("Import"), self.import_requested, kind="primary")
        self._buttons.addButton(choice, QDialogButtonBox.ButtonRole.AcceptRole)
        choice.setDefault(True)
        choice.setFocus()

    def show_progress(self, progress: ImportProgress) -> None:
        done, total = progress.bytes_read, progress.bytes_total
        if self._expected:  # the bytes were read for the preview
            done, total = progress.messages, self._expected
        if total:
            self._bar.setRange(0, _STEPS)
            self._bar.setValue(round(done / total * _STEPS))
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
        self._bar.hide()
        self.words.setText("\n\n".join(filter(None, (_report_text(report), background_text))))
        self._show_list(_skipped(report))
        if report.number:
            undo = self._buttons.addButton(
                tr("Undo import"), QDialogButtonBox.ButtonRole.ActionRole
            )
            undo.setAutoDefault(False)
            undo.clicked.connect(self.undo_requested)

    def show_questions(self, questions: Sequence[str]) -> None:
        """Offer questions about what was imported."""
        if questions:
            heading = plain_label(self, "heading", tr("Ask something about it"), selectable=False)
            filled(self._questions, 6, heading)
            heading.show()  # else the size is counted without it
        room = round(self.screen().availableSize().width() * _WIDEST)
        for each in questions:
            text = self.fontMetrics().elidedText(each, Qt.TextElideMode.ElideMiddle, room)
            made = button(self, text.replace("&", "&&"), tip=each, name=each)
            made.clicked.connect(lambda _=False, each=each: self._choose(each))
            self._questions.addWidget(made)
            made.show()  # a hidden button has no size, and cannot have the focus
            if each == questions[0]:
                made.setFocus()
        if self.list.isHidden():
            self.adjustSize()

    def _choose(self, question: str) -> None:
        self.accept()
        self.question_chosen.emit(question)

    def show_error(self, error: BaseException) -> None:
        self._end()
        title, hint = error_text(error)
        self._headline.setText(title)
        self._bar.hide()
        self.words.setText(hint)

    def show_undoing(self) -> None:
        """Show that the import is being undone."""
        self._headline.setText(tr("Undoing the import\u2026"))
        self._bar.setRange(0, 0)
        self._bar.show()
        self._buttons.setEnabled(False)

    def show_undone(self, undone: Undone) -> None:
        """Show that an import was undone: what is in the trash now, and what was removed."""
        self._end()
        self._bar.hide()
        self._headline.setText(tr("Import undone"))
        moved = trn(
            "{count} conversation was moved to the trash.",
            "{count} conversations were moved to the trash.",
            len(undone.conversations),
        )
        removed = trn(
            "{count} message was deleted in other conversations.",
            "{count} messages were deleted in other conversations.",
            undone.messages,
        )
        restored = trn(
            "Title, date and tags of {count} other conversation are as before.",
            "Titles, dates and tags of {count} other conversations are as before.",
            undone.changed,
        )
        shown = [removed] * bool(undone.messages) + [restored] * bool(undone.changed)
        self.words.setText(" ".join([moved] * bool(undone.conversations or not shown) + shown))
        clear(self._questions)
        self._show_list(())

    def _show_list(self, lines: Sequence[str]) -> None:
        self.list.setVisible(bool(lines))
        self.list.setPlainText("\n".join(lines))
        if lines:
            self.resize(max(560, self.width()), max(420, self.height()))
        else:
            self.adjustSize()

    def _end(self, button: QDialogButtonBox.StandardButton = _CLOSE) -> None:
        self._running = False
        self._buttons.setEnabled(True)
        for each in self._buttons.buttons():
            self._buttons.removeButton(each)  # clear() would delete one that is being clicked
            each.deleteLater()
        self._buttons.setStandardButtons(button)

    # Qt overrides

    def reject(self) -> None:
        """Close; while the import runs, cancel it instead."""
        if not self._running:
            super().reject()
            return
        self._headline.setText(tr("Stopping\u2026"))
        self._buttons.setEnabled(False)
        self.cancel_requested.emit()


def _titles(new: Sequence[AddedConversation]) -> list[str]:
    """Return the lines of new conversations, the newest first."""
    dated = sorted(new, key=lambda each: each.created_at, reverse=True)
    lines = [f"{format_day(each.created_at)}  {each.title}" for each in dated[:_SHOWN]]
    return [*lines, *_more(len(dated))]


def _skipped(report: ImportReport) -> list[str]:
    lines = [f"{each.where}: {each.why}" for each in report.skipped[:_SHOWN]]
    return [*lines, *_more(len(report.skipped))]


def _more(count: int) -> list[str]:
    if count <= _SHOWN:
        return []
    return [tr("and {skipped} more").format(skipped=format_number(count - _SHOWN))]


def _report_text(report: ImportReport) -> str:
    """Return what was imported, and in counts what was not, and why."""
    skipped = len(report.skipped)
    counted = (
        (report.restored, trn(
            "{count} conversation of an import that was undone returns from the trash.",
            "{count} conversations of an import that was undone return from the trash.",
            report.restored,
        )),
        (report.in_trash, trn(
            "{count} known conversation stays in the trash.",
            "{count} known conversations stay in the trash.", report.in_trash,
        )),
        (report.duplicates, trn(
            "{count} message was already known.", "{count} messages were already known.",
            report.duplicates,
        )),
        (report.forgotten, trn(
            "{count} conversation was left out because you had forgotten it.",
            "{count} conversations were left out because you had forgotten them.",
            report.forgotten,
        )),
        (report.presets, tr("{presets}, not used by imported conversations.").format(
            presets=trn("{count} new preset", "{count} new presets", report.presets)
        )),
        (skipped, trn("{count} item was skipped:", "{count} items were skipped:", skipped)),
    )  # fmt: skip
    return " ".join([*_new_texts(report), *(text for count, text in counted if count)])


def _new_texts(report: ImportReport) -> list[str]:
    parts = []
    if report.messages or (report.conversations and not report.restored):
        parts.append(
            tr("New: {conversations}, {turns}, {messages}.").format(
                conversations=trn(
                    "{count} conversation", "{count} conversations", report.conversations
                ),
                turns=trn("{count} turn", "{count} turns", report.turns),
                messages=trn("{count} message", "{count} messages", report.messages),
            )
        )
    elif not report.restored:
        parts.append(tr("Nothing new was found."))
    days = [each.created_at for each in report.new]
    if days and (first := format_day(min(days))) != (last := format_day(max(days))):
        parts.append(tr("From {first} to {last}.").format(first=first, last=last))
    return parts


class PastImportsDialog(Dialog):
    """Lists imports, the newest first.

    Signals:
        undo_requested: The `PastImport`.
    """

    undo_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Past imports"), (560, 420), parent, tone="small")
        self._body = QWidget(self)
        self._rows = QVBoxLayout(self._body)
        column_in(self, self.status, (scroll_area(self, self._body), 1), closing_buttons(self)[0])

    def show_imports(self, imports: Sequence[PastImport]) -> None:
        self.status.setText(
            tr(
                "Undoing an import moves the conversations that it added to the trash, deletes the messages "
                "that it added to others, and takes back titles, dates and tags that it gave them. Importing "
                "the same files again brings all of it back."
            )
        )
        self._body.setEnabled(True)
        refill(self._rows, map(self._row, imports), tr("Nothing was imported yet."))
        self._rows.addStretch(1)

    def show_undoing(self) -> None:
        """Show that an import is being undone; another one can be undone after it."""
        self.status.setText(tr("Undoing the import\u2026"))
        self._body.setEnabled(False)

    def _row(self, past: PastImport) -> QWidget:
        row = QWidget(self._body)
        counted = (
            (past.conversations, trn(
                "{count} conversation", "{count} conversations", past.conversations,
            )),
            (past.messages, trn(
                "{count} message in other conversations", "{count} messages in other conversations",
                past.messages,
            )),
            (past.changed, trn(
                "{count} other conversation changed", "{count} other conversations changed",
                past.changed,
            )),
        )  # fmt: skip
        counts = [text for count, text in counted if count]
        head = ", ".join((format_moment(past.at), *(counts or [tr("nothing of it is left")])))
        text = plain_label(row, "", f"{head}\n{', '.join(past.names)}")
        undo = button(
            row,
            tr("Undo"),
            lambda: self.undo_requested.emit(past),
            name=tr("Undo the import of {names}").format(names=", ".join(past.names)),
        )
        undo.setEnabled(past.can_be_undone)
        row.setLayout(row_of((text, 1), undo))
        return row

    def show_error(self, error: KnownError) -> None:
        super().show_error(error)
        self._body.setEnabled(True)

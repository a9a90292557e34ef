"""The dialog of past imports: when, from which files, how much of each is there, and undoing one."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.domain.formatting import format_moment
from app.domain.translation import tr, trn
from app.transfer.import_history import PastImport
from ui.widgets.controls import button, closing_buttons, column_in, refill, row_of, scroll_area
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label


class PastImportsDialog(Dialog):
    """Lists imports, the newest first.

    Signals:
        undo_requested: The `PastImport`.
    """

    undo_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Past imports"), (560, 420), parent, tone="small")
        self.status.setText(
            tr(
                "Undoing an import moves the conversations that it added to the trash, and deletes the "
                "messages that it added to others. Importing the same files again brings both back."
            )
        )
        self._body = QWidget(self)
        self._rows = QVBoxLayout(self._body)
        column_in(self, self.status, (scroll_area(self, self._body), 1), closing_buttons(self)[0])

    def show_imports(self, imports: Sequence[PastImport]) -> None:
        """Show the imports."""
        refill(self._rows, map(self._row, imports), tr("Nothing was imported yet."))
        self._rows.addStretch(1)

    def _row(self, past: PastImport) -> QWidget:
        row = QWidget(self._body)
        counts = [trn("{count} conversation", "{count} conversations", past.conversations)]
        if past.messages:
            added = trn(
                "{count} message in other conversations",
                "{count} messages in other conversations",
                past.messages,
            )
            counts = [*counts * bool(past.conversations), added]
        head = ", ".join((format_moment(past.at), *counts))
        text = plain_label(row, "", f"{head}\n{', '.join(past.names)}")
        undo = button(
            row,
            tr("Undo"),
            lambda: self.undo_requested.emit(past),
            name=tr("Undo the import of {names}").format(names=", ".join(past.names)),
        )
        undo.setEnabled(past.conversations > 0 or past.messages > 0)
        row.setLayout(row_of((text, 1), undo))
        return row

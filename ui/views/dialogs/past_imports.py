"""The dialog of past imports: when, from which files, how much of each is there, and undoing one."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from app.domain.formatting import format_moment
from app.domain.translation import tr, trn
from app.transfer.import_history import PastImport
from ui.widgets.controls import button, closing_buttons, filled, row_of, scroll_area
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label


class PastImportsDialog(QDialog):
    """Lists imports, the newest first.

    Signals:
        undo_requested: The number of an import.
    """

    undo_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Past imports"))
        resize_on_screen(self, 560, 420)
        self._about = plain_label(
            self,
            "small",
            tr(
                "Undoing an import moves the conversations that it added to the trash. Messages that it "
                "added to conversations which were here before stay."
            ),
        )
        self._body = QWidget(self)
        self._rows = QVBoxLayout(self._body)
        parts = (self._about, (scroll_area(self, self._body), 1), closing_buttons(self)[0])
        filled(QVBoxLayout(self), *parts)

    def show_imports(self, imports: Sequence[PastImport]) -> None:
        """Show the imports."""
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for each in imports:
            self._rows.addWidget(self._row(each))
        if not imports:
            self._rows.addWidget(plain_label(self._body, "", tr("Nothing was imported yet.")))
        self._rows.addStretch(1)

    def _row(self, past: PastImport) -> QWidget:
        row = QWidget(self._body)
        count = trn("{count} conversation", "{count} conversations", past.conversations)
        text = plain_label(row, "", f"{format_moment(past.at)}, {count}\n{', '.join(past.names)}")
        undo = button(
            row,
            tr("Undo"),
            lambda: self.undo_requested.emit(past.number),
            name=tr("Undo the import of {names}").format(names=", ".join(past.names)),
        )
        undo.setEnabled(past.conversations > 0)
        row.setLayout(row_of((text, 1), undo))
        return row

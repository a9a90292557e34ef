"""The dialog of secrets: where keys, tokens and passwords stand, and forgetting a value wherever it is."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QLineEdit, QTreeWidgetItem, QWidget

from app.domain.errors import KnownError
from app.domain.formatting import format_day
from app.domain.translation import tr, trn
from app.memory.secret_places import SecretPlace
from ui.errors import error_text
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    line_edit,
    row_of,
    table_view,
)
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label

_PLACE = Qt.ItemDataRole.UserRole
_COLUMNS = (tr("Conversation"), tr("What"), tr("Date"))


class SecretsDialog(QDialog):
    """Lists messages with secrets, never what they are.

    Signals:
        open_requested, forget_requested: The `SecretPlace`.
        forget_text_requested: A text to forget wherever it is.
    """

    open_requested = Signal(object)
    forget_requested = Signal(object)
    forget_text_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keys and passwords"))
        resize_on_screen(self, 760, 480)
        self.status = plain_label(self, "muted", selectable=False)
        self.table = table_view(self, tr("Messages with secrets"), _COLUMNS, narrow=(1, 2))
        self.forget = button(self, tr("Forget the value…"))
        self.text = line_edit(self, tr("Any key, number or name"))
        self.text.setEchoMode(QLineEdit.EchoMode.Password)
        self.forget_text = button(self, tr("Forget it everywhere…"))
        buttons, (self.open_turn,) = closing_buttons(self, tr("Show the turn"))
        about = tr(
            "They are hidden where memory is quoted. Replace a key where it is used, too: what was sent to a "
            "model cannot be taken back."
        )
        column_in(
            self, plain_label(self, "", about), self.status, (self.table, 1),
            row_of(self.forget, None), row_of((self.text, 1), self.forget_text), buttons,
        )  # fmt: skip
        self.table.itemSelectionChanged.connect(self._show_state)
        self.table.itemActivated.connect(
            lambda item: self.open_requested.emit(item.data(0, _PLACE))
        )
        self.open_turn.clicked.connect(lambda: self.open_requested.emit(self.selected))
        self.forget.clicked.connect(lambda: self.forget_requested.emit(self.selected))
        self.text.textChanged.connect(self._show_state)
        self.text.returnPressed.connect(self.forget_text.click)
        self.forget_text.clicked.connect(
            lambda: self.forget_text_requested.emit(self.text.text().strip())
        )
        self.begin()

    @property
    def selected(self) -> SecretPlace | None:
        """The place that is selected."""
        chosen = self.table.selectedItems()
        place: SecretPlace | None = chosen[0].data(0, _PLACE) if chosen else None
        return place

    def begin(self) -> None:
        """Show that the library is searched."""
        self.status.setText(tr("Searching all messages…"))
        self._show_state()

    def show_places(self, places: Sequence[SecretPlace]) -> None:
        """Show the messages, and none of the text that was typed."""
        self.text.clear()
        self.table.clear()
        for each in places:
            title = each.title or tr("Untitled")
            item = QTreeWidgetItem([title, ", ".join(each.kinds), format_day(each.said_at)])
            item.setData(0, _PLACE, each)
            self.table.addTopLevelItem(item)
        self.status.setText(
            trn("{count} message with secrets", "{count} messages with secrets", len(places))
            if places
            else tr("No message with a key, a token or a password was found.")
        )
        self._show_state()

    def show_error(self, error: KnownError) -> None:
        """Show why something failed."""
        self.status.setText(" ".join(error_text(error)))

    def _show_state(self) -> None:
        for each in (self.forget, self.open_turn):
            each.setEnabled(self.selected is not None)
        self.forget_text.setEnabled(bool(self.text.text().strip()))

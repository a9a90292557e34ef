"""The dialog of secrets: where keys, tokens and passwords stand, and forgetting a value wherever it is."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.domain.translation import format_day, tr, trn
from app.memory.secrets import SecretPlace
from ui.widgets.controls import button, closing_buttons, column_in, key_edit, row_of
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Conversation"), tr("What"), tr("Date"))


class SecretsDialog(Dialog):
    """Lists messages with secrets, never what they are.

    Signals:
        open_requested, forget_requested: The `SecretPlace`.
        forget_text_requested: A text to forget wherever it is.
    """

    open_requested = Signal(object)
    forget_requested = Signal(object)
    forget_text_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Keys and passwords"), (760, 480), parent)
        self.table = RecordTable(self, tr("Messages with secrets"), _COLUMNS, narrow=(1, 2))
        self.forget = button(self, tr("Forget the value…"))
        text = tr("Any key, number or name")
        self.text = key_edit(self, text, text)
        self.forget_text = button(self, tr("Forget it everywhere…"))
        buttons, (self.open_turn,) = closing_buttons(self, tr("Show the turn"))
        about = tr(
            "Keys and passwords in your messages are hidden where memory is quoted. Replace a key where it is used, too: what was sent to a "
            "model cannot be taken back."
        )
        column_in(
            self, plain_label(self, "", about), self.status, (self.table, 1),
            row_of(self.forget, None), row_of((self.text, 1), self.forget_text), buttons,
        )  # fmt: skip
        self.table.changed.connect(self._show_state)
        self.table.opened.connect(self.open_requested)
        self.open_turn.clicked.connect(lambda: self.open_requested.emit(self.table.current))
        self.forget.clicked.connect(lambda: self.forget_requested.emit(self.table.current))
        self.text.textChanged.connect(self._show_state)
        self.text.returnPressed.connect(self.forget_text.click)
        self.forget_text.clicked.connect(
            lambda: self.forget_text_requested.emit(self.text.text().strip())
        )
        self.begin()

    def begin(self) -> None:
        """Show that the library is searched."""
        self.status.setText(tr("Searching all messages…"))
        self._show_state()

    def show_places(self, places: Sequence[SecretPlace]) -> None:
        """Show the messages, and none of the text that was typed."""
        self.text.clear()
        self.table.show_records(places, _texts)
        self.status.setText(
            trn("{count} message with secrets", "{count} messages with secrets", len(places))
            if places
            else tr("No message with a key, a token or a password was found.")
        )

    def _show_state(self) -> None:
        for each in (self.forget, self.open_turn):
            each.setEnabled(self.table.current is not None)
        self.forget_text.setEnabled(bool(self.text.text().strip()))


def _texts(place: SecretPlace) -> Sequence[str]:
    return place.title or tr("Untitled"), ", ".join(place.kinds), format_day(place.said_at)

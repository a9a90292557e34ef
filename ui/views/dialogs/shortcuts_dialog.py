"""The list of all keyboard shortcuts: searchable, each can be changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QKeySequenceEdit, QLineEdit, QWidget

from app.domain.translation import tr
from ui.models.shortcuts import Shortcuts, owner_of
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    line_edit,
    make_clearable,
    row_of,
)
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import PlainLabel
from ui.widgets.record_table import RecordTable

_KEY_CHARS = 36
_NATIVE = QKeySequence.SequenceFormat.NativeText


@dataclass(frozen=True, slots=True)
class ShortcutRow:
    """A command; `name` is "" where its keys cannot be changed, `keys` are portable texts."""

    name: str
    text: str
    keys: Sequence[str]
    is_changed: bool = False


class ShortcutsDialog(Dialog):
    """A table of commands and keys above a field for another key.

    Signals:
        chosen: (name, key) for an action; "" for no key. reset_requested: The name of an action,
            "" for all.
    """

    chosen = Signal(str, str)
    reset_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Keyboard shortcuts"), (620, 600), parent, tone="warning")
        columns = (tr("Command"), tr("Keys"))
        self.search = line_edit(self, tr("Search commands and keys"), clearable=True)
        self.table = RecordTable(self, tr("Keyboard shortcuts"), columns, (1,))
        self.search.textChanged.connect(self.table.filter)
        self.table.changed.connect(self._on_row_selected)
        self._label = PlainLabel(self)
        self.key = QKeySequenceEdit(self)
        self.key.setMaximumSequenceLength(1)
        self.key.setMinimumWidth(self.key.fontMetrics().averageCharWidth() * _KEY_CHARS)
        for field in (self.key, *self.key.findChildren(QLineEdit)):
            field.setAccessibleName(tr("New keys"))
            if isinstance(field, QLineEdit):
                make_clearable(field)
        self.key.keySequenceChanged.connect(self._on_key_changed)
        self.apply = button(
            self,
            tr("Set"),
            lambda: self.chosen.emit(self._name, self.key.keySequence().toString()),
            kind="primary",
        )
        self.reset = button(self, tr("Reset"), lambda: self.reset_requested.emit(self._name))
        self.reset_all = button(self, tr("Reset all"), lambda: self.reset_requested.emit(""))
        edit = row_of((self._label, 1), self.key, self.apply, self.reset)
        foot = row_of(self.reset_all, None, closing_buttons(self)[0])
        column_in(self, self.search, (self.table, 1), edit, self.status, foot)
        self._rows: Sequence[ShortcutRow] = ()
        self.search.setFocus()
        self._on_row_selected()

    def show_rows(self, rows: Sequence[ShortcutRow]) -> None:
        """Show all commands; the selected one stays selected."""
        self._rows = rows
        for item in self.table.show_records(rows, _texts, lambda row: row.name or row.text):
            font = item.font(1)
            font.setBold(self.table.record_of(item).is_changed)
            item.setFont(1, font)
        self.table.filter(self.search.text())

    @property
    def _name(self) -> str:
        row: ShortcutRow | None = self.table.current
        return "" if row is None else row.name

    @property
    def _current(self) -> Shortcuts:
        return {row.name: row.keys for row in self._rows if row.name}

    def _on_row_selected(self) -> None:
        row: ShortcutRow | None = self.table.current
        name, keys = self._name, self._current.get(self._name, ())
        text = tr("Select a command to change its keys.")
        if row is not None:
            text = row.text if name else tr("{text}: fixed").format(text=row.text)
        self._label.setText(text)
        for part in (self.key, self.apply, self.reset):
            part.setEnabled(bool(name))
        self.key.setKeySequence(QKeySequence(keys[0] if keys else ""))

    def _on_key_changed(self, sequence: QKeySequence) -> None:
        """Warn of another command with the same key."""
        owner = owner_of(self._current, sequence.toString(), but=self._name)
        taken = next((row.text for row in self._rows if owner and row.name == owner), "")
        keys = sequence.toString(_NATIVE)
        warning = (
            tr("{keys} belongs to “{taken}”, which would lose it.").format(keys=keys, taken=taken)
            if taken
            else ""
        )
        self.status.setText(warning)


def _texts(row: ShortcutRow) -> Sequence[str]:
    return row.text, "  ".join(QKeySequence(key).toString(_NATIVE) for key in row.keys)

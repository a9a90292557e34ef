"""The list of all keyboard shortcuts: searchable, each can be changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QKeySequenceEdit, QLineEdit, QTreeWidgetItem, QWidget

from app.domain.translation import tr
from ui.models.shortcuts import Shortcuts, owner_of
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    line_edit,
    row_of,
    table_view,
)
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel, plain_label

_KEY_CHARS = 24
_NAME = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class ShortcutRow:
    """A command; `name` is "" where its keys cannot be changed, `keys` are portable texts."""

    name: str
    text: str
    keys: Sequence[str]
    is_changed: bool = False


class ShortcutsDialog(QDialog):
    """A table of commands and keys above a field for another key.

    Signals:
        chosen: (name, key) for an action; "" for no key. reset_requested: The name of an action,
            "" for all.
    """

    chosen = Signal(str, str)
    reset_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.search = line_edit(self, tr("Search commands and keys"), clearable=True)
        self.search.textChanged.connect(self._filter)
        self.table = table_view(self, tr("Keyboard shortcuts"), (tr("Command"), tr("Keys")), (1,))
        self.table.currentItemChanged.connect(self._on_row_selected)
        self._label = PlainLabel(self)
        self.key = QKeySequenceEdit(self)
        self.key.setMaximumSequenceLength(1)
        self.key.setClearButtonEnabled(True)
        self.key.setMinimumWidth(self.key.fontMetrics().averageCharWidth() * _KEY_CHARS)
        for field in (self.key, *self.key.findChildren(QLineEdit)):
            field.setAccessibleName(tr("New keys"))
        self.key.keySequenceChanged.connect(self._on_key_changed)
        self.apply = button(self, tr("Set"), self._on_apply_clicked, kind="primary")
        self.reset = button(self, tr("Reset"), lambda: self.reset_requested.emit(self._name))
        self.reset_all = button(self, tr("Reset all"), lambda: self.reset_requested.emit(""))
        self.warning = plain_label(self, "warning", selectable=False)
        edit = row_of((self._label, 1), self.key, self.apply, self.reset)
        close, _ = closing_buttons(self)
        column_in(
            self,
            self.search,
            (self.table, 1),
            edit,
            self.warning,
            row_of(self.reset_all, None, close),
        )
        self._rows: Sequence[ShortcutRow] = ()
        resize_on_screen(self, 620, 600)
        self.search.setFocus()
        self._on_row_selected(None)

    def show_rows(self, rows: Sequence[ShortcutRow]) -> None:
        """Show all commands; the selected one stays selected."""
        name, self._rows = self._name, rows
        self.table.clear()
        for row in rows:
            keys = [QKeySequence(key) for key in row.keys]
            shown = "  ".join(key.toString(QKeySequence.SequenceFormat.NativeText) for key in keys)
            item = QTreeWidgetItem(self.table, [row.text, shown])
            item.setData(0, _NAME, row.name)
            if row.is_changed:
                font = item.font(1)
                font.setBold(True)
                item.setFont(1, font)
            if row.name and row.name == name:
                self.table.setCurrentItem(item)
        self._filter(self.search.text())

    @property
    def _name(self) -> str:
        item = self.table.currentItem()
        return "" if item is None else str(item.data(0, _NAME))

    @property
    def _current(self) -> Shortcuts:
        return {row.name: row.keys for row in self._rows if row.name}

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        for number in range(self.table.topLevelItemCount()):
            item = self.table.topLevelItem(number)
            if item is not None:
                shown = f"{item.text(0)} {item.text(1)}".casefold()
                item.setHidden(not all(word in shown for word in words))

    def _on_row_selected(self, item: QTreeWidgetItem | None) -> None:
        name = "" if item is None else str(item.data(0, _NAME))
        keys = self._current.get(name, ())
        if item is None:
            self._label.setText(tr("Select a command to change its keys."))
        else:
            self._label.setText(
                item.text(0) if name else tr("{text}: fixed").format(text=item.text(0))
            )
        for part in (self.key, self.apply, self.reset):
            part.setEnabled(bool(name))
        self.key.setKeySequence(QKeySequence(keys[0] if keys else ""))

    def _on_key_changed(self, sequence: QKeySequence) -> None:
        """Warn of another command with the same key."""
        owner = owner_of(self._current, sequence.toString(), but=self._name)
        taken = next((row.text for row in self._rows if owner and row.name == owner), "")
        keys = sequence.toString(QKeySequence.SequenceFormat.NativeText)
        warning = (
            tr("{keys} belongs to “{taken}”, which would lose it.").format(keys=keys, taken=taken)
            if taken
            else ""
        )
        self.warning.setText(warning)

    def _on_apply_clicked(self) -> None:
        self.chosen.emit(self._name, self.key.keySequence().toString())

"""Dialogs of the Help menu: shortcuts, the program and its third-party parts, connections, backups."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QKeySequenceEdit, QLineEdit, QVBoxLayout, QWidget

from app.domain.translation import format_moment, format_size, tr
from app.privacy import ConnectionRow, ConnectionState
from app.storage.safety.backup import Backup
from app.system.licenses import ThirdPartyPart
from ui.icons import app_icon
from ui.models.shortcuts import Shortcuts, owner_of
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    filled,
    line_edit,
    make_clearable,
    row_of,
    text_edit,
)
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import PlainLabel, plain_label
from ui.widgets.record_table import RecordTable

_ICON_PX = 56
_PART_COLUMNS = (tr("Part"), tr("Version"), tr("License"))
_CONNECTION_COLUMNS = (tr("Connection"), tr("To"), tr("Address"), tr("Now"))
_STATES = {
    ConnectionState.ON: tr("on"),
    ConnectionState.ON_REQUEST: tr("only when you ask"),
    ConnectionState.OFF: tr("off"),
}
_KEY_CHARS = 44
_NATIVE = QKeySequence.SequenceFormat.NativeText


class AboutDialog(Dialog):
    """Name and version above a table of parts; the selected one's license is below."""

    def __init__(self, version: str, parent: QWidget | None = None) -> None:
        super().__init__(tr("About Commonplace"), (640, 620), parent)
        sign = PlainLabel(self)
        size = QSize(_ICON_PX, _ICON_PX)
        sign.setPixmap(app_icon().pixmap(size, self.devicePixelRatio()))
        name = plain_label(
            self, "title", tr("Commonplace {version}").format(version=version).rstrip()
        )
        self.status.setText(
            tr(
                "A chat program that remembers. Everything is stored on this computer. It is free "
                "software under the MIT license, and uses these parts:"
            )
        )
        head = filled(QVBoxLayout(), name, self.status, spacing=4)
        self.table = RecordTable(self, tr("Parts of other authors"), _PART_COLUMNS, (1, 2))
        self.license = text_edit(self, tr("License of the selected part"))
        self.license.setReadOnly(True)
        self.license.setPlaceholderText(tr("Select a part to read its license."))
        self.table.changed.connect(self._show_license)
        top = row_of(sign, 8)
        top.addLayout(head, 1)
        column_in(self, top, (self.table, 1), (self.license, 1), closing_buttons(self)[0])

    def show_parts(self, parts: Sequence[ThirdPartyPart]) -> None:
        """Show the parts in the given order."""
        self.table.show_records(parts, lambda part: (part.name, part.version, part.license))

    def _show_license(self) -> None:
        part: ThirdPartyPart | None = self.table.current
        text = tr("The package names its license: {license}")
        shown = "" if part is None else part.text or text.format(license=part.license)
        self.license.setPlainText(shown)


class PrivacyDialog(Dialog):
    """A table of connections; when and why the selected one is made is below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Privacy"), (820, 560), parent)
        self.status.setText(
            tr(
                "These are all connections that the program can make or accept. There is no telemetry and no "
                "search for updates."
            )
        )
        self.table = RecordTable(
            self, tr("Connections"), _CONNECTION_COLUMNS, (1, 3), selects_first=True
        )
        self.detail = text_edit(self, tr("When and why"))
        self.detail.setReadOnly(True)
        self.table.changed.connect(self._show_detail)
        column_in(self, self.status, (self.table, 3), (self.detail, 1), closing_buttons(self)[0])

    def show_connections(self, rows: Sequence[ConnectionRow]) -> None:
        """Show the connections in the given order; the first one is selected."""
        self.table.show_records(rows, _texts)

    def _show_detail(self) -> None:
        row: ConnectionRow | None = self.table.current
        if row is None:
            self.detail.clear()
            return
        when = tr("When: {when}").format(when=row.when)
        self.detail.setPlainText(f"{when}\n\n{tr('What is sent: {what}').format(what=row.what)}")


class BackupsDialog(Dialog):
    """Lists backups, the newest first.

    Signals:
        restore_requested: The `Backup` to return to.
    """

    restore_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Restore a backup"), (520, 420), parent)
        columns = (tr("Made"), tr("Size"))
        self.table = RecordTable(
            self, tr("Backups"), columns, (1,), numbers=(1,), selects_first=True
        )
        buttons, (self.restore,) = closing_buttons(self, tr("Restore\u2026"))
        self.restore.clicked.connect(lambda: self.restore_requested.emit(self.table.current))
        self.table.opened.connect(self.restore_requested)
        self.table.changed.connect(lambda: self.restore.setEnabled(bool(self.table.selected)))
        column_in(self, self.status, (self.table, 1), buttons)
        self.show_backups(())

    def show_backups(self, backups: Sequence[Backup]) -> None:
        """Show backups in the given order."""
        none = tr("There are no backups yet. One is made every 30 minutes when something changed.")
        some = tr("Choose the moment that your conversations are to return to.")
        self.status.setText(some if backups else none)
        self.table.show_records(backups, _backup_texts)


def _backup_texts(backup: Backup) -> Sequence[str]:
    return format_moment(backup.made_at), format_size(backup.size_bytes)


def _texts(row: ConnectionRow) -> Sequence[str]:
    to = tr("another computer") if row.leaves_computer else tr("this computer")
    return row.title, to, row.address, _STATES[row.state]


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
        self.key = QKeySequenceEdit(self, maximumSequenceLength=1)
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
        for item in self.table.show_records(
            rows, _shortcut_texts, lambda row: row.name or row.text
        ):
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
        self._on_key_changed(self.key.keySequence())

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


def _shortcut_texts(row: ShortcutRow) -> Sequence[str]:
    return row.text, "  ".join(QKeySequence(key).toString(_NATIVE) for key in row.keys)

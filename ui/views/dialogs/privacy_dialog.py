"""Privacy: every connection that the program can make, and whether it is on now."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QTreeWidgetItem, QWidget

from app.domain.translation import tr
from app.privacy import ConnectionRow, ConnectionState
from ui.widgets.controls import closing_buttons, column_in, table_view, text_edit
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label

_COLUMNS = (tr("Connection"), tr("To"), tr("Address"), tr("Now"))
_STATES = {
    ConnectionState.ON: tr("on"),
    ConnectionState.ON_REQUEST: tr("only when you ask"),
    ConnectionState.OFF: tr("off"),
}


class PrivacyDialog(QDialog):
    """A table of connections; when and why the selected one is made is below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Privacy"))
        text = plain_label(
            self,
            "muted",
            tr(
                "These are all connections that the program can make or accept. There is no telemetry and no "
                "search for updates."
            ),
        )
        text.setWordWrap(True)
        self.table = table_view(self, tr("Connections"), _COLUMNS, (1, 3))
        self.detail = text_edit(self, tr("When and why"))
        self.detail.setReadOnly(True)
        self.table.currentItemChanged.connect(self._on_row_selected)
        self._rows: Sequence[ConnectionRow] = ()
        column_in(self, text, (self.table, 3), (self.detail, 1), closing_buttons(self)[0])
        resize_on_screen(self, 820, 560)

    def show_connections(self, rows: Sequence[ConnectionRow]) -> None:
        """Show the connections in the given order; the first one is selected."""
        self._rows = rows
        self.table.clear()
        for number, row in enumerate(rows):
            to = tr("another computer") if row.leaves_computer else tr("this computer")
            item = QTreeWidgetItem(self.table, [row.title, to, row.address, _STATES[row.state]])
            item.setToolTip(0, row.title)
            item.setToolTip(2, row.address)
            item.setData(0, Qt.ItemDataRole.UserRole, number)
        if first := self.table.topLevelItem(0):
            self.table.setCurrentItem(first)

    def _on_row_selected(self, item: QTreeWidgetItem | None) -> None:
        row = None if item is None else self._rows[item.data(0, Qt.ItemDataRole.UserRole)]
        if row is None:
            self.detail.clear()
            return
        when = tr("When: {when}").format(when=row.when)
        self.detail.setPlainText(
            "\n\n".join((when, tr("What is sent: {what}").format(what=row.what)))
        )

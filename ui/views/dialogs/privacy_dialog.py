"""Privacy: every connection that the program can make, and whether it is on now."""

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from app.domain.translation import tr
from app.privacy import ConnectionRow, ConnectionState
from ui.widgets.controls import closing_buttons, column_in, text_edit
from ui.widgets.dialog import Dialog
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Connection"), tr("To"), tr("Address"), tr("Now"))
_STATES = {
    ConnectionState.ON: tr("on"),
    ConnectionState.ON_REQUEST: tr("only when you ask"),
    ConnectionState.OFF: tr("off"),
}


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
        self.table = RecordTable(self, tr("Connections"), _COLUMNS, (1, 3), selects_first=True)
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


def _texts(row: ConnectionRow) -> Sequence[str]:
    to = tr("another computer") if row.leaves_computer else tr("this computer")
    return row.title, to, row.address, _STATES[row.state]

"""Dialogs of the Help menu: about the program and its third-party parts, and every connection that it can make."""

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.domain.translation import tr
from app.privacy import ConnectionRow, ConnectionState
from app.system.licenses import ThirdPartyPart
from ui.icons import app_icon
from ui.widgets.controls import closing_buttons, column_in, filled, row_of, text_edit
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


def _texts(row: ConnectionRow) -> Sequence[str]:
    to = tr("another computer") if row.leaves_computer else tr("this computer")
    return row.title, to, row.address, _STATES[row.state]

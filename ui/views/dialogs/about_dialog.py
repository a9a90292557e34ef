"""About: what the program is, its version, and the licenses of its third-party parts."""

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.domain.translation import tr
from app.system.licenses import ThirdPartyPart
from ui.icons import app_icon
from ui.widgets.controls import closing_buttons, column_in, filled, row_of, text_edit
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import PlainLabel, plain_label
from ui.widgets.record_table import RecordTable

_ICON_PX = 56
_COLUMNS = (tr("Part"), tr("Version"), tr("License"))


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
        self.table = RecordTable(self, tr("Parts of other authors"), _COLUMNS, (1, 2))
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

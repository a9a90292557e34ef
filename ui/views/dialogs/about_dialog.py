"""About: what the program is, its version, and the licenses of its third-party parts."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QTreeWidgetItem, QVBoxLayout, QWidget

from app.domain.translation import tr
from app.system.licenses import ThirdPartyPart
from ui.icons import app_icon
from ui.widgets.controls import closing_buttons, column_in, filled, row_of, table_view, text_edit
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel, plain_label

_ICON_PX = 56
_COLUMNS = (tr("Part"), tr("Version"), tr("License"))


class AboutDialog(QDialog):
    """Name and version above a table of parts; the selected one's license is below."""

    def __init__(self, version: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("About Commonplace"))
        sign = PlainLabel(self)
        size = QSize(_ICON_PX, _ICON_PX)
        sign.setPixmap(app_icon().pixmap(size, self.devicePixelRatio()))
        name = plain_label(
            self, "title", tr("Commonplace {version}").format(version=version).rstrip()
        )
        text = plain_label(
            self,
            "muted",
            tr(
                "A chat program that remembers. Everything is stored on this computer. It is free "
                "software under the MIT license, and uses these parts:"
            ),
        )
        head = filled(QVBoxLayout(), name, text, spacing=4)
        self.table = table_view(self, tr("Parts of other authors"), _COLUMNS, (1, 2))
        self.license = text_edit(self, tr("License of the selected part"))
        self.license.setReadOnly(True)
        self.license.setPlaceholderText(tr("Select a part to read its license."))
        self.table.currentItemChanged.connect(self._on_part_selected)
        self._parts: Sequence[ThirdPartyPart] = ()
        top = row_of(sign, 8)
        top.addLayout(head, 1)
        column_in(self, top, (self.table, 1), (self.license, 1), closing_buttons(self)[0])
        resize_on_screen(self, 640, 620)

    def show_parts(self, parts: Sequence[ThirdPartyPart]) -> None:
        """Show the parts in the given order."""
        self._parts = parts
        self.table.clear()
        for number, part in enumerate(parts):
            row = QTreeWidgetItem(self.table, [part.name, part.version, part.license])
            row.setData(0, Qt.ItemDataRole.UserRole, number)

    def _on_part_selected(self, row: QTreeWidgetItem | None) -> None:
        part = None if row is None else self._parts[row.data(0, Qt.ItemDataRole.UserRole)]
        text = (
            ""
            if part is None
            else part.text
            or tr("The package names its license: {license}").format(license=part.license)
        )
        self.license.setPlainText(text)

"""A line to be edited whose text ends in an ellipsis, while it is only read, where it has no room."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame

_INSET_PX = 2  # what QLineEdit itself leaves free at either side of its text


class ElidedEdit(QLineEdit):
    """Shows as much of its text as fits; all of it while it has the focus, and as its tip."""

    # Qt overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the text cut, where it is only read and too long."""
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        area = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, self)
        area = area.marginsRemoved(self.textMargins()).adjusted(_INSET_PX, 0, -_INSET_PX, 0)
        metrics = self.fontMetrics()
        is_cut = metrics.horizontalAdvance(self.text()) > area.width()
        self.setToolTip(self.text() if is_cut else "")
        if self.hasFocus() or not is_cut:
            super().paintEvent(event)
            return
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
        words = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, area.width())
        painter.setPen(self.palette().text().color())
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
        painter.end()

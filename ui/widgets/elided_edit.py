"""A line to be edited whose text ends in an ellipsis, while it is only read, where it has no room."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame, QWidget

_INSET_PX = 2  # what QLineEdit itself leaves free at either side of its text


class ElidedEdit(QLineEdit):
    """Shows as much of its text as fits; all of it while it has the focus, and as its tip.

    Return takes what was typed, Escape takes it back.

    Signals:
        done: The user has left by one of these keys; the focus belongs elsewhere now.
    """

    done = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kept = ""
        self.returnPressed.connect(self.done)

    def show_text(self, text: str) -> None:
        """Show a text from its beginning, as what Escape comes back to; the same stays selected."""
        self._kept = text
        if text != self.text():
            self.setText(text)
            self.setCursorPosition(0)
        self.setModified(False)

    def take_back(self) -> None:
        """Show what stood here before the user began to type."""
        self.show_text(self._kept)

    # Qt overrides

    def event(self, event: QEvent) -> bool:
        """Claim Escape, which stops a reply elsewhere."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave on Escape, with nothing changed."""
        if event.key() == Qt.Key.Key_Escape:
            self.take_back()
            self.done.emit()
            return
        super().keyPressEvent(event)

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

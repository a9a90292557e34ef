"""Line edit that elides its text while it does not have the focus."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QStyleOptionFrame, QWidget

_INSET_PX = 2  # what QLineEdit itself leaves free at either side of its text


class ElidedEdit(QLineEdit):
    """Shows as much of its text as fits; all of it with the focus, and as its tool tip.

    Return accepts what was typed, Escape reverts it.

    Signals:
        done: Return or Escape was pressed; the focus should go elsewhere.
    """

    done = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kept = ""
        self.returnPressed.connect(self.done)

    def show_text(self, text: str) -> None:
        """Show a text that Escape reverts to; an unchanged text keeps its selection."""
        self._kept = text
        if text != self.text():
            self.setText(text)
            self.setCursorPosition(0)
        self.setModified(False)

    def take_back(self) -> None:
        """Show the text again that was here before the user typed."""
        self.show_text(self._kept)

    # Qt overrides

    def event(self, event: QEvent) -> bool:
        """Keep Escape from the action that stops a reply."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.take_back()
            self.done.emit()
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text elided, if it is too long and has no focus."""
        if not self.text():  # as in the first frame
            self.setToolTip("")
            super().paintEvent(event)
            return
        from PySide6.QtWidgets import QStyle

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

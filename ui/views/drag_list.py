"""The list of conversations: rows are dragged as a small label, and what is typed is reported."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QDrag, QFontMetrics, QPainter, QPixmap
from PySide6.QtWidgets import QListView, QWidget

from ui.theme import current_theme

_MOST_PX = 240
_PAD_PX = 10
_FROM_MOUSE = QPoint(-14, -10)  # of the label


class DragList(QListView):
    """A list to drag from; `label` says what is dragged.

    Signals:
        typed: Text that was typed while it had the focus. The search box finds rows, not the list.
    """

    typed = Signal(str)

    def __init__(self, label: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = label
        self.setDragDropMode(QListView.DragDropMode.DragOnly)

    def drag(self) -> QDrag:
        """Return the drag of the selected rows."""
        made = QDrag(self)
        made.setMimeData(self.model().mimeData(self.selectedIndexes()))
        made.setPixmap(_label_image(self._label(), self.devicePixelRatioF()))
        made.setHotSpot(_FROM_MOUSE)
        return made

    # Qt overrides

    def keyboardSearch(self, search: str) -> None:
        """Report what is typed."""
        self.typed.emit(search)

    def startDrag(self, actions: Qt.DropAction) -> None:
        """Drag a label instead of images of the rows."""
        self.drag().exec(actions)


def _label_image(text: str, ratio: float) -> QPixmap:
    theme = current_theme()
    metrics = QFontMetrics(theme.ui_font())
    text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, _MOST_PX)
    size = QSize(metrics.horizontalAdvance(text) + 2 * _PAD_PX, metrics.height() + _PAD_PX)
    image = QPixmap(size * ratio)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(theme.ui_font())
    painter.setBrush(QColor(theme.colors.accent))
    painter.setPen(Qt.PenStyle.NoPen)
    area = QRectF(0, 0, size.width(), size.height())
    painter.drawRoundedRect(area, _PAD_PX / 2, _PAD_PX / 2)
    painter.setPen(QColor(theme.colors.on_accent))
    painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
    painter.end()
    return image

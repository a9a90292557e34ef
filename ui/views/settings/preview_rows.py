"""How something that would be recalled is drawn: its name and relevance, below it what becomes of it."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from ui.models.conversations import ListRole
from ui.models.preview import PreviewRow
from ui.theme import current_theme
from ui.views.rows import Index, RowDelegate

_PAD_PX = 10
_INDENT_PX = 18
_BAR_PX = 3


class PreviewDelegate(RowDelegate):
    """Draws `PreviewRow`s; what changed has a bar at its left, and a text."""

    # Qt overrides

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: two lines."""
        if not isinstance(index.data(ListRole.VALUE), PreviewRow):
            return super().sizeHint(option, index)
        line = QFontMetricsF(current_theme().ui_font()).height()
        return QSize(0, round(2 * line + 1.2 * _PAD_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its ground, its name, what becomes of it."""
        row = index.data(ListRole.VALUE)
        if not isinstance(row, PreviewRow):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect)
        self._background(painter, area, option)
        self._change(painter, area, row)
        indent = _INDENT_PX if row.is_inner else 0
        self._paint_text(painter, area.adjusted(_PAD_PX + indent, 0, -_PAD_PX, 0), index, row)
        painter.restore()

    def _change(self, painter: QPainter, area: QRectF, row: PreviewRow) -> None:
        if row.changed:
            bar = QRectF(area.left() + 2, area.top() + 4, _BAR_PX, area.height() - 8)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._tone(row))
            painter.drawRoundedRect(bar, _BAR_PX / 2, _BAR_PX / 2)

    def _tone(self, row: PreviewRow) -> QColor:
        """Return the color of what becomes of a row."""
        colors, is_in = current_theme().colors, row.place.item.injected
        if row.changed:
            return QColor(colors.success if is_in else colors.error)
        return QColor(colors.accent if is_in else colors.muted)

    def _paint_text(self, painter: QPainter, area: QRectF, index: Index, row: PreviewRow) -> None:
        colors, is_in = current_theme().colors, row.place.item.injected
        font = current_theme().ui_font()
        font.setWeight(QFont.Weight.DemiBold if is_in else QFont.Weight.Normal)
        line = QFontMetricsF(font).height()
        top = area.top() + (area.height() - 2 * line) / 2
        first = QRectF(area.left(), top, area.width(), line)
        aside = str(index.data(ListRole.TRAILING))
        painter.setFont(current_theme().small_font())
        painter.setPen(QColor(colors.accent if is_in else colors.muted))
        painter.drawText(first, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, aside)
        width = QFontMetricsF(painter.font()).horizontalAdvance(aside) + _PAD_PX
        painter.setFont(font)
        painter.setPen(QColor(colors.text if is_in else colors.muted))
        self._line(painter, first.adjusted(0, 0, -width, 0), str(index.data()))
        painter.setFont(current_theme().small_font())
        painter.setPen(self._tone(row))
        below = QRectF(area.left(), top + line, area.width(), line)
        self._line(painter, below, str(index.data(ListRole.SUBTITLE)))

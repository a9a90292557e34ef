"""How a fact is drawn in its list: the wording on two lines at most, below it where it comes from."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QTextLayout
from PySide6.QtWidgets import QStyleOptionViewItem

from app.storage.facts import KnownFact
from ui.models.conversations import ListRole
from ui.views.rows import RowDelegate

Index = QModelIndex | QPersistentModelIndex
_PAD_PX = 10
_LINES = 2


class FactDelegate(RowDelegate):
    """Draws `KnownFact`s; headings as in the other lists."""

    # Qt overrides

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: the lines of a fact are counted, not measured."""
        if not isinstance(index.data(ListRole.VALUE), KnownFact):
            return super().sizeHint(option, index)
        line = QFontMetricsF(self._theme.ui_font()).height()
        return QSize(0, round((_LINES + 1) * line + 1.6 * _PAD_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its ground, the wording, what is said of it."""
        known = index.data(ListRole.VALUE)
        if not isinstance(known, KnownFact):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect)
        self._ground(painter, area, option)
        self._fact(
            painter,
            area.adjusted(_PAD_PX, 0.6 * _PAD_PX, -_PAD_PX, 0),
            known,
            str(index.data(ListRole.SUBTITLE)),
        )
        painter.restore()

    def _fact(self, painter: QPainter, area: QRectF, known: KnownFact, below: str) -> None:
        colours = self._theme.colours
        line = QFontMetricsF(self._theme.ui_font()).height()
        font = self._theme.ui_font()
        font.setStrikeOut(known.fact.valid_until is not None)
        words = QColor(colours.text if known.fact.valid_until is None else colours.muted)
        painter.setPen(words)
        for number, (start, length) in enumerate(_lines(known.fact.text, font, area.width())):
            painter.setFont(font)
            text = known.fact.text[start : start + length]
            if number == _LINES - 1:
                text = QFontMetricsF(font).elidedText(
                    known.fact.text[start:], Qt.TextElideMode.ElideRight, area.width()
                )
            painter.drawText(
                QPointF(area.left(), area.top() + (number + 0.8) * line), text.rstrip()
            )
        painter.setFont(self._theme.small_font())
        painter.setPen(QColor(colours.muted))
        foot = QRectF(area.left(), area.bottom() - line - 0.6 * _PAD_PX, area.width(), line)
        self._line(painter, foot, below)


def _lines(text: str, font: object, width: float) -> list[tuple[int, int]]:
    """Return (start, length) of the first lines of a text set in a width."""
    layout = QTextLayout(text, font)  # type: ignore[call-overload]
    layout.beginLayout()
    lines = []
    for _ in range(_LINES):
        row = layout.createLine()
        if not row.isValid():
            break
        row.setLineWidth(width)
        lines.append((row.textStart(), row.textLength()))
    layout.endLayout()
    return lines

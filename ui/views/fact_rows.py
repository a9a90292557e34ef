"""How a fact is drawn in its list: the wording on two lines at most, below it where it comes from."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QTextLayout
from PySide6.QtWidgets import QStyleOptionViewItem

from app.storage.facts import KnownFact
from app.storage.memories import KnownMemory
from ui.models.conversations import ListRole
from ui.views.rows import RowDelegate

Index = QModelIndex | QPersistentModelIndex
_PAD_PX = 10
_LINES = 2
_Known = KnownFact | KnownMemory


class FactDelegate(RowDelegate):
    """Draws `KnownFact`s and `KnownMemory`s; headings as in the other lists."""

    # Qt overrides

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: the lines of a fact are counted, not measured."""
        if not isinstance(index.data(ListRole.VALUE), _Known):
            return super().sizeHint(option, index)
        line = QFontMetricsF(self._theme.ui_font()).height()
        return QSize(0, round((_LINES + 1) * line + 1.6 * _PAD_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its ground, the wording, what is said of it."""
        known = index.data(ListRole.VALUE)
        if not isinstance(known, _Known):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect)
        self._ground(painter, area, option)
        inner = area.adjusted(_PAD_PX, 0, -_PAD_PX, 0)
        ended = isinstance(known, KnownFact) and known.fact.valid_until is not None
        self._text(painter, inner, (str(index.data()), str(index.data(ListRole.SUBTITLE))), ended)
        painter.restore()

    def _text(self, painter: QPainter, area: QRectF, words: tuple[str, str], ended: bool) -> None:
        """Draw the block of lines in the middle of the row, however many they are."""
        (text, below), colours = words, self._theme.colours
        font = self._theme.ui_font()
        font.setStrikeOut(ended)
        line = QFontMetricsF(font).height()
        starts = _line_starts(text, font, area.width())
        top = area.top() + (area.height() - (len(starts) + 1) * line) / 2
        painter.setFont(font)
        painter.setPen(QColor(colours.muted if ended else colours.text))
        for number, start in enumerate(starts):
            end = None if start == starts[-1] else starts[number + 1]
            self._line(painter, _row(area, top + number * line, line), text[start:end].rstrip())
        painter.setFont(self._theme.small_font())
        painter.setPen(QColor(colours.muted))
        self._line(painter, _row(area, top + len(starts) * line, line), below)


def _row(area: QRectF, top: float, height: float) -> QRectF:
    return QRectF(area.left(), top, area.width(), height)


def _line_starts(text: str, font: QFont, width: float) -> list[int]:
    """Return where the first lines of a text begin, set in a width."""
    layout = QTextLayout(text, font)
    layout.beginLayout()
    starts = []
    for _ in range(_LINES):
        row = layout.createLine()
        if not row.isValid():
            break
        row.setLineWidth(width)
        starts.append(row.textStart())
    layout.endLayout()
    return starts

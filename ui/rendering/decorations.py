"""Decorations painted beneath a document's text: code backgrounds, quote bars, markers, rules.

Only visible blocks are looked at, so that a long document costs no more than a short one.
"""

from collections.abc import Iterator

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QPen,
    QTextBlock,
    QTextDocument,
    QTextFragment,
    QTextLine,
)

from ui.rendering.document import blocks_of, fragments_of
from ui.rendering.formats import Formats, Property

_CORNER_EM = 0.5
_CHIP_CORNER_EM = 0.28


def _visible_blocks(document: QTextDocument, area: QRectF) -> Iterator[QTextBlock]:
    """Yield the blocks that touch `area`, top to bottom."""
    layout = document.documentLayout()
    position = layout.hitTest(
        QPointF(area.left(), max(0.0, area.top())), Qt.HitTestAccuracy.FuzzyHit
    )
    block = document.findBlock(max(0, position))
    if block.isValid() and block.previous().isValid():
        block = block.previous()
    for each in blocks_of(document, block):
        if not each.isVisible():
            continue
        rect = layout.blockBoundingRect(each)
        if rect.top() - each.blockFormat().topMargin() > area.bottom():
            return
        yield each


def code_area(document: QTextDocument, formats: Formats, first: QTextBlock) -> QRectF:
    """Return the area of the code block whose first line is `first`, its head included.

    Below code that is shown in part there is room for a button.
    """
    number, last = first.blockFormat().property(Property.CODE), first
    for block in blocks_of(document, first):
        if block.blockFormat().property(Property.CODE) != number or not block.isVisible():
            break
        last = block
    bottom = document.documentLayout().blockBoundingRect(last).bottom() + formats.code_padding
    if last.next().isValid() and not last.next().isVisible():
        bottom += formats.code_more
    area = code_head(document, formats, first)
    area.setBottom(bottom)
    return area


def code_head(document: QTextDocument, formats: Formats, first: QTextBlock) -> QRectF:
    """Return the area of the head of the code block whose first line is `first`."""
    top = document.documentLayout().blockBoundingRect(first.previous()).top()
    left = first.blockFormat().leftMargin() - formats.code_padding
    height = formats.code_head_height(has_language=bool(first.previous().text()))
    return QRectF(left, top, document.textWidth() - left, height)


def paint_beneath(
    painter: QPainter, document: QTextDocument, formats: Formats, area: QRectF
) -> None:
    """Paint the decorations in `area`, in the document's coordinates."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    seen: set[object] = set()
    for block in _visible_blocks(document, area):
        made = block.blockFormat()
        number = made.property(Property.CODE)
        number = made.property(Property.CODE_HEAD) if number is None else number
        if number is not None and number not in seen:
            seen.add(number)
            area_of_code = code_area(document, formats, _first_line(block))
            _paint_code(painter, formats, area_of_code.adjusted(0.5, 0.5, -0.5, -0.5))
        _BlockPainter(painter, document, formats, block).paint()
    painter.restore()


def _first_line(block: QTextBlock) -> QTextBlock:
    """Return the first line of the code that `block` belongs to."""
    while block.blockFormat().property(Property.CODE_HEAD) is None and block.previous().isValid():
        block = block.previous()
    return block.next()


def _paint_code(painter: QPainter, formats: Formats, area: QRectF) -> None:
    """Paint the background of a code block."""
    corner = formats.theme.em(_CORNER_EM)
    painter.setPen(QPen(QColor(formats.theme.colors.border), 1))
    painter.setBrush(QColor(formats.theme.colors.code_background))
    painter.drawRoundedRect(area, corner, corner)


class _BlockPainter:
    """Paints the decorations of one block."""

    def __init__(
        self, painter: QPainter, document: QTextDocument, formats: Formats, block: QTextBlock
    ) -> None:
        self._painter, self._document, self._block = painter, document, block
        self._theme = formats.theme
        self._format, self._layout = block.blockFormat(), document.documentLayout()
        self._rect = self._layout.blockBoundingRect(block)
        is_code = self._format.property(Property.CODE_HEAD) is not None
        self._edge = self._format.leftMargin() - (formats.code_padding if is_code else 0)
        self._is_right_to_left = self._format.rightMargin() > self._format.leftMargin()
        if self._is_right_to_left:
            self._edge = document.textWidth() - self._format.rightMargin()
        line = block.layout().lineAt(0)
        self._baseline = self._rect.top() + (line.y() + line.ascent() if line.isValid() else 0)

    def paint(self) -> None:
        """Paint what the block's format asks for."""
        get, painter, colors = self._format.property, self._painter, self._theme.colors
        if quotes := get(Property.QUOTES):
            self._paint_bars(str(quotes))
        if (marker := get(Property.MARKER)) is not None:
            self._paint_marker(str(marker))
        if get(Property.FOLD) is not None:
            self._paint_triangle(is_open=self._block.next().isVisible())
        if (done := get(Property.TASK)) is not None:
            self._paint_task(done=bool(done))
        if get(Property.RULE):
            painter.setPen(QPen(QColor(colors.border), 1.5))
            middle = QPointF(self._format.leftMargin(), self._rect.center().y())
            painter.drawLine(middle, QPointF(self._document.textWidth(), middle.y()))
        if get(Property.CODE) is None:
            self._paint_inline_code()

    def _paint_bars(self, quotes: str) -> None:
        before = self._block.previous()
        edges_before = str(before.blockFormat().property(Property.QUOTES) or "").split(",")
        above = self._layout.blockBoundingRect(before).bottom()
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(QColor(self._theme.colors.control_border))
        for edge in quotes.split(","):
            top = above if edge in edges_before else self._rect.top()
            width = max(2.0, self._theme.em(0.18))
            left = float(edge)
            if self._is_right_to_left:
                left = self._document.textWidth() - left - width
            self._painter.drawRect(QRectF(left, top, width, self._rect.bottom() - top))

    def _paint_marker(self, marker: str) -> None:
        """Paint the bullet or number of a list item, aligned to the text before the first line."""
        font = self._theme.reading_font()
        self._painter.setFont(font)
        self._painter.setPen(QColor(self._theme.colors.muted))
        if self._is_right_to_left:
            marker = f"\N{RIGHT-TO-LEFT MARK}{marker}"  # the point stands left of the number
        left = self._before(0.55, QFontMetricsF(font).horizontalAdvance(marker))
        self._painter.drawText(QPointF(max(0.0, left), self._baseline), marker)

    def _paint_triangle(self, *, is_open: bool) -> None:
        """Paint the sign before a summary: it points down when what it hides is shown."""
        side = self._theme.em(0.5)
        x, y = self._before(0.55, side), self._baseline - self._theme.em(0.62)
        corners = (
            ((0, 0.15), (1, 0.15), (0.5, 0.9)) if is_open else ((0.15, 0), (0.9, 0.5), (0.15, 1))
        )
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(QColor(self._theme.colors.muted))
        self._painter.drawPolygon([QPointF(x + side * a, y + side * b) for a, b in corners])

    def _before(self, gap_em: float, width: float) -> float:
        """Return the left edge of what is so wide and stands before the text, `gap_em` away."""
        gap = self._theme.em(gap_em)
        return self._edge + gap if self._is_right_to_left else self._edge - gap - width

    def _paint_task(self, *, done: bool) -> None:
        painter, colors, side = self._painter, self._theme.colors, self._theme.em(0.92)
        left = self._before(0.5, side)
        box = QRectF(left, self._baseline - side * 0.88, side, side)
        painter.setPen(QPen(QColor(colors.accent if done else colors.control_border), 1.4))
        painter.setBrush(QColor(colors.accent if done else colors.raised))
        painter.drawRoundedRect(box, side * 0.22, side * 0.22)
        if done:
            painter.setPen(QPen(QColor(colors.on_accent), side * 0.14))
            corners = ((0.24, 0.52), (0.43, 0.72), (0.77, 0.3))
            painter.drawPolyline([box.topLeft() + QPointF(x * side, y * side) for x, y in corners])

    def _paint_inline_code(self) -> None:
        """Paint a rounded background under each piece of inline code."""
        self._painter.setBrush(QColor(self._theme.colors.code_background))
        corner, border = self._theme.em(_CHIP_CORNER_EM), QColor(self._theme.colors.control_border)
        for fragment in fragments_of(self._block):
            made = fragment.charFormat()
            if made.property(Property.INLINE_CODE):
                is_key = made.property(Property.KEY)
                self._painter.setPen(QPen(border, 1) if is_key else QPen(Qt.PenStyle.NoPen))
                for rect in self._rects_of(fragment):
                    area = rect.translated(self._rect.topLeft())
                    # a key's border must not touch the text beside it, as in Ctrl+K
                    area.adjust(*((-2, -0.5, 0, 0.5) if is_key else (-2, -1, 2, 1)))
                    self._painter.drawRoundedRect(area, corner, corner)

    def _rects_of(self, fragment: QTextFragment) -> Iterator[QRectF]:
        """Yield the fragment's rectangle on each line."""
        layout, start = self._block.layout(), fragment.position() - self._block.position()
        end, metrics = start + fragment.length(), QFontMetricsF(fragment.charFormat().font())
        for number in range(layout.lineCount()):
            line = layout.lineAt(number)
            line_end = line.textStart() + line.textLength()
            if line.textStart() < end and line_end > start:
                left = _x_of(line, max(start, line.textStart()))
                right = _x_of(line, min(end, line_end))
                top = line.y() + line.ascent() - metrics.ascent()
                yield QRectF(left, top, right - left, metrics.height())


def _x_of(line: QTextLine, position: int) -> float:
    found: object = line.cursorToX(position)
    return float(found[0]) if isinstance(found, tuple) else float(str(found))

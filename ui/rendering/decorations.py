"""What is painted beneath a document's words: grounds of code, quotation bars, markers, rules.

Everything is found from the blocks in sight, so that a long document costs no more than a short
one. The words themselves are painted by Qt.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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

from ui.rendering.formats import Formats
from ui.rendering.properties import Property

_CORNER_EM = 0.5
_CHIP_CORNER_EM = 0.28


@dataclass(frozen=True, slots=True)
class CodeArea:
    """Where a code block lies: its number, and its ground in the document's coordinates."""

    number: int
    rect: QRectF


def blocks_in(document: QTextDocument, area: QRectF) -> Iterator[QTextBlock]:
    """Yield the blocks that touch `area`, top to bottom."""
    layout = document.documentLayout()
    position = layout.hitTest(
        QPointF(area.left(), max(0.0, area.top())), Qt.HitTestAccuracy.FuzzyHit
    )
    block = document.findBlock(max(0, position))
    if block.isValid() and block.previous().isValid():
        block = block.previous()
    while block.isValid():
        rect = layout.blockBoundingRect(block)
        if rect.top() - block.blockFormat().topMargin() > area.bottom():
            return
        yield block
        block = block.next()


def code_area(document: QTextDocument, formats: Formats, first: QTextBlock) -> CodeArea:
    """Return where the code block whose first line is `first` lies, its head above it included."""
    layout, number = document.documentLayout(), first.blockFormat().property(Property.CODE)
    last = first
    while (after := last.next()).isValid() and after.blockFormat().property(
        Property.CODE
    ) == number:
        last = after
    left = first.blockFormat().leftMargin() - formats.code_padding
    top = layout.blockBoundingRect(first.previous()).top()
    bottom = layout.blockBoundingRect(last).bottom() + formats.code_padding
    return CodeArea(int(number), QRectF(left, top, document.textWidth() - left, bottom - top))


def code_head(document: QTextDocument, formats: Formats, first: QTextBlock) -> QRectF:
    """Return where the head of the code block lies whose first line is `first`."""
    top = document.documentLayout().blockBoundingRect(first.previous()).top()
    left = first.blockFormat().leftMargin() - formats.code_padding
    return QRectF(left, top, document.textWidth() - left, formats.code_header)


def paint_beneath(
    painter: QPainter,
    document: QTextDocument,
    formats: Formats,
    area: QRectF,
) -> None:
    """Paint all that lies beneath the words in `area`, in the document's coordinates."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    seen: set[int] = set()
    for block in blocks_in(document, area):
        number = _code_number(block)
        if number is not None and number not in seen:
            seen.add(number)
            found = code_area(document, formats, _first_of(block))
            _paint_code(painter, formats, found)
        _paint_block(painter, document, formats, block)
    painter.restore()


def _code_number(block: QTextBlock) -> int | None:
    made = block.blockFormat()
    number = made.property(Property.CODE)
    number = made.property(Property.CODE_HEAD) if number is None else number
    return None if number is None else int(number)


def _first_of(block: QTextBlock) -> QTextBlock:
    """Return the first line of the code that `block` belongs to."""
    while block.blockFormat().property(Property.CODE_HEAD) is None and block.previous().isValid():
        block = block.previous()
    return block.next()


def _paint_code(painter: QPainter, formats: Formats, area: CodeArea) -> None:
    corner = formats.theme.em(_CORNER_EM)
    painter.setPen(QPen(QColor(formats.theme.colours.border), 1))
    painter.setBrush(QColor(formats.theme.colours.code_background))
    painter.drawRoundedRect(area.rect.adjusted(0.5, 0.5, -0.5, -0.5), corner, corner)


def _paint_block(
    painter: QPainter, document: QTextDocument, formats: Formats, block: QTextBlock
) -> None:
    block_format, rect = block.blockFormat(), document.documentLayout().blockBoundingRect(block)
    if quotes := block_format.property(Property.QUOTES):
        _paint_bars(painter, document, formats, block, str(quotes))
    if (marker := block_format.property(Property.MARKER)) is not None:
        _paint_marker(painter, formats, block, rect, str(marker))
    if (done := block_format.property(Property.TASK)) is not None:
        _paint_task(painter, formats, block, rect, done=bool(done))
    if block_format.property(Property.RULE):
        painter.setPen(QPen(QColor(formats.theme.colours.border), 1.5))
        middle = QPointF(block_format.leftMargin(), rect.center().y())
        painter.drawLine(middle, QPointF(document.textWidth(), middle.y()))
    if block_format.property(Property.CODE) is None:
        _paint_chips(painter, formats, block, rect)


def _paint_bars(
    painter: QPainter, document: QTextDocument, formats: Formats, block: QTextBlock, quotes: str
) -> None:
    theme, rect = formats.theme, document.documentLayout().blockBoundingRect(block)
    before = str(block.previous().blockFormat().property(Property.QUOTES) or "").split(",")
    above = document.documentLayout().blockBoundingRect(block.previous()).bottom()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.colours.control_border))
    for edge in quotes.split(","):
        top = above if edge in before else rect.top()
        bar = QRectF(float(edge), top, max(2.0, theme.em(0.18)), rect.bottom() - top)
        painter.drawRect(bar)


def _paint_marker(
    painter: QPainter, formats: Formats, block: QTextBlock, rect: QRectF, marker: str
) -> None:
    """Paint the bullet or number right-aligned before the first line."""
    theme = formats.theme
    font = theme.reading_font()
    painter.setFont(font)
    painter.setPen(QColor(theme.colours.muted))
    width = QFontMetricsF(font).horizontalAdvance(marker)
    right = _edge_of_words(formats, block) - theme.em(0.55)
    painter.drawText(QPointF(max(0.0, right - width), _baseline(block, rect)), marker)


def _paint_task(
    painter: QPainter, formats: Formats, block: QTextBlock, rect: QRectF, *, done: bool
) -> None:
    theme = formats.theme
    side = theme.em(0.92)
    left = _edge_of_words(formats, block) - theme.em(0.5) - side
    box = QRectF(left, _baseline(block, rect) - side * 0.88, side, side)
    painter.setPen(
        QPen(QColor(theme.colours.accent if done else theme.colours.control_border), 1.4)
    )
    painter.setBrush(QColor(theme.colours.accent if done else theme.colours.raised))
    painter.drawRoundedRect(box, side * 0.22, side * 0.22)
    if done:
        painter.setPen(QPen(QColor(theme.colours.on_accent), side * 0.14))
        corners = ((0.24, 0.52), (0.43, 0.72), (0.77, 0.3))
        painter.drawPolyline([box.topLeft() + QPointF(x * side, y * side) for x, y in corners])


def _edge_of_words(formats: Formats, block: QTextBlock) -> float:
    """Return the left edge of the block's words, or of the ground of code."""
    made = block.blockFormat()
    is_code = made.property(Property.CODE_HEAD) is not None
    return made.leftMargin() - (formats.code_padding if is_code else 0)


def _baseline(block: QTextBlock, rect: QRectF) -> float:
    line = block.layout().lineAt(0)
    return rect.top() + line.y() + line.ascent() if line.isValid() else rect.top()


def _paint_chips(painter: QPainter, formats: Formats, block: QTextBlock, rect: QRectF) -> None:
    """Paint a rounded ground under each stretch of code within the block's lines."""
    theme = formats.theme
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.colours.code_background))
    corner = theme.em(_CHIP_CORNER_EM)
    for fragment in _fragments(block):
        if not fragment.charFormat().property(Property.INLINE_CODE):
            continue
        for chip in _rects_of(block, fragment, rect.topLeft()):
            painter.drawRoundedRect(chip.adjusted(-2, -1, 2, 1), corner, corner)


def _fragments(block: QTextBlock) -> Iterator[QTextFragment]:
    iterator = block.begin()
    while not iterator.atEnd():
        yield iterator.fragment()
        iterator += 1


def _rects_of(block: QTextBlock, fragment: QTextFragment, origin: QPointF) -> Iterator[QRectF]:
    """Yield where the fragment stands, one rectangle for each line it touches."""
    layout = block.layout()
    start = fragment.position() - block.position()
    end = start + fragment.length()
    metrics = QFontMetricsF(fragment.charFormat().font())
    for number in range(layout.lineCount()):
        line = layout.lineAt(number)
        line_end = line.textStart() + line.textLength()
        if line_end <= start or line.textStart() >= end:
            continue
        left = _x_of(line, max(start, line.textStart()))
        right = _x_of(line, min(end, line_end))
        baseline = line.y() + line.ascent()
        top = baseline - metrics.ascent()
        yield QRectF(left, top, right - left, metrics.height()).translated(origin)


def _x_of(line: QTextLine, position: int) -> float:
    found: object = line.cursorToX(position)
    return float(found[0]) if isinstance(found, tuple) else float(str(found))

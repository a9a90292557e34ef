"""Areas of a document that are wider than its view and scroll sideways: code, tables, formulas.

The document stays one, so that a selection crosses them; an area is painted, and its mouse events
are read, with an offset.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import (
    QFontMetricsF,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextLength,
    QTextTable,
    QTextTableCell,
)
from PySide6.QtWidgets import QScrollBar, QWidget

from app.domain.translation import tr
from ui.rendering.decorations import code_area
from ui.rendering.document import blocks_of, fragments_of
from ui.rendering.formats import Formats, Property
from ui.rendering.tables import is_mirrored

_MEASURED_ROWS = 60
_LEAST_EM, _MOST_EM = 8.0, 16.0  # of a column that is narrower than its text
_CELL_EM = 1.6  # padding, left and right


@dataclass(frozen=True, slots=True)
class _WidePart:
    rect: QRect
    width: int


class WideAreas:
    """The wide areas of one document, with a scroll bar each on `view`."""

    def __init__(self, view: QWidget, formats: Formats) -> None:
        self._view, self._formats = view, formats
        self._areas: list[_WidePart] = []
        self._bars: list[QScrollBar] = []

    def update(self, document: QTextDocument, width: int) -> None:
        """Find the areas in a document laid out for `width`, and place their scroll bars."""
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                _fit_columns(frame, self._formats, width)
        is_wide = document.size().width() > width + 1
        self._areas = list(_find(document, self._formats, width)) if is_wide else []
        while len(self._bars) > len(self._areas):
            self._bars.pop().deleteLater()
        while len(self._bars) < len(self._areas):
            self._bars.append(self._make_bar())
        height = round(self._formats.theme.em(0.6))
        for area, bar in zip(self._areas, self._bars, strict=True):
            rect = area.rect
            bar.setRange(0, max(0, area.width - rect.width()))
            bar.setPageStep(rect.width())
            bar.setGeometry(rect.left(), rect.bottom() - height, rect.width() - height, height)

    def at(self, point: QPoint) -> QScrollBar | None:
        """Return the scroll bar of the area at a point of the view."""
        return next((bar for area, bar in self._both() if area.rect.contains(point)), None)

    def in_document(self, point: QPointF) -> QPointF:
        """Return the point of the document that is shown at a point of the view."""
        bar = self.at(point.toPoint())
        return point if bar is None else point + QPointF(bar.value(), 0)

    def scrolled(self) -> list[tuple[QRect, int]]:
        """Return the areas that are scrolled, and by how much."""
        return [(area.rect, bar.value()) for area, bar in self._both() if bar.value()]

    def show(self, rect: QRect) -> None:
        """Scroll an area so that a part of the document is visible."""
        for area, bar in self._both():
            if area.rect.top() <= rect.top() <= area.rect.bottom():
                x, width = rect.left() - area.rect.left(), area.rect.width()
                if not bar.value() <= x <= bar.value() + width - rect.width():
                    bar.setValue(x - width // 3)

    def _both(self) -> Iterator[tuple[_WidePart, QScrollBar]]:
        return zip(self._areas, self._bars, strict=True)

    def _make_bar(self) -> QScrollBar:
        bar = QScrollBar(Qt.Orientation.Horizontal, self._view)
        bar.setAccessibleName(tr("Scroll sideways"))
        bar.setSingleStep(round(self._formats.theme.em(2)))
        bar.valueChanged.connect(self._view.update)
        bar.show()
        return bar


def _find(document: QTextDocument, formats: Formats, width: int) -> Iterator[_WidePart]:
    """Yield the areas that are wider than the document."""
    layout, code = document.documentLayout(), object()
    for block in blocks_of(document):
        made = block.blockFormat()
        if not block.isVisible():
            continue
        number = made.property(Property.CODE)
        if number is not None and number != code:
            code = number
            if (found := _wide_code(document, formats, block)) is not None:
                yield found
        elif made.alignment() & Qt.AlignmentFlag.AlignHCenter and number is None:
            line, left = layout.blockBoundingRect(block), round(made.leftMargin())
            if line.width() > width - left + 1 and QTextCursor(block).currentTable() is None:
                _align_left(block)
                height = round(line.height()) + round(formats.theme.em(0.6))
                yield _WidePart(
                    QRect(left, round(line.top()), width - left, height), round(line.width())
                )
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            content = layout.frameBoundingRect(frame).width()
            left = round(frame.format().toTableFormat().leftMargin())
            content -= left
            if content > width - left + 1:
                first, last = (
                    frame.firstCursorPosition().block(),
                    frame.lastCursorPosition().block(),
                )
                top, bottom = (
                    layout.blockBoundingRect(first).top(),
                    layout.blockBoundingRect(last).bottom(),
                )
                room = round(formats.theme.em(1.0))  # cell padding and scroll bar
                rect = QRect(left, round(top), width - left, round(bottom - top) + room)
                yield _WidePart(rect, round(content))


def _wide_code(document: QTextDocument, formats: Formats, first: QTextBlock) -> _WidePart | None:
    """Return the area of the code that begins at `first`, if a line is wider than it."""
    layout, widest, number = (
        document.documentLayout(),
        0.0,
        first.blockFormat().property(Property.CODE),
    )
    for block in blocks_of(document, first):
        if block.blockFormat().property(Property.CODE) != number or not block.isVisible():
            break
        widest = max(widest, layout.blockBoundingRect(block).width())
    outer, padding = code_area(document, formats, first), round(formats.code_padding)
    inner = outer.toRect().adjusted(padding, round(formats.code_header), -1, -1)
    inner.setTop(round(layout.blockBoundingRect(first).top()))
    if widest <= inner.width():
        return None
    return _WidePart(inner, round(widest) + padding)


def _align_left(block: QTextBlock) -> None:
    cursor = QTextCursor(block)
    made = block.blockFormat()
    made.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignHCenter)
    cursor.setBlockFormat(made)


def _fit_columns(table: QTextTable, formats: Formats, width: int) -> None:
    """Give the columns of a table fixed widths if its text would otherwise be squeezed."""
    made = table.format().toTableFormat()
    rows = min(table.rows(), _MEASURED_ROWS)
    em, columns = formats.theme.em(1), range(table.columns())
    natural = [
        max(_text_width(table.cellAt(row, column)) for row in range(rows)) + _CELL_EM * em
        for column in columns
    ]
    least = sum(min(each, _LEAST_EM * em) for each in natural)
    wanted: list[QTextLength] = []
    if least > width - made.leftMargin():
        fixed = QTextLength.Type.FixedLength
        wanted = [QTextLength(fixed, min(each, _MOST_EM * em)) for each in natural]
    alignment = Qt.AlignmentFlag.AlignLeft
    if is_mirrored(table) and sum(natural) <= width - made.leftMargin():
        alignment = Qt.AlignmentFlag.AlignRight
    if made.columnWidthConstraints() != wanted or made.alignment() != alignment:
        made.setColumnWidthConstraints(wanted)
        made.setAlignment(alignment)
        table.setFormat(made)


def _text_width(cell: QTextTableCell) -> float:
    """Return the width of a cell's widest line, in pixels."""
    block = cell.firstCursorPosition().block()
    text = block.text()
    metrics = QFontMetricsF(block.charFormat().font())
    widest = max(metrics.horizontalAdvance(line) for line in text.split("\u2028"))
    images = (
        (each.charFormat().toImageFormat() for each in fragments_of(block))
        if "\ufffc" in text
        else ()
    )
    return widest + sum(each.width() for each in images if each.isValid())

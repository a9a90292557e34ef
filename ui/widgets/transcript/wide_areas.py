"""Parts of a text that are wider than it, which scroll sideways, and the controls of code blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import (
    QCursor,
    QGuiApplication,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextLength,
    QTextTable,
    QTextTableCell,
)
from PySide6.QtWidgets import QApplication, QScrollBar, QToolTip, QWidget

from app.domain.translation import format_number, tr
from ui.rendering.decorations import code_area
from ui.rendering.document import blocks_of, code_key
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.formats import Formats, Property, formats_of
from ui.rendering.tables import is_mirrored
from ui.theme import Theme
from ui.widgets.controls import action_button

_MEASURED_ROWS = 60
_LEAST_EM, _MOST_EM = 8.0, 16.0  # of a column that is narrower than its text
_CELL_EM = 1.6  # padding, left and right
_COPIED_FOR_MS = 1400


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
        """Find the areas in a document for `width`, and place their scroll bars."""
        document.size()  # has Qt finish the layout, which measures the columns
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
    return cell.firstCursorPosition().block().layout().maximumWidth()


def copy_text(text: str) -> None:
    """Copy `text` to the clipboard, and say so at the mouse."""
    QGuiApplication.clipboard().setText(text)
    window = QApplication.activeWindow()
    if window is not None:
        QToolTip.showText(QCursor.pos(), tr("Copied"), window, QRect(), _COPIED_FOR_MS)


class CodeControls:
    """The buttons of all code blocks of a text, on `view`; `owner` opens folds and lays out again."""

    def __init__(self, owner: "CodeOwner", view: QWidget, theme: Theme) -> None:
        self._owner, self._view, self._theme = owner, view, theme
        self._buttons: list[_Buttons] = []
        self._width = -1  # the width they were placed for
        self._shows_all = True

    def show_all(self, shows_all: bool) -> None:
        """Show the buttons of code without a language too, which are above its text."""
        self._shows_all = shows_all
        for buttons in self._buttons:
            buttons.show(shows_all)

    def invalidate(self) -> None:
        """Have all buttons placed again."""
        self._width = -1

    def place(self, width: int) -> None:
        """Place the buttons of each code block that is new or may have moved."""
        blocks = self._owner.builder.writer.code_blocks
        while len(self._buttons) > len(blocks):
            self._buttons.pop().remove()
        start = max(0, len(self._buttons) - 1) if width == self._width else 0
        for index in range(start, len(blocks)):
            if index == len(self._buttons):
                self._buttons.append(_Buttons(self._owner, index, self._view))
            self._buttons[index].place(self._theme)
            self._buttons[index].show(self._shows_all)
        self._width = width


class CodeOwner(Protocol):
    """A text with code blocks, which `builder` has."""

    builder: DocumentBuilder

    def toggle_fold(self, key: str) -> None:
        """Open a fold of the text, or close it."""

    def code_changed(self) -> None:
        """Lay out again."""


class _Buttons:
    """The buttons of one code block."""

    def __init__(self, owner: CodeOwner, index: int, view: QWidget) -> None:
        self._owner, self._index = owner, index
        language = owner.builder.writer.code_blocks[index].language or "code"
        copies = tr("Copy {language}").format(language=language)
        self._copy = action_button(view, tr("Copy"), tr("Copy this code"), copies)
        wraps = tr("Wrap {language}").format(language=language)
        self._wrap = action_button(view, tr("Wrap"), tr("Wrap lines that are too long"), wraps)
        self._wrap.setCheckable(True)
        tip = tr("Show the code to its end, or its beginning alone")
        self._more = action_button(view, "", tip)
        for each in (self._copy, self._wrap, self._more):
            each.setCursor(Qt.CursorShape.PointingHandCursor)
        self._copy.clicked.connect(self._on_copy_clicked)
        self._wrap.clicked.connect(self._on_wrap_clicked)
        self._more.clicked.connect(partial(owner.toggle_fold, code_key(index)))

    def remove(self) -> None:
        for button in (self._copy, self._wrap, self._more):
            button.deleteLater()

    def show(self, shows_all: bool) -> None:
        """Show the buttons in the head; those of code without a language only if told so."""
        code = self._owner.builder.writer.code_blocks[self._index]
        block = self._owner.builder.document.findBlockByNumber(code.first_block)
        for button in (self._copy, self._wrap):
            button.setVisible(block.isVisible() and (shows_all or bool(code.language)))

    def place(self, theme: Theme) -> None:
        """Place the buttons; those of hidden code are hidden."""
        builder, formats = self._owner.builder, formats_of(theme)
        block = builder.document.findBlockByNumber(
            builder.writer.code_blocks[self._index].first_block
        )
        is_visible = block.isVisible()
        area = code_area(builder.document, formats, block).toRect() if is_visible else None
        fold = builder.writer.folds.get(code_key(self._index))
        is_folded = fold is not None and code_key(self._index) not in builder.writer.toggled
        self._more.setVisible(is_visible and is_folded)
        if area is None:
            return
        right, top = area.right() - round(theme.em(0.3)), area.top() + round(theme.em(0.2))
        for button in (self._copy, self._wrap):
            hint = button.sizeHint()
            button.setGeometry(right - hint.width(), top, hint.width(), hint.height())
            right -= hint.width() + round(theme.em(0.2))
        if fold is not None and is_folded:
            lines = fold.last - block.blockNumber() + 1
            text = tr("Show all {lines} lines").format(lines=format_number(lines))
            self._more.setText(text)
            self._more.setAccessibleName(text)
            hint = self._more.sizeHint()
            bottom = area.bottom() - round(theme.em(0.35))
            left = area.left() + round(formats.code_padding * 0.5)
            self._more.setGeometry(left, bottom - hint.height(), hint.width(), hint.height())

    def _on_copy_clicked(self) -> None:
        copy_text(self._owner.builder.writer.code_blocks[self._index].source)

    def _on_wrap_clicked(self, is_wrapped: bool) -> None:
        self._owner.builder.writer.set_wrapped(self._index, is_wrapped)
        self._owner.code_changed()

"""Tables of a text document, up to the size it can lay out in time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from unicodedata import bidirectional

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableCell,
    QTextTableCellFormat,
    QTextTableFormat,
)

from ui.rendering.formats import Formats, Style
from ui.rendering.inline import InlineWriter, sanitize

MAX_ROWS = 500
_MAX_CELLS = 4000
_MAX_CELL_CHARS = 4000
_ALIGNMENTS = {"right": Qt.AlignmentFlag.AlignRight, "center": Qt.AlignmentFlag.AlignHCenter}


@dataclass(slots=True)
class _Row:
    is_head: bool
    cells: list[tuple[Token, str]] = field(default_factory=list)


class TableWriter:
    """Writes tables at a cursor.

    Attributes:
        rows_of_last: Rows of the last table.
    """

    def __init__(self, formats: Formats, inline: InlineWriter) -> None:
        self._formats = formats
        self._inline = inline
        self.rows_of_last = 0

    def write(
        self,
        cursor: QTextCursor,
        tokens: Sequence[Token],
        left_px: float,
        joined: QTextTable | None,
    ) -> tuple[QTextTable | None, list[str]]:
        """Write the table of `tokens` at the cursor, or append its rows to `joined`.

        Return it and, as plain lines, the rows beyond 500 rows or 4,000 cells.
        """
        rows = [row for row in _rows(tokens) if not (joined is not None and row.is_head)]
        columns = max((len(row.cells) for row in rows), default=0)
        fitting = min(len(rows), MAX_ROWS + 1, max(1, _MAX_CELLS // max(1, columns)))
        drawn, rest = rows[:fitting], rows[fitting:]
        self.rows_of_last = len(drawn)
        first, table = 0, joined
        if joined is not None:
            first = joined.rows()
            joined.appendRows(len(drawn))
        elif drawn:
            above_px = cursor.blockFormat().bottomMargin()  # Qt leaves it out before a table
            made = self._format(left_px, above_px)
            if _is_right_to_left(drawn[0]):
                made.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
            table = cursor.insertTable(len(drawn), max(1, columns), made)
        if table is not None:
            for number, row in enumerate(drawn, start=first):
                self._fill(table, number, row)
        return table, [" | ".join(sanitize(cell.content) for cell, _ in row.cells) for row in rest]

    def resize(self, table: QTextTable, is_hidden: bool) -> None:
        """Take the space of a table whose text is hidden, or give it back."""
        before = table.format().toTableFormat()
        made = self._format(before.leftMargin(), 0)
        made.setLayoutDirection(before.layoutDirection())
        if is_hidden:
            made.setTopMargin(0)
            after = table.lastCursorPosition().block().next()
            if not after.isVisible():  # else Qt would leave no space above what follows
                made.setBottomMargin(0)
        for row in range(table.rows()):
            cell = QTextTableCellFormat() if is_hidden else self._cell_format(is_head=row == 0)
            for column in range(table.columns()):
                table.cellAt(row, column).setFormat(cell)
        table.setFormat(made)

    def _format(self, left_px: float, above_px: float) -> QTextTableFormat:
        theme, made = self._formats.theme, QTextTableFormat()
        made.setBorder(0)
        made.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_None)
        made.setCellSpacing(0)
        made.setCellPadding(0)
        made.setBorderCollapse(True)
        made.setLeftMargin(round(left_px))
        made.setTopMargin(max(round(theme.em(0.75)), above_px))
        made.setBottomMargin(round(theme.em(0.8)))
        made.setWidth(QTextLength())
        made.setAlignment(Qt.AlignmentFlag.AlignLeft)
        return made

    def _fill(self, table: QTextTable, number: int, row: _Row) -> None:
        cell_format = self._cell_format(is_head=row.is_head)
        style, columns = Style(bold=row.is_head), range(table.columns())
        block = self._formats.block(0, 0)
        if is_mirrored(table):  # Qt lays out columns from left to right, whatever their text
            columns = columns[::-1]
            block.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # also of a number alone
        for column, (token, align) in zip(columns, row.cells, strict=False):
            cell = table.cellAt(number, column)
            self._fill_cell(cell, token, align, style, block)
            cell.setFormat(cell_format)

    def _fill_cell(
        self, cell: QTextTableCell, token: Token, align: str, style: Style, block: QTextBlockFormat
    ) -> None:
        cursor = cell.firstCursorPosition()
        made = QTextBlockFormat(block)
        made.setAlignment(
            _ALIGNMENTS.get(align.removeprefix("text-align:"), Qt.AlignmentFlag.AlignLeft)
        )
        cursor.setBlockFormat(made)
        cursor.setBlockCharFormat(self._formats.char(style))
        room = _MAX_CELL_CHARS

        def emit(text: str, char: QTextCharFormat) -> None:
            nonlocal room
            if room > 0:
                cursor.insertText(text[:room], char)
            if len(text) > room > 0:
                cursor.insertText("…", self._formats.char(replace(style, muted=True)))
            room -= len(text)

        self._inline.write(token.children or (), style, emit)

    def _cell_format(self, *, is_head: bool) -> QTextTableCellFormat:
        theme, made = self._formats.theme, QTextTableCellFormat()
        made.setTopPadding(theme.em(0.28))
        made.setBottomPadding(theme.em(0.28))
        made.setLeftPadding(theme.em(0.6))
        made.setRightPadding(theme.em(0.9))
        edge = theme.colors.control_border if is_head else theme.colors.border
        made.setBottomBorder(1)
        made.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        made.setBottomBorderBrush(QBrush(QColor(edge)))
        return made


def is_mirrored(table: QTextTable) -> bool:
    """Return whether the first column is at the right."""
    return table.format().layoutDirection() is Qt.LayoutDirection.RightToLeft


def _is_right_to_left(row: _Row) -> bool:
    """Return whether a row begins from the right: what its first letter with a direction says."""
    text = "".join(token.content for token, _ in row.cells)
    kinds = (bidirectional(each) for each in text)
    return next((each != "L" for each in kinds if each in ("L", "R", "AL")), False)


def _rows(tokens: Sequence[Token]) -> list[_Row]:
    rows: list[_Row] = []
    align = ""
    for token in tokens:
        if token.type == "tr_open":
            rows.append(_Row(is_head=False))
        elif token.type in ("th_open", "td_open"):
            rows[-1].is_head |= token.type == "th_open"
            align = str(token.attrs.get("style", ""))
        elif token.type in ("inline", "literal"):
            rows[-1].cells.append((token, align))
    return rows

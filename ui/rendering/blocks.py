"""Editing the end of a text document: add blocks and characters, and remove them again."""

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextBlockFormat, QTextCharFormat, QTextCursor, QTextTable

from ui.rendering.document import TranscriptDocument, blocks_of
from ui.rendering.formats import Property

MAX_BLOCK_CHARS = 4000
_LOOK_BACK_FOR_SPACE = 400


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a document at some time, to rewind to."""

    position: int
    block_format: QTextBlockFormat
    visible: bool
    fresh: bool
    table: QTextTable | None
    rows: int


class BlockWriter:
    """Adds to the end of one document; the base of `Writer`.

    Attributes:
        cursor: At the end, unless a table is being filled.
        fresh: Whether the document ends with an empty block that is to be used.
        last_table: The table at the end of the document, if any.
        blocks_written: The number of blocks ever begun, removed ones included: the cost.
    """

    def __init__(self, document: TranscriptDocument) -> None:
        self._document = document
        self.cursor = QTextCursor(document)
        self.fresh = True
        self.blocks_written = 0
        self.last_table: QTextTable | None = None
        self._room = MAX_BLOCK_CHARS
        self._pending = ""
        self._pending_format = QTextCharFormat()

    @property
    def at_start(self) -> bool:
        """Whether the document is empty."""
        return self.fresh and self.cursor.position() == 0

    def begin(self, made: QTextBlockFormat, char: QTextCharFormat) -> None:
        """Begin a block, or use the empty one at the end of the document."""
        self.flush()
        self.last_table = None
        if self.fresh:
            self.cursor.setBlockFormat(made)
            self.cursor.setBlockCharFormat(char)
            self.cursor.setCharFormat(char)
        else:
            self.cursor.insertBlock(made, char)
        self.fresh = False
        self._room = MAX_BLOCK_CHARS
        self.blocks_written += 1

    def emit(self, text: str, char: QTextCharFormat) -> None:
        """Add characters; a block that becomes too long continues in a `PIECE` without a gap.

        They are inserted by `flush`: adjacent text of the same format in one insertion.
        """
        if char is not self._pending_format:
            self.flush()
            self._pending_format = char
        while len(text) > self._room:
            cut = text.rfind(" ", max(0, self._room - _LOOK_BACK_FOR_SPACE), self._room) + 1
            cut = cut or self._room
            self._pending += text[:cut]
            text = text[cut:]
            self._split(char)
        self._pending += text
        self._room -= len(text)

    def flush(self) -> None:
        """Insert what `emit` has collected."""
        if self._pending:
            self.cursor.insertText(self._pending, self._pending_format)
            self._pending = ""

    def emit_lines(self, text: str, char: QTextCharFormat) -> None:
        """Add lines, each in a block like the current one; too long ones are split."""
        self.flush()
        lines = [
            _split_line(line) if len(line) > MAX_BLOCK_CHARS else line for line in text.split("\n")
        ]
        self.cursor.insertText("\n".join(lines), char)
        self.blocks_written += len(lines)

    def _split(self, char: QTextCharFormat) -> None:
        self.flush()
        piece = self.cursor.blockFormat()
        piece.setTopMargin(0)
        piece.clearProperty(Property.MARKER)
        piece.clearProperty(Property.TASK)
        piece.setProperty(Property.PIECE, True)
        self.begin(piece, char)

    def set_block(self, **properties: object) -> None:
        """Set properties of the last block by their names in `Property`; None clears one."""
        self.flush()
        made = self.cursor.blockFormat()
        for name, value in properties.items():
            if value is None:
                made.clearProperty(Property[name])
            else:
                made.setProperty(Property[name], value)
        self.cursor.setBlockFormat(made)

    def set_bottom_margin(self, px: int) -> None:
        """Set the space below the last block."""
        self.flush()
        made = self.cursor.blockFormat()
        if round(made.bottomMargin()) != px:
            made.setBottomMargin(px)
            self.cursor.setBlockFormat(made)

    def to_end(self) -> None:
        """Move the cursor to the end of the document."""
        self.flush()
        self.cursor.movePosition(QTextCursor.MoveOperation.End)

    def mark(self) -> Mark:
        """Return the current end, for `rewind`."""
        self.to_end()
        rows = self.last_table.rows() if self.last_table is not None else 0
        position, block = self.cursor.position(), self.cursor.block()
        made, table = block.blockFormat(), self.last_table
        return Mark(position, made, block.isVisible(), self.fresh, table, rows)

    def rewind(self, mark: Mark) -> None:
        """Remove everything written since `mark`, table rows included."""
        self.to_end()
        start = mark.position if mark.table is None else mark.table.lastPosition() + 1
        self.cursor.beginEditBlock()
        if self.cursor.position() > start:
            self.cursor.setPosition(start, QTextCursor.MoveMode.KeepAnchor)
            self.cursor.removeSelectedText()
        self.cursor.setBlockFormat(mark.block_format)
        self.cursor.block().setVisible(mark.visible)
        if mark.table is not None and mark.table.rows() > mark.rows:
            mark.table.removeRows(mark.rows, mark.table.rows() - mark.rows)
        self.cursor.endEditBlock()
        self.fresh, self.last_table = mark.fresh, mark.table


def mirror(document: TranscriptDocument, first: int) -> None:
    """Indent text that is written from right to left from the right, from block number `first` on."""
    for block in blocks_of(document, document.findBlockByNumber(first)):
        if block.textDirection() is Qt.LayoutDirection.RightToLeft:
            made = block.blockFormat()
            is_code = {Property.CODE, Property.CODE_HEAD} & made.properties().keys()
            if made.leftMargin() and not is_code:
                made.setRightMargin(made.leftMargin())
                made.setLeftMargin(0)
                QTextCursor(block).setBlockFormat(made)


def _split_line(line: str) -> str:
    return "\n".join(line[at : at + MAX_BLOCK_CHARS] for at in range(0, len(line), MAX_BLOCK_CHARS))

"""The end of a document: blocks and characters added there, and taken back.

What is written is the writer's business; here is only how Qt is told.
"""

from dataclasses import dataclass

from PySide6.QtCore import QSizeF, Qt
from PySide6.QtGui import (
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextImageFormat,
    QTextTable,
)

from ui.rendering.document import TranscriptDocument
from ui.rendering.properties import Property

MAX_BLOCK_CHARS = 4000
_LOOK_BACK_FOR_SPACE = 400


@dataclass(frozen=True, slots=True)
class Mark:
    """A place at the end of a document to come back to."""

    position: int
    block_format: QTextBlockFormat
    fresh: bool
    table: QTextTable | None
    rows: int


class BlockWriter:
    """Adds to the end of one document.

    Attributes:
        cursor: At the end, unless a table is being filled.
        fresh: Whether the document ends with an empty block that waits to be used.
        last_table: The table the document ends with, if it does.
        blocks_written: How many blocks were ever begun, those taken back too: the cost of drawing.
    """

    def __init__(self, document: TranscriptDocument) -> None:
        self._document = document
        self.cursor = QTextCursor(document)
        self.fresh = True
        self.blocks_written = 0
        self.last_table: QTextTable | None = None
        self._fold_left = MAX_BLOCK_CHARS
        self._waiting = ""
        self._waiting_char = QTextCharFormat()

    @property
    def at_start(self) -> bool:
        """Whether nothing stands in the document yet."""
        return self.fresh and self.cursor.position() == 0

    def begin(self, made: QTextBlockFormat, char: QTextCharFormat) -> None:
        """Start a block, or take the empty one the document ends with."""
        self.flush()
        self.last_table = None
        if self.fresh:
            self.cursor.setBlockFormat(made)
            self.cursor.setBlockCharFormat(char)
            self.cursor.setCharFormat(char)
        else:
            self.cursor.insertBlock(made, char)
        self.fresh = False
        self._fold_left = MAX_BLOCK_CHARS
        self.blocks_written += 1

    def emit(self, text: str, char: QTextCharFormat) -> None:
        """Add characters; a block too long for one layout goes on in a `PIECE` without a gap.

        They reach the document with `flush`: one insertion for neighbours of the same format.
        """
        if char is not self._waiting_char:
            self.flush()
            self._waiting_char = char
        while len(text) > self._fold_left:
            cut = (
                text.rfind(" ", max(0, self._fold_left - _LOOK_BACK_FOR_SPACE), self._fold_left) + 1
            )
            cut = cut or self._fold_left
            self._waiting += text[:cut]
            text = text[cut:]
            self._fold(char)
        self._waiting += text
        self._fold_left -= len(text)

    def flush(self) -> None:
        """Put what `emit` collected into the document."""
        if self._waiting:
            self.cursor.insertText(self._waiting, self._waiting_char)
            self._waiting = ""

    def emit_lines(self, text: str, char: QTextCharFormat) -> None:
        """Add lines, each in a block like the present one; too long ones are folded."""
        self.flush()
        lines = [
            _folded(line) if len(line) > MAX_BLOCK_CHARS else line for line in text.split("\n")
        ]
        self.cursor.insertText("\n".join(lines), char)
        self.blocks_written += len(lines)

    def _fold(self, char: QTextCharFormat) -> None:
        self.flush()
        piece = self.cursor.blockFormat()
        piece.setTopMargin(0)
        piece.clearProperty(Property.MARKER)
        piece.clearProperty(Property.TASK)
        piece.setProperty(Property.PIECE, True)
        self.begin(piece, char)

    def set_block(self, **properties: object) -> None:
        """Give the last block properties by their names in `Property`; None takes one away."""
        self.flush()
        made = self.cursor.blockFormat()
        for name, value in properties.items():
            if value is None:
                made.clearProperty(Property[name])
            else:
                made.setProperty(Property[name], value)
        self.cursor.setBlockFormat(made)

    def set_bottom_margin(self, px: int) -> None:
        """Set the space under the last block."""
        self.flush()
        made = self.cursor.blockFormat()
        if round(made.bottomMargin()) != px:
            made.setBottomMargin(px)
            self.cursor.setBlockFormat(made)

    def draw_picture(self, target: str, limit: QSizeF) -> bool:
        """Add the attached picture `target`, at most `limit` large; return whether there is one."""
        image = self._document.attached_image(target)
        if image is None or image.isNull():
            return False
        self.flush()
        size = QSizeF(image.size())
        if size.width() > limit.width() or size.height() > limit.height():
            size = size.scaled(limit, Qt.AspectRatioMode.KeepAspectRatio)
        picture = QTextImageFormat()
        picture.setName(target)
        picture.setWidth(size.width())
        picture.setHeight(size.height())
        self.cursor.insertImage(picture)
        return True

    def to_end(self) -> None:
        """Put the cursor to the document's end."""
        self.flush()
        self.cursor.movePosition(QTextCursor.MoveOperation.End)

    def mark(self) -> Mark:
        """Return the present end, for `rewind`."""
        self.to_end()
        rows = self.last_table.rows() if self.last_table is not None else 0
        return Mark(
            self.cursor.position(), self.cursor.blockFormat(), self.fresh, self.last_table, rows
        )

    def rewind(self, mark: Mark) -> None:
        """Remove everything written since `mark`, rows added to a table too."""
        self.to_end()
        start = mark.position if mark.table is None else mark.table.lastPosition() + 1
        self.cursor.beginEditBlock()
        if self.cursor.position() > start:
            self.cursor.setPosition(start, QTextCursor.MoveMode.KeepAnchor)
            self.cursor.removeSelectedText()
        self.cursor.setBlockFormat(mark.block_format)
        if mark.table is not None and mark.table.rows() > mark.rows:
            mark.table.removeRows(mark.rows, mark.table.rows() - mark.rows)
        self.cursor.endEditBlock()
        self.fresh, self.last_table = mark.fresh, mark.table


def _folded(line: str) -> str:
    return "\n".join(line[at : at + MAX_BLOCK_CHARS] for at in range(0, len(line), MAX_BLOCK_CHARS))

"""Plain text of documents: selections as text, and positions, which Qt counts in UTF-16 units."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument

from ui.rendering.document import blocks_of, fragments_of
from ui.rendering.formats import Property

_OBJECT = "\ufffc"
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


def positions_in(text: str) -> Callable[[int], int]:
    """Return a function from an index into `text` to its position in a Qt document."""
    wide = [match.start() for match in _TWO_UNITS.finditer(text)]
    return lambda index: index + bisect_left(wide, index)


def slice_of(text: str, start: int, end: int) -> str:
    """Return the part of `text` between two positions of Qt's text."""
    if text.isascii():
        return text[start:end]
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode(
        "utf-16-le", "replace"
    )


class RenderedText:
    """A document's text with formulas as LaTeX, which is what is searched.

    Attributes:
        text: The text.
    """

    def __init__(self, document: QTextDocument) -> None:
        pieces = document.toPlainText().split(_OBJECT)
        sources = _sources(document) if len(pieces) > 1 else []
        self._plain = _OBJECT.join(pieces)
        self._objects: list[tuple[int, int]] = []  # where each begins in `text`, and its length
        self.text = pieces[0]
        for source, piece in zip(sources, pieces[1:], strict=True):
            self._objects.append((len(self.text), len(source)))
            self.text += source + piece
        self._position = positions_in(self._plain)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions in the document of a range of `text`; in a formula all of it."""
        return self._position(self._index(start)), self._position(self._index(end, after=True))

    def _index(self, index: int, *, after: bool = False) -> int:
        """Return the index in the document's text; within a formula before or `after` it."""
        shift = 0
        for at, length in self._objects:
            if index <= at:
                break
            if index < at + length:
                return at - shift + after
            shift += length - 1
        return index - shift


def _sources(document: QTextDocument) -> list[str]:
    """Return the LaTeX of each object in a document; "" for those that are no formula."""
    return [
        str(fragment.charFormat().property(Property.TEX) or "")
        for block in blocks_of(document)
        for fragment in fragments_of(block)
        for _object in range(fragment.text().count(_OBJECT))
    ]


def plain_selection(document: QTextDocument, start: int, end: int) -> str:
    """Return the text between two positions: list markers, tabs between cells, formulas as LaTeX."""
    parts: list[str] = []
    before: QTextBlock | None = None
    for block in blocks_of(document, document.findBlock(start)):
        if block.position() >= max(end, start + 1):
            break
        if block.blockFormat().property(Property.CODE_HEAD) is not None:
            continue
        if before is not None:
            parts.append(_separator(before, block))
        if block.position() >= start:
            parts.append(_marker(block))
        parts.extend(_texts(block, start, end))
        before = block
    return "".join(parts)


def _separator(before: QTextBlock, block: QTextBlock) -> str:
    """Return what separates two neighboring blocks."""
    cell, cell_before = _cell(block), _cell(before)
    if cell is not None and cell_before is not None and cell[0] == cell_before[0]:
        return "\t" if cell[1] == cell_before[1] else "\n"
    made = block.blockFormat()
    if made.property(Property.PIECE):
        return ""
    code = made.property(Property.CODE)
    if code is not None and code == before.blockFormat().property(Property.CODE):
        return "\n"
    in_list = made.property(Property.MARKER) is not None or made.property(Property.TASK) is not None
    return "\n" if in_list and before.blockFormat().leftMargin() > 0 else "\n\n"


def _cell(block: QTextBlock) -> tuple[int, int] | None:
    """Return the table's first position and the row, for a block inside a table."""
    table = QTextCursor(block).currentTable()
    if table is None:
        return None
    return table.firstPosition(), table.cellAt(block.position()).row()


def _marker(block: QTextBlock) -> str:
    made = block.blockFormat()
    if (done := made.property(Property.TASK)) is not None:
        return "- [x] " if done else "- [ ] "
    marker = made.property(Property.MARKER)
    if marker is None:
        return ""
    return f"{marker} " if str(marker)[-1:] == "." else "- "


def _texts(block: QTextBlock, start: int, end: int) -> Iterator[str]:
    """Yield the block's text between two positions, formulas as their source."""
    for fragment in fragments_of(block):
        at, source = fragment.position(), str(fragment.charFormat().property(Property.TEX) or "")
        text = slice_of(fragment.text(), max(0, start - at), max(0, end - at))
        yield text.replace("\u2028", "\n").replace(_OBJECT, source)

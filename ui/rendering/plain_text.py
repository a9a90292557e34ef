"""Plain text of documents: selections as text, and positions, which Qt counts in UTF-16 units."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextFragment

from ui.rendering.document import blocks_of, fragments_of
from ui.rendering.formats import Property

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


def plain_selection(document: QTextDocument, start: int, end: int) -> str:
    """Return the text between two positions: list markers, tabs between cells, formulas as `$x$`."""
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
    """Yield the block's text between two positions, each formula once as its source."""
    last_source = ""
    for fragment in fragments_of(block):
        source = str(fragment.charFormat().property(Property.TEX) or "")
        if source and _overlaps(fragment, start, end):
            if source != last_source:
                yield f"${source}$"
        else:
            yield _part(fragment, start, end)
        last_source = source


def _overlaps(fragment: QTextFragment, start: int, end: int) -> bool:
    return fragment.position() < end and fragment.position() + fragment.length() > start


def _part(fragment: QTextFragment, start: int, end: int) -> str:
    at = fragment.position()
    text = slice_of(fragment.text(), max(0, start - at), max(0, end - at))
    return text.replace("\u2028", "\n").replace("\ufffc", "")

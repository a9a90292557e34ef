"""A selection of a document as plain text: list markers, tables, TeX and code as one would type them."""

from collections.abc import Iterator

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextFragment

from ui.rendering.properties import Property


def plain_selection(document: QTextDocument, start: int, end: int) -> str:
    """Return the text between two positions: markers before items, tabs between cells, TeX as `$x$`."""
    parts: list[str] = []
    before: QTextBlock | None = None
    block = document.findBlock(start)
    while block.isValid() and block.position() < max(end, start + 1):
        if block.blockFormat().property(Property.CODE_HEAD) is None:
            if before is not None:
                parts.append(_between(before, block))
            if block.position() >= start:
                parts.append(_marker(block))
            parts.extend(_words(block, start, end))
            before = block
        block = block.next()
    return "".join(parts)


def _between(before: QTextBlock, block: QTextBlock) -> str:
    """Return what separates two neighbouring blocks."""
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


def _words(block: QTextBlock, start: int, end: int) -> Iterator[str]:
    tex = ""
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        source = str(fragment.charFormat().property(Property.TEX) or "")
        if source and _overlaps(fragment, start, end):
            if source != tex:
                yield f"${source}$"
        else:
            yield _cut(fragment, start, end)
        tex = source
        iterator += 1


def _overlaps(fragment: QTextFragment, start: int, end: int) -> bool:
    return fragment.position() < end and fragment.position() + fragment.length() > start


def _cut(fragment: QTextFragment, start: int, end: int) -> str:
    at = fragment.position()
    text = fragment.text()[max(0, start - at) : max(0, end - at)]
    return text.replace("\u2028", "\n").replace("\ufffc", "")

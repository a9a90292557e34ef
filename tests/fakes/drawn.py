"""Rendered documents, and what they contain as plain values that two tests can compare."""

from typing import Any

from PySide6.QtGui import QTextBlock, QTextDocument, QTextTable

from ui.rendering.document import blocks_of, fragments_of
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.formats import Property
from ui.rendering.parser import MARKDOWN, Dialect
from ui.theme import Theme

THEME = Theme()


def compose(text: str, dialect: Dialect = MARKDOWN, *, pages: int = 1) -> DocumentBuilder:
    """Return a builder that has rendered all of `text` its pages allow."""
    builder = DocumentBuilder(THEME, dialect, pages=pages)
    builder.feed(text)
    builder.end()
    builder.finish()
    return builder


def stream(pieces: list[str], dialect: Dialect = MARKDOWN) -> DocumentBuilder:
    """Return a builder that was fed `pieces` one by one and rendered after each."""
    builder = DocumentBuilder(THEME, dialect)
    for piece in pieces:
        builder.feed(piece)
        builder.refresh()
    builder.end()
    builder.finish()
    return builder


def blocks(document: QTextDocument) -> list[QTextBlock]:
    """Return every block, cells of tables included, top to bottom."""
    return list(blocks_of(document))


def lines(document: QTextDocument) -> list[str]:
    """Return the text of every block."""
    return [block.text() for block in blocks_of(document)]


def tables(document: QTextDocument) -> list[QTextTable]:
    """Return the tables, top to bottom."""
    return [each for each in document.rootFrame().childFrames() if isinstance(each, QTextTable)]


def snapshot(document: QTextDocument) -> list[Any]:
    """Return everything that shows: text, formats, properties, tables."""
    shape = [(table.rows(), table.columns()) for table in tables(document)]
    return [shape, *(_block(block) for block in blocks_of(document))]


def _block(block: QTextBlock) -> tuple[Any, ...]:
    made = block.blockFormat()
    margins = (
        made.leftMargin(), made.rightMargin(), made.topMargin(), made.bottomMargin(),
        made.alignment(),
    )  # fmt: skip
    properties = tuple(made.property(each) for each in Property)
    return (block.text(), block.isVisible(), margins, properties, tuple(runs(block)))


def runs(block: QTextBlock) -> list[tuple[Any, ...]]:
    """Return text, color, weight, italics, strike-out, link and properties of the block's runs."""
    found = []
    for fragment in fragments_of(block):
        char = fragment.charFormat()
        color = char.foreground().color().name()
        shape = (char.fontWeight(), char.fontItalic(), char.fontStrikeOut(), char.anchorHref())
        properties = tuple(char.property(each) for each in Property)
        found.append((fragment.text(), color, *shape, properties))
    return found

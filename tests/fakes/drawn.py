"""What a document holds, as plain values that two tests can compare."""

from typing import Any

from PySide6.QtGui import QTextBlock, QTextDocument, QTextTable

from ui.rendering.composer import Composer
from ui.rendering.parser import MARKDOWN, Dialect
from ui.rendering.properties import Property
from ui.theme import Theme

THEME = Theme()


def compose(text: str, dialect: Dialect = MARKDOWN, *, pages: int = 1) -> Composer:
    """Return a composer that has drawn all of `text` its pages allow."""
    composer = Composer(THEME, dialect, pages=pages)
    composer.feed(text)
    composer.end()
    composer.finish()
    return composer


def stream(pieces: list[str], dialect: Dialect = MARKDOWN, *, pages: int = 1) -> Composer:
    """Return a composer that was fed `pieces` one by one and drew after each."""
    composer = Composer(THEME, dialect, pages=pages)
    for piece in pieces:
        composer.feed(piece)
        composer.refresh()
    composer.end()
    composer.finish()
    return composer


def lines(document: QTextDocument) -> list[str]:
    """Return the text of every block."""
    return [block.text() for block in blocks(document)]


def blocks(document: QTextDocument) -> list[QTextBlock]:
    """Return every block, cells of tables included, top to bottom."""
    found, block = [], document.begin()
    while block.isValid():
        found.append(block)
        block = block.next()
    return found


def tables(document: QTextDocument) -> list[QTextTable]:
    """Return the tables, top to bottom."""
    return [each for each in document.rootFrame().childFrames() if isinstance(each, QTextTable)]


def snapshot(document: QTextDocument) -> list[Any]:
    """Return everything that shows: words, formats, properties, tables."""
    shape = [(table.rows(), table.columns()) for table in tables(document)]
    return [shape, *(_block(block) for block in blocks(document))]


def _block(block: QTextBlock) -> tuple[Any, ...]:
    made = block.blockFormat()
    margins = (made.leftMargin(), made.topMargin(), made.bottomMargin(), made.alignment())
    properties = tuple(made.property(each) for each in Property)
    return (block.text(), margins, properties, tuple(runs(block)))


def runs(block: QTextBlock) -> list[tuple[Any, ...]]:
    """Return the block's runs of characters with what can be seen of their formats."""
    found, iterator = [], block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        char = fragment.charFormat()
        found.append(
            (
                fragment.text(),
                char.foreground().color().name(),
                char.fontWeight(),
                char.fontItalic(),
                char.fontStrikeOut(),
                char.anchorHref(),
                tuple(char.property(each) for each in Property),
            )
        )
        iterator += 1
    return found

"""Syntax highlighting by Pygments, which is imported on first use (22 ms; a lexer 5-60 ms).

Code is rendered plain first and colored in slices, so that no step takes long.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Any

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument

from ui.rendering.document import blocks_of
from ui.rendering.formats import Formats, Property
from ui.rendering.plain_text import positions_in

MAX_CODE_CHARS = 50_000
MAX_LINE_CHARS = 1000
_TOKENS_PER_SLICE = 150
_SMALL_CHARS = 2500
_ROLES = (
    ("Comment", "comment"),
    ("Keyword.Type", "type"),
    ("Keyword", "keyword"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Name.Class", "type"),
    ("Name.Builtin", "type"),
    ("Name.Function", "name"),
    ("Name.Decorator", "name"),
    ("Name.Tag", "keyword"),
    ("Name.Attribute", "name"),
    ("Name.Exception", "type"),
    ("Operator.Word", "keyword"),
    ("Operator", "operator"),
    ("Punctuation", "operator"),
    ("Generic.Deleted", "keyword"),
    ("Generic.Inserted", "string"),
    ("Generic.Heading", "name"),
)


def preload() -> None:
    """Import Pygments and a common lexer before the first code block; on any thread."""
    _lexer("python")


def highlight_code(
    document: QTextDocument, formats: Formats, first_block: int, language: str
) -> Iterator[None]:
    """Color the code that begins at block `first_block`, a slice for each step of the iterator.

    Long code (50,000 characters), code with very long lines, on which regular expressions are slow,
    and unknown languages stay plain.
    """
    block = document.findBlockByNumber(first_block)
    origin = block.position()
    text = _text_of(block)
    if not language or len(text) > MAX_CODE_CHARS:
        return
    if max(map(len, text.split("\n"))) > MAX_LINE_CHARS or (lexer := _lexer(language)) is None:
        return
    cursor, position = QTextCursor(document), positions_in(text)
    cursor.beginEditBlock()
    for count, (at, kind, value) in enumerate(lexer.get_tokens_unprocessed(text), start=1):
        if (role := _role(str(kind))) and not value.isspace():
            cursor.setPosition(origin + position(at))
            cursor.setPosition(origin + position(at + len(value)), QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(formats.syntax(role))
        if count % _TOKENS_PER_SLICE == 0 and len(text) > _SMALL_CHARS:
            cursor.endEditBlock()
            yield
            cursor.beginEditBlock()
    cursor.endEditBlock()


def _text_of(block: QTextBlock) -> str:
    """Return the text of the code block that starts here."""
    number = block.blockFormat().property(Property.CODE)
    in_code = takewhile(
        lambda each: each.blockFormat().property(Property.CODE) == number,
        blocks_of(block.document(), block),
    )
    return "\n".join(each.text() for each in in_code)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Any:
    """Return the lexer named `language`, None for none; it is not guessed from the code."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _role(kind: str) -> str:
    name = kind.removeprefix("Token.")
    return next((role for prefix, role in _ROLES if name.startswith(prefix)), "")

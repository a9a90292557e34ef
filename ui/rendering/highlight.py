"""Colours of code, by Pygments, which is imported on first use (22 ms; a lexer 5-60 ms).

Code is first drawn plain; colours come in slices, so that no step takes long.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol, cast

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument

from ui.rendering.formats import Formats
from ui.rendering.properties import Property

MAX_CODE_CHARS = 50_000
MAX_LINE_CHARS = 1000
_WORDS_IN_SLICE = 150
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


class _Lexer(Protocol):
    """The one thing asked of a lexer of Pygments."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield place, kind and words of each token."""
        ...


def preload() -> None:
    """Import Pygments and a common lexer ahead of the first code block; any thread."""
    _lexer("python")


def colour_code(
    document: QTextDocument, formats: Formats, first_block: int, language: str
) -> Iterator[None]:
    """Colour the code that begins at block `first_block`; each step of the iterator is short.

    Code that is long (50,000 characters), has very long lines or a language Pygments does not know
    stays as it is. Lexers are regular expressions, and long lines are where those turn slow.
    """
    block = document.findBlockByNumber(first_block)
    origin = block.position()
    text = _text_of(block)
    if not language or len(text) > MAX_CODE_CHARS:
        return
    if max(map(len, text.split("\n"))) > MAX_LINE_CHARS or (lexer := _lexer(language)) is None:
        return
    cursor = QTextCursor(document)
    cursor.beginEditBlock()
    for count, (at, kind, value) in enumerate(lexer.get_tokens_unprocessed(text), start=1):
        if (role := _role(str(kind))) and not value.isspace():
            cursor.setPosition(origin + at)
            cursor.setPosition(origin + at + len(value), QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(formats.syntax(role))
        if count % _WORDS_IN_SLICE == 0 and len(text) > _SMALL_CHARS:
            cursor.endEditBlock()
            yield
            cursor.beginEditBlock()
    cursor.endEditBlock()


def _text_of(block: QTextBlock) -> str:
    """Return the lines of the code block that starts here, as the document holds them."""
    number = block.blockFormat().property(Property.CODE)
    lines: list[str] = []
    while block.isValid() and block.blockFormat().property(Property.CODE) == number:
        lines.append(block.text())
        block = block.next()
    return "\n".join(lines)


@lru_cache(maxsize=64)
def _lexer(language: str) -> _Lexer | None:
    """Return the lexer of `language`, by one of its names; never one guessed from the code."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        found = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return cast(_Lexer, found)


@lru_cache(maxsize=512)
def _role(kind: str) -> str:
    name = kind.removeprefix("Token.")
    return next((role for prefix, role in _ROLES if name.startswith(prefix)), "")

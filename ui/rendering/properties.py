"""What blocks and characters of a document carry beyond Qt's own properties."""

from enum import IntEnum

from PySide6.QtGui import QTextFormat

_FIRST = QTextFormat.Property.UserProperty.value + 1


class Property(IntEnum):
    """Keys for `QTextFormat.setProperty`.

    Of blocks: CODE is the number of a code block (its place in `Writer.code_blocks`); CODE_HEAD
    the same, of the line above it that names the language; QUOTES the
    left edges of quotation bars in pixels, as text, separated by commas; MARKER a list item's
    bullet or number; TASK whether a task is done; RULE marks a horizontal rule; FOOTNOTE the
    number of the note that begins here; PIECE a paragraph folded out of the one before.

    Of characters: INLINE_CODE marks code within a line; TEX is the source of mathematics; IMAGE
    the target of a picture that is not shown.
    """

    CODE = _FIRST
    QUOTES = _FIRST + 1
    MARKER = _FIRST + 2
    TASK = _FIRST + 3
    RULE = _FIRST + 4
    FOOTNOTE = _FIRST + 5
    PIECE = _FIRST + 6
    INLINE_CODE = _FIRST + 7
    TEX = _FIRST + 8
    IMAGE = _FIRST + 9
    CODE_HEAD = _FIRST + 10

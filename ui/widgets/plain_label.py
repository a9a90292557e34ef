"""Labels for words of any origin: what a user, a model or a file wrote."""

import re
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

_LONG_WORD = re.compile(r"\S{30,}")
_PIECE = re.compile(r"\S{12}")


class PlainLabel(QLabel):
    """A label that shows its words as they are; one of Qt's own takes them for HTML at will."""

    def __init__(self, *words_or_parent: Any, **properties: Any) -> None:
        """As QLabel: words and a parent, or a parent; then properties."""
        super().__init__(*words_or_parent, **properties)
        self.setTextFormat(Qt.TextFormat.PlainText)


def plain_label(parent: QWidget, tone: str = "", *, selectable: bool = True) -> PlainLabel:
    """Return a label that wraps its words and never takes them for rich text.

    `tone` is one of those of the themes, "" the usual one; words that are `selectable` can be
    copied with the mouse.
    """
    label = PlainLabel(parent, wordWrap=True)
    if selectable:
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if tone:
        label.setProperty("tone", tone)
    return label


def breakable(words: str) -> str:
    """Return words of which the longest, such as an address, may be broken where a line ends.

    A label is never narrower than its longest word, nor is the card around it.
    """
    return _LONG_WORD.sub(lambda word: _PIECE.sub("\\g<0>\u200b", word[0]), words)

"""Labels for untrusted text: never interpreted as HTML."""

import re
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

_LONG_WORD = re.compile(r"\S{30,}")
_PIECE = re.compile(r"\S{12}")


class PlainLabel(QLabel):
    """A label for plain text; QLabel itself guesses whether text is HTML."""

    def __init__(self, *text_or_parent: Any, tone: str = "", **properties: Any) -> None:
        """As QLabel: text and a parent, or a parent; then one of the style sheet's tones, properties."""
        super().__init__(*text_or_parent, **properties, textFormat=Qt.TextFormat.PlainText)
        if tone:
            self.setProperty("tone", tone)

    def show_text(self, text: str, tone: str | None = None) -> None:
        """Show a text, in a tone if one is given; hide the label for ""."""
        if tone is not None:
            self.setProperty("tone", tone)
            self.style().polish(self)
        self.setText(text)
        self.setVisible(bool(text))


def plain_label(
    parent: QWidget, tone: str = "", text: str = "", *, selectable: bool = True
) -> PlainLabel:
    """Return a label that wraps; `tone` is one of the style sheet's, "" the usual one."""
    label = PlainLabel(text, parent, tone=tone, wordWrap=True)
    if selectable:
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def breakable(text: str) -> str:
    """Return `text` with break opportunities in long words, such as addresses.

    Otherwise a label is never narrower than its longest word, nor is the card around it.
    """
    return _LONG_WORD.sub(lambda word: _PIECE.sub("\\g<0>\u200b", word[0]), text)

"""Labels for words of any origin: what a user, a model or a file wrote."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget


def plain_label(parent: QWidget, tone: str = "", *, selectable: bool = True) -> QLabel:
    """Return a label that wraps its words and never takes them for rich text.

    `tone` is one of those of the themes, "" the usual one; words that are `selectable` can be
    copied with the mouse.
    """
    label = QLabel(parent, wordWrap=True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if selectable:
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if tone:
        label.setProperty("tone", tone)
    return label

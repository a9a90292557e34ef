"""A page in place of everything else: what happened, what to do next, and the means to do it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from ui.widgets.plain_label import PlainLabel

_WIDEST_EM = 46

Deed = tuple[str, Callable[[], object]]


class Notice(QWidget):
    """A title, a sentence or two, and buttons for what can be done about it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = PlainLabel(self, wordWrap=True)
        self._title.setProperty("tone", "heading")
        self._words = PlainLabel(self, wordWrap=True)
        self._words.setProperty("tone", "muted")
        for label in (self._title, self._words):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = QHBoxLayout()
        self._row.addStretch(1)
        self._buttons: list[QPushButton] = []
        inner = QVBoxLayout()
        inner.setSpacing(12)
        inner.addWidget(self._title)
        inner.addWidget(self._words)
        inner.addLayout(self._row)
        holder = QWidget(self)
        holder.setLayout(inner)
        holder.setMaximumWidth(self.fontMetrics().averageCharWidth() * _WIDEST_EM * 2)
        across = QHBoxLayout()
        across.addStretch(1)
        across.addWidget(holder, 8)
        across.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(24, 24, 24, 24)
        outer.addStretch(1)
        outer.addLayout(across)
        outer.addStretch(2)

    def show_words(self, title: str, words: str = "", deeds: Sequence[Deed] = ()) -> None:
        """Show a title, words under it and a button for each deed, the first one first."""
        self._title.setText(title)
        self._words.setText(words)
        self._words.setVisible(bool(words))
        for button in self._buttons:
            button.deleteLater()
        self._buttons = []
        for place, (name, act) in enumerate(deeds):
            button = QPushButton(name, self)
            button.clicked.connect(lambda _checked=False, act=act: act())
            self._row.insertWidget(place, button)
            self._buttons.append(button)

"""Cards: framed parts of a page under a title, and the one kind of table that stands in them."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from ui.widgets.plain_label import PlainLabel


class Card(QFrame):
    """A frame with a title; what it holds stands in `column`, in the order in which it was added."""

    def __init__(self, name: str, parent: QWidget, title: str | None = None) -> None:
        """`name` is what a screen reader says, and the title too unless another one is given."""
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName(name)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(14, 12, 14, 12)
        self.title = PlainLabel(name if title is None else title, self)
        self.title.setProperty("tone", "heading")
        self.column.addWidget(self.title)

    def line(self, tone: str = "", words: str = "") -> QLabel:
        """Return a label that wraps, added at the end; `tone` is one of those of the themes."""
        label = PlainLabel(words, self, wordWrap=True)
        if tone:
            label.setProperty("tone", tone)
        self.column.addWidget(label)
        return label


class TableCard(Card):
    """Rows of words under their heads, the first `wordy` columns to the left, numbers to the right."""

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        parent: QWidget,
        *,
        wordy: int = 1,
        about: str = "",
    ) -> None:
        super().__init__(title, parent)
        if about:
            self.line("small", about)
        self._columns, self._wordy = columns, wordy
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(12)
        self.grid.setColumnStretch(0, 1)
        self.column.addLayout(self.grid)

    def begin(self, *, empty: str) -> None:
        """Drop all rows; show the heads, or the words `empty` where no rows will follow."""
        while (item := self.grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        if empty:
            self.grid.addWidget(PlainLabel(empty, self), 0, 0)
            return
        for column, name in enumerate(self._columns):
            self.cell(0, column, name).setProperty("tone", "small")

    def cell(self, row: int, column: int, words: str) -> QLabel:
        """Return a label with words, put into a row, counted from 1."""
        label = PlainLabel(words, self, wordWrap=column == 0)
        is_number = column >= self._wordy
        side = Qt.AlignmentFlag.AlignRight if is_number else Qt.AlignmentFlag.AlignLeft
        label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.grid.addWidget(label, row, column)
        return label

    def name_cell(self, cell: QLabel, column: int, of: str) -> None:
        """Let a screen reader say of what a number is."""
        cell.setAccessibleName(f"{self._columns[column]} of {of}: {cell.text()}")

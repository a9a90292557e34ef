"""A short list over a text box: what could be meant by what is typed so far."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from app.chat.commands.values import Candidate

_MOST_ROWS = 8
_TEXT = Qt.ItemDataRole.UserRole


class CompletionList(QTreeWidget):
    """Candidates with what each does; the box keeps the focus, so keys come through methods.

    Signals:
        chosen: The text of the candidate that was clicked.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: list[QTreeWidgetItem] = []
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Commands")
        self.setProperty("panel", "card")
        self.header().setStretchLastSection(True)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self.itemClicked.connect(self._on_item_clicked)
        self.hide()

    @property
    def candidates(self) -> list[str]:
        """The words of the rows, top to bottom."""
        return [item.text(0) for item in self._items]

    def show_candidates(self, candidates: Sequence[Candidate], *, marks_first: bool) -> None:
        """Show candidates, none hides the list; the first is marked for Enter, or none is."""
        self.clear()
        self._items = []
        muted = self.palette().brush(QPalette.ColorRole.PlaceholderText)
        for candidate in candidates:
            item = QTreeWidgetItem(self, [candidate.shown, candidate.help])
            item.setData(0, _TEXT, candidate.text)
            item.setToolTip(1, candidate.help)
            item.setForeground(1, muted)
            self._items.append(item)
        if candidates and marks_first:
            self.setCurrentItem(self._items[0])
        if candidates:
            row = max(self.sizeHintForRow(0), self.fontMetrics().lineSpacing())
            self.setFixedHeight(row * min(_MOST_ROWS, len(candidates)) + 2 * self.frameWidth() + 2)
        self.setVisible(bool(candidates))

    def step(self, by: int) -> None:
        """Mark the next row, or the one before; beyond the ends it goes round."""
        current = self.currentItem()
        if current is None:
            row = 0 if by > 0 else -1
        else:
            row = (self._items.index(current) + by) % len(self._items)
        self.setCurrentItem(self._items[row])

    def marked_text(self) -> str | None:
        """Return the text of the marked candidate; None when none is."""
        item = self.currentItem()
        return str(item.data(0, _TEXT)) if item is not None else None

    def first_text(self) -> str | None:
        """Return the text of the marked candidate, else of the first."""
        marked = self.marked_text()
        if marked is None and self._items:
            return str(self._items[0].data(0, _TEXT))
        return marked

    def _on_item_clicked(self, item: QTreeWidgetItem) -> None:
        self.chosen.emit(str(item.data(0, _TEXT)))

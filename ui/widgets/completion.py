"""A short list above a text box: what could be meant by what is typed so far."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from app.chat.commands.values import Candidate

_MOST_ROWS = 8
_GAP_PX = 4
_TEXT = Qt.ItemDataRole.UserRole


class CompletionList(QTreeWidget):
    """Candidates with what each does, over what stands above the box; nothing moves for it.

    The box keeps the focus, so keys come through methods.

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
        self.setStyleSheet("QTreeView::item { border-radius: 0 }")  # a row is one piece
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
        self.setVisible(bool(candidates))

    def stand_above(self, box: QWidget) -> None:
        """Take the box's width and the room above it that the rows need, in their window."""
        self.setParent(box.window())
        top_left = box.mapTo(box.window(), QPoint(0, 0))
        row = max(self.sizeHintForRow(0), self.fontMetrics().lineSpacing())
        rows = min(_MOST_ROWS, len(self._items))
        height = min(row * rows + 2 * self.frameWidth() + 2, top_left.y())
        self.setGeometry(top_left.x(), top_left.y() - height - _GAP_PX, box.width(), height)
        self.show()
        self.raise_()

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

"""Completion list: possible completions of a command, shown above the composer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from app.domain.translation import tr

if TYPE_CHECKING:
    from app.commands.table import CompletionItem

_MOST_ROWS = 8
_GAP_PX = 4
_TEXT = Qt.ItemDataRole.UserRole


class CompletionList(QTreeWidget):
    """Completions with their help, shown over the content above the text box.

    The text box keeps the focus and forwards keys.

    Signals:
        chosen: The text of the completion that was clicked.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Commands"))
        self.setProperty("panel", "card")
        self.setStyleSheet("QTreeView::item { border-radius: 0 }")  # a row is one piece
        self.header().setStretchLastSection(True)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self.itemClicked.connect(lambda item: self.chosen.emit(str(item.data(0, _TEXT))))
        self.hide()

    @property
    def candidates(self) -> list[str]:
        """The labels of the rows, top to bottom."""
        model = self.model()
        return [str(model.index(row, 0).data()) for row in range(model.rowCount())]

    def show_candidates(self, candidates: "Sequence[CompletionItem]", *, marks_first: bool) -> None:
        """Show completions, or hide the list without any; select the first one for Enter, or none."""
        self.clear()
        muted = self.palette().brush(QPalette.ColorRole.PlaceholderText)
        for candidate in candidates:
            item = QTreeWidgetItem(self, [candidate.shown, candidate.help])
            item.setData(0, _TEXT, candidate.text)
            item.setToolTip(1, candidate.help)
            item.setForeground(1, muted)
        if candidates and marks_first:
            self.setCurrentIndex(self.model().index(0, 0))
        self.setVisible(bool(candidates))

    def stand_above(self, box: QWidget) -> None:
        """Place the list above a text box, as wide as it and as high as the rows need."""
        self.setParent(box.window())
        top_left = box.mapTo(box.window(), QPoint(0, 0))
        row = max(self.sizeHintForRow(0), self.fontMetrics().lineSpacing())
        rows = min(_MOST_ROWS, self.topLevelItemCount())
        height = min(row * rows + 2 * self.frameWidth() + 2, top_left.y())
        self.setGeometry(top_left.x(), top_left.y() - height - _GAP_PX, box.width(), height)
        self.show()
        self.raise_()

    def step(self, by: int) -> None:
        """Select the next or previous row, wrapping around."""
        row = self.currentIndex().row()
        if row < 0 and by < 0:
            row = 0
        self.setCurrentIndex(self.model().index((row + by) % self.topLevelItemCount(), 0))

    def marked_text(self) -> str | None:
        """Return the text of the selected completion, None if there is none."""
        current = self.currentIndex()
        return str(current.siblingAtColumn(0).data(_TEXT)) if current.isValid() else None

    def first_text(self) -> str | None:
        """Return the text of the selected completion, else of the first."""
        first = self.model().index(0, 0)
        return self.marked_text() or (str(first.data(_TEXT)) if first.isValid() else None)

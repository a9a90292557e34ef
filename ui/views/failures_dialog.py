"""A worker's retry queue: what failed, how often, why, when it is tried again; and trying it now."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.domain.workers import FailedItem, WorkerName
from app.workers.wording import CALLED, failed_item_words
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel

_COLUMNS = ("What", "Tries", "Error")
_ITEM = Qt.ItemDataRole.UserRole + 1


class FailuresDialog(QDialog):
    """Lists what a worker failed at.

    Attributes:
        worker: Whose.

    Signals:
        retry_requested: (WorkerName, the ids of the marked items, None for all) are to be tried
            again at once.
    """

    retry_requested = Signal(object, object)

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.worker = name
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"{CALLED[name].title}: failures")
        resize_on_screen(self, 760, 380)
        self.words = PlainLabel(self, wordWrap=True)
        self.table = self._made_table()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        role = QDialogButtonBox.ButtonRole.ActionRole
        self.retry_all = buttons.addButton("Try all again", role)
        self.retry = buttons.addButton("Try again", role)
        for button in buttons.buttons():
            button.setAutoDefault(False)  # type: ignore[attr-defined]
        self.retry.clicked.connect(self._on_retry_clicked)
        self.retry_all.clicked.connect(self._on_retry_all_clicked)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(10)
        column.addWidget(self.words)
        column.addWidget(self.table, 1)
        column.addWidget(buttons)
        self.show_items(())

    def show_items(self, items: Sequence[FailedItem]) -> None:
        """Show the queue in its order; what is marked stays so."""
        marked = set(self._marked())
        self.table.clear()
        for item in items:
            words = failed_item_words(item)
            row = QTreeWidgetItem(list(words))
            row.setData(0, _ITEM, item.item_id)
            for number, tip in enumerate(words):
                row.setToolTip(number, escape(tip))
            self.table.addTopLevelItem(row)
            row.setSelected(item.item_id in marked)
        self.words.setText(
            "What failed is tried again by itself, with longer and longer waits. What has failed "
            "too often is set aside, and tried again when you ask for it."
            if items
            else "Nothing waits for another try."
        )
        self.retry_all.setEnabled(bool(items))
        self._on_table_selection_changed()

    def _made_table(self) -> QTreeWidget:
        table = QTreeWidget(self)
        table.setAccessibleName(self.windowTitle())
        table.setHeaderLabels(list(_COLUMNS))
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        header = table.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        table.itemSelectionChanged.connect(self._on_table_selection_changed)
        return table

    def _marked(self) -> list[int]:
        return [row.data(0, _ITEM) for row in self.table.selectedItems()]

    def _on_table_selection_changed(self) -> None:
        self.retry.setEnabled(bool(self.table.selectedItems()))

    def _on_retry_clicked(self) -> None:
        self.retry_requested.emit(self.worker, self._marked())

    def _on_retry_all_clicked(self) -> None:
        self.retry_requested.emit(self.worker, None)

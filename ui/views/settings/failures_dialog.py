"""A worker's retry queue: failed items with tries, next try and error; retrying them now."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.domain.translation import tr
from app.domain.workers import WORKERS, FailedItem, WorkerName
from app.workers.status_text import failed_item_text
from ui.widgets.controls import closing_buttons, column_in, table_view
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel

_COLUMNS = (tr("What"), tr("Tries"), tr("Error"))
_ITEM = Qt.ItemDataRole.UserRole + 1


class FailuresDialog(QDialog):
    """Lists the failed items of a worker.

    Attributes:
        worker: The worker's name.

    Signals:
        retry_requested: (WorkerName, the ids of the selected items, None for all): retry now.
    """

    retry_requested = Signal(object, object)

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.worker = name
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("{title}: failures").format(title=tr(WORKERS[name].title)))
        resize_on_screen(self, 760, 380)
        self.about = PlainLabel(self, wordWrap=True)
        self.table = self._make_table()
        buttons, (self.retry_all, self.retry) = closing_buttons(self, tr("Retry all"), tr("Retry"))
        self.retry.clicked.connect(self._on_retry_clicked)
        self.retry_all.clicked.connect(self._on_retry_all_clicked)
        column_in(self, self.about, (self.table, 1), buttons)
        self.show_items(())

    def show_items(self, items: Sequence[FailedItem]) -> None:
        """Show the queue in its order; the selection stays."""
        selected = set(self._selected())
        self.table.clear()
        for item in items:
            texts = failed_item_text(item)
            row = QTreeWidgetItem(list(texts))
            row.setData(0, _ITEM, item.item_id)
            for number, tip in enumerate(texts):
                row.setToolTip(number, escape(tip))
            self.table.addTopLevelItem(row)
            row.setSelected(item.item_id in selected)
        self.about.setText(
            tr(
                "Failed items are retried automatically after longer and longer waits. Items that failed "
                "too often are set aside until you retry them."
            )
            if items
            else tr("Nothing has failed.")
        )
        self.retry_all.setEnabled(bool(items))
        self._on_table_selection_changed()

    def _make_table(self) -> QTreeWidget:
        table = table_view(self, self.windowTitle(), _COLUMNS, narrow=(1,))
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.itemSelectionChanged.connect(self._on_table_selection_changed)
        return table

    def _selected(self) -> list[int]:
        return [row.data(0, _ITEM) for row in self.table.selectedItems()]

    def _on_table_selection_changed(self) -> None:
        self.retry.setEnabled(bool(self.table.selectedItems()))

    def _on_retry_clicked(self) -> None:
        self.retry_requested.emit(self.worker, self._selected())

    def _on_retry_all_clicked(self) -> None:
        self.retry_requested.emit(self.worker, None)

"""A worker's retry queue: failed items with tries, next try and error; retrying them now."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.domain.translation import tr
from app.domain.workers import WORKERS, FailedItem, WorkerName
from app.workers.status_text import failed_item_text
from ui.widgets.controls import closing_buttons, column_in
from ui.widgets.dialog import Dialog
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("What"), tr("Tries"), tr("Error"))


class FailuresDialog(Dialog):
    """Lists the failed items of a worker.

    Attributes:
        worker: The worker's name.

    Signals:
        retry_requested: (WorkerName, the ids of the selected items, None for all): retry now.
    """

    retry_requested = Signal(object, object)

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        title = tr("{title}: failures").format(title=tr(WORKERS[name].title))
        super().__init__(title, (760, 380), parent, tone="")
        self.worker = name
        self.table = RecordTable(self, title, _COLUMNS, narrow=(1,), several=True)
        buttons, (self.retry_all, self.retry) = closing_buttons(self, tr("Retry all"), tr("Retry"))
        self.table.changed.connect(lambda: self.retry.setEnabled(bool(self.table.selected)))
        self.retry.clicked.connect(
            lambda: self.retry_requested.emit(name, [each.item_id for each in self.table.selected])
        )
        self.retry_all.clicked.connect(lambda: self.retry_requested.emit(name, None))
        column_in(self, self.status, (self.table, 1), buttons)
        self.show_items(())

    def show_items(self, items: Sequence[FailedItem]) -> None:
        """Show the queue in its order; the selection stays."""
        self.table.show_records(items, failed_item_text, lambda each: each.item_id)
        self.status.setText(
            tr(
                "Failed items are retried automatically after longer and longer waits. Items that failed "
                "too often are set aside until you retry them."
            )
            if items
            else tr("Nothing has failed.")
        )
        self.retry_all.setEnabled(bool(items))

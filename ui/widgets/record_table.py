"""Table of records: a row shows the texts of one, and records are selected, kept and filtered."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

_RECORD = Qt.ItemDataRole.UserRole + 1
_BY_TAB = Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason
_NUMBERS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class RecordTable(QTreeWidget):
    """A table whose `narrow` columns are as wide as their content; the others share the rest.

    `numbers` are the columns that are aligned to the right. With `several` rows can be selected at once; with
    `selects_first` a row is always selected while there are any.

    Signals:
        changed: Other records are selected, or records were shown anew.
        opened: The record of a row that was activated.
    """

    changed = Signal()
    opened = Signal(object)

    def __init__(
        self,
        parent: QWidget,
        name: str,
        columns: Iterable[str],
        narrow: Iterable[int] = (),
        *,
        numbers: Iterable[int] = (),
        several: bool = False,
        selects_first: bool = False,
    ) -> None:
        super().__init__(parent)
        self._numbers, self._selects_first = tuple(numbers), selects_first
        self.setAccessibleName(name)
        self.setHeaderLabels(list(columns))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        if several:
            self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        for column in self._numbers:
            self.headerItem().setTextAlignment(column, _NUMBERS)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        for column in narrow:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        self.itemSelectionChanged.connect(self.changed)
        self.itemActivated.connect(lambda row: self.opened.emit(row.data(0, _RECORD)))

    @property
    def selected(self) -> list[Any]:
        """The selected records, the current one first."""
        rows = sorted(self.selectedItems(), key=lambda each: each is not self.currentItem())
        return [each.data(0, _RECORD) for each in rows]

    @property
    def current(self) -> Any:
        """The selected record; None for none or several."""
        selected = self.selected
        return selected[0] if len(selected) == 1 else None

    def show_records(
        self,
        records: Iterable[Any],
        texts: Callable[[Any], Sequence[str]],
        key: Callable[[Any], object] = lambda each: each,
        *,
        select: object = None,
        above: Callable[[Any], object] = lambda _: None,
    ) -> list[QTreeWidgetItem]:
        """Show records in order, each by its `texts`, and return their rows.

        The selection stays, by `key`, unless `select` is the key of another record. `above` returns the key of
        the earlier record that a record is shown below, if there is one.
        """
        self.ensurePolished()  # else rows are measured without the style sheet
        wanted = {select} if select else {key(each) for each in self.selected}
        rows: dict[object, QTreeWidgetItem] = {}
        with QSignalBlocker(self):
            self.clear()
            for each in records:
                row = rows[key(each)] = QTreeWidgetItem(list(texts(each)))
                row.setData(0, _RECORD, each)
                for column in range(self.columnCount()):
                    row.setToolTip(column, row.text(column))
                for column in self._numbers:
                    row.setTextAlignment(column, _NUMBERS)
                (rows.get(above(each)) or self.invisibleRootItem()).addChild(row)
            self._select([row for name, row in rows.items() if name in wanted])
        self.changed.emit()
        return list(rows.values())

    def filter(self, text: str) -> None:
        """Hide what lacks a word of `text`, unless what it is below has all, or something below it."""
        words = text.casefold().split()
        for top in _below(self.invisibleRootItem()):
            below, is_found = _below(top), self._has(top, words)
            for each in below:
                each.setHidden(not is_found and not self._has(each, words))
            top.setHidden(not is_found and all(each.isHidden() for each in below))

    def record_of(self, row: QTreeWidgetItem) -> Any:
        return row.data(0, _RECORD)

    def _select(self, rows: Sequence[QTreeWidgetItem]) -> None:
        if not rows and self._selects_first:
            rows = _below(self.invisibleRootItem())[:1]
        for row in rows[:1]:
            self.setCurrentItem(row)
        for row in rows[1:]:
            row.setSelected(True)

    def _has(self, row: QTreeWidgetItem, words: Sequence[str]) -> bool:
        shown = " ".join(row.text(each) for each in range(self.columnCount())).casefold()
        return all(word in shown for word in words)

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keep Enter from the dialog, which would press the default button of what a row opened."""
        super().keyPressEvent(event)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            event.accept()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select the first row that is shown, if none is and the focus comes by Tab."""
        super().focusInEvent(event)
        if event.reason() in _BY_TAB and not self.selected:
            shown = (each for each in _below(self.invisibleRootItem()) if not each.isHidden())
            self._select([*shown][:1])


def _below(row: QTreeWidgetItem) -> list[QTreeWidgetItem]:
    children = (row.child(place) for place in range(row.childCount()))
    return [each for each in children if each is not None]

"""The command palette: all actions, filtered by name."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QSortFilterProxyModel, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QDialog, QHeaderView, QTreeView, QVBoxLayout, QWidget

from app.domain.translation import tr
from ui.widgets.controls import filled, line_edit

_ACTION = Qt.ItemDataRole.UserRole + 1


class CommandPalette(QDialog):
    """A box over a list of actions; Enter runs the selected one."""

    def __init__(self, actions: Sequence[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Commands"))
        self.resize(480, 380)
        self._box = line_edit(self, tr("Type a command"), name=tr("Command"))
        self._box.installEventFilter(self)
        source = QStandardItemModel(self)
        for action in actions:
            name = action.text().replace("&", "").rstrip("\u2026")
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            row = [QStandardItem(name), QStandardItem(keys)]
            row[1].setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            for item in row:
                item.setEditable(False)
                item.setEnabled(action.isEnabled())
                item.setData(action, _ACTION)
            source.appendRow(row)
        self._rows = QSortFilterProxyModel(self)
        self._rows.setSourceModel(source)
        self._rows.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._rows.setFilterKeyColumn(-1)
        self._list = QTreeView(self)
        self._list.setHeaderHidden(True)
        self._list.setRootIsDecorated(False)
        self._list.setModel(self._rows)
        self._list.header().setStretchLastSection(False)
        self._list.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._list.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self._list.setAccessibleName(tr("Commands"))
        self._list.activated.connect(self._on_list_activated)
        self._list.clicked.connect(self._on_list_activated)
        self._box.textChanged.connect(self._on_box_text_changed)
        filled(QVBoxLayout(self), self._box, self._list)
        self._select_first()

    def _on_box_text_changed(self, words: str) -> None:
        self._rows.setFilterFixedString(words.strip())
        self._select_first()

    def _select_first(self) -> None:
        self._list.setCurrentIndex(self._rows.index(0, 0))

    def _on_list_activated(self, index: QModelIndex) -> None:
        if not self.isVisible():
            return  # where a single click activates, Qt emits both `clicked` and `activated`
        action = index.data(_ACTION)
        self.accept()
        if isinstance(action, QAction):
            action.trigger()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the arrow keys and Enter of the box."""
        if event.type() == QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                row = self._list.currentIndex().row() + step
                if 0 <= row < self._rows.rowCount():
                    self._list.setCurrentIndex(self._rows.index(row, 0))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                if self._list.currentIndex().isValid():
                    self._on_list_activated(self._list.currentIndex())
                return True
        return super().eventFilter(watched, event)

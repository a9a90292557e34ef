"""The command palette: all actions, filtered by name."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.domain.translation import tr
from ui.widgets.controls import column_in, line_edit
from ui.widgets.plain_label import PlainLabel
from ui.widgets.record_table import RecordTable


class CommandPalette(QDialog):
    """A box over a list of actions; Enter runs the selected one."""

    def __init__(self, actions: Sequence[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Commands"))
        self.resize(560, 440)
        self._box = line_edit(self, tr("Type a command"), name=tr("Command"))
        self._box.installEventFilter(self)
        self._table = RecordTable(self, tr("Commands"), ("", ""), (1,), numbers=(1,))
        self._table.setHeaderHidden(True)
        self._rows = self._table.show_records(actions, _texts)
        for row, action in zip(self._rows, actions, strict=True):
            row.setDisabled(not action.isEnabled())
        self._table.opened.connect(self._run)
        self._table.itemClicked.connect(lambda row: self._run(self._table.record_of(row)))
        self._box.textChanged.connect(self._on_box_text_changed)
        self.none = PlainLabel(tr("No command matches."), self, tone="muted")
        column_in(self, self._box, self.none, (self._table, 1), margins=(10, 10, 10, 10))
        self._on_box_text_changed("")

    def _on_box_text_changed(self, words: str) -> None:
        self._table.filter(words)
        self._table.clearSelection()
        self.none.setVisible(all(each.isHidden() for each in self._rows))
        shown = (each for each in self._rows if not (each.isHidden() or each.isDisabled()))
        if (first := next(shown, None)) is not None:
            self._table.setCurrentItem(first)

    def _run(self, action: QAction | None) -> None:
        if action is not None and self.isVisible():  # a click may also activate
            self.accept()
            action.trigger()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the arrow keys and Enter of the box."""
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            return QApplication.sendEvent(self._table, event)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self._table.current)
            return True
        return super().eventFilter(watched, event)


def _texts(action: QAction) -> tuple[str, str]:
    name = action.text().replace("&", "").rstrip("\N{HORIZONTAL ELLIPSIS}")
    return name, action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)

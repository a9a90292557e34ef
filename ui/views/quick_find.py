"""The quick search: a small palette over any program, with a field and the best turns."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QDialog, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.domain.results import SearchResult
from app.domain.text import one_line
from app.domain.translation import format_day, tr
from ui.widgets.controls import filled, line_edit
from ui.widgets.plain_label import plain_label

_WIDTH_PX, _LIST_MAX_PX = 680, 480
_ROW_LINES, _ROW_GAP_PX = 3, 16
_FROM_TOP = 5  # it stands a fifth of the screen's height below the top
_SNIPPET_CHARS = 160


class QuickFind(QDialog):
    """A frameless palette that hides when it loses the focus.

    Signals:
        typed: The text of the field. chosen: The result to open. copied: The result to copy.
    """

    typed = Signal(str)
    chosen = Signal(object)
    copied = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowFlags(
            Qt.WindowType.Tool
            | Qt.WindowType.FramelessWindowHint
            | Qt.WindowType.WindowStaysOnTopHint
        )
        self.setWindowTitle(tr("Quick search"))
        self.setObjectName("quickFind")
        self.setFixedWidth(_WIDTH_PX)
        self.field = line_edit(self, tr("Search your memory"), name=tr("Quick search"))
        self.field.textChanged.connect(self.typed)
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Results"))
        self.list.setWordWrap(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemActivated.connect(lambda _: self._choose())
        for each in (self.field, self.list):
            each.installEventFilter(self)
        self.notice = plain_label(self, "small")
        self.show_results(())
        filled(QVBoxLayout(self), self.field, self.list, self.notice)

    def appear(self) -> None:
        """Show it in front of everything, with the text of the last time selected."""
        screen = self.screen() or QGuiApplication.primaryScreen()
        room = screen.availableGeometry()
        left = room.x() + (room.width() - self.width()) // 2
        self.move(left, room.y() + room.height() // _FROM_TOP)
        self.show()
        self.raise_()
        self.activateWindow()
        self.field.setFocus()
        self.field.selectAll()

    def show_results(self, results: Sequence[SearchResult], notice: str = "") -> None:
        """Show turns, best first, and a notice below them."""
        self.list.clear()
        for result in results:
            head = f"{one_line(result.conversation_title, 80)}  \u00b7  {format_day(result.created_at)}"
            text = one_line(result.snippet or result.user_question, _SNIPPET_CHARS)
            item = QListWidgetItem(f"{head}\n{text}", self.list)
            item.setData(Qt.ItemDataRole.UserRole, result)
        self.list.setCurrentRow(0)
        row_px = _ROW_LINES * self.list.fontMetrics().lineSpacing() + _ROW_GAP_PX
        self.list.setFixedHeight(min(_LIST_MAX_PX, row_px * len(results)))
        self.list.setVisible(bool(results))
        self.notice.show_text(notice)
        self.adjustSize()

    @property
    def selected(self) -> SearchResult | None:
        item = self.list.currentItem()
        found: SearchResult | None = item.data(Qt.ItemDataRole.UserRole) if item else None
        return found

    def _choose(self) -> None:
        if self.selected is not None:
            self.hide()
            self.chosen.emit(self.selected)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Copy the selected result whatever has the focus, unless text is selected in the field."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.matches(QKeySequence.StandardKey.Copy)
            and self.selected is not None
            and not (watched is self.field and self.field.hasSelectedText())
        ):
            self.copied.emit(self.selected)
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move in the list or open; the rest is the field's."""
        key = event.key()
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}
        if key in steps:
            last = self.list.count() - 1
            self.list.setCurrentRow(max(0, min(last, self.list.currentRow() + steps[Qt.Key(key)])))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Hide when another window gets the focus."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and not self.isActiveWindow():
            self.hide()

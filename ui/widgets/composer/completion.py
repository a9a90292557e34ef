"""Completion of commands and mentions: a list of what is possible, above the text box that it completes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPalette
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from app.domain.translation import tr
from ui.widgets.composer.message_box import ENTER, NEW_LINE, MessageBox

if TYPE_CHECKING:
    from app.commands.table import Completion, CompletionItem

_MOST_ROWS = 8
_GAP_PX = 4
_BETWEEN_PX = 12  # between a name and its help
_TEXT = Qt.ItemDataRole.UserRole


class CompletionList(QTreeWidget):
    """Completions with their help, shown over the content above the text box.

    The text box keeps the focus and forwards keys.

    Signals:
        chosen: The text of the completion that was clicked.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, columnCount=2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Commands"))
        self.setProperty("panel", "float")
        self.setStyleSheet("QTreeView::item { border-radius: 0 }")  # a row is one piece
        self.header().setStretchLastSection(True)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
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
        first, second = (self.sizeHintForColumn(column) for column in (0, 1))
        width = box.width() - 2 * self.frameWidth()  # the viewport has it once it is shown
        room = width - min(second, width // 2)
        self.header().resizeSection(0, min(first + _BETWEEN_PX, room))
        self.show()
        self.raise_()

    def step(self, by: int) -> None:
        """Select the next or previous row, wrapping around."""
        row = self.currentIndex().row()
        if row < 0 and by < 0:
            row = 0
        self.setCurrentIndex(self.model().index((row + by) % self.topLevelItemCount(), 0))

    def marked_text(self) -> str | None:
        current = self.currentIndex()
        return str(current.siblingAtColumn(0).data(_TEXT)) if current.isValid() else None

    def first_text(self) -> str | None:
        """Return the text of the selected completion, else of the first."""
        first = self.model().index(0, 0)
        return self.marked_text() or (str(first.data(_TEXT)) if first.isValid() else None)


class Completer(QObject):
    """Completes what is typed in a box with a list above `place`; it sees the keys of the box first.

    Attributes:
        list: The list.
        complete: Returns the completions of a command; None until it is set. It must not block.

    Signals:
        mention_typed: What was typed after an @, for `show_mentions`. mention_chosen: A title.
    """

    mention_typed = Signal(str)
    mention_chosen = Signal(str)

    def __init__(self, box: MessageBox, place: QWidget) -> None:
        super().__init__(place)
        self.list = CompletionList(place)
        self.list.chosen.connect(self._take)
        self.complete: Callable[[str], Completion] | None = None
        self._box, self._place = box, place
        self._is_refused = False
        box.installEventFilter(self)

    def update(self, *, completes_commands: bool) -> None:
        """Show completions, unless the user has closed the list for this command or mention."""
        text, mention = self._box.toPlainText(), self._box.typed_mention()
        if not text.startswith("/") and mention is None:
            self._is_refused = False
        is_wanted = self._box.hasFocus() and not self._is_refused
        if is_wanted and mention is not None:
            self.mention_typed.emit(mention)
        elif not is_wanted or not completes_commands or self.complete is None:
            self.list.hide()
        else:
            found = self.complete(text)
            self._show(found.candidates, marks_first=not found.is_whole)

    def show_mentions(self, typed: str, titles: "Sequence[CompletionItem]") -> None:
        """Show titles for what was `typed` after an @, unless it has changed since."""
        if self._box.typed_mention() == typed and self._box.hasFocus():
            is_whole = any(each.text == typed.rstrip() for each in titles)
            self._show([] if is_whole else titles, marks_first=bool(typed))

    def follow(self) -> None:
        """Keep the list in its place."""
        if self.list.isVisible():
            self.list.stand_above(self._place)

    def _show(self, candidates: "Sequence[CompletionItem]", *, marks_first: bool) -> None:
        self.list.show_candidates(candidates, marks_first=marks_first)
        if candidates:
            self.list.stand_above(self._place)

    def _take(self, text: str) -> None:
        if self._box.typed_mention() is not None:
            self.mention_chosen.emit(text)
            self._box.complete_mention(text)
            self.list.hide()
        else:
            self._box.setPlainText(text)
            self._box.moveCursor(self._box.textCursor().MoveOperation.End)
        self._box.setFocus()

    def _press(self, event: QKeyEvent) -> bool:
        """Handle a key while the list is open; return whether it was handled."""
        key = event.key()
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.list.step(1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Tab:
            self._take(self.list.first_text() or self._box.toPlainText())
        elif key in ENTER and not event.modifiers() & NEW_LINE:
            if (marked := self.list.marked_text()) is None:
                return False
            self._take(marked)
        elif key == Qt.Key.Key_Escape:
            self._is_refused = True
            self.list.hide()
        else:
            return False
        return True

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle keys while the list is open."""
        if isinstance(event, QKeyEvent) and self.list.isVisible():
            if event.type() == QEvent.Type.KeyPress and self._press(event):
                return True
            is_override = event.type() == QEvent.Type.ShortcutOverride
            if is_override and event.key() == Qt.Key.Key_Escape:
                event.accept()  # keeps Esc from the action that stops a reply
                return True
        return super().eventFilter(watched, event)

"""Find bar: a search inside the open conversation."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.domain.translation import format_number, tr
from ui.widgets.controls import filled, line_edit, tool_button
from ui.widgets.plain_label import PlainLabel

_DEBOUNCE_MS = 120


class FindBar(QFrame):
    """A text box, the number of matches, and steps between them; hidden at first.

    Signals:
        words_changed: What to find, a moment after it changed.
        stepped: Go to the next (1) or previous (-1) match.
        closed: The bar was closed.
    """

    words_changed = Signal(str)
    stepped = Signal(int)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "side")
        self.box = line_edit(self, tr("Find in this conversation"))
        self.box.installEventFilter(self)
        self.count = PlainLabel(self, tone="muted")
        buttons = (
            tool_button(
                self,
                "",
                lambda: self.stepped.emit(-1),
                icon="chevron-up",
                name=tr("Previous match"),
            ),
            tool_button(
                self, "", lambda: self.stepped.emit(1), icon="chevron-down", name=tr("Next match")
            ),
            tool_button(self, "", self.dismiss, icon="x", name=tr("Close the search")),
        )
        filled(QHBoxLayout(self), (self.box, 1), self.count, *buttons, margins=(16, 6, 16, 6))
        self._pause = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._pause.timeout.connect(lambda: self.words_changed.emit(self.box.text()))
        self.box.textChanged.connect(lambda _: self._pause.start())
        self.hide()

    def begin(self) -> None:
        """Show the bar with its text selected."""
        self.show()
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()
        if self.box.text():
            self._pause.start()

    def dismiss(self) -> None:
        """Hide the bar and stop searching."""
        self._pause.stop()
        if self.isVisible():
            self.hide()
            self.closed.emit()

    def show_place(self, current: int, total: int) -> None:
        """Show the number of the current match, from 1, and how many there are."""
        if not self.box.text():
            self.count.setText("")
        else:
            self.count.setText(
                tr("{current} of {total}").format(
                    current=format_number(current), total=format_number(total)
                )
                if total
                else tr("not found")
            )

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Step with Enter and Shift+Enter, close with Esc."""
        if watched is not self.box or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        closes = event.key() == Qt.Key.Key_Escape
        if event.type() == QEvent.Type.ShortcutOverride and closes:
            event.accept()
            return True
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if closes:
            self.dismiss()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.stepped.emit(-1 if back else 1)
        else:
            return super().eventFilter(watched, event)
        return True

"""The bar that finds words inside the open conversation."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QToolButton, QWidget

from ui.widgets.plain_label import PlainLabel

_DEBOUNCE_MS = 120


class FindBar(QFrame):
    """A box, how many places there are, and steps between them; hidden until it is wanted.

    Signals:
        words_changed: What to find, a moment after it changed. stepped: +1 or -1. closed.
    """

    words_changed = Signal(str)
    stepped = Signal(int)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "side")
        self.box = QLineEdit(self)
        self.box.setPlaceholderText("Find in this conversation")
        self.box.setAccessibleName("Find in this conversation")
        self.box.installEventFilter(self)
        self.count = PlainLabel(self)
        self.count.setProperty("tone", "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 16, 6)
        row.addWidget(self.box, 1)
        row.addWidget(self.count)
        for words, name, act in (
            ("\N{UPWARDS ARROW}", "Previous", lambda: self.stepped.emit(-1)),
            ("\N{DOWNWARDS ARROW}", "Next", lambda: self.stepped.emit(1)),
            ("\N{MULTIPLICATION X}", "Close", self.dismiss),
        ):
            button = QToolButton(self)
            button.setText(words)
            button.setAccessibleName(name)
            button.setToolTip(name)
            button.clicked.connect(lambda _checked=False, act=act: act())
            row.addWidget(button)
        self._pause = QTimer(self, singleShot=True, interval=_DEBOUNCE_MS)
        self._pause.timeout.connect(self._on_pause_timeout)
        self.box.textChanged.connect(self._on_box_text_changed)
        self.hide()

    def begin(self) -> None:
        """Show the bar, its words selected."""
        self.show()
        self.box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.box.selectAll()
        if self.box.text():
            self._pause.start()

    def dismiss(self) -> None:
        """Go away."""
        if self.isVisible():
            self.hide()
            self.closed.emit()

    def show_place(self, current: int, total: int) -> None:
        """Show which of how many places is shown; `current` counts from 1."""
        if not self.box.text():
            self.count.setText("")
        else:
            self.count.setText(f"{current:,} of {total:,}" if total else "not found")

    def _on_box_text_changed(self, _words: str) -> None:
        self._pause.start()

    def _on_pause_timeout(self) -> None:
        self.words_changed.emit(self.box.text())

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Step with Enter and Shift+Enter, leave with Esc."""
        if watched is not self.box or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        leaves = event.key() == Qt.Key.Key_Escape
        if event.type() == QEvent.Type.ShortcutOverride and leaves:
            event.accept()
            return True
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if leaves:
            self.dismiss()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.stepped.emit(-1 if back else 1)
        else:
            return super().eventFilter(watched, event)
        return True

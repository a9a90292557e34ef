"""The composer: where words are typed, sent and stopped."""

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QTextDocument
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

_MIN_LINES = 2
_MAX_LINES = 12
_DRAFT_AFTER_MS = 600


class Composer(QWidget):
    """A text box that grows, with Send or Stop beside it.

    Signals:
        send_requested: The words, when there are any; they stay until `clear` is called.
        stop_requested: The reply under way should end.
        draft_changed: The unsent words, shortly after they changed.
        edit_cancelled: The earlier message that was being edited stays as it is.
    """

    send_requested = Signal(str)
    stop_requested = Signal()
    draft_changed = Signal(str)
    edit_cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = _GrowingBox(self)
        self.box.setPlaceholderText("Ask anything, or ask your own past")
        self.box.setAccessibleName("Message")
        self.box.setTabChangesFocus(True)
        self._send = QPushButton("Send", self)
        self._send.setProperty("kind", "primary")
        self._send.setToolTip("Send (Enter); Shift+Enter begins a new line")
        self._stop = QPushButton("Stop", self)
        self._stop.setToolTip("Stop the reply (Esc)")
        buttons = QStackedLayout()
        for button in (self._send, self._stop):
            buttons.addWidget(button)
            button.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._buttons = buttons
        side = QWidget(self)
        side.setLayout(buttons)
        side.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._editing = QFrame(self)
        self._editing.setProperty("panel", "card")
        note = QLabel("Editing an earlier message: what follows it stays on another branch.", self)
        note.setWordWrap(True)
        note.setProperty("tone", "small")
        cancel = QPushButton("Cancel", self)
        cancel.setProperty("kind", "quiet")
        cancel.clicked.connect(self.cancel_edit)
        line = QHBoxLayout(self._editing)
        line.setContentsMargins(10, 2, 4, 2)
        line.addWidget(note, 1)
        line.addWidget(cancel)
        self._editing.hide()
        row = QHBoxLayout()
        row.addWidget(self.box, 1)
        row.addWidget(side, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._editing)
        column.addLayout(row)
        self._running = False
        self._draft = QTimer(self, singleShot=True, interval=_DRAFT_AFTER_MS)
        self._draft.timeout.connect(self._on_draft_timeout)
        self.box.textChanged.connect(self._on_box_text_changed)
        self.box.submitted.connect(self._on_box_submitted)
        self.box.escaped.connect(self._on_box_escaped)
        self._send.clicked.connect(self._on_box_submitted)
        self._stop.clicked.connect(self.stop_requested)
        self._on_box_text_changed()

    @property
    def is_editing(self) -> bool:
        """Whether the words are an earlier message's."""
        return not self._editing.isHidden()

    @property
    def text(self) -> str:
        """The words typed so far."""
        return self.box.toPlainText()

    def show_text(self, text: str) -> None:
        """Replace the words, such as by a draft, without reporting a change."""
        self.box.setPlainText(text)
        self._draft.stop()
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)

    def clear(self) -> None:
        """Forget the words: they are safe elsewhere."""
        self._editing.hide()
        self.show_text("")

    def begin_edit(self, text: str) -> None:
        """Take an earlier message's words, until they are sent or the edit is cancelled."""
        self.show_text(text)
        self._editing.show()
        self.box.setFocus()

    def end_edit(self) -> None:
        """Take the words, if there are any, for a message of their own."""
        self._editing.hide()

    def cancel_edit(self) -> None:
        """Give an edit up."""
        if self.is_editing:
            self.clear()
            self.edit_cancelled.emit()

    def flush_draft(self) -> None:
        """Report unsent words now, if a report is due."""
        if self._draft.isActive():
            self._draft.stop()
            self._on_draft_timeout()

    def show_running(self, running: bool) -> None:
        """Offer Stop while a reply runs, else Send."""
        self._buttons.setCurrentWidget(self._stop if running else self._send)
        self._running = running

    def _on_box_text_changed(self) -> None:
        self._send.setEnabled(bool(self.text.strip()))
        self._draft.start()

    def _on_box_submitted(self) -> None:
        if self.text.strip() and not self._running:
            self._draft.stop()
            self.send_requested.emit(self.text)

    def _on_box_escaped(self) -> None:
        if self._running:
            self.stop_requested.emit()
        else:
            self.cancel_edit()

    def _on_draft_timeout(self) -> None:
        self.draft_changed.emit(self.text)


class _GrowingBox(QPlainTextEdit):
    """Grows with its text up to a limit; Enter submits, Shift+Enter begins a line.

    Signals:
        submitted: Enter. escaped: Esc.
    """

    submitted = Signal()
    escaped = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self.updateGeometry)

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Return a height that shows the text, between two lines and twelve."""
        document: QTextDocument = self.document()
        lines = min(_MAX_LINES, max(_MIN_LINES, round(document.size().height())))
        height = lines * self.fontMetrics().lineSpacing() + 2 * self.frameWidth() + 22
        return QSize(super().sizeHint().width(), height)

    def minimumSizeHint(self) -> QSize:
        """Return the least size, that of two lines."""
        return QSize(120, _MIN_LINES * self.fontMetrics().lineSpacing() + 22)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send on Enter; an input method's own Enter never comes here."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & (
            Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier
        ):
            self.submitted.emit()
            return
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            return
        super().keyPressEvent(event)

"""Composer: the text box for messages and commands, with Send and Stop."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.commands.table import Completion
from app.domain.conversations import Draft
from ui.widgets.completion import CompletionList
from ui.widgets.file_row import FileRow
from ui.widgets.note_card import NoteCard
from ui.widgets.plain_label import PlainLabel

_MIN_LINES = 2
_MAX_LINES = 12
_DRAFT_AFTER_MS = 600
_PNG = "image/png"
_INVITATION = "Ask anything, or ask about your own past"
_EDITING = "Editing an earlier message: what follows it stays on another branch."
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_NEW_LINE = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier


class Composer(QWidget):
    """A text box that grows, with Send or Stop beside it and the attached files above.

    Attributes:
        files: The row of attached files. note: A line below it.

    Signals:
        send_requested: The text, if there is any or a file; it stays until `clear` is called. Also
            while a reply runs.
        attach_requested: Choose files to attach.
        files_pasted: list of `Path`. image_pasted: A `QImage`, or `bytes` of a PNG.
        command_requested: A command, also while a reply runs.
        dismiss_requested: Esc, when there is nothing to stop or cancel here.
        stop_requested: Stop the running reply.
        draft_changed: The unsent `Draft`, shortly after it changed.
        edit_cancelled: The earlier message that was being edited stays as it is.
        queue_cancelled: The message that waits for the end of a reply is not to be sent.
    """

    send_requested = Signal(str)
    command_requested = Signal(str)
    dismiss_requested = Signal()
    stop_requested = Signal()
    attach_requested = Signal()
    files_pasted = Signal(list)
    image_pasted = Signal(object)
    draft_changed = Signal(object)
    edit_cancelled = Signal()
    queue_cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = _GrowingBox(self)
        self.box.setPlaceholderText(_INVITATION)
        self.box.setAccessibleName("Message")
        self.box.setTabChangesFocus(True)
        self.files = FileRow(self)
        self.files.setFocusProxy(self.box)
        self.note = PlainLabel("", self, tone="small", wordWrap=True)
        self.note.hide()
        self._attach = QPushButton("Attach", self)
        self._attach.setProperty("kind", "quiet")
        self._attach.setToolTip("Attach images and files; you can also paste or drop them")
        self._attach.clicked.connect(self.attach_requested)
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
        self.completion = CompletionList(self)
        self.completion.chosen.connect(self._take_candidate)
        self._is_command: Callable[[str], bool] = lambda _: False
        self._complete: Callable[[str], Completion] | None = None
        self._is_completion_refused = False
        self.cost = PlainLabel(self, tone="small")
        self.cost.hide()
        self._editing, self._queued = NoteCard(self), NoteCard(self)
        row = QHBoxLayout()
        row.addWidget(self.box, 1)
        row.addWidget(self._attach, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(side, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._queued)
        column.addWidget(self._editing)
        column.addWidget(self.files)
        column.addWidget(self.note)
        column.addLayout(row)
        column.addWidget(self.cost)
        self._running = False
        # Send appears where Stop was: a second click on Stop, or a late one, must not send the draft.
        self._swapped = QTimer(self, singleShot=True, interval=QApplication.doubleClickInterval())
        self.stops = (self._queued.action, self.box, self._attach, self._send, self._stop)
        self._draft = QTimer(self, singleShot=True, interval=_DRAFT_AFTER_MS)
        self._draft.timeout.connect(lambda: self.draft_changed.emit(self.draft))
        self.files.changed.connect(self._on_files_changed)
        self.box.files_pasted.connect(self.files_pasted)
        self.box.image_pasted.connect(self.image_pasted)
        self.box.textChanged.connect(self._on_box_text_changed)
        self.box.submitted.connect(self._on_box_submitted)
        self.box.escaped.connect(self._on_box_escaped)
        self._send.clicked.connect(self._on_send_clicked)
        self._stop.clicked.connect(self._on_stop_clicked)
        self._on_box_text_changed()

    def set_commands(
        self, is_command: Callable[[str], bool], complete: Callable[[str], Completion]
    ) -> None:
        """Set what recognizes commands and what completes them; neither may block."""
        self._is_command, self._complete = is_command, complete
        self.box.installEventFilter(self)

    def set_writable(self, writable: bool) -> None:
        """Accept messages, or show that none can be written here."""
        self.setEnabled(writable)
        self.box.setPlaceholderText(_INVITATION if writable else "")

    @property
    def is_editing(self) -> bool:
        """Whether an earlier message is being edited."""
        return not self._editing.isHidden()

    @property
    def text(self) -> str:
        """The text typed so far."""
        return self.box.toPlainText()

    @property
    def draft(self) -> Draft:
        """The text typed so far, and the files that are ready."""
        return Draft(self.text, self.files.files)

    def show_draft(self, draft: Draft) -> None:
        """Replace text and files without reporting a change."""
        self.box.setPlainText(draft.text)
        if self.files.files != draft.files or self.files.is_reading:
            self.files.show_files(draft.files)
        self._draft.stop()
        self.completion.hide()
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)

    def clear(self) -> None:
        """Remove text and files, which are stored elsewhere, and end an edit."""
        self._editing.show_note("")
        self.show_draft(Draft())

    def discard(self) -> None:
        """Remove the text, also from the draft: it was a command."""
        self._editing.show_note("")
        self.box.setPlainText("")
        self._draft.stop()
        self.completion.hide()
        self.draft_changed.emit(self.draft)

    def begin_edit(self, message: Draft) -> None:
        """Edit an earlier message, until it is sent or the edit is cancelled."""
        self.show_draft(message)
        self._editing.show_note(_EDITING, "Cancel", self.cancel_edit)
        self.box.setFocus()

    def end_edit(self) -> None:
        """Treat the text, if there is any, as a message of its own."""
        self._editing.show_note("")

    def cancel_edit(self) -> None:
        """Cancel an edit."""
        if self.is_editing:
            self.clear()
            self.edit_cancelled.emit()

    def flush_draft(self) -> None:
        """Report the unsent text now, if a report is due."""
        if self._draft.isActive():
            self._draft.stop()
            self.draft_changed.emit(self.draft)

    def show_running(self, running: bool) -> None:
        """Offer Stop while a reply runs, else Send."""
        if self._running and not running:
            self._swapped.start()
        self._buttons.setCurrentWidget(self._stop if running else self._send)
        self._running = running

    def show_queued(self, text: str) -> None:
        """Show the message that is sent when the reply ends; "" for none."""
        note = f"Sent when this reply ends: \u201c{text}\u201d" if text else ""
        self._queued.show_note(note, "Cancel", self.queue_cancelled.emit)

    def show_cost(self, text: str) -> None:
        """Show what the message costs to send; "" hides it."""
        self.cost.setText(text)
        self.cost.setVisible(bool(text))
        self.box.setAccessibleDescription(text)

    def show_note(self, text: str) -> None:
        """Show a line below the files; "" hides it."""
        self.note.setText(text)
        self.note.setVisible(bool(text))

    @property
    def _can_send(self) -> bool:
        return not self.files.is_reading and bool(self.text.strip() or self.files.files)

    def _on_box_text_changed(self) -> None:
        self._send.setEnabled(self._can_send)
        self._draft.start()
        self._show_completion()

    def _on_files_changed(self) -> None:
        self._send.setEnabled(self._can_send)
        self._draft.start()

    def _on_box_submitted(self) -> None:
        self.completion.hide()
        if not self.is_editing and self._is_command(self.text):
            self._draft.stop()
            self.command_requested.emit(self.text)
        elif self.files.is_reading:
            self.show_note("A file is still being read.")
        elif self._running and self.is_editing:
            self.show_note("An edit can be sent when the reply has ended or was stopped.")
        elif self._can_send:
            self._draft.stop()
            self.send_requested.emit(self.text)

    def _on_send_clicked(self) -> None:
        self.box.setFocus()  # the button is disabled next, and Qt would pass the focus on
        if not self._swapped.isActive():
            self._on_box_submitted()

    def _on_stop_clicked(self) -> None:
        self.box.setFocus()
        self.stop_requested.emit()

    def _on_box_escaped(self) -> None:
        if self._running:
            self.stop_requested.emit()
        elif self.is_editing:
            self.cancel_edit()
        else:
            self.dismiss_requested.emit()

    # -- completion

    def _show_completion(self) -> None:
        """Show completions, unless the user has closed the list for this command."""
        text = self.text
        if not text.startswith("/"):
            self._is_completion_refused = False
        is_wanted = self.box.hasFocus() and not self.is_editing and not self._is_completion_refused
        if not is_wanted or self._complete is None:
            self.completion.hide()
            return
        found = self._complete(text)
        self.completion.show_candidates(found.candidates, marks_first=not found.is_whole)
        if found.candidates:
            self.completion.stand_above(self)

    def _take_candidate(self, text: str) -> None:
        self.box.setPlainText(text)
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)
        self.box.setFocus()

    def _press_in_list(self, event: QKeyEvent) -> bool:
        """Handle a key while the completion list is open; return whether it was handled."""
        key, listed = event.key(), self.completion
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            listed.step(1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Tab:
            self._take_candidate(listed.first_text() or self.text)
        elif key in _ENTER and not event.modifiers() & _NEW_LINE:
            if (marked := listed.marked_text()) is None:
                return False
            self._take_candidate(marked)
        elif key == Qt.Key.Key_Escape:
            self._is_completion_refused = True
            listed.hide()
        else:
            return False
        return True

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the completion list in its place."""
        super().resizeEvent(event)
        if self.completion.isVisible():
            self.completion.stand_above(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Pass keys to the completion list while it is open."""
        if isinstance(event, QKeyEvent) and self.completion.isVisible():
            if event.type() == QEvent.Type.KeyPress and self._press_in_list(event):
                return True
            is_override = event.type() == QEvent.Type.ShortcutOverride
            if is_override and event.key() == Qt.Key.Key_Escape:
                event.accept()  # keeps Esc from the action that stops a reply
                return True
        return super().eventFilter(watched, event)


class _GrowingBox(QPlainTextEdit):
    """Grows with its text up to a limit; Enter submits, Shift+Enter begins a new line.

    Signals:
        submitted: Enter. escaped: Esc.
        files_pasted: list of `Path`. image_pasted: A `QImage`, or `bytes` of a PNG.
    """

    submitted = Signal()
    escaped = Signal()
    files_pasted = Signal(list)
    image_pasted = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self.updateGeometry)

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Return the height of the text, between two and twelve lines."""
        lines = min(_MAX_LINES, max(_MIN_LINES, round(self.document().size().height())))
        height = lines * self.fontMetrics().lineSpacing() + 2 * self.frameWidth() + 22
        return QSize(super().sizeHint().width(), height)

    def minimumSizeHint(self) -> QSize:
        """Return the size of two lines."""
        return QSize(120, _MIN_LINES * self.fontMetrics().lineSpacing() + 22)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Accept images and files besides text."""
        return _has_image(source) or source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Report pasted files and images; text is preferred, as of a copied table."""
        paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if paths:
            self.files_pasted.emit(paths)
        elif _has_image(source) and not source.text().strip():
            png = bytes(source.data(_PNG).data()) if source.hasFormat(_PNG) else b""
            image = png or source.imageData()
            if isinstance(image, bytes | QImage):
                self.image_pasted.emit(image)
        else:
            super().insertFromMimeData(source)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Submit on Enter; an input method's own Enter does not arrive here."""
        if event.key() in _ENTER and not event.modifiers() & _NEW_LINE:
            self.submitted.emit()
            return
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            return
        super().keyPressEvent(event)


def _has_image(source: QMimeData) -> bool:
    return source.hasImage() or source.hasFormat(_PNG)

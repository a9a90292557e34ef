"""Composer: the text box for messages and commands, with Send and Stop."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.domain.translation import tr
from ui.theme import current_theme
from ui.widgets.banner import NoteCard
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.composer.completion import Completer
from ui.widgets.composer.file_row import FileRow
from ui.widgets.composer.memory_switch import MemorySwitch
from ui.widgets.composer.message_box import MessageBox
from ui.widgets.composer.model_picker import ModelPicker
from ui.widgets.composer.project_chip import ProjectChip
from ui.widgets.controls import PushButton, column_in, filled, row_of, tool_button
from ui.widgets.plain_label import PlainLabel

if TYPE_CHECKING:
    from app.commands.table import Completion
    from app.domain.conversations import Draft

_DRAFT_AFTER_MS = 600
# Least widths in multiples of the text size:
_WIDE_EM = 38  # for what memory brings, in words
_ROOMY_EM = 50  # for the name of the project
_LEAST_EM = 31  # for a choice that the menu has too
_BAR_SHARE = 0.34  # of the bar, at most, for a choice
_INVITATION = tr("Ask anything, or ask about your own past")
_EDIT_WAITS = tr("An edit can be sent when the reply has ended or was stopped.")
_EDITING = tr("Editing an earlier message: what follows it stays on another branch.")


class Composer(QWidget):
    """A card with the attached files, a text box that grows, and a bar of choices with Send or Stop.

    Attributes:
        box: The text box. files: The row of attached files. note: A line below it.
        model, preset, project, memory: The choices in the bar. completer: What completes the text.

    Signals:
        send_requested: The text, if there is any or a file; it stays until `clear` is called. Also
            while a reply runs.
        attach_requested: Choose files to attach.
        command_requested: A command, also while a reply runs.
        dismiss_requested: Esc, when there is nothing to stop or cancel here.
        stop_requested: Stop the running reply.
        draft_changed: The unsent `Draft`, shortly after it changed.
        edit_cancelled: The earlier message that was being edited stays as it is.
        queue_cancelled: The message that waits for the end of a reply is not to be sent.
        last_message_requested: Up in the empty box: edit the last message.
    """

    send_requested = Signal(str)
    command_requested = Signal(str)
    dismiss_requested = Signal()
    stop_requested = Signal()
    attach_requested = Signal()
    draft_changed = Signal(object)
    edit_cancelled = Signal()
    queue_cancelled = Signal()
    last_message_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = MessageBox(self)
        self.box.show_invitation(_INVITATION)
        self.box.setAccessibleName(tr("Message"))
        self.box.setTabChangesFocus(True)
        self.files = FileRow(self)
        self.files.setFocusProxy(self.box)
        self.note = PlainLabel("", self, tone="small", wordWrap=True)
        self.note.hide()
        tip = tr("Attach images and files; you can also paste or drop them")
        self._attach = tool_button(
            self, "", self.attach_requested, icon="paperclip", tip=tip, name=tr("Attach files")
        )
        self.model = ModelPicker(self)
        self.preset = ChoiceBox(tr("Preset"), self)
        self.preset.setToolTip(tr("The preset: instructions and options of this conversation"))
        self.project = ProjectChip(self)
        self.memory = MemorySwitch(self)
        self._send = PushButton(tr("Send"), self)
        self._send.setProperty("kind", "primary")
        self._send.setToolTip(tr("Send (Enter); Shift+Enter begins a new line"))
        self._stop = PushButton(tr("Stop"), self)
        self._stop.setToolTip(tr("Stop the reply (Esc)"))
        self.completer = Completer(self.box, self)
        self._is_command: Callable[[str], bool] = lambda _: False
        self.cost = PlainLabel(self, tone="small")
        self.cost.hide()
        self._editing, self._queued = NoteCard(self), NoteCard(self)
        self._card = QFrame(self)
        self._lay_out()
        self._running = False
        # Send appears where Stop was: a second click on Stop, or a late one, must not send the draft.
        self._swapped = QTimer(self, singleShot=True, interval=QApplication.doubleClickInterval())
        choices = (self.model, self.preset, self.project, self.memory)
        for each in choices:
            each.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves it in the text
        self.stops = (self._queued.action, self.box, self._attach, *choices, self._send, self._stop)
        self._draft = QTimer(self, singleShot=True, interval=_DRAFT_AFTER_MS)
        self._draft.timeout.connect(lambda: self.draft_changed.emit(self.draft))
        self._connect()
        self.box.installEventFilter(self)
        self._send.setEnabled(False)

    def _connect(self) -> None:
        self.files.changed.connect(self._on_files_changed)
        self.box.textChanged.connect(self._on_box_text_changed)
        self.box.submitted.connect(self._on_box_submitted)
        self.box.escaped.connect(self._on_box_escaped)
        self.box.recall_requested.connect(self._on_box_recall_requested)
        self.model.chosen.connect(self.box.setFocus)
        self.preset.filled.connect(self._show_preset)
        self.preset.chosen.connect(lambda _: self.box.setFocus())
        self.memory.choice_changed.connect(self._draft.start)
        self._send.clicked.connect(self._on_send_clicked)
        self._stop.clicked.connect(self._on_stop_clicked)

    def set_commands(
        self, is_command: Callable[[str], bool], complete: "Callable[[str], Completion]"
    ) -> None:
        """Set what recognizes commands and what completes them; neither may block."""
        self._is_command, self.completer.complete = is_command, complete

    def set_writable(self, writable: bool) -> None:
        """Accept messages, or show that none can be written here."""
        self.setEnabled(writable)
        self.box.show_invitation(_INVITATION if writable else "")

    @property
    def is_editing(self) -> bool:
        """Whether an earlier message is being edited."""
        return not self._editing.isHidden()

    @property
    def text(self) -> str:
        """The text typed so far."""
        return self.box.toPlainText()

    @property
    def draft(self) -> "Draft":
        """The text typed so far, and the files that are ready."""
        from app.domain.conversations import Draft

        return Draft(self.text, self.files.files, self.memory.choice)

    def show_draft(self, draft: "Draft") -> None:
        """Replace text and files without reporting a change."""
        self.memory.show_choice(draft.choice)
        self.box.setPlainText(draft.text)
        if self.files.files != draft.files or self.files.is_reading:
            self.files.show_files(draft.files)
        self._draft.stop()
        self.completer.list.hide()
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)

    def quote(self, text: str) -> None:
        """Put a quotation below what is typed, and the cursor below it."""
        quoted = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
        typed = self.text.rstrip()
        cursor = self.box.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        cursor.setPosition(len(typed), cursor.MoveMode.KeepAnchor)
        self.box.setTextCursor(cursor)
        gap = "\n\n" if typed else ""
        self.box.insertPlainText(f"{gap}{quoted}\n\n")
        self.box.setFocus()

    def clear(self) -> None:
        """Remove text and files, which are stored elsewhere, and end an edit."""
        self._editing.show_note("")
        from app.domain.conversations import Draft

        self.show_draft(Draft())

    def discard(self) -> None:
        """Remove the text, also from the draft: it was a command."""
        self._editing.show_note("")
        self.box.setPlainText("")
        self._draft.stop()
        self.completer.list.hide()
        self.draft_changed.emit(self.draft)

    def begin_edit(self, message: "Draft") -> None:
        """Edit an earlier message, until it is sent or the edit is cancelled."""
        self.show_draft(message)
        self._editing.show_note(_EDITING, tr("Cancel"), self.cancel_edit)
        self.box.setFocus()

    def end_edit(self) -> None:
        """Treat the text, if there is any, as a message of its own."""
        self._editing.show_note("")

    def cancel_edit(self) -> None:
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
            if self.note.text() == _EDIT_WAITS:
                self.note.show_text("")
        self._buttons.setCurrentWidget(self._stop if running else self._send)
        self._running = running

    def show_queued(self, text: str) -> None:
        """Show the message that is sent when the reply ends; "" for none."""
        note = tr("Sent when this reply ends: “{text}”").format(text=text) if text else ""
        self._queued.show_note(note, tr("Cancel"), self.queue_cancelled.emit)

    def show_cost(self, text: str) -> None:
        """Show what the message costs to send; "" hides it."""
        self.cost.show_text(text)
        self.box.setAccessibleDescription(text)

    @property
    def _can_send(self) -> bool:
        return not self.files.is_reading and bool(self.text.strip() or self.files.files)

    def _on_box_text_changed(self) -> None:
        self._send.setEnabled(self._can_send)
        self._draft.start()
        self.completer.update(completes_commands=not self.is_editing)

    def _on_files_changed(self) -> None:
        self._send.setEnabled(self._can_send)
        self._draft.start()

    def _on_box_submitted(self) -> None:
        self.completer.list.hide()
        if not self.is_editing and self._is_command(self.text):
            self._draft.stop()
            self.command_requested.emit(self.text)
        elif self.files.is_reading:
            self.note.show_text(tr("A file is still being read."))
        elif self._running and self.is_editing:
            self.note.show_text(_EDIT_WAITS)
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

    def _on_box_recall_requested(self) -> None:
        if not self.is_editing and not self._running and not self.files.files:
            self.last_message_requested.emit()

    def _lay_out(self) -> None:
        buttons = QStackedLayout()
        for each in (self._send, self._stop):
            buttons.addWidget(each)
            each.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._buttons = buttons
        self.preset.hide()
        side = QWidget(self)
        side.setLayout(buttons)
        side.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        bar = row_of(self._attach, self.model, self.preset, None, self.project, self.memory, side)
        bar.setSpacing(4)
        self._card.setProperty("panel", "composer")
        parts = (self.files, self.note, self.box, bar)
        column_in(self._card, *parts, margins=(12, 10, 8, 8), spacing=6)
        whole = (self._queued, self._editing, self._card, self.cost)
        filled(QVBoxLayout(self), *whole, margins=(0, 0, 0, 0))

    def _show_preset(self) -> None:
        """Show the presets where there are several and room for them; the menu has them too."""
        self.preset.setVisible(self.preset.has_choice and self._is_wide(_LEAST_EM))

    def _is_wide(self, width_em: float) -> bool:
        return self.width() >= width_em * current_theme().ui_px

    def _fit_bar(self) -> None:
        """Keep the choices narrow."""
        self.preset.setMaximumWidth(round(self.width() * _BAR_SHARE))
        self.memory.set_compact(not self._is_wide(_WIDE_EM))
        self.project.set_compact(not self._is_wide(_ROOMY_EM))
        self._show_preset()

    def _show_focus(self, *, has_focus: bool) -> None:
        self._card.setProperty("active", has_focus)
        self._card.style().unpolish(self._card)
        self._card.style().polish(self._card)

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        """Fit the bar to another size of text."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.StyleChange:
            self._fit_bar()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the completion list in its place, and the choices narrow."""
        super().resizeEvent(event)
        self._fit_bar()
        self.completer.follow()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the focus of the box, which a list that closes only announces."""
        if isinstance(event, QFocusEvent):
            self._show_focus(has_focus=self.box.hasFocus())
        return super().eventFilter(watched, event)

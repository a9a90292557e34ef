"""The conversation pane: title, transcript, welcome page or a notice, composer in the column of the text."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QGridLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.domain.translation import tr
from ui.theme import COLUMN_EM, PADDING_EM, current_theme
from ui.widgets.banner import Banner, NoteCard
from ui.widgets.composer.composer import Composer
from ui.widgets.controls import button, column_in, filled, row_of
from ui.widgets.elided_edit import ElidedEdit
from ui.widgets.on_screen import stops_in
from ui.widgets.plain_label import PlainLabel, plain_label

if TYPE_CHECKING:
    from ui.views.welcome import Welcome
    from ui.widgets.search_box import FindBar

_IN_TRASH = tr("This conversation is in the trash. Restore it to write here.")
_OTHER_BRANCH = tr(
    "This is another branch of the conversation, not the current one. A message sent here continues "
    "this branch."
)
_PANEL_GAP_PX = 8
_WIDE_PX = 480  # for buttons that the menu has too
_EDGE_PX = 16
_ALT_GR = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier  # on Windows
_OUTDENT_PX = 7  # of the text of the title in its field
NoticeAction = tuple[str, Callable[[], object]]


class ChatPane(QWidget):
    """Header, transcript and composer; at first an empty notice replaces the transcript.

    Attributes:
        banner: Lies over the top of the transcript, which stays where it is.
        transcript, welcome, find_bar: Once built.
        state: What a message would do here where that needs saying, such as in the trash.

    Signals:
        titled: The title shown now, "" for a new conversation.
        renamed: The new title.
        summaries_requested: Show the summaries of the conversation.
        memory_requested: Show the memory pane, or hide it.
        model_shown: PROVIDER:MODEL that answers here.
        restore_requested: Take the conversation out of the trash.
    """

    titled = Signal(str)
    renamed = Signal(str)
    summaries_requested = Signal()
    memory_requested = Signal()
    model_shown = Signal(str)
    restore_requested = Signal()

    transcript: QWidget
    welcome: "Welcome"
    find_bar: "FindBar"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = ElidedEdit(self)
        self.title.setProperty("plain", True)
        self.title.setAccessibleName(tr("Title of the conversation"))
        self.title.setPlaceholderText(tr("New conversation"))
        self.title.editingFinished.connect(self._on_title_edited)
        self.private = PlainLabel(tr("Private"), self, tone="warning")
        self.private.setToolTip(tr("Never indexed, summarized or recalled"))
        self.private.hide()
        tip = tr("Show the summaries of this conversation and its turns")
        self._summaries = button(
            self, tr("Summary"), self.summaries_requested, kind="quiet", tip=tip
        )
        self._summaries.hide()
        self._has_summaries = False
        tip = tr("Show or hide the memory pane: sources, what was sent, facts and background work")
        self._memory = button(self, tr("Memory"), self.memory_requested, kind="quiet", tip=tip)
        self._memory.hide()
        self.trail = button(
            self, "", kind="quiet", tip=tr("Earlier conversations about this topic")
        )
        self.agents = button(
            self, "", kind="quiet", tip=tr("The conversations of its agent and subagents")
        )
        for each in (self.trail, self.agents):
            each.hide()
        self.notice = Notice(self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.notice)
        self.banner = Banner(self)
        self.state = NoteCard(self)
        self.composer = Composer(self)
        self.title.done.connect(self.composer.box.setFocus)
        self.preset, self.model = self.composer.preset, self.composer.model
        self.status = PlainLabel(self, tone="small")
        self.status.hide()
        self._lay_out()

    def build_panels(self, transcript: QWidget) -> None:
        """Add everything that the first frame does not show."""
        from ui.views.welcome import Welcome
        from ui.widgets.search_box import FindBar

        self.transcript = transcript
        self.welcome = Welcome(self)
        self.find_bar = FindBar(self)
        for page in (self.welcome, transcript):
            self._stack.addWidget(page)
        self._column.insertWidget(self._column.indexOf(self._body), self.find_bar)
        self._fit_head()
        self._fit_foot()

    @property
    def stops(self) -> list[QWidget]:
        """The tab order, once built."""
        head = [self.title, self._summaries, self._memory, self.agents, self.trail]
        shown = [*stops_in(self.find_bar), *stops_in(self.welcome), self.transcript]
        return [*head, *shown, self.state.action, *self.composer.stops]

    def write(self, text: str) -> None:
        """Go on writing the message with `text`."""
        if (box := self.composer.box).isEnabled():
            box.setFocus()
            box.insertPlainText(text)

    def focus_title(self) -> None:
        """Focus the title, so that it can be edited."""
        self.title.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def add_panel(self, panel: QWidget) -> None:
        """Put a panel between the conversation and the composer."""
        self._foot.insertWidget(0, panel)
        self._foot.setSpacing(_PANEL_GAP_PX)

    def show_transcript(self) -> None:
        self._stack.setCurrentWidget(self.transcript)

    def show_welcome(self) -> None:
        self._stack.setCurrentWidget(self.welcome)

    def show_notice(self, title: str, text: str = "", actions: Sequence[NoticeAction] = ()) -> None:
        """Show a notice in place of the conversation, such as a startup error."""
        self.notice.show_text(title, text, actions)
        self._stack.setCurrentWidget(self.notice)

    def show_private(self) -> None:
        """Show what a private conversation is, before it begins."""
        self.show_notice(
            tr("A private conversation"),
            tr(
                "It is never indexed, summarized, recalled or used for facts. When you leave it, "
                "you can keep it or discard it."
            ),
        )

    def show_state(self, show_current: Callable[[], object] | None, *, in_trash: bool) -> None:
        """Say that it is in the trash, or on another branch than the current one, for `show_current`."""
        if in_trash:
            self.state.show_note(_IN_TRASH, tr("Restore"), self.restore_requested.emit)
        elif show_current is not None:
            self.state.show_note(_OTHER_BRANCH, tr("Show the current branch"), show_current)
        else:
            self.state.show_note("")

    def show_title(self, title: str, *, private: bool, editable: bool) -> None:
        """Show a conversation's title, unless it is being edited."""
        self.private.setVisible(private)
        self._has_summaries = editable and not private
        self._fit_head()
        self.title.setReadOnly(not editable)
        if not (self.title.hasFocus() and self.title.isModified()):
            self.title.show_text(title)
        self.titled.emit(title)

    def show_trail(self, text: str) -> None:
        """Say above the conversation which one it is about its topic; "" says nothing."""
        self._show_line(self.trail, text)

    def show_agents(self, text: str) -> None:
        """Say above the conversation what started it, or what was started from it; "" says nothing."""
        self._show_line(self.agents, text)

    def _show_line(self, line: QPushButton, text: str) -> None:
        line.setAccessibleName(text)
        line.setVisible(bool(text))
        self._fit_head()

    def show_model(self, model: str) -> None:
        """Show which model (PROVIDER:MODEL) answers here."""
        self.model.show_model(model)
        self.model_shown.emit(model)

    def set_writable(self, writable: bool) -> None:
        """Enable what changes the conversation, or disable it."""
        self.composer.set_writable(writable)
        for choice in (self.preset, self.model):
            choice.setEnabled(writable)

    def _lay_out(self) -> None:
        head = row_of((self.title, 1), self.private, self._summaries, self._memory)
        head.setContentsMargins(_EDGE_PX, 10, _EDGE_PX, 6)
        head.setSpacing(_EDGE_PX)
        parts = (self.status, self.state, self.composer)
        self._foot = filled(QVBoxLayout(), *parts, margins=(_EDGE_PX, 4, _EDGE_PX, 12))
        trail = row_of(self.agents, self.trail, None)
        # Its text below that of the title.
        trail.setContentsMargins(_EDGE_PX + _OUTDENT_PX, 0, _EDGE_PX, 0)
        self._body = QGridLayout()
        self._body.setSpacing(0)
        self._body.addWidget(self._stack, 0, 0, 1, 3)
        self._body.addWidget(self.banner, 0, 1, Qt.AlignmentFlag.AlignTop)
        self._body.setColumnStretch(1, 1)
        column = (head, trail, self._body, self._foot)
        self._column = column_in(self, *column, margins=(0, 0, 0, 0), spacing=0)
        self._column.setStretchFactor(self._body, 1)

    def _fit_head(self) -> None:
        is_wide = self.width() >= _WIDE_PX
        self._summaries.setVisible(self._has_summaries and is_wide)
        self._memory.setVisible(is_wide and self._stack.count() > 1)  # once built
        lines = [each for each in (self.agents, self.trail) if each.accessibleName()]
        room = (self.width() - 2 * (_EDGE_PX + _OUTDENT_PX)) // max(1, len(lines))
        for each in lines:
            text, mode = each.accessibleName(), Qt.TextElideMode.ElideRight
            text = each.fontMetrics().elidedText(text, mode, room)
            each.setText(text.replace("&", "&&"))

    def _fit_foot(self) -> None:
        """Put the composer, the banner and a notice into the column of the text."""
        theme = current_theme()
        edge = round(theme.em(PADDING_EM)) // 2
        side = max(edge, (self.width() - round(theme.em(COLUMN_EM))) // 2)
        self._foot.setContentsMargins(side, 4, side, 12)
        self.notice.setContentsMargins(side, 24, side, 24)
        for column in (0, 2):
            self._body.setColumnMinimumWidth(column, side)
        if self._stack.count() > 1:  # once built
            self.welcome.set_side(side)

    def _on_title_edited(self) -> None:
        if not self.title.text().strip():
            self.title.take_back()
        if self.title.isModified():
            self.title.setModified(False)
            self.renamed.emit(self.title.text())

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Put what is typed or pasted beside the message into it."""
        box, keys, text = self.composer.box, event.modifiers(), event.text()
        has_ctrl, has_alt = (bool(keys & each) for each in _ALT_GR)
        is_text = text.isprintable() and bool(text.strip()) and has_ctrl == has_alt
        can_write = box.isEnabled() and not box.hasFocus()
        if can_write and (is_text or event.matches(QKeySequence.StandardKey.Paste)):
            box.setFocus()
            QApplication.sendEvent(box, event)
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Fit the composer to another size of text."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.StyleChange:
            self._fit_foot()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit header and composer to the new width."""
        super().resizeEvent(event)
        self._fit_head()
        self._fit_foot()


class Notice(QWidget):
    """Says what happened and offers what can be done about it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title, self._text = plain_label(self, "heading"), plain_label(self, "muted")
        self._row = row_of(None)
        self._buttons: list[QPushButton] = []
        parts = (None, self._title, self._text, self._row)
        filled(QVBoxLayout(self), *parts, margins=(0, 0, 0, 0), spacing=12).addStretch(2)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not self._title.text()

    def show_text(self, title: str, text: str = "", actions: Sequence[NoticeAction] = ()) -> None:
        """Show a title, a text under it and a button per action."""
        is_alone = not (text or actions)
        self._title.setAlignment(
            Qt.AlignmentFlag.AlignHCenter if is_alone else Qt.AlignmentFlag.AlignLeft
        )
        self._title.setText(title)
        self._text.show_text(text)
        for each in self._buttons:
            each.deleteLater()
        self._buttons = []
        for place, (name, act) in enumerate(actions):
            self._buttons.append(button(self, name, lambda _checked=False, act=act: act()))
            self._row.insertWidget(place, self._buttons[-1])

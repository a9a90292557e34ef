"""Transcript view: a conversation of any length, with a streaming reply, find marks and focus."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.domain.chat import TextWasThinking
from app.domain.conversations import Block, ExchangeStatus
from app.domain.ids import MessageId
from app.domain.text import one_line
from app.domain.translation import tr, translate_filled
from ui.theme import COLUMN_EM, PADDING_EM, Theme
from ui.widgets.on_screen import announce
from ui.widgets.thumbnails import Thumbnails
from ui.widgets.transcript.answer import LiveReply
from ui.widgets.transcript.context import RenderContext, StepQueue, TurnEvents
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.find import FindMarks, FindWords, SearchMarks
from ui.widgets.transcript.focus import (
    ButtonArrows,
    SelectionGuard,
    enclosing,
    move_in_turn,
    move_to_message,
)
from ui.widgets.transcript.heights import AtEnd, AtItem, Centered, estimate_heights
from ui.widgets.transcript.message_frame import MessageFrame
from ui.widgets.transcript.panels import EndButton, dividers_above
from ui.widgets.transcript.target import ScrollTarget, y_of_message
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.turn_data import TurnData
from ui.widgets.transcript.values import (
    FindMark,
    Sources,
    TurnContent,
    TurnHeader,
    WrittenLine,
    answer_text,
)
from ui.widgets.transcript.virtual_column import VirtualColumn

_ANNOUNCED_CHARS = 160
_ANNOUNCED = {
    ExchangeStatus.INTERRUPTED: tr("Reply interrupted"),
    ExchangeStatus.FAILED: tr("Reply failed"),
}


class TranscriptView(VirtualColumn):
    """Shows turns, requests their content when it is needed, and follows a reply as it streams.

    Turns are identified by their index in what `show_conversation` received, from 0.

    Attributes:
        events: What the user does in the transcript.

    Signals:
        content_requested: First and last index of turns whose content is needed; `provide` it.
        current_turn_changed: The turn that received the focus.
    """

    content_requested = Signal(int, int)
    current_turn_changed = Signal(int)

    def __init__(
        self, theme: Theme, thumbnails: Thumbnails | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Conversation"))
        self.events = TurnEvents(self)
        self._thumbnails = thumbnails
        self._steps = StepQueue(self)
        self._headers: list[TurnHeader] = []
        self._ends_segment = False
        self._data = TurnData(self.content_requested.emit)
        self._live: LiveReply | None = None
        self._marks = FindMarks(())
        self._search: SearchMarks | None = None
        self._current_turn = -1
        self._context = self._context_for(theme)
        self._to_end = EndButton(self)
        self._to_end.clicked.connect(lambda: self.scroll_to_anchor(AtEnd()))
        self.events.text_drawn.connect(self._on_text_drawn)
        self.events.scroll_requested.connect(self.show_widget)
        self._target = ScrollTarget(self, self._steps, self.turn_widget)
        SelectionGuard(self, self.events)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus_changed)
        self._button_arrows = ButtonArrows(self)

    # turns

    @property
    def is_streaming(self) -> bool:
        return self._live is not None

    @property
    def is_settled(self) -> bool:
        """Whether everything is rendered and laid out."""
        return self._steps.is_idle and self.is_layout_done

    def show_conversation(
        self,
        headers: Sequence[TurnHeader],
        position: tuple[int, int] | None = None,
        *,
        turn: int | None = None,
        message_id: MessageId | None = None,
        contents: Mapping[int, TurnContent] | None = None,
    ) -> None:
        """Replace all turns. Show the end, an earlier `reading_position`, or a turn or message.

        `contents` are those of the turns that are shown first: nothing else is painted in their place.
        """
        self._live = None
        self._headers = list(headers)
        self._ends_segment = False
        self._data.clear()
        self._data.content.update(contents or {})
        self._current_turn = -1
        self._marks = FindMarks(())
        self._target.drop()
        anchor: AtEnd | AtItem | Centered = AtEnd()
        if turn is not None:
            anchor = Centered(turn)
        elif position is not None and position[0] < len(headers):
            anchor = AtItem(*position)
        self.reset(self._estimates(headers), anchor)
        if turn is not None:
            self.scroll_to_turn(turn, message_id)
        self._target.draw()

    def provide(self, turn_index: int, content: TurnContent) -> bool:
        """Set a turn's content if the turn still exists; return whether it was drawn."""
        if not 0 <= turn_index < len(self._headers) or self._live_in(turn_index):
            return False
        self._data.content[turn_index] = content
        if (widget := self.turn_widget(turn_index)) is not None:
            widget.show_content(content)
            self._show_marks_in(widget)
            self.schedule_layout()
        self._data.drop_far(sum(self.visible_items) // 2, self._items)
        return widget is not None

    def show_sources(self, turn_index: int, sources: Sources) -> None:
        """Show what recall contributed to a turn's answer."""
        if 0 <= turn_index < len(self._headers):
            self._data.sources[turn_index] = sources
            if (widget := self.turn_widget(turn_index)) is not None:
                self._data.show_recall(widget)

    def show_written(self, turn_index: int, lines: tuple[WrittenLine, ...]) -> None:
        if self._data.written.get(turn_index, ()) != lines:
            self._data.written[turn_index] = lines
            if (widget := self.turn_widget(turn_index)) is not None:
                self._data.show_recall(widget)

    def show_summary_note(self, turn_index: int, summary: str) -> None:
        """Say above a turn that everything before it is sent as a summary; "" says nothing."""
        before, self._data.summary = self._data.summary, (turn_index, summary)
        for index in {before[0], turn_index} if before != self._data.summary else ():
            if (widget := self.turn_widget(index)) is not None:
                self.grow_item_top(index, partial(self._data.show_recall, widget))

    def add_turn(self, header: TurnHeader, content: TurnContent) -> None:
        """Add a turn at the end and scroll there."""
        self._data.content[len(self._headers)] = content
        self.extend([header])
        self.scroll_to_anchor(AtEnd())

    def extend(self, headers: Sequence[TurnHeader]) -> None:
        """Add turns at the end without scrolling, unless the end is visible."""
        self._headers.extend(headers)
        self._ends_segment = self._ends_segment and not headers
        self.append_items(self._estimates(headers))
        self._mark_last()

    def show_segment_end(self, shown: bool, *, goes_there: bool = False) -> None:
        """Say below the last turn that a new segment begins with the next message, or not."""
        self._ends_segment = shown
        self._mark_last()
        if shown and goes_there:
            self.scroll_to_anchor(AtEnd())

    def set_theme(self, theme: Theme) -> None:
        """Render everything again in another theme."""
        read_only = self._context.is_read_only
        self._set_context(replace(self._context_for(theme), is_read_only=read_only))

    def set_read_only(self, read_only: bool) -> None:
        """Offer only what leaves the conversation as it is, or everything."""
        if read_only != self._context.is_read_only:
            self._set_context(replace(self._context, is_read_only=read_only))

    def _set_context(self, context: RenderContext) -> None:
        self._context = context
        if self._live is not None:
            self._live.frame = None
        self.reset(self._estimates(self._headers), self.anchor)

    def turn_widget(self, index: int) -> TurnWidget | None:
        """Return the turn's widget if it exists now."""
        widget = self._items.get(index)
        return widget if isinstance(widget, TurnWidget) else None

    # scrolling

    def reading_position(self) -> tuple[int, int] | None:
        """Return the first visible turn and how many pixels of it are hidden; None at the end."""
        if isinstance(self.anchor, AtItem):
            return self.anchor.index, self.anchor.offset
        first, last = self.visible_items
        if isinstance(self.anchor, AtEnd) or last < first:
            return None
        return first, self._top - self.padding - self.heights.before(first)

    def scroll_to_turn(self, index: int, message_id: MessageId | None = None) -> None:
        """Show a turn, or one of its messages, and highlight the turn for two seconds.

        It stays there while heights around it are corrected, until the user scrolls.
        """
        if not 0 <= index < len(self._headers):
            return
        self._target.scroll_to(
            index, lambda widget: y_of_message(self, widget, message_id, self._search)
        )
        if (widget := self.turn_widget(index)) is not None:
            widget.highlight()

    def show_from_start(self, index: int) -> None:
        """Show the beginning of a turn, and its end if there is room, unless the user has scrolled."""
        if isinstance(self.anchor, AtEnd):
            self.scroll_to_anchor(AtItem(index, 0))

    def set_find_marks(self, marks: Sequence[FindMark]) -> None:
        """Mark matches; an empty sequence removes the marks."""
        changed = self._marks.turns | {mark.turn_index for mark in marks}
        self._marks = FindMarks(marks)
        self._show_marks(changed)

    def show_find_mark(self, number: int) -> None:
        """Scroll to a match and make it the current one."""
        if (index := self._marks.select(number)) is not None:
            self._show_marks(self._marks.turns)
            self._target.scroll_to(index, self._marks.y_of_current)

    def mark_search(self, find: FindWords | None) -> None:
        """Mark the words of a search in every turn, in addition to turns with find marks; None for none."""
        self._search = SearchMarks(find) if find is not None else None
        self._show_marks(set(self._items))

    def _show_marks(self, turns: set[int]) -> None:
        for index in turns:
            if (widget := self.turn_widget(index)) is not None:
                self._show_marks_in(widget)

    def _show_marks_in(self, widget: TurnWidget) -> None:
        if self._search is None or widget.index in self._marks.turns:
            self._marks.show_in(widget)
        else:
            self._search.show_in(widget)

    # streaming reply

    def begin_reply(self, turn_index: int | None = None) -> None:
        """Start the reply to a turn (the last one), whose content must be known; nothing is scrolled."""
        index = len(self._headers) - 1 if turn_index is None else turn_index
        self._live = None
        if index not in self._data.content:
            raise ValueError(f"the content of turn {index} must be provided before its reply")
        self._live = LiveReply(index)
        if (widget := self.turn_widget(index)) is not None:
            self._live.attach(widget.begin_reply())
        self.update_layout()

    def append(self, block: Block | TextWasThinking) -> None:
        """Add a piece of text or thinking, or a whole tool call or result, to the reply."""
        if self._live is not None:
            self._live.append(block)
            self.schedule_layout()

    def finish_reply(self, turn_index: int, content: TurnContent) -> None:
        """End the reply: show its turn as it was stored, and announce that to screen readers."""
        widget = self.turn_widget(turn_index)
        if (live := self._live_in(turn_index)) is not None:
            self._live = None
            if widget is not None:
                widget.finish_reply(live.blocks)
        self.provide(turn_index, content)
        if live is None:
            return
        answer = answer_text(content.messages)
        if widget is not None:
            answer = widget.frames()[-1].plain_text()
        outcome = translate_filled(content.problem.title) if content.problem else answer
        name = _ANNOUNCED.get(content.status, tr("Reply"))
        announce(self, f"{name}: {one_line(outcome, _ANNOUNCED_CHARS)}")

    def _live_in(self, index: int) -> LiveReply | None:
        """Return the reply that grows, if it is that of a turn."""
        return self._live if self._live is not None and self._live.index == index else None

    # items

    def make_item(self, index: int) -> TurnWidget:
        """Return a turn's widget, with its content if that is known."""
        dividers = dividers_above(self._headers, index)
        widget = TurnWidget(
            self._context, index, self._headers[index], dividers, self.heights[index]
        )
        self._data.show_recall(widget)
        if (content := self._data.content.get(index)) is not None:
            widget.show_content(content)
        if (live := self._live_in(index)) is not None:
            live.attach(widget.begin_reply())
        is_last = index == len(self._headers) - 1
        widget.show_as_last(is_last, ends_segment=self._ends_segment)
        widget.changed.connect(self.schedule_layout)
        self._show_marks_in(widget)
        return widget

    def may_drop(self, index: int) -> bool:
        """Keep the turn whose reply streams, and the one with the focus."""
        return self._live_in(index) is None and super().may_drop(index)

    def update_layout(self) -> None:
        """Lay out, request missing content, and place what depends on the layout."""
        super().update_layout()
        self._data.load(self._items, len(self._headers))
        self._to_end.place(
            self.viewport(),
            self.padding // 2,
            hidden_px=self.verticalScrollBar().maximum() - self._top,
            grows=self.is_streaming and not isinstance(self.anchor, AtEnd),
        )
        self._target.follow()

    def _mark_last(self) -> None:
        for index in list(self._items):
            if (widget := self.turn_widget(index)) is not None:
                is_last = index == len(self._headers) - 1
                widget.show_as_last(is_last, ends_segment=self._ends_segment)

    def _estimates(self, headers: Sequence[TurnHeader]) -> list[int]:
        return estimate_heights(headers, self._context.theme, self.item_width())

    def _context_for(self, theme: Theme) -> RenderContext:
        self.column_width, self.padding = round(theme.em(COLUMN_EM)), round(theme.em(PADDING_EM))
        return RenderContext(theme, self._steps, self.events, self._thumbnails)

    def _on_text_drawn(self, text: object) -> None:
        """Mark matches in text that was just rendered."""
        turn = enclosing(text, TurnWidget) if isinstance(text, QWidget) else None
        if turn is not None and (self._search is not None or turn.index in self._marks.turns):
            self._show_marks_in(turn)

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        """Update the actions of both messages; report the turn that has the focus."""
        inside = [each for each in (before, now) if each is not None and self.isAncestorOf(each)]
        self._button_arrows.follow(
            before if before in inside else None, now if now in inside else None
        )
        for frame in [enclosing(each, MessageFrame) for each in inside]:
            if frame is not None:
                frame.update_actions()
        turn = enclosing(now, TurnWidget) if now in inside else None
        if turn is not None and turn.index != self._current_turn:
            self._current_turn = turn.index
            self.current_turn_changed.emit(turn.index)

    # Qt overrides

    def focusNextPrevChild(self, is_next: bool) -> bool:
        """Leave the conversation, which is one stop: arrow keys move inside."""
        if not self.hasFocus():
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        return super().focusNextPrevChild(is_next)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go to another message with Up and Down, to its links and buttons with Left and Right."""
        key, focused = event.key(), self.window().focusWidget()
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        reads = isinstance(focused, DocumentView)  # a text that was clicked is scrolled
        if key in steps and not reads and move_to_message(self, steps[Qt.Key(key)]):
            return
        sideways = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if key in sideways and move_in_turn(self, sideways[Qt.Key(key)]):
            return
        super().keyPressEvent(event)

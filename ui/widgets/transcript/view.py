"""A conversation on screen: turns near the eye are drawn, all others are only known to be there."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.domain.conversations import ExchangeStatus, Problem, Text, Thinking, ToolCall, ToolResult
from ui.rendering.document import ImageResolver
from ui.theme import Theme
from ui.widgets.transcript.anchor import AtEnd, AtItem, Centred
from ui.widgets.transcript.contents import Contents
from ui.widgets.transcript.focus import FocusWalk
from ui.widgets.transcript.found import FoundWords
from ui.widgets.transcript.guess import guess_heights
from ui.widgets.transcript.look import Look, TurnEvents
from ui.widgets.transcript.memory_marks import MemoryMarks
from ui.widgets.transcript.new_text import NewTextButton
from ui.widgets.transcript.panels import dividers_above
from ui.widgets.transcript.reply import LiveReply
from ui.widgets.transcript.selection import Selection
from ui.widgets.transcript.speech import announce_reply
from ui.widgets.transcript.steps import Steps
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import FindMark, Footer, Sources, TurnContent, TurnHead
from ui.widgets.transcript.virtual import VirtualColumn

_FORWARDED = (
    "edit_requested",
    "regenerate_requested",
    "fork_requested",
    "link_requested",
    "coverage_requested",
    "retry_requested",
    "continue_requested",
    "branch_requested",
    "why_requested",
    "inspect_requested",
    "source_clicked",
    "link_activated",
    "link_hovered",
    "attachment_activated",
)
_COLUMN_EM, _PADDING_EM = 50.0, 1.5


class TranscriptView(VirtualColumn):
    """Shows turns, fetches what they say when it is needed, and follows a reply as it streams.

    Turns are named by their index in what `show_conversation` was given, from 0.

    Signals:
        content_requested: First and last index of turns whose content is needed; `provide` it.
        current_turn_changed: The turn the user has clicked or tabbed into.
        For the others see `TurnEvents`.
    """

    content_requested = Signal(int, int)
    current_turn_changed = Signal(int)
    edit_requested = Signal(int, object)
    regenerate_requested = Signal(int)
    fork_requested = Signal(int)
    link_requested = Signal(int)
    coverage_requested = Signal(int)
    retry_requested = Signal(int)
    continue_requested = Signal(int)
    branch_requested = Signal(int, object, int)
    why_requested = Signal(int)
    inspect_requested = Signal(int)
    source_clicked = Signal(int, int)
    link_activated = Signal(str, str)
    link_hovered = Signal(str)
    attachment_activated = Signal(str)

    def __init__(
        self, theme: Theme, resolver: ImageResolver | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName("Conversation")
        self._resolver = resolver
        self._steps = Steps(self)
        self._events = TurnEvents(self)
        self._heads: list[TurnHead] = []
        self._has_slate = False
        self._contents = Contents(self.content_requested.emit)
        self._memory = MemoryMarks()
        self._live: LiveReply | None = None
        self._found = FoundWords(self)
        self._walk = FocusWalk(self)
        self._current_turn = -1
        self._look = self._look_of(theme)
        self._new_text = NewTextButton(self)
        self._connect_events()

    # what is shown

    @property
    def turn_count(self) -> int:
        """How many turns there are."""
        return len(self._heads)

    @property
    def is_streaming(self) -> bool:
        """Whether a reply is being written."""
        return self._live is not None

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be drawn or put in its place."""
        return self._steps.is_idle and self.is_arranged

    def show_conversation(
        self, turns: Sequence[TurnHead], place: tuple[int, int] | None = None
    ) -> None:
        """Show other turns, at their end or at a `place` that was noted earlier."""
        self._end_live()
        self._heads = list(turns)
        self._has_slate = False
        self._contents.clear()
        self._memory.truncate(0)
        self._current_turn = -1
        self._found.forget()
        known = place is not None and place[0] < len(self._heads)
        anchor = AtItem(*place) if place is not None and known else AtEnd()
        self.reset(self._guesses(), anchor)

    def provide(self, turn_index: int, content: TurnContent) -> None:
        """Take a turn's content, asked for or changed since; turns that are gone are ignored."""
        if not 0 <= turn_index < len(self._heads) or self._is_live(turn_index):
            return
        self._contents.put(turn_index, content)
        widget = self.turn_widget(turn_index)
        if widget is not None:
            widget.show_content(content)
            self._found.show_in(widget)
            self.arrange_soon()
        self._contents.forget_far(sum(self.visible_items) // 2, self._items)

    def show_sources(self, turn_index: int, sources: Sources) -> None:
        """Show what memory contributed to a turn's answer, in place of what was shown of it."""
        if not 0 <= turn_index < len(self._heads):
            return
        self._memory.put_sources(turn_index, sources)
        if (widget := self.turn_widget(turn_index)) is not None:
            self._memory.show_in(widget)

    def show_stand_in(self, turn_index: int, summary: str) -> None:
        """Say above a turn that what stands before it is sent as a summary; "" says it nowhere."""
        before = self._memory.summary_at
        if self._memory.put_summary(turn_index, summary):
            for each in (before, turn_index):
                if (widget := self.turn_widget(each)) is not None:
                    self.grow_above(each, partial(self._memory.show_in, widget))

    def add_turn(self, head: TurnHead, content: TurnContent) -> int:
        """Add a turn at the end and go there; return its index."""
        index = len(self._heads)
        self._heads.append(head)
        self._has_slate = False
        self._contents.put(index, content)
        self.append_item(guess_heights([head], self._look.theme, self.item_width())[0])
        self._mark_last()
        self.rest_on(AtEnd())
        return index

    def extend(self, heads: Sequence[TurnHead]) -> None:
        """Add turns at the end, whose content is asked for; who reads elsewhere is not moved."""
        self._heads.extend(heads)
        self._has_slate = self._has_slate and not heads
        for height in guess_heights(heads, self._look.theme, self.item_width()):
            self.append_item(height)
        self._mark_last()

    def show_slate(self, shown: bool, *, goes_there: bool = False) -> None:
        """Say below the last turn that a clean slate begins with the next message, or no longer."""
        self._has_slate = shown
        self._mark_last()
        if shown and goes_there:
            self.rest_on(AtEnd())

    def truncate(self, count: int) -> None:
        """Drop all turns but the first `count`: another branch takes their place."""
        if self._live is not None and self._live.index >= count:
            self._end_live()
        del self._heads[count:]
        self._contents.truncate(count)
        self._memory.truncate(count)
        self.truncate_items(count)
        self._mark_last()

    def place(self) -> tuple[int, int] | None:
        """Return where the reader is (turn, pixels below its top); None at the very end."""
        if isinstance(self.anchor, AtItem):
            return self.anchor.index, self.anchor.offset
        first, last = self.visible_items
        if isinstance(self.anchor, AtEnd) or last < first:
            return None
        return first, self._top - self._padding - self.heights.before(first)

    def set_theme(self, theme: Theme) -> None:
        """Draw everything anew in another look."""
        self._look = self._look_of(theme)
        if self._live is not None:
            self._live.detach()
        anchor = self.anchor
        self.reset(self._guesses(), anchor)

    def turn_widget(self, index: int) -> TurnWidget | None:
        """Return the turn's widget if it exists now."""
        widget = self.item(index)
        return widget if isinstance(widget, TurnWidget) else None

    # going somewhere

    def scroll_to_turn(self, index: int, *, centred: bool = True, highlight: bool = True) -> None:
        """Show a turn, in the middle or at the top, and mark it for two seconds.

        It stays there while heights around it are corrected, until the user scrolls.
        """
        if not 0 <= index < len(self._heads):
            return
        self.rest_on(Centred(index) if centred else AtItem(index, 0))
        widget = self.turn_widget(index)
        if highlight and widget is not None:
            widget.highlight()

    def set_find_marks(self, marks: Sequence[FindMark]) -> None:
        """Mark found words; an empty sequence removes the marks."""
        self._found.show(marks)

    def show_find_mark(self, number: int) -> None:
        """Go to one of the found words and make it stand out."""
        self._found.go_to(number)

    # a reply as it streams

    def begin_reply(self, turn_index: int | None = None) -> None:
        """Have a turn (the last one) answered; its content must be known by now."""
        index = len(self._heads) - 1 if turn_index is None else turn_index
        self._end_live()
        content = self._contents.get(index)
        if content is None:
            raise ValueError(f"the content of turn {index} must be provided before its reply")
        self._live = LiveReply(index, content, self.arrange_soon, self)
        if (widget := self.turn_widget(index)) is not None:
            self._live.attach(widget.begin_reply())
        self.rest_on(AtEnd())

    def append_text(self, text: str) -> None:
        """Add words to the reply; drawn at most 30 times a second."""
        self._add_live(Text(text))

    def append_thinking(self, text: str) -> None:
        """Add reasoning to the reply."""
        self._add_live(Thinking(text))

    def append_tool_call(self, call: ToolCall) -> None:
        """Show a tool call whose result is awaited."""
        self._add_live(call)

    def append_tool_result(self, result: ToolResult) -> None:
        """Put a result to its call."""
        self._add_live(result)

    def show_reply_notice(self, words: str) -> None:
        """Show a line where words are awaited, such as a retry and its wait."""
        if self._live is not None:
            self._live.show_notice(words)

    def finish_reply(
        self,
        status: ExchangeStatus = ExchangeStatus.COMPLETED,
        footer: Footer | None = None,
        problem: Problem | None = None,
    ) -> None:
        """End the reply, however it ended; what was drawn stays, and screen readers are told."""
        live = self._live
        if live is None:
            return
        content = live.finished(status, footer or Footer(), problem)
        self._contents.put(live.index, content)
        if (widget := self.turn_widget(live.index)) is not None:
            widget.finish_reply(content)
        self._end_live()
        self.arrange_soon()
        announce_reply(self, content)

    def _add_live(self, block: Text | Thinking | ToolCall | ToolResult) -> None:
        if self._live is not None:
            self._live.add(block)

    def _is_live(self, index: int) -> bool:
        return self._live is not None and self._live.index == index

    def _end_live(self) -> None:
        if self._live is not None:
            self._live.deleteLater()
        self._live = None
        self._new_text.hide()

    # items

    def make_item(self, index: int) -> TurnWidget:
        """Return a turn's widget, filled if its content is known."""
        widget = TurnWidget(
            self._look,
            index,
            self._heads[index],
            dividers_above(self._heads, index),
            self.heights[index],
        )
        self._memory.show_in(widget)
        content = self._contents.get(index)
        if content is not None:
            widget.show_content(content)
        if self._live is not None and self._live.index == index:
            self._live.attach(widget.begin_reply())
        is_last = index == len(self._heads) - 1
        widget.set_last(is_last)
        widget.show_slate(is_last and self._has_slate)
        widget.changed.connect(self.arrange_soon)
        widget.scroll_wanted.connect(self.show_widget)
        self._found.show_in(widget)
        return widget

    def _mark_last(self) -> None:
        """The last turn keeps its actions in sight, and a clean slate stands below it."""
        for index, widget in self._items.items():
            if isinstance(widget, TurnWidget):
                is_last = index == len(self._heads) - 1
                widget.set_last(is_last)
                widget.show_slate(is_last and self._has_slate)

    def may_drop(self, index: int) -> bool:
        """Keep the reply that streams, and where the focus is."""
        return not self._is_live(index) and super().may_drop(index)

    def arrange(self) -> None:
        """Arrange, then ask for what is missing on screen."""
        super().arrange()
        self._contents.ask_for(self._items, len(self._heads))
        grows_below = self.is_streaming and not isinstance(self.anchor, AtEnd)
        self._new_text.setVisible(grows_below)
        if grows_below:
            self._new_text.place()
        self._found.arrive()

    def _guesses(self) -> list[int]:
        return guess_heights(self._heads, self._look.theme, self.item_width())

    # parts of the view itself

    def _look_of(self, theme: Theme) -> Look:
        self.set_metrics(round(theme.em(_COLUMN_EM)), round(theme.em(_PADDING_EM)))
        return Look(theme, self._steps, self._events, self._resolver)

    def _connect_events(self) -> None:
        events = self._events
        for name in _FORWARDED:
            getattr(events, name).connect(getattr(self, name))
        events.words_drawn.connect(self._found.mark_drawn)
        Selection(self, events)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus_changed)

    # focus

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        turn = self._walk.moved(before, now)
        if turn is not None and turn.index != self._current_turn:
            self._current_turn = turn.index
            self.current_turn_changed.emit(turn.index)

    # Qt overrides

    def focusNextPrevChild(self, is_next: bool) -> bool:
        """Tab goes from message to message and through what is in them, however many there are."""
        return self._walk.step(1 if is_next else -1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl with Up or Down goes from message to message; else scroll."""
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier and event.key() in steps:
            self._walk.to_message(steps[Qt.Key(event.key())])
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the button in its place."""
        super().resizeEvent(event)
        if self._new_text.isVisible():
            self._new_text.place()

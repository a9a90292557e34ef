"""An answer: its frame, and the reply that grows in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from PySide6.QtCore import QTimer

from app.domain.chat import TextWasThinking, add_piece
from app.domain.conversations import (
    FORGOTTEN,
    Attachment,
    Block,
    ExchangeStatus,
    Forgotten,
    Image,
    Message,
    Problem,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.translation import format_duration, model_label, tr
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.folds import Fold, text_fold, tool_fold, tool_title
from ui.widgets.transcript.layout import Column, Label, remeasure
from ui.widgets.transcript.message_footer import Action
from ui.widgets.transcript.message_frame import MessageFrame
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.panels import (
    InterruptionPanel,
    ProblemPanel,
    ProposalPanel,
    SourceRow,
    WrittenRow,
    file_row,
)
from ui.widgets.transcript.values import Sources, WrittenLine

_WAITING = tr("Waiting for the reply…")
_WAITING_AFTER_TOOLS = tr("Reading the results of the tools…")
_THOUGHTS = tr("Thought process")
_STALLED = tr("Waiting for more…")
_TOOL_RUNS = tr("Waiting for the tool…")
_LOOK_EVERY_MS = 1000
_STALLED_AFTER_S = 3


class AnswerFrame(MessageFrame):
    """Everything that answers one question: messages of assistant and tools together."""

    def __init__(
        self, context: RenderContext, index: int, model: str | None, actions: Sequence[Action]
    ) -> None:
        name = (
            tr("Answer, {model_label}").format(model_label=model_label(model))
            if model
            else tr("Answer")
        )
        super().__init__(context, index, name, actions, right=False)
        self._index = index
        self._content = Column(self, gap=context.px(0.7))
        self._end = Column(self, gap=context.px(0.6))
        self._sources = Column(self, gap=context.px(0.3))
        self._shown_sources = Sources()
        self._written = Column(self, gap=context.px(0.3))
        self._shown_written: tuple[WrittenLine, ...] = ()
        self._calls: dict[str, tuple[Fold, ToolCall]] = {}
        self._streaming_text: MessageText | None = None
        self._streaming_thinking: _StreamingThinking | None = None
        self._waiting: Label | None = None
        self._waits_for = ""
        self._heard_s = 0.0
        self._pulse = QTimer(self, interval=_LOOK_EVERY_MS)
        self._pulse.timeout.connect(self._on_pulse_timeout)

    def show_messages(self, messages: Sequence[Message]) -> None:
        """Show stored messages, oldest first."""
        blocks = [block for message in messages for block in message.blocks]
        results: dict[str, list[ToolResult]] = {}  # in order: some servers repeat their ids
        for block in blocks:
            if isinstance(block, ToolResult):
                results.setdefault(block.call_id, []).append(block)
        for block in blocks:
            if isinstance(block, ToolCall):
                own = results.get(block.call_id)
                self._add_tool(block, own.pop(0) if own else None)
            elif isinstance(block, Text) and block.text.strip():
                self._add_text(MessageText(self._context, block.text))
            elif isinstance(block, Thinking) and block.text.strip():
                self._content.add(text_fold(self._context, _THOUGHTS, block.text))
            elif isinstance(block, Forgotten):
                self._content.add(Label(FORGOTTEN, "muted"))
            elif isinstance(block, Image | Attachment):
                self._content.add(file_row(self._context, [block]))
        for without_call in results.values():
            for result in without_call:
                self._add_tool(None, result)

    def show_end(self, status: ExchangeStatus, problem: Problem | None, *, can_go_on: bool) -> None:
        """Show how the reply ended: a problem, an interruption, or nothing; offer to go on if it can."""
        self._end.clear()
        self._waiting = None
        events = self._context.events
        if status is ExchangeStatus.FAILED:
            shown = problem or Problem("unknown", tr("The reply failed"), tr("Try again."))
            retry = partial(events.retry_requested.emit, self._index)
            self._end.add(ProblemPanel(self._context, shown, retry if can_go_on else None))
        elif status is ExchangeStatus.INTERRUPTED:
            resume = partial(events.continue_requested.emit, self._index) if can_go_on else None
            has_begun = not self._content.is_empty
            self._end.add(InterruptionPanel(self._context, problem, resume, has_begun=has_begun))

    def show_sources(self, sources: Sources) -> None:
        """Show what recall contributed, and its problem if it had one."""
        if sources == self._shown_sources:
            return
        self._shown_sources = sources
        self._sources.clear()
        if sources.chips:
            clicked = partial(self._context.events.source_clicked.emit, self._index)
            self._sources.add(SourceRow(self._context, sources.chips, clicked))
        if sources.notice:
            self._sources.add(Label(sources.notice, "small"))

    def show_written(self, lines: tuple[WrittenLine, ...]) -> None:
        """Show what was written to memory in this turn."""
        if lines != self._shown_written:
            self._shown_written = lines
            self._written.clear()
            for line in lines:
                row = ProposalPanel if line.needs_answer else WrittenRow
                self._written.add(row(self._context, line))

    # while it streams

    def begin(self) -> None:
        """Show that the reply is awaited."""
        self._heard_s = monotonic()
        self._pulse.start()
        self._show_waiting(_WAITING)

    def append(self, block: Block | TextWasThinking) -> None:
        """Add a piece of text or thinking, or a whole tool call or result.

        `TextWasThinking` makes thinking of the text that streams.
        """
        self._heard_s = monotonic()
        if isinstance(block, TextWasThinking):
            self._make_thinking()
            return
        self._end_streams(block)
        self._show_waiting("")
        if isinstance(block, Text):
            if self._streaming_text is None:
                self._streaming_text = MessageText(self._context, block.text, streams=True)
                self._add_text(self._streaming_text)
            else:
                self._streaming_text.append(block.text)
        elif isinstance(block, Thinking):
            if self._streaming_thinking is None:
                self._streaming_thinking = _StreamingThinking(self._context)
                self._content.add(self._streaming_thinking.fold)
            self._streaming_thinking.append(block.text)
        elif isinstance(block, ToolCall):
            fold = self._add_tool(block, None)
            fold.show_title(tool_title(block, None, is_running=True))
            self._calls[block.call_id] = (fold, block)
        elif isinstance(block, ToolResult):
            if block.call_id not in self._calls:
                self._add_tool(None, block)
                return
            fold, call = self._calls.pop(block.call_id)
            self._content.replace(fold, tool_fold(self._context, call, block))
            self._show_waiting("" if self._calls else _WAITING_AFTER_TOOLS)

    def finish(self) -> None:
        """End the stream, however the reply ended."""
        self._pulse.stop()
        self._end_streams()
        self._show_waiting("")

    def _make_thinking(self) -> None:
        if (text := self._streaming_text) is None:
            return
        thinking = _StreamingThinking(self._context)
        thinking.append(text.builder.source.strip())
        thinking.finish()
        self._content.replace(text, thinking.fold)
        self.texts.remove(text)
        self._streaming_text = None
        self._show_waiting(_WAITING)

    def _end_streams(self, block: Block | None = None) -> None:
        """End the text or thinking that streams, unless `block` continues it."""
        if self._streaming_text is not None and not isinstance(block, Text):
            self._streaming_text.finish()
            self._streaming_text = None
        if self._streaming_thinking is not None and not isinstance(block, Thinking):
            self._streaming_thinking.finish()
            self._streaming_thinking = None

    def _on_pulse_timeout(self) -> None:
        """Say for how long nothing has come, so that a stalled reply shows that it is not over."""
        waited_s = monotonic() - self._heard_s
        if waited_s >= _STALLED_AFTER_S:
            waits_for = self._waits_for or (_TOOL_RUNS if self._calls else _STALLED)
            self._show_waiting_line(f"{waits_for}  {format_duration(waited_s)}")

    def _show_waiting(self, text: str) -> None:
        """Show a line at the end while something is awaited; "" removes it."""
        self._waits_for = text
        self._show_waiting_line(text)

    def _show_waiting_line(self, text: str) -> None:
        if self._waiting is None and text:
            self._waiting = Label("", "muted")
            self._end.add(self._waiting)
        if self._waiting is not None and text != self._waiting.text():
            self._waiting.show_text(text)
            remeasure(self)

    def _add_text(self, text: MessageText) -> None:
        self.texts.append(text)
        self._content.add(text)

    def _add_tool(self, call: ToolCall | None, result: ToolResult | None) -> Fold:
        fold = tool_fold(self._context, call, result)
        self._content.add(fold)
        return fold

    def height_for(self, width: int) -> int:
        """Place the content, how it ended, sources and footer."""
        margin, gap = self.footer.margin, self._context.px(0.6)
        inner, y = width - 2 * margin, margin
        for column in (self._content, self._end, self._written, self._sources):
            height = column.height_for(inner)
            if height:
                y += gap if y > margin else 0
                column.setGeometry(margin, y, inner, height)
                y += height
            column.setVisible(bool(height))
        y += self._context.px(0.25)
        footer = self.footer.height_for(inner)
        self.footer.setGeometry(0, y, width, footer)
        return y + footer + margin


class _StreamingThinking:
    """Thinking that streams into a fold; it is rendered only while the fold is open."""

    def __init__(self, context: RenderContext) -> None:
        self._context = context
        self._source = ""
        self._text: MessageText | None = None
        self._is_finished = False
        self._began_s = monotonic()
        self.fold = Fold(context, tr("Thinking…"), self._fill)

    def append(self, text: str) -> None:
        self._source += text
        if self._text is not None:
            self._text.append(text)

    def finish(self) -> None:
        self._is_finished = True
        took_s = monotonic() - self._began_s
        took = tr("Thought for {took}").format(took=format_duration(took_s))
        self.fold.show_title(took if took_s >= 1 else _THOUGHTS)
        if self._text is not None:
            self._text.finish()

    def _fill(self, body: Column) -> None:
        self._text = MessageText(self._context, self._source, streams=not self._is_finished)
        body.add(self._text)


@dataclass(slots=True)
class LiveReply:
    """The reply to turn `index`: its blocks so far, and the frame in which they are drawn, if there is one.

    The frame may be deleted and created again, for example when the theme changes; nothing is lost.
    """

    index: int
    frame: AnswerFrame | None = None
    blocks: list[Block] = field(default_factory=list)

    def attach(self, frame: AnswerFrame) -> None:
        """Render into `frame` from now on, beginning with everything received before."""
        self.frame = frame
        for block in self.blocks:
            frame.append(block)

    def append(self, block: Block | TextWasThinking) -> None:
        add_piece(self.blocks, block)
        if self.frame is not None:
            self.frame.append(block)

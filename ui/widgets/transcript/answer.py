"""An answer: thinking, words, tool calls in their order, whole or while it streams."""

from collections.abc import Sequence
from time import monotonic

from PySide6.QtCore import Signal

from app.domain.conversations import (
    Attachment,
    Block,
    ExchangeStatus,
    Image,
    Message,
    Problem,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ui.widgets.transcript.folds import Fold, text_fold, tool_fold, tool_title
from ui.widgets.transcript.frames import MessageFrame
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.meta import Action
from ui.widgets.transcript.panels import InterruptedMark, ProblemPanel, file_chips
from ui.widgets.transcript.parts import Column, Label
from ui.widgets.transcript.sources import SourceRow
from ui.widgets.transcript.values import Footer, Sources
from ui.widgets.transcript.words import duration, footer_words

_WAITING = "Waiting for the first words …"
_GOES_ON = "Reading what the tools found …"


class AnswerFrame(MessageFrame):
    """All that answers one question: messages of assistant and tools together.

    Signals:
        retry_clicked, continue_clicked: After a failed, an interrupted reply.
        source_clicked: The number of something recalled.
        scroll_wanted: A widget and how far below its top something wants to be seen.
    """

    retry_clicked = Signal()
    continue_clicked = Signal()
    source_clicked = Signal(int)
    scroll_wanted = Signal(object, int)

    def __init__(self, look: Look, name: str, actions: Sequence[Action]) -> None:
        super().__init__(look, name, actions, right=False)
        self._content = Column(self, gap=look.px(0.7))
        self._content.changed.connect(self.changed)
        self._end = Column(self, gap=look.px(0.6))
        self._end.changed.connect(self.changed)
        self._sources = Column(self, gap=look.px(0.3))
        self._sources.changed.connect(self.changed)
        self._shown_sources = Sources()
        self._calls: dict[str, tuple[Fold, ToolCall | None]] = {}
        self._stream: MessageText | None = None
        self._thinking: _LiveThinking | None = None
        self._waiting: Label | None = None
        self.texts: list[MessageText] = []

    # whole

    def show_messages(self, messages: Sequence[Message]) -> None:
        """Show stored messages, oldest first."""
        results: dict[str, list[ToolResult]] = {}  # in order: some servers repeat their ids
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    results.setdefault(block.call_id, []).append(block)
        for message in messages:
            for block in message.blocks:
                self._show_block(block, results)
        for left in results.values():
            for result in left:
                self._add_tool(None, result)

    def _show_block(self, block: Block, results: dict[str, list[ToolResult]]) -> None:
        if isinstance(block, Text) and block.text.strip():
            self._add_text(MessageText(self._look, block.text))
        elif isinstance(block, Thinking) and block.text.strip():
            self._content.add(text_fold(self._look, "Thinking", block.text))
        elif isinstance(block, ToolCall):
            own = results.get(block.call_id)
            self._add_tool(block, own.pop(0) if own else None)
        elif isinstance(block, Image | Attachment):
            self._content.add(file_chips(self._look, [block]))

    def _add_text(self, text: MessageText) -> None:
        text.menu_requested.connect(self.open_menu)
        text.scroll_wanted.connect(lambda y: self.scroll_wanted.emit(text, y))
        self.texts.append(text)
        self._content.add(text)

    def _add_tool(self, call: ToolCall | None, result: ToolResult | None) -> None:
        fold = tool_fold(self._look, call, result)
        if call is not None:
            self._calls[call.call_id] = (fold, call)
        self._content.add(fold)

    # how it ended

    def show_end(self, status: ExchangeStatus, problem: Problem | None) -> None:
        """Show what follows the words: a problem, an interruption."""
        self._end.clear()
        self._waiting = None
        if status is ExchangeStatus.FAILED:
            shown = problem or Problem("unknown", "The reply failed", "Try again.")
            panel = ProblemPanel(self._look, shown)
            panel.retry_clicked.connect(self.retry_clicked)
            self._end.add(panel)
        elif status is ExchangeStatus.INTERRUPTED:
            mark = InterruptedMark(self._look, problem)
            mark.continue_clicked.connect(self.continue_clicked)
            self._end.add(mark)

    def show_sources(self, sources: Sources) -> None:
        """Show what memory contributed, and what went wrong with it."""
        if sources == self._shown_sources:
            return
        self._shown_sources = sources
        self._sources.clear()
        if sources.chips:
            row = SourceRow(self._look, sources.chips)
            row.clicked.connect(self.source_clicked)
            self._sources.add(row)
        if sources.notice:
            self._sources.add(Label(f"Recall: {sources.notice}", "small"))

    def show_footer(self, footer: Footer) -> None:
        """Show model, tokens, cost and times under the answer."""
        self.meta.show_figures(footer_words(footer.model, footer.usage))

    # while it streams

    def begin(self) -> None:
        """Show that words are awaited."""
        self.show_notice(_WAITING)

    def show_notice(self, words: str) -> None:
        """Show a line at the end (a wait, a retry); the next words or an empty one remove it."""
        if self._waiting is None:
            self._waiting = Label("", "muted")
            self._end.add(self._waiting)
        self._waiting.show_text(words)
        self._waiting.setVisible(bool(words))
        self.changed.emit()

    def append_text(self, text: str) -> None:
        """Add words of the answer."""
        self._close_thinking()
        self._hide_notice()
        if self._stream is None:
            self._stream = MessageText(self._look, text, streams=True)
            self._add_text(self._stream)
        else:
            self._stream.append(text)

    def append_thinking(self, text: str) -> None:
        """Add reasoning."""
        self._close_text()
        self._hide_notice()
        if self._thinking is None:
            self._thinking = _LiveThinking(self._look)
            self._content.add(self._thinking.fold)
        self._thinking.append(text)

    def add_call(self, call: ToolCall) -> None:
        """Show a tool call whose result is awaited."""
        self._close_open()
        self._hide_notice()
        self._add_tool(call, None)
        self._calls[call.call_id][0].show_title(tool_title(call, None, is_awaited=True))

    def add_result(self, result: ToolResult) -> None:
        """Put a result to its call."""
        fold, call = self._calls.pop(result.call_id, (None, None))
        if fold is None:
            self._add_tool(None, result)
            return
        self._content.replace(fold, tool_fold(self._look, call, result))
        if not self._calls:
            self.show_notice(_GOES_ON)

    def finish(self) -> None:
        """The stream has ended, however it did."""
        self._close_open()
        self._hide_notice()

    def _close_open(self) -> None:
        self._close_text()
        self._close_thinking()

    def _close_text(self) -> None:
        if self._stream is not None:
            self._stream.finish()
            self._stream = None

    def _close_thinking(self) -> None:
        if self._thinking is not None:
            self._thinking.close()
            self._thinking = None

    def _hide_notice(self) -> None:
        if self._waiting is not None and not self._waiting.isHidden():
            self.show_notice("")

    def height_for(self, width: int) -> int:
        """Place the content, what follows it, and the actions."""
        margin, gap = self._look.px(0.3), self._look.px(0.6)
        inner, y = width - 2 * margin, margin
        for column in (self._content, self._end, self._sources):
            height = column.height_for(inner)
            if height:
                y += gap if y > margin else 0
                column.setGeometry(margin, y, inner, height)
                y += height
            column.setVisible(bool(height))
        y += self._look.px(0.25)
        meta = self.meta.height_for(inner)
        self.meta.setGeometry(margin, y, inner, meta)
        return y + meta + margin


class _LiveThinking:
    """Reasoning that is still coming, folded; its words are drawn only while it is open."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._words = ""
        self._text: MessageText | None = None
        self._began = monotonic()
        self.fold = Fold(look, "Thinking …", self._make_body)

    def append(self, text: str) -> None:
        self._words += text
        if self._text is not None:
            self._text.append(text)

    def close(self) -> None:
        took = duration(round((monotonic() - self._began) * 1000))
        self.fold.show_title(f"Thought for {took}")
        if self._text is not None:
            self._text.finish()
            self._text = None

    def _make_body(self) -> Column:
        column = Column()
        is_live = self.fold.title.endswith("…")
        made = MessageText(self._look, self._words, streams=is_live)
        self._text = made if is_live else None
        column.add(made)
        return column

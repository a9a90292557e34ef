"""A reply that is being written: what has come, what of it is drawn, and when the rest will be."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from PySide6.QtCore import QObject

from app.domain.conversations import (
    Block,
    ExchangeStatus,
    Message,
    Problem,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, MessageId
from ui.widgets.transcript.answer import AnswerFrame
from ui.widgets.transcript.pacing import Pacer
from ui.widgets.transcript.values import Footer, TurnContent

_UNSAVED = MessageId(0)


class LiveReply(QObject):
    """Collects what streams in and hands it to the answer's frame at the pace of the screen.

    The frame may come and go (a change of theme makes a new one); nothing is lost with it.
    `drawn` is called after each drawing.
    """

    def __init__(
        self, index: int, content: TurnContent, drawn: Callable[[], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self.index = index
        self.content = content
        self._drawn = drawn
        self._frame: AnswerFrame | None = None
        self._blocks: list[Block] = []
        self._waiting: list[Block] = []
        self._notice: str | None = None
        self._pacer = Pacer(self._draw, self)

    def attach(self, frame: AnswerFrame) -> None:
        """Draw into `frame` from now on, beginning with all there was before."""
        self._frame = frame
        for block in self._blocks:
            self._hand_over(block)

    def detach(self) -> None:
        """Draw nowhere until another frame is attached: the present one is about to go."""
        self._frame = None

    def add(self, block: Text | Thinking | ToolCall | ToolResult) -> None:
        """Take what has come: a piece of text or thinking, a whole call or result."""
        last = self._waiting[-1] if self._waiting else None
        if isinstance(block, Text | Thinking) and type(last) is type(block):
            self._waiting[-1] = _joined(last, block)
        else:
            self._waiting.append(block)
        self._pacer.request()

    def show_notice(self, words: str) -> None:
        """Show a line in place of words that are awaited."""
        self._notice = words
        self._pacer.request()

    def flush(self) -> None:
        """Draw what waits."""
        self._pacer.flush()

    def finished(
        self, status: ExchangeStatus, footer: Footer, problem: Problem | None
    ) -> TurnContent:
        """Return the turn as it now is; the new messages have no identity yet."""
        self.flush()
        messages = self.content.messages
        if self._blocks:
            conversation = messages[0].conversation_id if messages else ConversationId(0)
            parent = messages[-1].id if messages else None
            at = datetime.now(UTC)
            blocks = tuple(self._blocks)
            reply = Message(
                _UNSAVED, "", conversation, parent, Role.ASSISTANT, blocks, at, footer.model
            )
            messages = (*messages, reply)
        return replace(
            self.content, messages=messages, status=status, footer=footer, problem=problem
        )

    def _draw(self) -> None:
        waiting, self._waiting = self._waiting, []
        for block in waiting:
            last = self._blocks[-1] if self._blocks else None
            if isinstance(block, Text | Thinking) and type(last) is type(block):
                self._blocks[-1] = _joined(last, block)
            else:
                self._blocks.append(block)
            self._hand_over(block)
        if self._notice is not None and self._frame is not None:
            self._frame.show_notice(self._notice)
            self._notice = None
        self._drawn()

    def _hand_over(self, block: Block) -> None:
        if self._frame is None:
            return
        if isinstance(block, Text):
            self._frame.append_text(block.text)
        elif isinstance(block, Thinking):
            self._frame.append_thinking(block.text)
        elif isinstance(block, ToolCall):
            self._frame.add_call(block)
        elif isinstance(block, ToolResult):
            self._frame.add_result(block)


def _joined(first: Block | None, second: Text | Thinking) -> Text | Thinking:
    before = first.text if isinstance(first, Text | Thinking) else ""
    return replace(second, text=before + second.text)

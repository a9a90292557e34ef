"""A streaming reply: collects its blocks, and passes them to the answer's frame while there is one."""

from dataclasses import replace
from datetime import UTC, datetime

from app.domain.chat import TextWasThinking
from app.domain.conversations import Block, ExchangeStatus, Message, Problem, Role, Text, Thinking
from app.domain.ids import ConversationId, MessageId
from ui.widgets.transcript.answer import AnswerFrame
from ui.widgets.transcript.values import Footer, TurnContent

_UNSAVED = MessageId(0)


class LiveReply:
    """The reply to turn `index`, whose content before the reply is `content`.

    The frame may be deleted and created again, for example when the theme changes; nothing is lost.
    """

    def __init__(self, index: int, content: TurnContent) -> None:
        self.index = index
        self._content = content
        self._frame: AnswerFrame | None = None
        self._blocks: list[Block] = []

    def attach(self, frame: AnswerFrame | None) -> None:
        """Render into `frame` from now on, beginning with everything received before; None: nowhere."""
        self._frame = frame
        if frame is not None:
            for block in self._blocks:
                frame.append(block)

    def append(self, block: Block | TextWasThinking) -> None:
        """Add a piece of text or thinking, or a whole tool call or result.

        `TextWasThinking` makes thinking of the text that came last.
        """
        last = self._blocks[-1] if self._blocks else None
        if isinstance(block, Text) and isinstance(last, Text):
            self._blocks[-1] = replace(last, text=last.text + block.text)
        elif isinstance(block, Thinking) and isinstance(last, Thinking):
            self._blocks[-1] = replace(block, text=last.text + block.text)
        elif not isinstance(block, TextWasThinking):
            self._blocks.append(block)
        elif isinstance(last, Text):
            self._blocks[-1] = Thinking(last.text.strip())
        if self._frame is not None:
            self._frame.append(block)

    def finished(
        self, status: ExchangeStatus, footer: Footer, problem: Problem | None
    ) -> TurnContent:
        """Return the turn's content with the reply, which has no message id yet."""
        messages = self._content.messages
        if self._blocks:
            conversation = messages[0].conversation_id if messages else ConversationId(0)
            parent = messages[-1].id if messages else None
            blocks, now = tuple(self._blocks), datetime.now(UTC)
            reply = Message(
                _UNSAVED, "", conversation, parent, Role.ASSISTANT, blocks, now, footer.model
            )
            messages = (*messages, reply)
        return replace(
            self._content, messages=messages, status=status, footer=footer, problem=problem
        )

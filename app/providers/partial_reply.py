"""The reply to one request while it streams."""

import time
from dataclasses import dataclass, field

from app.domain.chat import (
    Finished,
    FinishReason,
    StreamEvent,
    TextWasThinking,
    UsageReported,
    add_piece,
)
from app.domain.conversations import Block, Text, Thinking, ToolCall
from app.domain.ids import MessageId

# Some servers report "stop" after a tool call; a reply that was cut off must not run its calls.
_REASONS_TO_RUN_CALLS = (FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.UNKNOWN)


@dataclass(slots=True)
class PartialReply:
    """The reply to one request so far; it becomes the message `message_id`."""

    message_id: MessageId
    started: float = field(default_factory=time.monotonic)
    blocks: list[Block] = field(default_factory=list)
    tokens: UsageReported | None = None
    finished: Finished | None = None
    first_token_ms: int | None = None

    def add(self, event: StreamEvent) -> None:
        match event:
            case Text() | Thinking() | TextWasThinking() | ToolCall():
                if self.first_token_ms is None and not isinstance(event, ToolCall):
                    self.first_token_ms = round((time.monotonic() - self.started) * 1000)
                add_piece(self.blocks, event)
            case UsageReported():
                self.tokens = event
            case Finished():
                self.finished = event
            case _:
                pass

    @property
    def has_content(self) -> bool:
        """Whether there is anything to keep."""
        return any(not isinstance(block, Text | Thinking) or block.text for block in self.blocks)

    @property
    def has_answer(self) -> bool:
        """Whether there is more than thinking."""
        return any(
            not isinstance(block, Thinking) and (not isinstance(block, Text) or block.text.strip())
            for block in self.blocks
        )

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer, and so to count tokens."""
        return self.has_content or self.tokens is not None or self.finished is not None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls to run before the next request; none unless the reply is complete."""
        if self.finished is None or self.finished.reason not in _REASONS_TO_RUN_CALLS:
            return ()
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def text(self) -> str:
        return "".join(b.text for b in self.blocks if isinstance(b, Text | Thinking))

    @property
    def answer(self) -> str:
        """The text without thinking."""
        return "".join(b.text for b in self.blocks if isinstance(b, Text))

    @property
    def written(self) -> str:
        """All that the model has written, to estimate its tokens."""
        calls = (f"{b.name} {b.arguments}" for b in self.blocks if isinstance(b, ToolCall))
        return " ".join((self.text, *calls))

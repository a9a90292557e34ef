"""What has come of the reply to one request: blocks as they grow, tokens, how it ended."""

import time
from dataclasses import dataclass, field

from app.domain.chat import (
    Finished,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    TokensReported,
    ToolCallReady,
)
from app.domain.conversations import Block, RawReply, Text, Thinking, ToolCall
from app.domain.ids import MessageId

# A server that says "stop" after a call means the call all the same; one that was cut does not.
_MEANS_ITS_CALLS = (FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.UNKNOWN)


@dataclass(slots=True)
class Arrived:
    """The reply to one request so far; it becomes the message `message_id`."""

    message_id: MessageId
    started: float = field(default_factory=time.monotonic)
    blocks: list[Block] = field(default_factory=list)
    tokens: TokensReported | None = None
    finished: Finished | None = None
    first_token_ms: int | None = None

    def take(self, event: StreamEvent) -> None:
        """Take in what a model said."""
        match event:
            case TextDelta(text=text):
                self._grow(Text, text)
            case ThinkingDelta(text=text):
                self._grow(Thinking, text)
            case ToolCallReady(call_id=call_id, name=name, arguments=arguments):
                self.blocks.append(ToolCall(call_id, name, arguments))
            case TokensReported():
                self.tokens = event
            case Finished():
                self.finished = event
            case _:
                pass

    @property
    def raw(self) -> RawReply | None:
        """The provider's own form of it, once it is complete."""
        return self.finished.raw if self.finished else None

    @property
    def holds_something(self) -> bool:
        """Whether there is anything to keep."""
        return any(not isinstance(block, Text | Thinking) or block.text for block in self.blocks)

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer, and to count."""
        return self.holds_something or self.tokens is not None or self.finished is not None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools it wants run before it goes on; none unless it is complete."""
        if self.finished is None or self.finished.reason not in _MEANS_ITS_CALLS:
            return ()
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def words(self) -> str:
        """All that was said and thought, for a guess at its tokens."""
        return "".join(b.text for b in self.blocks if isinstance(b, Text | Thinking))

    def _grow(self, kind: type[Text] | type[Thinking], text: str) -> None:
        if self.first_token_ms is None:
            self.first_token_ms = round((time.monotonic() - self.started) * 1000)
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, kind):
            self.blocks[-1] = kind(last.text + text)
        else:
            self.blocks.append(kind(text))

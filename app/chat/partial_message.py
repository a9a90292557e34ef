"""The reply to one request while it streams, and the cost of an exchange's requests."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.domain.changes import SpendAdded
from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    ModelRef,
    StreamEvent,
    TextDelta,
    TextWasThinking,
    ThinkingDelta,
    ToolCallReady,
    UsageReported,
)
from app.domain.conversations import Block, Text, Thinking, ToolCall, Usage
from app.domain.ids import ExchangeId, MessageId
from app.providers.pricing.usage import UsageEstimator
from app.providers.vendors.recall import RECALL
from app.storage.engine.times import now

# Some servers report "stop" after a tool call; a reply that was cut off must not run its calls.
_REASONS_TO_RUN_CALLS = (FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.UNKNOWN)

# Takes the tokens of a request; returns (USD, the price as text), None when the price is unknown.
PriceOf = Callable[[ModelRef, UsageReported], tuple[float | None, str]]


@dataclass(slots=True)
class PartialMessage:
    """The reply to one request so far; it becomes the message `message_id`."""

    message_id: MessageId
    started: float = field(default_factory=time.monotonic)
    blocks: list[Block] = field(default_factory=list)
    tokens: UsageReported | None = None
    finished: Finished | None = None
    first_token_ms: int | None = None

    def add(self, event: StreamEvent) -> None:
        """Add an event of the stream."""
        match event:
            case TextDelta(text=text):
                self._append(Text, text)
            case ThinkingDelta(text=text):
                self._append(Thinking, text)
            case TextWasThinking():
                self.blocks[-1] = Thinking(self.text.strip())  # all of the reply so far
            case ToolCallReady(call_id=call_id, name=name, arguments=arguments):
                self.blocks.append(ToolCall(call_id, name, arguments))
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
        """All text and thinking."""
        return "".join(b.text for b in self.blocks if isinstance(b, Text | Thinking))

    @property
    def written(self) -> str:
        """All that the model has written, to estimate its tokens."""
        calls = (f"{b.name} {b.arguments}" for b in self.blocks if isinstance(b, ToolCall))
        return " ".join((self.text, *calls))

    def _append(self, kind: type[Text] | type[Thinking], text: str) -> None:
        if self.first_token_ms is None:
            self.first_token_ms = round((time.monotonic() - self.started) * 1000)
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, kind):
            self.blocks[-1] = kind(last.text + text)
        else:
            self.blocks.append(kind(text))


class Bill:
    """Adds up the usage of an exchange's requests.

    Attributes:
        usage: The total; None before the first request.
    """

    def __init__(
        self,
        ref: ModelRef,
        price_of: PriceOf,
        estimator: UsageEstimator,
        before: Usage | None = None,
    ) -> None:
        """Start from the usage of an earlier run of the same reply."""
        self._ref = ref
        self._price_of = price_of
        self._estimator = estimator
        self._started = time.monotonic()
        self._before_ms = (before.duration_ms or 0) if before else 0
        self.usage = before

    def add(
        self, reply: PartialMessage, request: ChatRequest, exchange_id: ExchangeId
    ) -> list[SpendAdded]:
        """Add a request; return its spend, if the server has begun to answer.

        Tokens that the server did not report, also because it was stopped, are estimated.
        """
        tokens = self._estimator.complete(
            self._ref, request, reply.written, reply.tokens, is_finished=reply.finished is not None
        )
        cost_usd, price = self._price_of(self._ref, tokens)
        if not reply.has_begun and cost_usd:
            cost_usd, price = None, ""  # it is unknown whether the provider charges for it
        usage = Usage(
            tokens.input_tokens, tokens.output_tokens, tokens.cached_tokens, cost_usd, price,
            estimated=tokens is not reply.tokens, first_token_ms=reply.first_token_ms,
            cache_write_tokens=tokens.cache_write_tokens,
        )  # fmt: skip
        duration_ms = self._before_ms + round((time.monotonic() - self._started) * 1000)
        total = usage if self.usage is None else _sum(self.usage, usage)
        self.usage = replace(total, duration_ms=duration_ms)  # includes the time of tools
        if not reply.has_begun or self._ref.provider == RECALL:
            return []
        return [
            SpendAdded(
                now(), "chat", str(self._ref), usage.input_tokens, usage.output_tokens,
                usage.cached_tokens, usage.cost_usd, exchange_id,
            )
        ]  # fmt: skip


def _sum(first: Usage, second: Usage) -> Usage:
    """Return the usage of both; an unknown price makes the total unknown."""
    is_known = first.cost_usd is not None and second.cost_usd is not None
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cached_tokens + second.cached_tokens,
        (first.cost_usd or 0) + (second.cost_usd or 0) if is_known else None,
        second.price if is_known else "",
        first.estimated or second.estimated,
        first.first_token_ms if first.first_token_ms is not None else second.first_token_ms,
        cache_write_tokens=first.cache_write_tokens + second.cache_write_tokens,
    )

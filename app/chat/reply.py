"""A running exchange as it is seen from outside: its events and outcome, its usage, its journal, its problems."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace

from app.chat.planner import ExchangePlan
from app.domain.changes import TEXT_WAS_THINKING, ReplyGrew, SpendAdded
from app.domain.chat import (
    ChatRequest,
    FinishReason,
    ModelRef,
    ReplyEvent,
    TextWasThinking,
    UsageReported,
)
from app.domain.conversations import Exchange, Problem, Text, Thinking, Usage
from app.domain.errors import StorageError
from app.domain.ids import ExchangeId, MessageId
from app.domain.recall import StoredPrompt
from app.domain.translation import tr
from app.providers.partial_reply import PartialReply
from app.providers.pricing.usage import UsageEstimator
from app.providers.vendors.recall import RECALL
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.spending import CHAT

STOPPED = Problem("stopped", "You stopped this reply")
CONNECTION_LOST = Problem(
    "connection_lost", "The reply ended before it was complete", "Continue or retry it."
)
EMPTY = Problem("empty", "The model sent an empty reply", "Retry it, or choose another model.")
CUT_SHORT = {
    FinishReason.LENGTH: Problem(
        "length", "The reply reached the model's limit", "Continue it, or raise the maximum output."
    ),
    FinishReason.FILTERED: Problem(
        "filtered",
        "The provider's filter stopped the reply",
        "Rephrase the question, or choose another model.",
    ),
    FinishReason.REFUSED: Problem(
        "refused", "The model refused to answer", "Rephrase the question."
    ),
    FinishReason.CONTEXT_EXCEEDED: Problem(
        "context_exceeded",
        "The conversation is longer than the model can read",
        "Start a new conversation, or choose a model with a larger context.",
    ),
    FinishReason.UNKNOWN: Problem(
        "unknown_end", "The model stopped for an unknown reason", "Continue or retry the reply."
    ),
}


def too_many_rounds(rounds: int) -> Problem:
    """Return the problem of a model that calls tools after so many rounds of them."""
    return Problem(
        "tool_rounds",
        tr("The model called tools {rounds} times and asked for more").format(rounds=rounds),
        tr("Continue the reply, or raise tool_rounds_max."),
    )


class Reply:
    """An exchange under way, for a screen or a command. Thread-safe.

    Attributes:
        plan: What was stored before it started.
        done: Resolves to the exchange as stored at its end, whatever the outcome. While storing
            fails it stays pending; it fails only when the program closes before that.
        prompt: The prompt that was sent, once it is known; None for Recall.
        is_abandoned: Set when the program closes: failed commits are not retried any more.
    """

    def __init__(self, plan: ExchangePlan) -> None:
        self.plan = plan
        self.done: Future[Exchange] = Future()
        self.prompt: StoredPrompt | None = None
        self.is_abandoned = False
        self._events: deque[ReplyEvent] = deque()
        self._changed = threading.Condition()
        self._stop: Callable[[], object] = lambda: None
        self._is_stop_requested = False

    def drain(self) -> list[ReplyEvent]:
        """Return the events since the last call, in order, without blocking."""
        events: list[ReplyEvent] = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def wait(self, timeout_s: float) -> None:
        """Wait for an event or the end. Blocking."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self.done.done(), timeout_s)

    def stop(self) -> None:
        """Request the end; the text so far is kept and marked interrupted. Idempotent."""
        if not self._is_stop_requested:
            self._is_stop_requested = True
            self._stop()

    # -- called on the exchange thread

    def push(self, event: ReplyEvent) -> None:
        self._events.append(event)
        with self._changed:
            self._changed.notify_all()

    def finish(self, outcome: Exchange | BaseException) -> None:
        if isinstance(outcome, BaseException):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)
        with self._changed:
            self._changed.notify_all()

    def on_stop(self, stop: Callable[[], object]) -> None:
        """Set what stops the exchange; called at once if a stop was requested before."""
        self._stop = stop
        if self._is_stop_requested:
            stop()


_log = logging.getLogger(__name__)
_INTERVAL_S = 0.5
_KINDS: Mapping[type, str] = {
    Text: "text",
    Thinking: "thinking",
    TextWasThinking: TEXT_WAS_THINKING,
}


class ReplyJournal:
    """Text that is not journaled yet, and its writing. Lives on the exchange thread."""

    def __init__(self, store: Store, exchange_id: ExchangeId, model: str) -> None:
        self._store = store
        self._exchange_id = exchange_id
        self._model = model
        self._waiting: list[ReplyGrew] = []

    def grow(self, message_id: MessageId, delta: Text | Thinking | TextWasThinking) -> None:
        """Queue text, joined to the last of the same message and kind."""
        kind = _KINDS[type(delta)]
        text = "" if isinstance(delta, TextWasThinking) else delta.text
        last = self._waiting[-1] if self._waiting else None
        if last is not None and (last.message_id, last.kind) == (message_id, kind):
            self._waiting[-1] = replace(last, text=last.text + text)
        else:
            self._waiting.append(
                ReplyGrew(self._exchange_id, message_id, kind, text, now(), self._model)
            )

    async def run(self, stored_ids: Callable[[], Collection[MessageId]]) -> None:
        """Write queued text twice a second, also while the stream stalls; until cancelled.

        Left out is the text of messages that are stored as a whole.
        """
        while True:
            await asyncio.sleep(_INTERVAL_S)
            stored = stored_ids()
            parts = [part for part in self._waiting if part.message_id not in stored]
            self._waiting = []
            if not parts:
                continue
            try:
                await asyncio.wrap_future(self._store.journal_only(*parts))
            except StorageError as error:
                _log.warning("a running reply cannot be journaled at present: %s", error)
                self._waiting = parts + self._waiting


# Takes the tokens of a request; returns (USD, the price as text), None when the price is unknown.
PriceOf = Callable[[ModelRef, UsageReported], tuple[float | None, str]]


class ExchangeUsage:
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
        purpose: str = CHAT,
    ) -> None:
        """Start from the usage of an earlier run of the reply; `purpose` is that of its spend."""
        self._purpose = purpose
        self._ref = ref
        self._price_of = price_of
        self._estimator = estimator
        self._started = time.monotonic()
        self._before_ms = (before.duration_ms or 0) if before else 0
        self.usage = before

    def add(
        self, reply: PartialReply, request: ChatRequest, exchange_id: ExchangeId
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
                now(), self._purpose, str(self._ref), usage.input_tokens, usage.output_tokens,
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

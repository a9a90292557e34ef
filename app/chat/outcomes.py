"""How a reply can end, in the words that are stored, and what all its requests cost together."""

import time
from collections.abc import Callable
from dataclasses import replace

from app.chat.arrived import Arrived
from app.domain.changes import SpendAdded
from app.domain.chat import ChatRequest, FinishReason, ModelRef, TokensReported
from app.domain.conversations import Problem
from app.domain.errors import KnownError
from app.domain.ids import ExchangeId
from app.domain.turn_text import estimate_tokens
from app.domain.usage import Usage
from app.providers.recall import RECALL
from app.storage.times import now

PriceOf = Callable[[ModelRef, TokensReported], tuple[float | None, str]]

STOPPED = Problem("stopped", "You stopped this reply", "Continue or regenerate it.")
CONNECTION_LOST = Problem(
    "connection_lost", "The reply ended before it was complete", "Continue or retry it."
)
CUT_SHORT = {
    FinishReason.LENGTH: Problem(
        "length", "The reply reached the model's limit", "Continue it, or raise the maximum output."
    ),
    FinishReason.FILTERED: Problem(
        "filtered", "The provider's filter stopped the reply", "Ask differently, or another model."
    ),
    FinishReason.REFUSED: Problem("refused", "The model refused to answer", "Ask differently."),
    FinishReason.CONTEXT_EXCEEDED: Problem(
        "context_exceeded",
        "The conversation has become longer than the model can read",
        "Go on in a new conversation, or choose a model with a larger context.",
    ),
}


def too_many_rounds(rounds: int) -> Problem:
    """Return what is wrong when a model calls tools to the end and beyond."""
    times = "time" if rounds == 1 else "times"
    return Problem(
        "tool_rounds",
        f"The model called tools {rounds} {times} and still wants more",
        "Continue the reply, or raise tool_rounds_max.",
    )


def problem_of(error: KnownError) -> Problem:
    """Return an error as it is stored: RateLimited is of the kind "rate_limited"."""
    name = type(error).__name__
    kind = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    return Problem(kind, error.title, error.hint)


def bug(error: Exception) -> Problem:
    """Return a fault of ours as it is stored."""
    title = f"The program failed: {type(error).__name__}"
    return Problem("bug", title, "Try again; the log tells more.")


class Bill:
    """Adds up what an exchange's requests cost; `usage` is None before the first."""

    def __init__(self, ref: ModelRef, price_of: PriceOf, before: Usage | None = None) -> None:
        """Begin with what an earlier run of the same reply cost and took."""
        self._ref = ref
        self._price_of = price_of
        self._began = time.monotonic()
        self._took_before_ms = (before.duration_ms or 0) if before else 0
        self.usage = before

    def add(
        self, arrived: Arrived, request: ChatRequest, exchange_id: ExchangeId
    ) -> list[SpendAdded]:
        """Add the request that `arrived` answers; return its spend, if anything came of it.

        Tokens that the server has not counted, also because it was stopped, are estimated.
        """
        spent = self._spent(arrived, request)
        took_ms = self._took_before_ms + round((time.monotonic() - self._began) * 1000)
        so_far = spent if self.usage is None else _sum(self.usage, spent)
        self.usage = replace(so_far, duration_ms=took_ms)  # tools take time too
        if not arrived.has_begun or self._ref.provider == RECALL:
            return []
        return [
            SpendAdded(
                now(), "chat", str(self._ref), spent.input_tokens, spent.output_tokens,
                spent.cached_tokens, spent.cost_usd, exchange_id,
            )
        ]  # fmt: skip

    def _spent(self, arrived: Arrived, request: ChatRequest) -> Usage:
        tokens = _counted(arrived, request)
        cost_usd, price = self._price_of(self._ref, tokens)
        if not arrived.has_begun and cost_usd:
            cost_usd, price = None, ""  # nobody knows whether it was counted
        return Usage(
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cached_tokens,
            cost_usd,
            price,
            estimated=tokens is not arrived.tokens,
            first_token_ms=arrived.first_token_ms,
        )


def _counted(arrived: Arrived, request: ChatRequest) -> TokensReported:
    """Return the server's count, with a guess at what it had not counted when it was stopped."""
    if arrived.tokens is None:
        return _guess(arrived, request)
    made = estimate_tokens(arrived.words) if arrived.words and not arrived.finished else 0
    if made <= arrived.tokens.output_tokens:
        return arrived.tokens
    return replace(arrived.tokens, output_tokens=made)


def _guess(arrived: Arrived, request: ChatRequest) -> TokensReported:
    texts = (request.system, request.recalled, *(each.text for each in request.messages))
    asked = sum(estimate_tokens(text) for text in texts if text)
    return TokensReported(asked, estimate_tokens(arrived.words) if arrived.words else 0)


def _sum(first: Usage, second: Usage) -> Usage:
    """Return both requests together; an unknown price makes the sum unknown."""
    known = first.cost_usd is not None and second.cost_usd is not None
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cached_tokens + second.cached_tokens,
        (first.cost_usd or 0) + (second.cost_usd or 0) if known else None,
        second.price if known else "",
        first.estimated or second.estimated,
        first.first_token_ms if first.first_token_ms is not None else second.first_token_ms,
    )

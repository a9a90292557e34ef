"""Usage and cost of an exchange: its requests added up."""

import time
from collections.abc import Callable
from dataclasses import replace

from app.domain.changes import SpendAdded
from app.domain.chat import ChatRequest, ModelRef, UsageReported
from app.domain.conversations import Usage
from app.domain.ids import ExchangeId
from app.providers.partial_reply import PartialReply
from app.providers.pricing.usage import UsageEstimator
from app.providers.vendors.recall import RECALL
from app.storage.engine.times import now
from app.storage.tables.spending import CHAT

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

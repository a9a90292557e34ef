"""A language model that says what a test tells it to: an implementation of the ChatModel port."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from app.chat.reply import PriceOf
from app.domain.chat import ChatRequest, Finished, FinishReason, ModelRef, StreamEvent
from app.domain.conversations import Text
from app.domain.errors import ContextTooLong
from app.providers.pricing.usage import UsageEstimator


class ScriptedModel:
    """Plays one script for each request; an exception in a script is raised, an Event awaited.

    Attributes:
        requests: What was asked, in order.
    """

    def __init__(self, *scripts: Sequence[StreamEvent | Exception | asyncio.Event]) -> None:
        self._scripts = list(scripts)
        self.requests: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncIterator[StreamEvent]:
        """Yield the next script; without one, a short complete answer."""
        self.requests.append(request)
        script = self._scripts.pop(0) if self._scripts else says("All right.")
        for step in script:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step


def says(text: str) -> list[StreamEvent | Exception | asyncio.Event]:
    """Return the script of a complete answer."""
    return [Text(text), Finished(FinishReason.STOP)]


class FakeModels:
    """The models of an exchange loop: one model, its price and the size of its context.

    By default a request costs 0.5 USD an output token.
    """

    def __init__(
        self,
        model: ScriptedModel,
        *,
        context_tokens: int | None = None,
        price_of: PriceOf = lambda _, tokens: (tokens.output_tokens * 0.5, "0.5 USD a token"),
    ) -> None:
        self._model = model
        self._context_tokens = context_tokens
        self.price_of = price_of
        self.usage = UsageEstimator()

    def chat_model(self, _: ModelRef) -> ScriptedModel:
        return self._model

    def context_tokens(self, _: ModelRef) -> int | None:
        return self._context_tokens

    def note_refusal(self, _: ModelRef, refusal: ContextTooLong) -> None:
        """Take over the size that a refusal names."""
        self._context_tokens = refusal.limit_tokens

    async def aclose(self) -> None:
        """Close nothing."""

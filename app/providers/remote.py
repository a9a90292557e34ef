"""One provider over the network: its models, its chat model, and a test of the connection."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from app.domain.chat import ChatRequest, ModelCard, Retrying, StreamEvent
from app.domain.ports import ChatModel
from app.domain.provider_errors import NonsenseReply, ProviderError
from app.providers.anthropic_messages import Messages
from app.providers.configuration import ProviderKind
from app.providers.connection import AnthropicConnection, Connection, Endpoint, OpenAIConnection
from app.providers.dialect import Dialects
from app.providers.model_list import is_model_list, model_cards
from app.providers.openai_chat import ChatCompletions
from app.providers.openai_responses import Responses
from app.providers.retry import RetryPolicy
from app.providers.streaming import StreamingModel, translated
from app.providers.transcript import ImageReader
from app.providers.verdicts import EndpointMissing


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What "Test connection" found. `problem` is None exactly if it worked."""

    provider: str
    base_url: str
    latency_ms: int
    models: tuple[ModelCard, ...] = ()
    problem: ProviderError | None = None

    @property
    def ok(self) -> bool:
        """Whether the server listed its models."""
        return self.problem is None


class RemoteProvider:
    """A `Provider` that is a server. Belongs to the event loop it is first used on.

    OpenAI's own hosts are spoken to in Responses; a provider of that kind elsewhere too, unless
    the server has no such address, then in Chat Completions; compatible ones in Chat Completions.
    """

    def __init__(
        self,
        kind: ProviderKind,
        endpoint: Endpoint,
        *,
        policy: RetryPolicy | None = None,
        dialects: Dialects | None = None,
        read_image: ImageReader | None = None,
    ) -> None:
        self.name = endpoint.provider
        self._kind = kind
        self._connection: Connection = (
            AnthropicConnection(endpoint)
            if kind is ProviderKind.ANTHROPIC
            else OpenAIConnection(endpoint)
        )
        self._model = self._chat_model(policy or RetryPolicy(), dialects or Dialects(), read_image)

    def chat_model(self) -> ChatModel:
        """Return what talks to any of its models."""
        return self._model

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the models the server lists, newest first; raise `ProviderError`."""
        path = "/v1/models?limit=1000" if self._kind is ProviderKind.ANTHROPIC else "/models"
        try:
            listing = await self._connection.get_json(path)
        except Exception as caught:  # noqa: BLE001  the edge: foreign errors have no one root
            error = caught
        else:
            if not is_model_list(listing):
                raise NonsenseReply(
                    f"{self.name} answered with something else than a list of models",
                    f"Check the base URL {self._connection.base_url.text}",
                )
            return model_cards(self.name, listing, is_openai=is_openai_host(self._connection))
        raise translated(error, self._connection)

    async def test(self) -> ConnectionReport:
        """Ask for the list of models, once; never raises `ProviderError`."""
        base_url = self._connection.base_url.text
        began = time.perf_counter()
        try:
            await self._connection.load()  # not the server's fault that an SDK takes seconds
            began = time.perf_counter()
            found = await self.models()
        except ProviderError as problem:
            return ConnectionReport(self.name, base_url, _ms_since(began), problem=problem)
        return ConnectionReport(self.name, base_url, _ms_since(began), found)

    async def aclose(self) -> None:
        """Close connections."""
        await self._connection.aclose()

    def _chat_model(
        self, policy: RetryPolicy, dialects: Dialects, read_image: ImageReader | None
    ) -> ChatModel:
        link = self._connection
        if self._kind is ProviderKind.ANTHROPIC:
            return StreamingModel(link, Messages(read_image), policy, dialects)
        chat = StreamingModel(link, ChatCompletions(read_image), policy, dialects)
        if self._kind is ProviderKind.COMPATIBLE:
            return chat
        responses = StreamingModel(link, Responses(read_image), policy, dialects)
        return responses if is_openai_host(link) else _FirstThatExists(responses, chat)


class _FirstThatExists:
    """Speaks the first of two protocols that the server has, and remembers which."""

    def __init__(self, first: StreamingModel, second: StreamingModel) -> None:
        self._choices = [first, second]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent]:
        """Yield the reply; a missing address shows before anything of it."""
        while len(self._choices) > 1:
            begun = False
            try:
                async with aclosing(self._choices[0].stream(request)) as events:
                    async for event in events:
                        begun = begun or not isinstance(event, Retrying)
                        yield event
            except EndpointMissing:
                if begun:
                    raise
                del self._choices[:-1]
            else:
                return
        async with aclosing(self._choices[0].stream(request)) as events:
            async for event in events:
                yield event


def is_openai_host(connection: Connection) -> bool:
    """Whether this is OpenAI itself, in any of its regions."""
    host = connection.base_url.host
    return host == "openai.com" or host.endswith(".openai.com")


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)

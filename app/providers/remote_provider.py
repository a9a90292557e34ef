"""Remote providers: the models of a server, its chat model, and a test of the connection."""

import time
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from app.domain.chat import ChatRequest, ListedModel
from app.domain.conversations import Message, Role, Text
from app.domain.errors import InvalidReply, ModelNotFound, ProviderError, RequestRejected
from app.domain.ids import ConversationId, MessageId
from app.domain.ports import ChatModel
from app.providers.http.connection import ServerConnection
from app.providers.http.endpoint import Endpoint
from app.providers.http.error_classification import EndpointMissing
from app.providers.vendor import Vendor
from app.providers.vendors.model_list import is_model_list, listed_models
from app.providers.wire.streaming import RetryPolicy, StreamingModel, Unsupported, to_provider_error

_ANY_MODEL = "default"  # single-model servers answer to any name


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """The result of "Test connection". `problem` is None on success."""

    latency_ms: int
    models: tuple[ListedModel, ...] = ()
    problem: ProviderError | None = None

    @property
    def ok(self) -> bool:
        """Whether the server listed its models."""
        return self.problem is None


class RemoteProvider:
    """A `Provider` that is a server. Belongs to the event loop of its first use."""

    def __init__(
        self,
        vendor: Vendor,
        endpoint: Endpoint,
        *,
        policy: RetryPolicy | None = None,
        unsupported: Unsupported | None = None,
    ) -> None:
        self.name = endpoint.provider
        self._vendor = vendor
        self._connection = ServerConnection(endpoint, vendor.sdk)
        self._sees_images: dict[str, bool | None] = {}
        self._model = StreamingModel(
            self._connection,
            [wire() for wire in vendor.wires(endpoint.base_url)],
            policy or RetryPolicy(),
            unsupported if unsupported is not None else {},
            vendor.options,
        )

    def chat_model(self) -> ChatModel:
        return self._model

    def sees_images(self, model: str) -> bool | None:
        """Return whether a model reads images, as far as the server has told; None if unknown."""
        refused = self._model.sees_images(model)
        return self._sees_images.get(model) if refused is None else refused

    async def models(self) -> tuple[ListedModel, ...]:
        """Return the models the server lists, newest first; raise `ProviderError`."""
        base_url = self._connection.endpoint.base_url
        try:
            listing = await self._connection.get_json(self._vendor.models_path)
        except Exception as caught:  # noqa: BLE001  the edge: foreign errors have no one root
            error = caught
        else:
            if not is_model_list(listing):
                raise InvalidReply(
                    f"{self.name} did not answer with a list of models",
                    f"Check the base URL {base_url.text}",
                )
            is_own = self._vendor.owns(base_url)
            unlisted = self._vendor.unlisted_models if is_own else None
            found = listed_models(self.name, listing, unlisted)
            self._sees_images |= {each.ref.model: each.sees_images for each in found}
            return found
        raise to_provider_error(error, self._connection)

    async def test(self) -> ConnectionReport:
        """Request the list of models, or a token of a reply where the server has no such list.

        Never raises `ProviderError`.
        """
        started_at = time.perf_counter()
        try:
            await self._connection.load()  # the import of an SDK is no latency of the server
            started_at = time.perf_counter()
            try:
                found = await self.models()
            except EndpointMissing:
                found = ()
                await self._check_chat()
        except ProviderError as problem:
            return ConnectionReport(_ms_since(started_at), problem=problem)
        return ConnectionReport(_ms_since(started_at), found)

    async def _check_chat(self) -> None:
        """Raise `ProviderError` unless the server answers chats, if only that it lacks the model."""
        question = Message(
            MessageId(0),
            "",
            ConversationId(0),
            None,
            Role.USER,
            (Text("Hello"),),
            datetime.now(UTC),
        )
        request = ChatRequest(_ANY_MODEL, (question,), max_output_tokens=1)
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for _ in events:
                    break
        except EndpointMissing:
            raise
        except (ModelNotFound, RequestRejected):
            return

    async def aclose(self) -> None:
        await self._connection.aclose()


def _ms_since(started_at: float) -> int:
    return round((time.perf_counter() - started_at) * 1000)

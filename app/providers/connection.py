"""A vendor's SDK on our own HTTP client: opened on first use, closed by whoever built it.

The SDKs are asked for plain JSON, not for their typed events (`cast_to=object`): a thinking block
has to go back exactly as it came, compatible servers send what no type foresees, and the typed
resources alone take a second to import.
"""

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from app.domain.provider_errors import KeyMissing, KeyRejected
from app.providers.base_url import BaseUrl
from app.providers.limits import Network, SizeLimits, TimeLimits
from app.providers.subject import Subject
from app.system.keys import FoundKey

if TYPE_CHECKING:
    import httpx2

    from app.providers.http import GuardedClient


_IMPORT_AGAIN_S = (0.1, 0.5, 2.0)
_importing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One provider's place and the terms of talking to it.

    `find_key` may block (a keyring that asks to be unlocked); it is called in a thread. `key_hint`
    tells what to do without one. `is_vendors` marks the built-in providers: only these are sent
    what the vendors' environment variables say (organisation, project, own headers).
    `transport` replaces the network in tests.
    """

    provider: str
    base_url: BaseUrl
    find_key: Callable[[], FoundKey | None]
    needs_key: bool = False
    key_hint: str = "Enter one in Settings, Models"
    is_vendors: bool = False
    network: Network = field(default_factory=Network)
    times: TimeLimits = field(default_factory=TimeLimits)
    sizes: SizeLimits = field(default_factory=SizeLimits)
    transport: "httpx2.AsyncBaseTransport | None" = None


class Sdk(Protocol):
    """What the two vendors' asynchronous clients have in common, as far as we use it."""

    @property
    def post(self) -> Callable[..., Awaitable[Any]]:
        """Send a POST."""
        ...

    @property
    def get(self) -> Callable[..., Awaitable[Any]]:
        """Send a GET."""
        ...


class Connection:
    """Requests to one endpoint. Belongs to the event loop it is first used on.

    Subclasses say which SDK it is. Errors are the SDK's own; `app.providers.streaming` and
    `app.providers.remote` translate them.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: GuardedClient | None = None
        self._key: FoundKey | None = None
        self._lock = threading.Lock()

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self._endpoint.provider

    @property
    def base_url(self) -> BaseUrl:
        """Where it is."""
        return self._endpoint.base_url

    @property
    def times(self) -> TimeLimits:
        """How long we wait."""
        return self._endpoint.times

    def subject(self, model: str = "") -> Subject:
        """Return whom the last request went to, for errors."""
        base_url = self._endpoint.base_url
        place = Subject(self.provider, base_url.text, model, base_url.is_loopback)
        if (found := self._key) is None:
            return place
        return replace(
            place,
            key=found.secret.reveal(),
            key_place=found.place_text,
            key_remedy=found.remedy,
        )

    async def events(self, path: str, body: dict[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the JSON objects of the events that stream back; others are passed over."""
        sdk = await self._ready()
        stream = await sdk.post(
            path,
            cast_to=object,
            body=body,
            options={"headers": self._headers()},
            stream=True,
            stream_cls=self._stream_class(),
        )
        try:
            async for event in stream:
                if isinstance(event, Mapping):
                    yield event
        finally:
            await stream.close()

    async def get_json(self, path: str) -> object:
        """Return the decoded JSON at `path`."""
        sdk = await self._ready()
        return await sdk.get(path, cast_to=object, options={"headers": self._headers()})

    async def aclose(self) -> None:
        """Close all connections; the object may be used again afterwards."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def load(self) -> None:
        """Do what the first request would wait for; raises `ProviderError` for a missing key."""
        await self._ready()

    async def _ready(self) -> Sdk:
        """Load the SDK, find the key, make the client: all of it blocking, so in a thread."""
        return await asyncio.to_thread(self._prepare)

    def _prepare(self) -> Sdk:
        self._key = self._endpoint.find_key()
        if self._key is None and self._endpoint.needs_key:
            raise KeyMissing(f"There is no API key for {self.provider}", self._endpoint.key_hint)
        if self._key is not None and not self._key.secret.is_sendable:
            raise KeyRejected(
                f"The API key from {self._key.place_text} holds characters that no key has",
                "Enter it again in Settings, Models",
            )
        sdk = self._make(self._key.secret.reveal() if self._key else "", self._http())
        from app.providers.http import silence_vendor_logs

        silence_vendor_logs()  # importing an SDK may have set its level from the environment
        return sdk

    def _http(self) -> "GuardedClient":
        from app.providers.http import guarded_client

        with self._lock:  # two requests at once may both be the first
            if self._client is None:
                self._client = guarded_client(
                    self._endpoint.base_url,
                    network=self._endpoint.network,
                    times=self._endpoint.times,
                    sizes=self._endpoint.sizes,
                    transport=self._endpoint.transport,
                )
            return self._client

    def _make(self, key: str, client: "GuardedClient") -> Sdk:
        raise NotImplementedError

    def _stream_class(self) -> Any:
        raise NotImplementedError

    def _omit(self) -> Any:
        """The SDK's marker for a header to be left out."""
        raise NotImplementedError

    def _headers(self) -> dict[str, Any]:
        """Headers of every request: those to be left out."""
        left_out: list[str] = []
        if self._key is None:
            left_out += ["Authorization", "X-Api-Key"]
        if not self._endpoint.is_vendors:
            left_out += ["OpenAI-Organization", "OpenAI-Project", *_ambient_headers()]
        return {name: self._omit() for name in left_out}


class OpenAIConnection(Connection):
    """Through the openai SDK: Responses and Chat Completions."""

    def _make(self, key: str, client: "GuardedClient") -> Sdk:
        _import_sdk("openai")
        from openai import AsyncOpenAI

        # "" for no key: for None the SDK would take the environment's.
        return AsyncOpenAI(
            api_key=key,
            base_url=self.base_url.text,
            max_retries=0,
            http_client=client,
            _enforce_credentials=False,
        )

    def _stream_class(self) -> Any:
        from openai import AsyncStream

        return AsyncStream[object]

    def _omit(self) -> Any:
        from openai import Omit

        return Omit()


class AnthropicConnection(Connection):
    """Through the anthropic SDK: Messages. Its paths begin with `/v1`, so the base URL need not."""

    def _make(self, key: str, client: "GuardedClient") -> Sdk:
        _import_sdk("anthropic")
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(
            api_key=key,
            base_url=self.base_url.text.removesuffix("/v1"),
            max_retries=0,
            http_client=client,
        )

    def _stream_class(self) -> Any:
        from anthropic import AsyncStream

        return AsyncStream[object]

    def _omit(self) -> Any:
        from anthropic import Omit

        return Omit()


def _import_sdk(name: str) -> None:
    """Import a vendor's SDK, one at a time, and again when a part of it was not there yet.

    Both SDKs share packages with circular imports. While another thread imports one of those,
    Python breaks the deadlock by handing out modules that are half made, with an ImportError.
    """
    with _importing:
        for wait_s in _IMPORT_AGAIN_S:
            try:
                import_module(name)
            except ImportError:
                time.sleep(wait_s)
            else:
                return
        import_module(name)


def _ambient_headers() -> list[str]:
    """Names of headers that the SDKs add from the environment, meant for the vendors only."""
    lines = []
    for variable in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        lines += os.environ.get(variable, "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]

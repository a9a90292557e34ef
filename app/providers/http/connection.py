"""Connections: a vendor's SDK on this program's HTTP client.

The SDKs return plain JSON instead of their typed events (`cast_to=object`): a thinking block must be
sent back byte for byte, compatible servers send what no type describes, and importing the typed
resources takes another second.
"""

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.domain.errors import KeyMissing, KeyRejected
from app.providers.http.endpoint import Endpoint, RequestTarget
from app.system.keys import FoundKey, KeyLocation

if TYPE_CHECKING:
    from app.providers.http.client import GuardedClient

_IMPORT_RETRIES_S = (0.1, 0.5, 2.0)
_import_lock = threading.Lock()
_loaded: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Sdk:
    """A vendor's SDK.

    Attributes:
        module: Its top-level module, imported by the first request.
        client: The name of its asynchronous client class.
        options: Further arguments of that class.
        adds_version: Whether its paths begin with `/v1`, so that base URLs need not end with it.
    """

    module: str
    client: str
    options: Mapping[str, Any] = field(default_factory=dict)
    adds_version: bool = False

    def load(self) -> Any:
        """Import the SDK and return its module. Blocks for up to 5 s; one import at a time.

        Both SDKs share packages with circular imports. While another thread imports one of them,
        Python may break a deadlock with an ImportError from a half-initialized module; the import
        is then repeated.
        """
        if (loaded := _loaded.get(self.module)) is not None:
            return loaded  # without waiting for another import
        with _import_lock:
            _loaded[self.module] = module = self._import()
        return module

    def _import(self) -> Any:
        for wait_s in _IMPORT_RETRIES_S:
            try:
                return import_module(self.module)
            except ImportError:
                time.sleep(wait_s)
        return import_module(self.module)


# An empty key means none: for None this SDK would use the environment's.
OPENAI_SDK = Sdk("openai", "AsyncOpenAI", {"_enforce_credentials": False})
ANTHROPIC_SDK = Sdk("anthropic", "AsyncAnthropic", adds_version=True)


class ServerConnection:
    """Requests to one endpoint through an SDK. Belongs to the event loop of its first use.

    Errors are the SDK's own; `to_provider_error` in `app.providers.wire.streaming` translates them.
    `load` may be called before a request, to do what the first one would wait for.
    """

    def __init__(self, endpoint: Endpoint, sdk: Sdk) -> None:
        self.endpoint = endpoint
        self._sdk = sdk
        self._module: Any = None
        self._client: GuardedClient | None = None
        self._key: FoundKey | None = None
        self._lock = threading.Lock()

    def target(self, model: str = "") -> RequestTarget:
        """Return the destination of the last request, for errors."""
        base_url = self.endpoint.base_url
        target = RequestTarget(
            self.endpoint.shown_name,
            base_url.text,
            model,
            base_url.is_loopback,
            is_near=base_url.is_loopback or base_url.is_private,
        )
        if (found := self._key) is None:
            return target
        return replace(
            target,
            key=found.secret.reveal(),
            key_location=found.location_text if found.place is not KeyLocation.SESSION else "",
            key_remedy=found.remedy,
        )

    async def events(self, path: str, body: dict[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the JSON objects among the events that answer `body`."""
        client, options = await self.load()
        kind = self._module.AsyncStream[object]
        stream = await client.post(
            path, cast_to=object, body=body, options=options, stream=True, stream_cls=kind
        )
        try:
            async for event in stream:
                if isinstance(event, Mapping):
                    yield event
        finally:
            await stream.close()

    async def get_json(self, path: str) -> object:
        client, options = await self.load()
        return await client.get(path, cast_to=object, options=options)

    async def post_json(self, path: str, body: dict[str, Any]) -> object:
        client, options = await self.load()
        return await client.post(path, cast_to=object, body=body, options=options)

    async def aclose(self) -> None:
        """Close all connections; the object may be used again afterwards."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def load(self) -> tuple[Any, dict[str, Any]]:
        """Return a client of the SDK and the options of its requests.

        Raises `ProviderError` for a missing or invalid key, or unusable network settings.
        """
        return await asyncio.to_thread(self._prepare)  # the import and finding the key block

    def _prepare(self) -> tuple[Any, dict[str, Any]]:
        endpoint = self.endpoint
        self._key = key = endpoint.find_key()
        if key is None and endpoint.needs_key:
            raise KeyMissing(f"There is no API key for {endpoint.shown_name}", endpoint.key_hint)
        if key is not None and not key.secret.is_sendable:
            raise KeyRejected(
                f"The API key from {key.location_text} contains characters that no key has",
                "Enter it again in Settings, Models",
            )
        with self._lock:  # two simultaneous requests may both be the first
            if self._client is None:
                from app.providers.http.client import GuardedClient

                self._module = self._sdk.load()
                self._client = GuardedClient(endpoint)  # it also silences the SDK's log
            http_client = self._client
        url = endpoint.base_url.text
        client = getattr(self._module, self._sdk.client)(
            api_key=key.secret.reveal() if key else "",
            base_url=url.removesuffix("/v1") if self._sdk.adds_version else url,
            max_retries=0,
            http_client=http_client,
            **self._sdk.options,
        )
        omitted = [] if key else ["Authorization", "X-Api-Key"]
        if not endpoint.is_vendors:  # the SDKs add these from the environment
            omitted += ["OpenAI-Organization", "OpenAI-Project"]
            for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
                lines = os.environ.get(name, "").split("\n")
                omitted += [line.partition(":")[0].strip() for line in lines if ":" in line]
        return client, {"headers": {name: self._module.Omit() for name in omitted}}

"""Model directory: providers and their models, by `PROVIDER:MODEL`, with sizes and prices.

Network providers belong to the exchange loop; methods that must run there are coroutines.
"""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from app.domain.chat import ListedModel, ModelRef, StoredProvider, UsageReported
from app.domain.errors import ContextTooLong, InvalidInput, KnownError, ModelNotFound, NotFound
from app.domain.ports import ChatModel
from app.domain.records.presets import ModelOptions
from app.providers.configuration import ProviderConfig
from app.providers.http.json_fields import json_object
from app.providers.pricing.prices import OwnPrices, PriceList
from app.providers.pricing.usage import UsageEstimator
from app.providers.registry import TIMEOUTS, OpenProviders, provider_registry
from app.providers.remote_provider import ConnectionReport, RemoteProvider
from app.providers.vendors.local_servers import LocalServer, find_local_servers
from app.providers.vendors.recall import RECALL, FindAnswers, RecallModel
from app.providers.windows import ModelWindows, WindowSource
from app.storage.tables.settings import Settings
from app.system.keys import KeyLocation, KeyStore


@dataclass(frozen=True, slots=True)
class ProviderState:
    """A provider as screens show it: its URL and the source of its key, never the key.

    A saved key can be removed here; a key in the environment cannot. `timeout_s` is the user's own
    reply timeout; `is_saved` is False for a built-in provider without a configuration or a key.
    """

    config: ProviderConfig
    base_url: str
    key_from: str
    has_saved_key: bool = False
    has_key: bool = False
    timeout_s: int | None = None
    is_saved: bool = False


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model as screens list it.

    `window_tokens` is None if unknown, `price_usd` what a million tokens cost (in, out), None if
    unknown.
    """

    ref: ModelRef
    title: str
    window_tokens: int | None = None
    price_usd: tuple[float, float] | None = None


class ChatModels(Protocol):
    """The models as exchanges use them.

    All but `aclose` may block.

    Attributes:
        usage: The estimator of usage that servers do not report.
    """

    usage: UsageEstimator

    def chat_model(self, ref: ModelRef) -> ChatModel:
        """Return a model; raise NotFound or ModelNotFound."""

    def context_tokens(self, ref: ModelRef) -> int | None:
        """Return the size of a model's context; None when it is unknown."""

    def note_refusal(self, ref: ModelRef, refusal: ContextTooLong) -> None:
        """Keep what a refusal says about the size of a model's context."""

    def price_of(self, ref: ModelRef, tokens: UsageReported) -> tuple[float | None, str]:
        """Return (USD, the price as text) of a request; None when the price is unknown."""

    async def aclose(self) -> None:
        """Close all connections."""


class ModelDirectory:
    """Every model of every provider, and Recall.

    Attributes:
        registry: The providers, with their keys.
        windows: The context windows of the models.
        usage: The estimator of usage that servers do not report.
    """

    def __init__(self, settings: Settings, keys: KeyStore, find_answers: FindAnswers) -> None:
        self._settings = settings
        self._recall = RecallModel(find_answers)
        self.registry = provider_registry(settings, keys)
        self._prices = PriceList(self.registry.find_config, OwnPrices(settings).all)
        self.usage = UsageEstimator()
        self.windows = ModelWindows(settings, self.registry, self._prices.context_tokens)
        self._open = OpenProviders(self.registry)

    def preload(self) -> None:
        """Import what first requests need, the default model's first: several seconds. Blocking."""
        chosen = (self._settings.text(key) for key in ("default_model", "background_model"))
        with suppress(KnownError):
            self.registry.preload(ModelRef.parse(model).provider for model in chosen)

    def chat_model(self, ref: ModelRef) -> ChatModel:
        """Return the model; raise NotFound, ModelNotFound. May block: reads the key once."""
        if ref.provider == RECALL:
            return self._recall
        provider = self._provider(ref.provider)
        if not ref.model:
            raise ModelNotFound(
                f"'{ref}' is not a model", "Choose a model, written PROVIDER:MODEL, in Settings."
            )
        return provider.chat_model()

    def context_tokens(self, ref: ModelRef) -> int | None:
        """Return the size of a model's context in tokens; None for Recall. May block."""
        return None if ref.provider == RECALL else self.windows.tokens(ref)

    def known_context_tokens(self, ref: ModelRef) -> int | None:
        """Return the size of a model's context as last known, without asking its server."""
        if ref.provider == RECALL:
            return None
        return self.windows.find(ref, asks_server=False).tokens

    def note_refusal(self, ref: ModelRef, refusal: ContextTooLong) -> None:
        """Keep what a refusal says about a model's context. Blocking."""
        self.windows.note_refusal(ref, refusal)

    def sees_images(self, ref: ModelRef) -> bool | None:
        """Return whether a model reads images; None if unknown, so that it is tried. May block."""
        if ref.provider == RECALL:
            return False
        try:
            return self._provider(ref.provider).sees_images(ref.model)
        except KnownError:
            return None

    def price_of(self, ref: ModelRef, tokens: UsageReported) -> tuple[float | None, str]:
        """Return (USD, the price as text) of a request; None when it is unknown. May block."""
        if ref.provider == RECALL:
            return 0.0, "built in"
        cost = self._prices.cost(ref, tokens)
        return cost.cost_usd, cost.price

    def options(self, ref: ModelRef) -> ModelOptions:
        """Return the options of a model, without those that its server has refused."""
        config = self.registry.find_config(ref.provider)
        if config is None or ref.provider == RECALL:
            return ModelOptions(has_temperature=False, efforts=(), has_max_output=False)
        return self.registry.options(config, ref.model)

    def check_name(self, model: str) -> str:
        """Return `model` if its provider exists; raise NotFound or InvalidInput. Blocking."""
        ref = ModelRef.parse(model)
        if ref.provider == RECALL:
            return f"{RECALL}:"
        self.registry.config(ref.provider)
        if not ref.model:
            raise InvalidInput(f"'{model}' is not a model", "Write PROVIDER:MODEL.")
        return str(ref)

    # -- providers; blocking

    def providers(self) -> tuple[ProviderState, ...]:
        """Return all providers, the built-in ones first."""
        return tuple(self._state(config) for config in self.registry.configs())

    def add_provider(self, config: ProviderConfig) -> None:
        """Add or change a provider; raise InvalidInput for an invalid name or base URL."""
        config.checked()
        if config.first_byte_s is not None:
            self.set_timeout(config.name, config.first_byte_s)
        self._settings.put_provider(
            StoredProvider(
                config.name, config.kind, config.base_url, config.key_env,
                config.allow_plain_http,
            )
        )  # fmt: skip

    def remove_provider(self, name: str) -> None:
        """Remove a provider with its key and timeout, and as the default model; raise NotFound.

        Of a built-in one, what the user configured is removed.
        """
        is_saved = any(row.name == name for row in self._settings.providers())
        config = self.registry.find_config(name)
        if not is_saved and (config is None or not self._state(config).has_saved_key):
            raise NotFound(
                f"There is no provider '{name}' to remove",
                "Of the built-in providers, only what you configured can be removed.",
            )
        with suppress(InvalidInput):  # a base URL that is no longer valid has no key
            self.registry.forget_key(name)
        self.set_timeout(name, None)
        if is_saved:
            self._settings.remove_provider(name)
        if ModelRef.parse(self._settings.text("default_model")).provider == name:
            self._settings.reset("default_model")

    def set_timeout(self, name: str, seconds: int | None) -> None:
        """Set how long a provider's reply may take to begin; None for the default."""
        timeouts = {**json_object(self._settings.text(TIMEOUTS)), name: seconds}
        kept = {each: value for each, value in timeouts.items() if value is not None}
        if kept != json_object(self._settings.text(TIMEOUTS)):
            self._settings.set(TIMEOUTS, json.dumps(kept))

    def waits_for_passphrase(self, model: str = "") -> bool:
        """Return whether the key of a model ("": the default one) is locked in the key file."""
        name = ModelRef.parse(model or self._settings.text("default_model")).provider
        return self.registry.find_config(name) is not None and self.registry.is_key_locked(name)

    def has_key(self, name: str) -> bool:
        """Return whether a provider has a key or needs none."""
        config = self.registry.config(name)
        url = config.valid_url()
        return (
            url is None  # the list says what is wrong with it
            or url.text != config.vendor.base_url
            or self.registry.find_key(name) is not None
            or self.registry.is_key_locked(name)
        )

    # -- on the exchange loop

    async def models(self, name: str) -> tuple[ListedModel, ...]:
        """Return the models a provider lists; raise ProviderError, NotFound."""
        if name == RECALL:
            return await self._recall.models()
        return await self._provider(name).models()

    async def cards(self, name: str) -> tuple[ModelCard, ...]:
        """Return a provider's chat models with sizes and prices; raise as `models` does."""
        return await self.cards_of(await self.models(name))

    async def cards_of(self, listed: Iterable[ListedModel]) -> tuple[ModelCard, ...]:
        """Return the chat models of a list, with sizes and prices."""
        return await asyncio.to_thread(
            lambda: tuple(self._card(each) for each in listed if not each.is_embedding)
        )

    async def test(self, name: str) -> ConnectionReport:
        """Test the connection to a provider; raise NotFound."""
        return await self._provider(name).test()

    async def try_out(self, config: ProviderConfig, key: str = "") -> ConnectionReport:
        """Test a provider that is not saved, with a typed or its saved key; raise InvalidInput."""
        provider = self.registry.trial(config, key)
        try:
            return await provider.test()
        finally:
            await provider.aclose()

    async def local_servers(self) -> tuple[LocalServer, ...]:
        """Return the model servers running on this machine; the user is offered them."""
        return await find_local_servers()

    async def aclose(self) -> None:
        await self._open.aclose()

    def _provider(self, name: str) -> RemoteProvider:
        return self._open.get(self.registry.config(name))

    def _card(self, model: ListedModel) -> ModelCard:
        window = self.windows.find(model.ref, asks_server=False)
        tokens = None if window.source is WindowSource.ASSUMED else window.tokens
        if model.context_tokens and window.source in (WindowSource.TABLE, WindowSource.ASSUMED):
            tokens = model.context_tokens
        return ModelCard(model.ref, model.title, tokens, self._prices.per_million(model.ref))

    def _state(self, config: ProviderConfig) -> ProviderState:
        timeouts = json_object(self._settings.text(TIMEOUTS))
        timeout_s = timeouts.get(config.name)
        is_own = config.name in {row.name for row in self._settings.providers()}
        try:
            base_url = config.url().text
            key = self.registry.find_key(config.name)
            is_locked = key is None and self.registry.is_key_locked(config.name)
        except InvalidInput as error:
            return ProviderState(config, config.base_url or "", error.title)
        has_saved_key = is_locked or (key is not None and key.place is not KeyLocation.ENVIRONMENT)
        return ProviderState(
            config,
            base_url,
            key.location_text if key else "the locked key file" if is_locked else "no key",
            has_saved_key=has_saved_key,
            has_key=key is not None or is_locked,
            timeout_s=timeout_s if type(timeout_s) is int else None,
            is_saved=is_own or has_saved_key,
        )

"""The model directory: providers and their models, by `PROVIDER:MODEL`, with sizes and prices.

Network providers belong to the exchange loop; methods that must run there are coroutines.
"""

import json
from contextlib import suppress
from dataclasses import dataclass

from app.domain.chat import ListedModel, ModelRef, UsageReported
from app.domain.errors import ContextTooLong, InvalidInput, KnownError, ModelNotFound, NotFound
from app.domain.ports import ChatModel
from app.domain.presets import ModelOptions
from app.providers.configuration import ProviderConfig
from app.providers.http.json_fields import json_object
from app.providers.pricing.prices import OwnPrices, PriceList
from app.providers.pricing.usage import UsageEstimator
from app.providers.registry import TIMEOUTS, OpenProviders, provider_registry
from app.providers.remote_provider import ConnectionReport, RemoteProvider
from app.providers.vendors.local_servers import LocalServer, find_local_servers
from app.providers.vendors.recall import RECALL, FindPassages, RecallModel
from app.providers.windows import ModelWindows
from app.storage.tables.settings import ProviderRow, Settings
from app.system.keys import KeyLocation, KeyStore


@dataclass(frozen=True, slots=True)
class ProviderState:
    """A provider as screens show it: its URL and the source of its key, never the key.

    A saved key can be removed here; a key in the environment cannot.
    """

    config: ProviderConfig
    base_url: str
    key_from: str
    has_saved_key: bool = False


class ModelDirectory:
    """Every model of every provider, and Recall.

    Attributes:
        windows: The context windows of the models.
        usage: The estimator of usage that servers do not report.
    """

    def __init__(self, settings: Settings, keys: KeyStore, find_passages: FindPassages) -> None:
        self._settings = settings
        self._recall = RecallModel(find_passages)
        self._registry = provider_registry(settings, keys)
        self._prices = PriceList(self._registry.find_config, OwnPrices(settings).all)
        self.usage = UsageEstimator()
        self.windows = ModelWindows(settings, self._registry, self._prices.context_tokens)
        self._open = OpenProviders(self._registry)

    def preload(self) -> None:
        """Import what first requests need, the default model's first: several seconds. Blocking."""
        chosen = (self._settings.text(key) for key in ("default_model", "background_model"))
        with suppress(KnownError):
            self._registry.preload(ModelRef.parse(model).provider for model in chosen)

    def chat_model(self, ref: ModelRef) -> ChatModel:
        """Return the model; raise NotFound or ModelNotFound. May block; the key is read on first use."""
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
        config = self._registry.find_config(ref.provider)
        if config is None or ref.provider == RECALL:
            return ModelOptions(has_temperature=False, efforts=(), has_max_output=False)
        return self._registry.options(config, ref.model)

    def check_name(self, model: str) -> str:
        """Return `model` if its provider exists; raise NotFound or InvalidInput. Blocking."""
        ref = ModelRef.parse(model)
        if ref.provider == RECALL:
            return f"{RECALL}:"
        self._registry.config(ref.provider)
        if not ref.model:
            raise InvalidInput(f"'{model}' is not a model", "Write PROVIDER:MODEL.")
        return str(ref)

    # -- providers; blocking

    def providers(self) -> tuple[ProviderState, ...]:
        """Return all providers, the built-in ones first."""
        return tuple(self._state(config) for config in self._registry.configs())

    def add_provider(self, config: ProviderConfig) -> None:
        """Add or change a provider; raise InvalidInput for an invalid name or base URL."""
        config.checked()
        if config.first_byte_s is not None:
            timeouts = {
                **json_object(self._settings.text(TIMEOUTS)),
                config.name: config.first_byte_s,
            }
            self._settings.set(TIMEOUTS, json.dumps(timeouts))
        self._settings.put_provider(
            ProviderRow(
                config.name, config.kind, config.base_url, config.key_env,
                config.allow_plain_http,
            )
        )  # fmt: skip

    def remove_provider(self, name: str) -> None:
        """Remove a provider that the user added, and its key; raise NotFound."""
        if all(row.name != name for row in self._settings.providers()):
            raise NotFound(
                f"There is no provider '{name}' to remove",
                "The built-in providers cannot be removed.",
            )
        self._registry.forget_key(name)
        self._settings.remove_provider(name)

    def save_key(self, name: str, key: str) -> KeyLocation:
        """Save a provider's key in the keyring, or for this session; return where."""
        return self._registry.save_key(name, key)

    def forget_key(self, name: str) -> None:
        """Remove a provider's saved key."""
        self._registry.forget_key(name)

    def has_key(self, name: str) -> bool:
        """Return whether a provider has a key or needs none."""
        config = self._registry.config(name)
        return not config.vendor.base_url or self._registry.find_key(name) is not None

    # -- on the exchange loop

    async def models(self, name: str) -> tuple[ListedModel, ...]:
        """Return the models a provider lists; raise ProviderError, NotFound."""
        if name == RECALL:
            return await self._recall.models()
        return await self._provider(name).models()

    async def test(self, name: str) -> ConnectionReport:
        """Test the connection to a provider; raise NotFound."""
        return await self._provider(name).test()

    async def local_servers(self) -> tuple[LocalServer, ...]:
        """Return the model servers running on this machine; the user is offered them."""
        return await find_local_servers()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._open.aclose()

    def _provider(self, name: str) -> RemoteProvider:
        return self._open.get(self._registry.config(name))

    def _state(self, config: ProviderConfig) -> ProviderState:
        try:
            base_url = config.url().text
            key = self._registry.find_key(config.name)
        except InvalidInput as error:
            return ProviderState(config, config.base_url or "", error.title)
        is_saved = key is not None and key.place is not KeyLocation.ENVIRONMENT
        return ProviderState(
            config, base_url, key.location_text if key else "no key", has_saved_key=is_saved
        )

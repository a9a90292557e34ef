"""The models there are, by `PROVIDER:MODEL`: found, listed, tested, priced.

Providers over the network live on the exchange loop; what must run there is a coroutine.
"""

from dataclasses import dataclass

from app.chat.exchanges import Models
from app.domain.chat import ModelCard, ModelRef, TokensReported
from app.domain.errors import InvalidInput, NotFound
from app.domain.ports import ChatModel
from app.domain.provider_errors import ModelNotFound
from app.providers.configuration import ProviderConfig, ProviderKind
from app.providers.limits import Network
from app.providers.local_servers import LocalServer, find_local_servers
from app.providers.own_prices import OwnPrices
from app.providers.prices import PriceBook
from app.providers.recall import RECALL, FindPassages, RecallModel
from app.providers.registry import ProviderRegistry
from app.providers.remote import ConnectionReport, RemoteProvider
from app.storage.settings import ProviderRow, Settings
from app.system.keys import KeyPlace, KeyStore


@dataclass(frozen=True, slots=True)
class ProviderState:
    """A provider as screens show it: where it is, where its key comes from, never the key.

    A saved key is one that can be removed here: not the environment's.
    """

    config: ProviderConfig
    base_url: str
    key_from: str
    has_saved_key: bool = False


class ModelDirectory:
    """Every model of every provider, and Recall."""

    def __init__(self, settings: Settings, keys: KeyStore, find_passages: FindPassages) -> None:
        self._settings = settings
        self._recall = RecallModel(find_passages)
        self._registry = ProviderRegistry(self._configured, keys, network=self._network)
        self._prices = PriceBook(self._registry.find_config, OwnPrices(settings).all)
        self._built: dict[str, tuple[object, RemoteProvider]] = {}

    def for_exchanges(self) -> Models:
        """Return what the exchange loop needs."""
        return Models(self.chat_model, self.context_tokens, self.price_of, self.aclose)

    def chat_model(self, ref: ModelRef) -> ChatModel:
        """Return the model; raise NotFound or ModelNotFound. May block: the key is looked up later."""
        if ref.provider == RECALL:
            return self._recall
        provider = self._provider(ref.provider)
        if not ref.model:
            raise ModelNotFound(
                f"'{ref}' names no model", "Choose a model, written PROVIDER:MODEL, in Settings."
            )
        return provider.chat_model()

    def context_tokens(self, ref: ModelRef) -> int | None:
        """Return how many tokens a model reads; None when it is unknown. May block."""
        return None if ref.provider == RECALL else self._prices.context_tokens(ref)

    def price_of(self, ref: ModelRef, tokens: TokensReported) -> tuple[float | None, str]:
        """Return (USD, the price used in words) of a request; None is unknown. May block."""
        if ref.provider == RECALL:
            return 0.0, "built in"
        cost = self._prices.cost(
            ref, tokens.input_tokens, tokens.output_tokens, tokens.cached_tokens
        )
        return cost.cost_usd, cost.price

    def check_name(self, model: str) -> str:
        """Return `model` if its provider exists; raise NotFound or InvalidInput. Blocking."""
        ref = ModelRef.parse(model)
        if ref.provider == RECALL:
            return f"{RECALL}:"
        self._registry.config(ref.provider)
        if not ref.model:
            raise InvalidInput(f"'{model}' names no model", "Write PROVIDER:MODEL.")
        return str(ref)

    # -- providers; blocking

    def providers(self) -> tuple[ProviderState, ...]:
        """Return all providers, the built-in ones first."""
        return tuple(self._state(config) for config in self._registry.configs())

    def add_provider(self, config: ProviderConfig) -> None:
        """Add or change a provider; raise InvalidInput for a name or base URL that will not do."""
        config.checked()
        self._settings.put_provider(
            ProviderRow(
                config.name, config.kind.value, config.base_url, config.key_env,
                config.allow_plain_http,
            )
        )  # fmt: skip

    def remove_provider(self, name: str) -> None:
        """Remove a provider of the user's and its key; raise NotFound."""
        if all(row.name != name for row in self._settings.providers()):
            raise NotFound(
                f"There is no provider '{name}' to remove", "openai and anthropic always exist."
            )
        self._registry.forget_key(name)
        self._settings.remove_provider(name)

    def save_key(self, name: str, key: str) -> KeyPlace:
        """Keep a provider's key in the keyring, or for this session; return where."""
        return self._registry.save_key(name, key)

    def forget_key(self, name: str) -> None:
        """Remove a provider's saved key."""
        self._registry.forget_key(name)

    def has_key(self, name: str) -> bool:
        """Return whether a provider could be used at once: it has a key, or needs none."""
        config = self._registry.config(name)
        return config.kind is ProviderKind.COMPATIBLE or self._registry.find_key(name) is not None

    # -- on the exchange loop

    async def models(self, name: str) -> tuple[ModelCard, ...]:
        """Return the models a provider lists; raise ProviderError, NotFound."""
        if name == RECALL:
            return await self._recall.models()
        return await self._provider(name).models()

    async def test(self, name: str) -> ConnectionReport:
        """Ask a provider for its models, once; raise NotFound."""
        return await self._provider(name).test()

    async def local_servers(self) -> tuple[LocalServer, ...]:
        """Return model servers that run on this machine; they are offered, not used."""
        return await find_local_servers()

    async def aclose(self) -> None:
        """Close all connections."""
        for _, provider in self._built.values():
            await provider.aclose()
        self._built.clear()

    def _provider(self, name: str) -> RemoteProvider:
        """Return a provider, kept while its configuration stays, so that connections are reused."""
        stamp = (self._registry.config(name), self._network())
        known = self._built.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        provider = self._registry.build(name)
        self._built[name] = (stamp, provider)
        return provider

    def _state(self, config: ProviderConfig) -> ProviderState:
        try:
            base_url = config.url().text
            key = self._registry.find_key(config.name)
        except InvalidInput as error:
            return ProviderState(config, config.base_url or "", error.title)
        is_saved = key is not None and key.place is not KeyPlace.ENVIRONMENT
        return ProviderState(
            config, base_url, key.place_text if key else "no key", has_saved_key=is_saved
        )

    def _configured(self) -> list[ProviderConfig]:
        return [
            ProviderConfig(
                row.name, ProviderKind(row.kind), row.base_url, row.key_env, row.allow_plain_http
            )
            for row in self._settings.providers()
        ]

    def _network(self) -> Network:
        return Network(
            self._settings.text("proxy_url") or None, self._settings.text("ca_bundle") or None
        )

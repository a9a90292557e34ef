"""The providers part: who can be asked, and what that costs."""

from dataclasses import dataclass

from app.bootstrap.memory import MemoryPart
from app.chat.models import ModelDirectory
from app.memory.embedders import provider_registry
from app.providers.own_prices import OwnPrices
from app.providers.prices import PriceBook
from app.providers.registry import ProviderRegistry
from app.providers.retry import RetryPolicy
from app.storage.settings import Settings
from app.system.keys import KeyStore


@dataclass(frozen=True, slots=True)
class ProvidersPart:
    """The models of chat, and the registry and prices that background work goes by."""

    models: ModelDirectory
    registry: ProviderRegistry
    own_prices: OwnPrices
    prices: PriceBook


def wire_providers(settings: Settings, keys: KeyStore, memory: MemoryPart) -> ProvidersPart:
    """Return the part; nothing is asked of anyone yet."""
    # A worker waits and tries again by itself, where the user can see it.
    registry = provider_registry(settings, keys, RetryPolicy(tries=1))
    own_prices = OwnPrices(settings)
    return ProvidersPart(
        models=ModelDirectory(settings, keys, memory.recall.quotable),
        registry=registry,
        own_prices=own_prices,
        prices=PriceBook(registry.find_config, own_prices.all),
    )

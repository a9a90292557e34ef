"""What a request costs: the user's own table first, then the prices bundled with genai-prices.

Nothing is fetched. A price that is not known is None and said to be unknown, never 0; a model on this
machine or in the user's own network costs nothing unless the user says otherwise. Loading the bundled
table takes 0.25 s, on first use, so not on the GUI thread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput
from app.providers.configuration import ProviderConfig, ProviderKind

_PER_TOKENS = 1_000_000
_VENDORS = {ProviderKind.OPENAI: "openai", ProviderKind.ANTHROPIC: "anthropic"}
_SELLERS = ("openai", "anthropic", "google")  # of models that nobody runs for themselves


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """A price of the user's, in USD for a million tokens; `cached_usd` None costs like input."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """A request's cost; `cost_usd` None is unknown. `price` says in a line which price was used."""

    cost_usd: float | None
    price: str


class PriceBook:
    """Prices and context sizes by model.

    `find_config` gives a provider's configuration by name, None for those without one (recall):
    kinds openai and anthropic are priced by the vendor's list, also behind a gateway; a compatible
    one by the vendor its base URL belongs to, if it is a known one. `own` gives the user's table as
    it is now, keyed by `PROVIDER:MODEL` (`own_prices`).
    """

    def __init__(
        self,
        find_config: Callable[[str], ProviderConfig | None],
        own: Callable[[], Mapping[str, OwnPrice]] = dict,
    ) -> None:
        self._find_config = find_config
        self._own = own

    def cost(
        self,
        ref: ModelRef,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        at: datetime | None = None,
    ) -> Cost:
        """Return the cost of one request; `input_tokens` includes `cached_tokens`.

        `at` (default: now) decides between prices that have changed. The user's own price wins.
        """
        cached_tokens = min(cached_tokens, input_tokens)
        if (own := self._own().get(str(ref))) is not None:
            return _own_cost(own, input_tokens, output_tokens, cached_tokens)
        place = self._own_place(ref.provider)
        if place is not None and not _is_sold(ref.model):
            return Cost(0.0, f"{ref} runs {place}, so it costs nothing unless you set a price")
        if (vendor := self._vendor(ref.provider)) is None:
            return _unknown(ref)
        import genai_prices
        from genai_prices.data_snapshot import get_snapshot

        usage = genai_prices.Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cached_tokens,
        )
        try:
            found = get_snapshot().calc(usage, ref.model, *vendor, at)
        except (LookupError, ValueError):
            return _unknown(ref)
        words = f"{found.provider.name} list price: {_price_words(found.model_price)}"
        return Cost(float(found.total_price), f"{words} (genai-prices {genai_prices.__version__})")

    def context_tokens(self, ref: ModelRef) -> int | None:
        """Return how much a model reads at once, None if unknown."""
        if (vendor := self._vendor(ref.provider)) is None:
            return None
        from genai_prices.data_snapshot import get_snapshot

        try:
            _, model = get_snapshot().find_provider_model(ref.model, None, *vendor)
        except LookupError:
            return None
        return model.context_window

    def _own_place(self, provider: str) -> str | None:
        """Return in words where the user's own server is; None elsewhere, and for a vendor's kind.

        Behind a vendor's protocol there is more likely a gateway to the vendor, who wants money; so
        there is where a model has the name of one that is sold.
        """
        config = self._find_config(provider)
        if config is None or config.kind is not ProviderKind.COMPATIBLE:
            return None
        try:
            base_url = config.url()
        except InvalidInput:
            return None
        if base_url.is_loopback:
            return "on this computer"
        return "in your own network" if base_url.is_private else None

    def _vendor(self, provider: str) -> tuple[str | None, str | None] | None:
        """Return the id or the base URL by which genai-prices finds the vendor, None without."""
        config = self._find_config(provider)
        if config is None:
            return None
        if config.kind in _VENDORS:
            return _VENDORS[config.kind], None
        return (None, config.base_url) if config.base_url else None


def _is_sold(model: str) -> bool:
    """Whether this is the name of a model that is only to be had for money."""
    from genai_prices.data_snapshot import get_snapshot

    for vendor in _SELLERS:
        try:
            get_snapshot().find_provider_model(model.rpartition("/")[2], None, vendor, None)
        except LookupError:
            continue
        return True
    return False


def _own_cost(own: OwnPrice, input_tokens: int, output_tokens: int, cached_tokens: int) -> Cost:
    cached_usd = own.input_usd if own.cached_usd is None else own.cached_usd
    spent = (
        (input_tokens - cached_tokens) * own.input_usd
        + cached_tokens * cached_usd
        + output_tokens * own.output_usd
    )
    words = f"your price: ${own.input_usd:g} in, ${cached_usd:g} cached, ${own.output_usd:g} out"
    return Cost(spent / _PER_TOKENS, f"{words} per million tokens")


def _unknown(ref: ModelRef) -> Cost:
    return Cost(None, f"the price of {ref} is unknown")


def _price_words(price: Any) -> str:
    parts = []
    for name, word in (("input", "in"), ("cache_read", "cached"), ("output", "out")):
        value = getattr(price, f"{name}_mtok", None)
        base = getattr(value, "base", value)
        if base is not None:
            tiers = " and up" if base is not value else ""
            parts.append(f"${float(base):g} {word}{tiers}")
    return f"{', '.join(parts)} per million tokens" if parts else "as listed"

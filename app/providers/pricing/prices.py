"""Prices of requests: the user's own prices first, then those bundled with genai-prices.

Nothing is downloaded. An unknown price is None and shown as unknown, never as 0; a model on this
machine or in the user's own network costs nothing unless the user sets a price. The first use loads
the bundled table (0.25 s), so it must not be on the GUI thread.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.domain.chat import ModelRef, UsageReported
from app.domain.errors import InvalidInput, NotFound
from app.providers.configuration import ProviderConfig
from app.providers.http.json_fields import json_object
from app.providers.vendors import vendors
from app.storage.tables.settings import Settings

_PER_TOKENS = 1_000_000
_KEY = "own_prices"
_MAX_USD = 1_000_000.0
_SELLERS = ("openai", "anthropic", "google")  # their models do not run on private servers
_OPEN = re.compile("gpt-oss|[a-z]*gemma", re.IGNORECASE)  # but these do


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """A user's price in USD for a million tokens; `cached_usd` None is the input price."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """A request's cost; `cost_usd` None is unknown. `price` is one line about the price used."""

    cost_usd: float | None
    price: str


def load_price_list() -> None:
    """Load the bundled table, which the first price otherwise waits for (0.25 s). Blocking."""
    from genai_prices.data_snapshot import get_snapshot

    get_snapshot()


class PriceList:
    """Prices and context sizes by model.

    `find_config` returns a provider's configuration by name, None for those without one (recall):
    a vendor with a price key has its own list, also behind a gateway; other providers have the list
    of the vendor that their base URL belongs to, if it is known. `own` returns the user's current
    prices by `PROVIDER:MODEL` (`OwnPrices`).
    """

    def __init__(
        self,
        find_config: Callable[[str], ProviderConfig | None],
        own: Callable[[], Mapping[str, OwnPrice]] = dict,
    ) -> None:
        self._find_config = find_config
        self._own = own

    def cost(self, ref: ModelRef, tokens: UsageReported, at: datetime | None = None) -> Cost:
        """Return the cost of one request.

        `at` (default: now) selects among prices that have changed. The user's own price takes
        precedence.
        """
        if (own := self._own().get(str(ref))) is not None:
            return _own_cost(own, tokens)
        if (location := self._free_location(ref)) is not None:
            return Cost(0.0, f"{ref} runs {location}, so it costs nothing unless you set a price")
        if (listed := self._listed(ref)) is None:
            return _unknown(ref)
        import genai_prices
        from genai_prices.data_snapshot import get_snapshot

        cached_tokens = min(tokens.cached_tokens, tokens.input_tokens)
        written_tokens = min(tokens.cache_write_tokens, tokens.input_tokens - cached_tokens)
        usage = genai_prices.Usage(
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cache_read_tokens=cached_tokens,
            cache_write_tokens=written_tokens,
            cache_write_1h_tokens=min(tokens.cache_write_1h_tokens, written_tokens),
        )
        try:
            found = get_snapshot().calc(usage, listed[0], *listed[1:], at)
        except (LookupError, ValueError):
            return _unknown(ref)
        price = f"{found.provider.name} list price: {_price_text(found.model_price)}"
        return Cost(float(found.total_price), f"{price} (genai-prices {genai_prices.__version__})")

    def per_million(self, ref: ModelRef) -> tuple[float, float] | None:
        """Return a model's prices in USD for a million tokens in and out; None if unknown."""
        if (own := self._own().get(str(ref))) is not None:
            return own.input_usd, own.output_usd
        if self._free_location(ref) is not None:
            return 0.0, 0.0
        if (model := self._model(ref)) is None:
            return None
        price = model.get_prices(datetime.now(UTC))
        found: list[Any] = [price.input_mtok, price.output_mtok]
        input_usd, output_usd = (getattr(each, "base", each) for each in found)
        if input_usd is None or output_usd is None:
            return None
        return float(input_usd), float(output_usd)

    def context_tokens(self, ref: ModelRef) -> int | None:
        """Return the size of a model's context in tokens, None if unknown."""
        model = self._model(ref)
        return None if model is None else model.context_window

    def _model(self, ref: ModelRef) -> Any:
        """Return a model in the bundled table, None if it is not there."""
        from genai_prices.data_snapshot import get_snapshot

        if (listed := self._listed(ref)) is not None:
            with suppress(LookupError):
                return get_snapshot().find_provider_model(listed[0], None, *listed[1:])[1]
        return None

    def _free_location(self, ref: ModelRef) -> str | None:
        """Where the user's own server is that costs nothing, as text; None for other servers.

        A server with a model that has the name of a sold one is rather a gateway to the vendor, and so is one
        in the user's own network with a vendor's protocol.
        """
        config = self._find_config(ref.provider)
        base_url = config.valid_url() if config is not None else None
        if config is None or base_url is None or _seller_of(ref.model) is not None:
            return None
        if base_url.is_loopback:
            return "on this computer"
        is_own = base_url.is_private and not config.vendor.price_key
        return "in your own network" if is_own else None

    def _listed(self, ref: ModelRef) -> tuple[str, str | None, str | None] | None:
        """A model's name, and the id or base URL by which genai-prices finds the vendor; None for neither.

        A gateway on a private server has the price of the vendor that its model's name tells.
        """
        config = self._find_config(ref.provider)
        if config is None or config.kind not in vendors():
            return None
        base_url = config.valid_url()
        is_private = base_url is not None and (base_url.is_loopback or base_url.is_private)
        if is_private and (seller := _seller_of(ref.model)):
            return ref.model.rpartition("/")[2], seller, None
        price_key = config.vendor.price_key
        url = config.base_url or config.vendor.base_url
        if price_key:
            return ref.model, price_key, None
        return (ref.model, None, url) if url else None


def _seller_of(model: str) -> str | None:
    """Return the vendor of a model that is only available for money, None for others."""
    from genai_prices.data_snapshot import get_snapshot

    name = model.rpartition("/")[2]
    if _OPEN.match(name):
        return None
    for vendor in _SELLERS:
        try:
            get_snapshot().find_provider_model(name, None, vendor, None)
        except LookupError:
            continue
        return vendor
    return None


def _own_cost(own: OwnPrice, tokens: UsageReported) -> Cost:
    cached_usd = own.input_usd if own.cached_usd is None else own.cached_usd
    cached_tokens = min(tokens.cached_tokens, tokens.input_tokens)
    spent = (
        (tokens.input_tokens - cached_tokens) * own.input_usd
        + cached_tokens * cached_usd
        + tokens.output_tokens * own.output_usd
    )
    price = f"your price: ${own.input_usd:g} in, ${cached_usd:g} cached, ${own.output_usd:g} out"
    return Cost(spent / _PER_TOKENS, f"{price} per million tokens")


def _unknown(ref: ModelRef) -> Cost:
    return Cost(None, f"the price of {ref} is unknown")


def _price_text(price: Any) -> str:
    parts = []
    for name, label in (
        ("input", "in"),
        ("cache_read", "cached"),
        ("cache_write", "cache write"),
        ("output", "out"),
    ):
        value = getattr(price, f"{name}_mtok", None)
        base = getattr(value, "base", value)
        if base is not None:
            tiers = " and up" if base is not value else ""
            parts.append(f"${float(base):g} {label}{tiers}")
    return f"{', '.join(parts)} per million tokens" if parts else "as listed"


class OwnPrices:
    """The table of own prices. Reading does not block; writing does. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read_from = ""
        self._table: Mapping[str, OwnPrice] = {}

    def all(self) -> Mapping[str, OwnPrice]:
        """Return the prices by model, in order of their names."""
        text = self._settings.text(_KEY)
        if text != self._read_from:
            self._table, self._read_from = _table(text), text
        return self._table

    def put(self, model: str, price: OwnPrice) -> str:
        """Store the price of a model; return the model's normalized name.

        Raises InvalidInput for an invalid name or price, StorageError.
        """
        ref = ModelRef.parse(model)
        if not ref.provider or not ref.model:
            raise InvalidInput(f"'{model}' names no model", "Write PROVIDER:MODEL.")
        for value in (price.input_usd, price.output_usd, price.cached_usd):
            if value is not None and not _is_price(value):
                raise InvalidInput(
                    f"'{value:g}' is not a price",
                    f"A price is a number from 0 to {_MAX_USD:,.0f}, in USD for a million tokens.",
                )
        self._store(dict(self.all()) | {str(ref): price})
        return str(ref)

    def remove(self, model: str) -> None:
        """Delete an own price; raise NotFound if there is none."""
        table = dict(self.all())
        if table.pop(str(ModelRef.parse(model)), None) is None:
            models = ", ".join(table) or "none"
            raise NotFound(
                f"You have not set a price for '{model}'", f"Models with your prices: {models}."
            )
        self._store(table)

    def _store(self, table: Mapping[str, OwnPrice]) -> None:
        rows = {
            model: [price.input_usd, price.output_usd, price.cached_usd]
            for model, price in sorted(table.items())
        }
        self._settings.set(_KEY, json.dumps(rows))


def _table(text: str) -> Mapping[str, OwnPrice]:
    """Return the stored prices without unreadable ones."""
    table = {}
    for model, row in json_object(text).items():
        match row:
            case [
                int() | float() as input_usd,
                int() | float() as output_usd,
                int() | float() | None as cached_usd,
            ]:
                prices = (input_usd, output_usd, 0 if cached_usd is None else cached_usd)
                if all(_is_price(each) for each in prices):
                    table[model] = OwnPrice(input_usd, output_usd, cached_usd)
    return table


def _is_price(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= _MAX_USD

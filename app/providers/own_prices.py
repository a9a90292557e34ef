"""The user's own prices: by `PROVIDER:MODEL`, kept in the settings, above every list price."""

import json
import math
from collections.abc import Mapping

from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput, NotFound
from app.providers.prices import OwnPrice
from app.storage.settings import Settings

_KEY = "own_prices"
_MOST_USD = 1_000_000.0


class OwnPrices:
    """Reads and keeps the table. Reading never blocks; writing does. Thread-safe."""

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
        """Keep what a model costs; return its name as it is kept.

        Raises InvalidInput for what names no model or is no price, StorageError.
        """
        ref = ModelRef.parse(model)
        if not ref.provider or not ref.model:
            raise InvalidInput(f"'{model}' names no model", "Write PROVIDER:MODEL.")
        for value in (price.input_usd, price.output_usd, price.cached_usd):
            if value is not None and not _is_price(value):
                raise InvalidInput(
                    f"'{value:g}' is not a price",
                    f"A price is a number from 0 to {_MOST_USD:,.0f}, in USD for a million tokens.",
                )
        self._keep(dict(self.all()) | {str(ref): price})
        return str(ref)

    def remove(self, model: str) -> None:
        """Let the list price apply again; raise NotFound without a price of the user's."""
        table = dict(self.all())
        if table.pop(str(ModelRef.parse(model)), None) is None:
            there_are = ", ".join(table) or "none"
            raise NotFound(f"There is no price of yours for '{model}'", f"There are: {there_are}.")
        self._keep(table)

    def _keep(self, table: Mapping[str, OwnPrice]) -> None:
        rows = {
            model: [price.input_usd, price.output_usd, price.cached_usd]
            for model, price in sorted(table.items())
        }
        self._settings.set(_KEY, json.dumps(rows))


def _table(text: str) -> Mapping[str, OwnPrice]:
    """Return what was kept; what cannot be read is left out, and its price is unknown again."""
    try:
        rows = json.loads(text)
    except ValueError:
        return {}
    table = {}
    for model, row in rows.items() if isinstance(rows, dict) else ():
        match row:
            case [
                int() | float() as given,
                int() | float() as made,
                int() | float() | None as cached,
            ]:
                prices = (given, made, *(() if cached is None else (cached,)))
                if all(_is_price(each) for each in prices):
                    table[model] = OwnPrice(given, made, cached)
    return table


def _is_price(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= _MOST_USD

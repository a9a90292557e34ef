"""Rows of lists of models: what a model is called, how much it reads and what it costs, as text."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.domain.translation import format_number, model_label, money, tr

if TYPE_CHECKING:
    from app.chat.models import ModelCard

_THOUSAND, _MILLION = 1_000, 1_000_000
_CENT_USD = 0.01


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in a list; `model` is PROVIDER:MODEL."""

    model: str
    name: str
    window: str = ""
    price: str = ""
    tip: str = ""
    is_favorite: bool = False


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """Models below a heading; `note` stands in for them, such as the reason why there are none."""

    heading: str
    rows: tuple[ModelRow, ...] = ()
    note: str = ""


def model_name(model: str) -> str:
    """Return a model's name where one is chosen."""
    return tr("Recall (built in)") if model == "recall:" else model_label(model)


def model_row(card: "ModelCard") -> ModelRow:
    window, price = window_text(card.window_tokens), price_text(card.price_usd)
    details = [card.title if card.title != card.ref.model else "", str(card.ref)]
    if card.window_tokens:
        details.append(
            tr("Reads {window_tokens} tokens").format(
                window_tokens=format_number(card.window_tokens)
            )
        )
    if card.price_usd is not None and any(card.price_usd):
        details.append(tr("Costs {price} for a million tokens in and out").format(price=price))
    return ModelRow(
        str(card.ref), model_name(str(card.ref)), window, price, "\n".join(filter(None, details))
    )


def model_rows(cards: "Iterable[ModelCard]") -> tuple[ModelRow, ...]:
    return tuple(map(model_row, cards))


def window_text(tokens: int | None) -> str:
    """Return the size of a context window in short: "128k", "1M", "" if unknown."""
    if not tokens:
        return ""
    if tokens >= _MILLION:
        millions = round(tokens / _MILLION, 1)
        return f"{format_number(millions, 0 if millions.is_integer() else 1)}M"
    # Windows are powers of two or round numbers: 131,072 is called 128k, and 200,000 200k.
    unit = _THOUSAND if tokens % _THOUSAND == 0 else 1024
    return f"{round(tokens / unit)}k" if tokens >= unit else str(tokens)


def price_text(price_usd: tuple[float, float] | None) -> str:
    """Return prices of a million tokens in and out: "$2.50 / $10", "free", "" if unknown."""
    if price_usd is None:
        return ""
    return " / ".join(map(_usd, price_usd)) if any(price_usd) else tr("free")


def _usd(amount: float) -> str:
    if amount and amount < _CENT_USD:
        return money(amount, 3)
    return money(amount) if amount % 1 else money(amount, 0)

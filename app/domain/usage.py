"""What a request cost, in tokens, time and money. Where prices come from: `app.providers.prices`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of one reply, all its requests together.

    `input_tokens` includes `cached_tokens`, the part read from the provider's prompt cache.
    `cost_usd` is None when the price is unknown (shown as "unknown", never as 0); `price` says
    which price was used. `estimated` marks counts the provider did not report. Times in ms.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    price: str = ""
    estimated: bool = False
    first_token_ms: int | None = None
    duration_ms: int | None = None

"""Prices of requests: known, unknown, of private servers, and the user's own; estimates of tokens."""

from datetime import UTC, datetime

import pytest

from app.domain.chat import ModelRef
from app.providers.configuration import ProviderConfig
from app.providers.pricing.estimated_tokens import bytes_per_token
from app.providers.pricing.prices import Cost, OwnPrice, PriceList

CONFIGS = {
    "openai": ProviderConfig("openai", "openai"),
    "anthropic": ProviderConfig("anthropic", "anthropic", "https://gate.example"),
    "deep": ProviderConfig("deep", "compatible", "https://api.deepseek.com/v1"),
    "gateway": ProviderConfig("gateway", "openai", "http://localhost:4000/v1"),
    "attic": ProviderConfig("attic", "compatible", "https://192.168.1.7/v1"),
    "mdns": ProviderConfig("mdns", "compatible", "https://attic.local/v1"),
    "near": ProviderConfig("near", "compatible", "https://192.169.1.7/v1"),
    "local": ProviderConfig("local", "compatible", "http://localhost:11434/v1"),
}
AT = datetime(2025, 11, 1, tzinfo=UTC)


def cost(
    model: str, tokens_in: int, tokens_out: int, cached: int = 0, *, own: OwnPrice | None = None
) -> Cost:
    prices = PriceList(CONFIGS.get, lambda: {model: own} if own else {})
    return prices.cost(ModelRef.parse(model), tokens_in, tokens_out, cached, AT)


def test_a_known_price_is_applied_and_named() -> None:
    found = cost("openai:gpt-4o-mini", 1_000_000, 1_000_000)
    assert found.cost_usd == pytest.approx(0.75)
    assert found.price.startswith(
        "OpenAI list price: $0.15 in, $0.075 cached, $0.6 out per million"
    )
    assert "genai-prices" in found.price
    assert cost("openai:gpt-4o-mini", 1_000_000, 0).cost_usd == pytest.approx(0.15)
    cached = cost("openai:gpt-4o-mini", 1_000_000, 0, 1_000_000)
    assert cached.cost_usd == pytest.approx(0.075)
    assert cost("openai:gpt-4o-mini", 1_000_000, 0, 5_000_000) == cached, "there are no more"


def test_a_gateway_has_the_vendors_price_and_a_compatible_vendor_that_of_its_address() -> None:
    assert (cost("anthropic:claude-sonnet-4-5", 1_000_000, 0).cost_usd or 0) > 1
    assert cost("deep:deepseek-chat", 1000, 1000).cost_usd


@pytest.mark.parametrize(
    "model",
    ["openai:brand-new-model", "deep:brand-new-model", "gateway:brand-new-model", "recall:", "nobody:gpt-4o"]
    + [
        f"{server}:{model}"
        for server in ("local", "attic")
        for model in ("gpt-5", "openai/gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro")
    ],
)  # fmt: skip
def test_an_unknown_price_is_unknown_and_not_0(model: str) -> None:
    """Models that are sold are behind a gateway, if on a private server."""
    found = cost(model, 1000, 1000)
    assert found.cost_usd is None
    assert "unknown" in found.price
    assert cost(model, 500_000, 500_000, own=OwnPrice(1.0, 1.0)).cost_usd == 1.0


@pytest.mark.parametrize("server", ["local", "attic", "mdns"])
@pytest.mark.parametrize("model", ["llama3.2:3b", "gpt-oss:20b", "deepseek-r1:8b", "my-own"])
def test_a_free_model_on_a_private_server_costs_nothing(server: str, model: str) -> None:
    found = cost(f"{server}:{model}", 1000, 1000)
    assert found.cost_usd == 0
    assert "costs nothing unless you set a price" in found.price
    assert cost(f"near:{model}", 1000, 1000).cost_usd is None, "its address only looks private"


def test_the_users_own_price_wins() -> None:
    found = cost("local:llama3", 1_000_000, 500_000, 10, own=OwnPrice(1, 2))
    assert found.cost_usd == pytest.approx(2)
    assert found.price == "your price: $1 in, $1 cached, $2 out per million tokens"


def test_context_sizes_are_known_where_prices_are() -> None:
    prices = PriceList(CONFIGS.get)
    found = [
        prices.context_tokens(ModelRef.parse(model))
        for model in ("openai:gpt-4o-mini", "local:llama3", "recall:")
    ]
    assert found == [128_000, None, None]


def test_families_of_models_differ_in_their_tokens() -> None:
    assert bytes_per_token("claude-opus-4") < bytes_per_token("gpt-5")
    assert bytes_per_token("meta-llama/Llama-3-8b") == bytes_per_token("llama3")

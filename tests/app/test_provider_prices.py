"""Prices and token estimates: known, unknown, the user's own, and learnt from use."""

from datetime import UTC, datetime

import pytest

from app.domain.chat import ModelRef
from app.domain.conversations import Image, Role, Text, Thinking, ToolCall, ToolResult
from app.providers.configuration import ProviderConfig, ProviderKind
from app.providers.prices import OwnPrice, PriceBook
from app.providers.tokens import TokenEstimator, bytes_per_token
from tests.fakes.loopback_client import WEATHER, message, request, user

CONFIGS = {
    "openai": ProviderConfig("openai", ProviderKind.OPENAI),
    "anthropic": ProviderConfig("anthropic", ProviderKind.ANTHROPIC, "https://gate.example"),
    "deep": ProviderConfig("deep", ProviderKind.COMPATIBLE, "https://api.deepseek.com/v1"),
    "gateway": ProviderConfig("gateway", ProviderKind.OPENAI, "http://localhost:4000/v1"),
    "attic": ProviderConfig("attic", ProviderKind.COMPATIBLE, "https://192.168.1.7/v1"),
    "mdns": ProviderConfig("mdns", ProviderKind.COMPATIBLE, "https://attic.local/v1"),
    "near": ProviderConfig("near", ProviderKind.COMPATIBLE, "https://192.169.1.7/v1"),
    "local": ProviderConfig("local", ProviderKind.COMPATIBLE, "http://localhost:11434/v1"),
}
AT = datetime(2025, 11, 1, tzinfo=UTC)
ESTIMATED = ModelRef("openai", "gpt-4o-mini")


def book(**own: OwnPrice) -> PriceBook:
    return PriceBook(CONFIGS.get, lambda: {f"local:{model}": price for model, price in own.items()})


@pytest.mark.parametrize("model", ["gpt-5", "openai/gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_a_model_that_is_sold_costs_an_unknown_price_behind_a_gateway_nearby(model: str) -> None:
    for provider in ("local", "attic"):
        assert book().cost(ModelRef(provider, model), 10, 10).cost_usd is None
    own = {model: OwnPrice(1.0, 1.0)}
    assert book(**own).cost(ModelRef("local", model), 500_000, 500_000).cost_usd == 1.0


@pytest.mark.parametrize("model", ["llama3.2:3b", "gpt-oss:20b", "deepseek-r1:8b", "my-own"])
def test_a_model_that_is_free_costs_nothing_on_a_machine_of_the_user_s(model: str) -> None:
    assert book().cost(ModelRef("local", model), 10, 10).cost_usd == 0.0


def test_a_known_price_is_applied_and_named() -> None:
    cost = book().cost(ModelRef("openai", "gpt-4o-mini"), 1_000_000, 1_000_000, at=AT)
    assert cost.cost_usd == pytest.approx(0.75)
    assert cost.price.startswith("OpenAI list price: $0.15 in, $0.075 cached, $0.6 out per million")
    assert "genai-prices" in cost.price


def test_cached_tokens_cost_less() -> None:
    ref = ModelRef("openai", "gpt-4o-mini")
    assert book().cost(ref, 1_000_000, 0, at=AT).cost_usd == pytest.approx(0.15)
    assert book().cost(ref, 1_000_000, 0, 1_000_000, at=AT).cost_usd == pytest.approx(0.075)


def test_a_gateway_of_a_vendors_kind_costs_the_vendors_price() -> None:
    cost = book().cost(ModelRef("anthropic", "claude-sonnet-4-5"), 1_000_000, 0, at=AT)
    assert cost.cost_usd is not None
    assert cost.cost_usd > 1


def test_a_compatible_vendor_is_known_by_its_address() -> None:
    assert book().cost(ModelRef("deep", "deepseek-chat"), 1000, 1000, at=AT).cost_usd


@pytest.mark.parametrize(
    "ref",
    [
        ModelRef("openai", "brand-new-model"),
        ModelRef("deep", "brand-new-model"),
        ModelRef("gateway", "brand-new-model"),
        ModelRef("recall", ""),
        ModelRef("nobody", "gpt-4o"),
    ],
)
def test_an_unknown_price_is_unknown_and_not_0(ref: ModelRef) -> None:
    cost = book().cost(ref, 1000, 1000)
    assert cost.cost_usd is None
    assert "unknown" in cost.price


@pytest.mark.parametrize("provider", ["local", "attic", "mdns"])
@pytest.mark.parametrize("model", ["llama3", "qwen2.5"])
def test_a_model_on_a_machine_of_the_users_costs_nothing_until_a_price_is_set(
    provider: str, model: str
) -> None:
    cost = book().cost(ModelRef(provider, model), 1000, 1000)
    assert cost.cost_usd == 0
    assert "costs nothing unless you set a price" in cost.price


def test_an_address_that_only_looks_private_is_a_clouds() -> None:
    assert book().cost(ModelRef("near", "llama3"), 1000, 1000).cost_usd is None


def test_more_cached_tokens_than_there_are_do_no_harm() -> None:
    assert book().cost(ModelRef("openai", "gpt-4o-mini"), 10, 0, 5000, at=AT).cost_usd is not None


def test_the_users_own_price_wins() -> None:
    cost = book(llama3=OwnPrice(1, 2)).cost(ModelRef("local", "llama3"), 1_000_000, 500_000, 10)
    assert cost.cost_usd == pytest.approx(2)
    assert cost.price == "your price: $1 in, $1 cached, $2 out per million tokens"


def test_context_sizes_are_known_where_prices_are() -> None:
    assert book().context_tokens(ModelRef("openai", "gpt-4o-mini")) == 128_000
    assert book().context_tokens(ModelRef("local", "llama3")) is None
    assert book().context_tokens(ModelRef("recall", "")) is None


def test_an_estimate_grows_with_the_text_and_is_0_only_for_nothing() -> None:
    estimator = TokenEstimator()
    assert estimator.text("", ESTIMATED) == 0
    assert estimator.text("a", ESTIMATED) == 1
    english = "The quick brown fox jumps over the lazy dog. " * 20
    assert 180 <= estimator.text(english, ESTIMATED) <= 260
    assert estimator.text("\ud800" * 10, ESTIMATED) > 0


def test_families_differ() -> None:
    assert bytes_per_token("claude-opus-4") < bytes_per_token("gpt-5")
    assert bytes_per_token("meta-llama/Llama-3-8b") == bytes_per_token("llama3")


def test_reported_usage_corrects_the_estimate_step_by_step() -> None:
    estimator = TokenEstimator()
    words = "word " * 1000
    before = estimator.text(words, ESTIMATED)
    for _ in range(30):
        estimator.learn(ESTIMATED, estimator.text(words, ESTIMATED), before * 3 // 2)
    assert estimator.text(words, ESTIMATED) == pytest.approx(before * 1.5, rel=0.02)
    assert estimator.text(words, ModelRef("openai", "gpt-4o")) == before


def test_one_absurd_report_changes_little_and_none_goes_out_of_bounds() -> None:
    estimator = TokenEstimator()
    estimator.learn(ESTIMATED, 100, 10_000_000)
    assert estimator.text("x" * 4200, ESTIMATED) <= 2500
    estimator.learn(ESTIMATED, 100, 0)
    estimator.learn(ESTIMATED, 0, 100)


def test_what_was_learnt_survives_the_session() -> None:
    estimator = TokenEstimator()
    estimator.learn(ESTIMATED, 1000, 1500)
    again = TokenEstimator({str(ESTIMATED): 1.1})
    assert estimator.factors_json() == again.factors_json() == '{"openai:gpt-4o-mini": 1.1}'


def test_a_request_is_the_sum_of_its_parts_without_thinking() -> None:
    estimator = TokenEstimator()
    long = "word " * 400
    said = message(Role.ASSISTANT, Thinking(long * 50), Text(long), ToolCall("1", "f", "{}"))
    result = message(Role.TOOL, ToolResult("1", "f", long))
    asked = request(user(long), said, result, model="gpt-4o-mini", system=long, tools=(WEATHER,))
    total = estimator.request(asked, "openai")
    one = estimator.text(long, ESTIMATED)
    assert 4 * one < total < 4 * one + 100
    picture = message(Role.USER, Image("a.png", "image/png"))
    assert estimator.message(picture, ESTIMATED) > 1000

"""Prices of requests: known, unknown, of private servers, and the user's own; estimates of tokens."""

import json
from datetime import UTC, datetime
from typing import Any

import genai_prices
import pytest

from app.domain.attachments import image_tokens
from app.domain.chat import ModelRef, UsageReported
from app.domain.conversations import Image, Role, Text
from app.providers.configuration import ProviderConfig
from app.providers.http.json_fields import member
from app.providers.pricing.prices import Cost, OwnPrice, PriceList
from app.providers.pricing.usage import UsageEstimator, bytes_per_token
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import ask, message, request, user
from tests.fakes.loopback_script import UsageSaid, text
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes

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
    return prices.cost(ModelRef.parse(model), UsageReported(tokens_in, tokens_out, cached), AT)


# A reply's model and usage as each vendor reports it.
REPORTS: dict[str, tuple[str, str, UsageSaid]] = {
    "a prompt written to the cache": (
        MESSAGES, "claude-sonnet-4-5", UsageSaid(20_000, 300, written=18_000)
    ),
    "one written for an hour": (
        MESSAGES, "claude-sonnet-4-5", UsageSaid(20_000, 300, 1_000, written=18_000, hour=5_000)
    ),
    "one read from the cache": (MESSAGES, "claude-haiku-4-5", UsageSaid(150_000, 900, 140_000)),
    "a long one": (MESSAGES, "claude-sonnet-4-5", UsageSaid(250_000, 900, 100_000, 100_000)),
    "Responses": (RESPONSES, "gpt-5", UsageSaid(30_000, 2_000, 20_000)),
    "Chat Completions": (CHAT, "gpt-4o-mini", UsageSaid(30_000, 2_000, 20_000)),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_the_recorded_cost_is_that_of_the_vendors_own_report(server: Loopback, name: str) -> None:
    wire, model, said = REPORTS[name]
    heard = ask(server, wire, text("yes"), said)
    assert heard.tokens is not None
    vendor = "anthropic" if wire == MESSAGES else "openai"
    config = ProviderConfig(vendor, vendor)
    found = PriceList({vendor: config}.get).cost(ModelRef(vendor, model), heard.tokens)
    reported = {
        "model": model,
        "usage": next(
            usage
            for event in _events(stream_bytes(wire, text("yes"), said))
            for usage in (member(event, "message", "usage"), member(event, "response", "usage"),
                          member(event, "usage"))
            if usage
        ) | ({"output_tokens": said.output_tokens} if wire != CHAT else {}),
    }  # fmt: skip
    flavor = {CHAT: "chat", RESPONSES: "responses", MESSAGES: "default"}[wire]
    extracted = genai_prices.extract_usage(reported, provider_id=vendor, api_flavor=flavor)
    assert found.cost_usd == pytest.approx(float(extracted.calc_price().total_price), abs=1e-9)


def _events(stream: bytes) -> list[Any]:
    lines = stream.decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


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
    "model", ["openai:brand-new-model", "deep:brand-new-model", "recall:", "nobody:gpt-4o"]
)
def test_an_unknown_price_is_unknown_and_not_0(model: str) -> None:
    found = cost(model, 1000, 1000)
    assert found.cost_usd is None
    assert "unknown" in found.price
    assert cost(model, 500_000, 500_000, own=OwnPrice(1.0, 1.0)).cost_usd == 1.0


@pytest.mark.parametrize("server", ["local", "attic", "mdns"])
@pytest.mark.parametrize(
    "model",
    ["llama3.2:3b", "deepseek-r1:8b", "my-own", "gpt-oss-20b", "openai/gpt-oss:120b",
     "gemma-3-12b-it"],
)  # fmt: skip
def test_a_free_model_on_a_private_server_costs_nothing(server: str, model: str) -> None:
    found = cost(f"{server}:{model}", 1000, 1000)
    assert found.cost_usd == 0
    assert "costs nothing unless you set a price" in found.price
    assert cost(f"near:{model}", 1000, 1000).cost_usd is None, "its address only looks private"


@pytest.mark.parametrize("server", ["local", "gateway", "attic"])
def test_a_model_that_is_only_sold_has_its_price_behind_a_private_gateway(server: str) -> None:
    """A gateway on this computer spends money like the vendor, and a cap must stop it."""
    for model, vendor in (
        ("gpt-5", "openai"), ("openai/gpt-5", "openai"), ("claude-sonnet-4-5", "anthropic"),
    ):  # fmt: skip
        name = f"{server}:{model}"
        assert cost(name, 1000, 1000).cost_usd == pytest.approx(
            PriceList({vendor: ProviderConfig(vendor, vendor)}.get)
            .cost(ModelRef(vendor, model.rpartition("/")[2]), UsageReported(1000, 1000), AT)
            .cost_usd
        )
        assert cost(name, 1_000_000, 0, own=OwnPrice(0.0, 0.0)).cost_usd == 0


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


# -- usage that a server does not report

REF = ModelRef("local", "test-model")
PROSE = (
    "The kettle stood on the stove, and nobody had thought of switching it on. We waited for a "
    "while; then Anna laughed, got up and did what all of us had left to somebody else. "
)


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.6])
@pytest.mark.parametrize("reported", [None, UsageReported(0, 0), UsageReported(0, 2)])
def test_a_stopped_reply_is_estimated_by_the_last_report_of_its_model(
    ratio: float, reported: UsageReported | None
) -> None:
    estimator = UsageEstimator()
    first, second = request(user(PROSE * 30)), request(user(PROSE * 80), user(PROSE))
    raw = UsageEstimator()
    whole = UsageReported(round(raw.input_tokens(REF, first) * ratio), round(500 * ratio))
    made = PROSE * 12
    whole_made = raw.complete(REF, first, made, None, is_finished=True).output_tokens
    whole = UsageReported(whole.input_tokens, round(whole_made * ratio))
    assert estimator.complete(REF, first, made, whole, is_finished=True) is whole
    found = estimator.complete(REF, second, PROSE * 5, reported, is_finished=False)
    assert found.input_tokens == pytest.approx(raw.input_tokens(REF, second) * ratio, rel=0.1)
    assert found.output_tokens == pytest.approx(whole_made / 12 * 5 * ratio, rel=0.1)


def test_a_report_is_completed_only_where_it_is_not_believable() -> None:
    estimator, asked = UsageEstimator(), request(user(PROSE))
    begun = UsageReported(1_000, 1)  # Anthropic's count when a reply begins
    found = estimator.complete(REF, asked, PROSE * 5, begun, is_finished=False)
    assert (found.input_tokens, found.output_tokens > 100) == (1_000, True)
    whole = UsageReported(1_000, 200)
    assert estimator.complete(REF, asked, PROSE, whole, is_finished=True) is whole
    nothing = estimator.complete(REF, asked, "", None, is_finished=False)
    assert (nothing.input_tokens > 20, nothing.output_tokens) == (True, 0)


def test_a_stopped_reply_has_read_from_the_cache_what_the_last_request_began_with() -> None:
    now_s = 0.0
    estimator = UsageEstimator(lambda: now_s)
    first = request(user(PROSE * 80))
    second = request(*first.messages, user(PROSE * 40))
    alone = UsageEstimator().complete(REF, first, "", None, is_finished=False)
    assert (alone.input_tokens > 2_500, alone.cached_tokens) == (True, 0)
    estimator.complete(REF, first, PROSE, UsageReported(alone.input_tokens, 50), is_finished=True)
    stopped = estimator.complete(REF, second, "", None, is_finished=False)
    assert stopped.cached_tokens == alone.input_tokens // 128 * 128
    edited = request(user(f"No: {PROSE}"), *second.messages[1:])
    assert estimator.complete(REF, edited, "", None, is_finished=False).cached_tokens == 0
    now_s = 700.0
    assert estimator.complete(REF, edited, "", None, is_finished=False).cached_tokens == 0


def test_no_cache_is_assumed_for_short_prompts_and_servers_that_report_none() -> None:
    estimator, short = UsageEstimator(), request(user(PROSE * 10))
    for _ in range(2):
        assert estimator.complete(REF, short, "", None, is_finished=False).cached_tokens == 0
    whole = request(user(PROSE * 90))
    for _ in range(2):
        estimator.complete(REF, whole, PROSE, UsageReported(3_000, 40), is_finished=True)
    assert estimator.complete(REF, whole, "", None, is_finished=False).cached_tokens == 0
    estimator.complete(REF, whole, PROSE, UsageReported(3_000, 40, 2_944), is_finished=True)
    assert estimator.complete(REF, whole, "", None, is_finished=False).cached_tokens > 2_000


def test_an_image_counts_by_its_size_where_it_is_sent() -> None:
    image = Image("a", "image/png", "h", width_px=280, height_px=280)
    told = message(Role.USER, Text("See"), image)
    estimator, plain = UsageEstimator(), request(user("See"))
    seen, named = request(told, images={"h": b"png"}), request(told)
    without = estimator.input_tokens(REF, plain)
    assert estimator.input_tokens(REF, seen) - without == image_tokens(image)
    assert estimator.input_tokens(REF, named) - without < 5, "its name alone is sent"

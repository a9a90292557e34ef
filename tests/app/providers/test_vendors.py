"""Vendors: adding one takes a single module, and the program knows it everywhere."""

from pathlib import Path

import pytest

from app.cli.arguments import parse
from app.domain.chat import ModelRef, UsageReported
from app.domain.errors import InvalidInput
from app.providers import vendors as package
from app.providers.configuration import ProviderConfig
from app.providers.http import connection
from app.providers.http.connection import Sdk
from app.providers.pricing.prices import PriceList
from app.providers.registry import ProviderRegistry
from app.providers.vendors import vendors
from app.providers.vendors.model_list import listed_models
from app.system.keys import KeyStore
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import hear
from tests.fakes.loopback_script import text
from tests.fakes.loopback_wire import CHAT

MISTRAL = """
from app.providers.http.connection import OPENAI_SDK
from app.providers.vendor import Vendor
from app.providers.wire.chat_completions import ChatCompletionsWire

SPEC = Vendor(
    kind="mistral",
    title="Mistral",
    position=4,
    sdk=OPENAI_SDK,
    wires=lambda _: [ChatCompletionsWire],
    base_url="https://api.mistral.ai/v1",
    domain="mistral.ai",
    key_env="MISTRAL_API_KEY",
    url_env="MISTRAL_BASE_URL",
    price_key="mistral",
)
"""


def test_one_module_adds_a_vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mistral.py").write_text(MISTRAL)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    vendors.cache_clear()
    try:
        with Loopback() as server:
            environ = {"MISTRAL_API_KEY": "sk-m", "MISTRAL_BASE_URL": server.v1}
            server.always(text("yes"))
            registry = ProviderRegistry(tuple, KeyStore(environ=environ), environ=environ)
            names = [config.name for config in registry.configs()]
            assert names == ["openai", "anthropic", "mistral"]
            assert hear(registry.build(registry.config("mistral"))).text == "yes"
            sent = server.posts[0]
            assert (sent.wire, sent.headers["authorization"]) == (CHAT, "Bearer sk-m")
        cost = PriceList(registry.find_config).cost(
            ModelRef("mistral", "mistral-large"), UsageReported(1000, 10)
        )
        assert cost.cost_usd is not None
        assert parse(["provider", "add", "mine", "--kind", "mistral"]).kind == "mistral"
    finally:
        vendors.cache_clear()


def test_an_unknown_kind_is_an_error_of_its_provider_only() -> None:
    config = ProviderConfig("future", "telepathy", "https://example.com/v1")
    registry = ProviderRegistry(lambda: [config], KeyStore(environ={}), environ={})
    assert [each.name for each in registry.configs()] == ["openai", "anthropic", "future"]
    with pytest.raises(InvalidInput, match="unknown kind 'telepathy'"):
        registry.build(registry.config("future"))
    assert (
        PriceList(registry.find_config).cost(ModelRef("future", "m"), UsageReported(1, 1)).cost_usd
        is None
    )
    assert not config.can_embed()


def test_preloading_imports_a_chosen_model_s_sdk_first(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(Sdk, "load", lambda self: loaded.append(self.module))
    monkeypatch.setattr("app.providers.registry.load_price_list", lambda: loaded.append("prices"))
    config = ProviderConfig("future", "telepathy", "https://example.com/v1")
    registry = ProviderRegistry(lambda: [config], KeyStore(environ={}), environ={})
    registry.preload(["recall", "future", "anthropic"])
    assert loaded == ["anthropic", "prices", "openai", "prices"]


def test_an_imported_sdk_does_not_wait_for_another_import() -> None:
    sdk = vendors()["openai"].sdk
    sdk.load()
    with connection._import_lock:
        assert sdk.load().AsyncOpenAI


@pytest.mark.parametrize(
    ("entry", "sees"),
    [({"architecture": {"input_modalities": ["text", "image"]}}, True),
     ({"architecture": {"input_modalities": ["text"]}}, False),
     ({"capabilities": {"vision": False}}, False),
     ({"capabilities": {"image_input": {"supported": True}}}, True), ({"type": "vlm"}, True),
     ({"type": "llm"}, False), ({"type": "model", "capabilities": ["completion"]}, None),
     ({}, None)],
)  # fmt: skip
def test_a_list_may_say_that_models_see_images(entry: dict[str, object], sees: bool | None) -> None:
    (model,) = listed_models("p", {"data": [{"id": "m", **entry}]})
    assert model.sees_images is sees

"""Providers there are: configuration, environment, keys, proxies, imports, lists of models."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.chat.models import ModelDirectory
from app.domain.errors import InvalidInput, KeyMissing, KnownError, NotFound
from app.providers.configuration import ProviderConfig, check_provider_name
from app.providers.http import connection
from app.providers.http.connection import Sdk
from app.providers.http.endpoint import Network, TimeLimits
from app.providers.registry import ProviderRegistry, provider_registry
from app.providers.remote_provider import RemoteProvider
from app.providers.vendors import local_servers, openai
from app.providers.vendors.local_servers import find_local_servers
from app.providers.vendors.model_list import is_model_list, listed_models
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.system.keys import KeyLocation, KeyStore
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import hear, policy
from tests.fakes.loopback_script import error, html, json_reply, text
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES
from tests.fakes.stored import opened

GATE = "https://gate.example/v1"


def registry(
    *configs: ProviderConfig, environ: dict[str, str] | None = None, proxy: str | None = None
) -> ProviderRegistry:
    return ProviderRegistry(
        lambda: configs, KeyStore(environ or {}), environ=environ or {},
        network=lambda: Network(proxy_url=proxy), policy=policy(tries=1),
    )  # fmt: skip


def provider(known: ProviderRegistry, name: str) -> RemoteProvider:
    return known.build(known.config(name))


def compatible(name: str, base_url: str) -> ProviderConfig:
    return ProviderConfig(name, "compatible", base_url, allow_plain_http=True)


def test_openai_and_anthropic_always_exist_first() -> None:
    known = registry(compatible("a", "http://localhost:1/v1"))
    assert [config.name for config in known.configs()] == ["openai", "anthropic", "a"]
    with pytest.raises(NotFound, match="Did you mean openai"):
        provider(known, "openia")


# -- the environment, and keys
def test_the_environment_replaces_base_urls_and_keys(server: Loopback) -> None:
    environ = {
        "OPENAI_BASE_URL": server.v1, "OPENAI_API_KEY": "sk-o", "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-a",
    }  # fmt: skip
    server.always(text("yes"))
    known = registry(ProviderConfig("gate", "openai", server.v1), environ=environ)
    assert [hear(provider(known, each)).text for each in ("openai", "anthropic", "gate")] == [
        "yes"
    ] * 3
    seen = [(each.wire, each.headers.get("authorization")) for each in server.posts]
    assert seen == [(CHAT, "Bearer sk-o"), (MESSAGES, "Bearer sk-a"), (RESPONSES, None)]
    server.always(error(401, "authentication_error"))
    heard = hear(provider(known, "anthropic"))
    assert isinstance(heard.error, KnownError)
    assert "ANTHROPIC_API_KEY" in heard.error.title
    assert "ANTHROPIC_API_KEY" in heard.error.hint


def test_the_environments_base_url_is_checked_and_may_be_plain_http_if_allowed() -> None:
    environ = {"OPENAI_BASE_URL": "http://192.168.1.5:11434/v1"}
    with pytest.raises(InvalidInput, match="OPENAI_BASE_URL"):
        provider(registry(environ=environ), "openai")
    allowed = ProviderConfig("openai", "openai", allow_plain_http=True)
    url = registry(allowed, environ=environ).config("openai").url()
    assert url.origin == "http://192.168.1.5:11434"


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_a_vendors_own_server_needs_a_key_and_names_its_variable(name: str) -> None:
    heard = hear(provider(registry(), name.lower()))
    assert isinstance(heard.error, KeyMissing)
    assert name in heard.error.title
    assert f"{name.upper()}_API_KEY" in heard.error.hint


def test_other_servers_get_no_vendor_key(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    ambient = {
        "OPENAI_API_KEY": "sk-o", "OPENAI_ADMIN_KEY": "sk-admin", "OPENAI_ORG_ID": "org-1",
        "OPENAI_PROJECT_ID": "proj-1",
        "OPENAI_CUSTOM_HEADERS": "X-Secret: one\nAuthorization: Bearer two",
        "ANTHROPIC_API_KEY": "sk-a", "ANTHROPIC_AUTH_TOKEN": "sk-b",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Other: three",
    }  # fmt: skip
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    server.always(text("yes"))
    mine = ProviderConfig("mine", "anthropic", server.url)
    built = registry(compatible("local", server.v1), mine, environ=ambient)
    assert [hear(provider(built, name)).text for name in ("local", "mine")] == ["yes", "yes"]
    for seen in server.posts:
        assert not {"authorization", "x-api-key", "x-secret", "x-other"} & seen.headers.keys()
        assert not [value for value in ambient.values() if value in str(seen.headers)]


def test_a_key_is_bound_to_the_origin_of_its_base_url(server: Loopback) -> None:
    configs = [compatible("local", server.v1)]
    built = ProviderRegistry(lambda: configs, KeyStore({}), environ={})
    assert built.save_key("local", " sk-1 \n") is KeyLocation.SESSION
    assert built.find_key("local").secret.reveal() == "sk-1"
    server.always(text("yes"))
    hear(provider(built, "local"))
    assert server.posts[0].headers["authorization"] == "Bearer sk-1"
    with Loopback() as other:
        configs[0] = compatible("local", other.v1)
        hear(provider(built, "local"))
        assert "authorization" not in other.posts[0].headers
    assert built.find_key("local") is None
    configs[0] = compatible("local", f"{server.url}/other/path")
    assert built.find_key("local") is not None
    built.forget_key("local")
    assert built.find_key("local") is None


def test_the_environments_key_is_not_sent_to_another_base_url() -> None:
    environ = {"OPENAI_API_KEY": "sk-o"}
    moved = ProviderConfig("openai", "openai", GATE)
    named = ProviderConfig("openai", "openai", GATE, "OPENAI_API_KEY")
    keys = [registry(*own, environ=environ).find_key("openai") for own in ([], [moved], [named])]
    assert [key is not None for key in keys] == [True, False, True]


def test_only_a_saved_key_can_be_removed_not_the_environments(data_dir: Path) -> None:
    with opened(data_dir) as store:
        keys = KeyStore({"OPENAI_API_KEY": "sk-theirs"})
        models = ModelDirectory(Settings(store), keys, lambda *_: ())
        models.registry.save_key("anthropic", "sk-mine")
        known = {
            each.config.name: (each.key_from, each.has_saved_key) for each in models.providers()
        }
    assert known == {
        "openai": ("OPENAI_API_KEY", False), "anthropic": ("this session", True)
    }  # fmt: skip


# -- configuration
@pytest.mark.parametrize("name", ["", "recall", "Big", "a:b", "a b", "-a", "ä", "a" * 41])
def test_invalid_names_are_rejected(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_provider_name(name)


def test_a_compatible_provider_needs_a_base_url() -> None:
    with pytest.raises(InvalidInput, match="no base URL"):
        ProviderConfig("x", "compatible").checked()
    assert ProviderConfig("x", "openai").checked().url().host == "api.openai.com"


@pytest.mark.parametrize("from_environment", [False, True])
def test_a_proxy_is_used_but_not_for_this_machine(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, from_environment: bool
) -> None:
    server.always(text("yes"))
    with Loopback() as proxy:
        proxy.always(html(502))
        if from_environment:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
        built = registry(
            compatible("local", server.v1),
            compatible("world", "http://world.example/v1"),
            proxy=None if from_environment else proxy.url,
        )
        assert hear(provider(built, "local")).text == "yes"
        assert hear(provider(built, "world")).error is not None
        paths = [seen.path for seen in proxy.requests]
    assert paths == ["http://world.example/v1/chat/completions"]
    assert len(server.posts) == 1


# -- imports of the SDKs
def test_building_imports_nothing() -> None:
    code = (
        "import sys; from app.providers.registry import ProviderRegistry;"
        "from app.system.keys import KeyStore;"
        "known = ProviderRegistry(tuple, KeyStore());"
        "known.build(known.config('anthropic')).chat_model();"
        "print([m for m in ('httpx2', 'openai', 'anthropic', 'keyring') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


_HALF_INITIALIZED = """
import pathlib
marker = pathlib.Path(__file__).with_name("tried")
if not marker.exists():
    marker.touch()
    raise ImportError("cannot import name 'part' from partially initialized module")
"""


def test_a_half_loaded_module_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads may be importing packages that an SDK shares."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(connection, "_IMPORT_RETRIES_S", (0.0, 0.0))
    (tmp_path / "half_initialized_sdk.py").write_text(_HALF_INITIALIZED)
    assert Sdk("half_initialized_sdk", "Client").load() is sys.modules["half_initialized_sdk"]
    with pytest.raises(ModuleNotFoundError, match="no_such_sdk"):
        Sdk("no_such_sdk", "Client").load()


# -- timeouts
def test_a_vendors_provider_at_another_address_needs_no_key(store: Store) -> None:
    models = ModelDirectory(Settings(store), KeyStore(environ={}), lambda *_: ())
    assert not models.has_key("openai")
    models.add_provider(ProviderConfig("openai", "openai", "http://127.0.0.1:9/v1"))
    assert models.has_key("openai")


def test_local_servers_have_more_time_and_each_provider_its_own(store: Store) -> None:
    settings = Settings(store)
    models = ModelDirectory(settings, KeyStore(environ={}), lambda *_: ())
    for name, url in (
        ("near", "http://127.0.0.1:9/v1"), ("lan", "https://192.168.1.7/v1"), ("far", "https://x.example")
    ):  # fmt: skip
        models.add_provider(ProviderConfig(name, "compatible", url))

    def limits() -> dict[str, float]:
        found = provider_registry(settings, KeyStore(environ={}))
        names = ("near", "lan", "far", "openai")
        return {name: found.endpoint(found.config(name)).times.first_byte_s for name in names}

    assert limits() == {"near": 1800, "lan": 1800, "far": 60, "openai": 60}
    settings.set("reply_timeout", 90)
    settings.set("local_reply_timeout", 900)
    models.add_provider(
        ProviderConfig("lan", "compatible", "https://192.168.1.7/v1", first_byte_s=5_000)
    )
    assert limits() == {"near": 900, "lan": 5_000, "far": 90, "openai": 90}
    with pytest.raises(InvalidInput):
        models.add_provider(
            ProviderConfig("lan", "compatible", "https://x.example", first_byte_s=1)
        )


# -- lists of models
@pytest.mark.parametrize("kind", ["compatible", "anthropic"])
def test_a_connection_test_lists_the_models(server: Loopback, kind: str) -> None:
    async def run() -> None:
        source = provider(registry(ProviderConfig("mine", kind, server.v1)), "mine")
        report = await source.test()
        assert report.ok
        assert [card.ref.model for card in report.models] == ["test-model", "test-model-mini"]
        assert report.latency_ms >= 0
        await source.aclose()

    asyncio.run(run())


def test_local_servers_are_found(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "_SEARCH_TIMES", TimeLimits())  # a busy machine may be slow
    with Loopback() as page, Loopback() as vllm:
        page.routes["/v1/models"] = html()
        vllm.routes["/v1/models"] = json_reply({"data": [{"id": "m", "owned_by": "vllm"}]})
        ports = [("ollama", server.port), ("x", page.port), ("llama.cpp", vllm.port), ("jan", 1)]
        found = asyncio.run(find_local_servers(ports))
    assert [(each.name, each.base_url) for each in found] == [
        ("ollama", f"http://127.0.0.1:{server.port}/v1"),
        ("vllm", f"http://127.0.0.1:{vllm.port}/v1"),
    ]
    assert [str(card.ref) for card in found[1].models] == ["vllm:m"]
    assert "authorization" not in server.requests[0].headers


LISTED: dict[str, tuple[Any, list[Any], list[tuple[str, str, bool, int | None]]]] = {
    "newest first, with what the server reports": (
        None,
        [
            {"id": "old", "created": 1},
            {"id": "new", "created": 9, "max_model_len": 8192},
            {"id": "text-embedding-3-small", "created": 5},
            {"id": "nomic-embed-text"},
            {"id": "routed", "created": 4, "context_length": 128_000, "name": "Routed: Model"},
            {"created": 3},
            "nonsense",
            {"id": "new", "created": 0},
        ],
        [
            ("new", "new", False, 8192),
            ("text-embedding-3-small", "text-embedding-3-small", True, None),
            ("routed", "Routed: Model", False, 128_000),
            ("old", "old", False, None),
            ("nomic-embed-text", "nomic-embed-text", True, None),
        ],
    ),
    "of OpenAI those that chat or embed": (
        openai.SPEC.unlisted_models,
        [{"id": name} for name in ("whisper-1", "tts-1", "dall-e-3", "omni-moderation-latest",
         "gpt-4o-realtime-preview", "o3", "text-embedding-3-large")],
        [("o3", "o3", False, None), ("text-embedding-3-large", "text-embedding-3-large", True, None)],
    ),
    "of Anthropic those that are not retired": (
        None,
        [
            {"id": "a", "created_at": "2025-01-01T00:00:00Z", "max_input_tokens": 200_000},
            {"id": "b", "created_at": "2026-01-01T00:00:00Z", "display_name": "B"},
            {"id": "c", "created_at": "2027-01-01T00:00:00Z", "lifecycle": "retired"},
        ],
        [("b", "B", False, None), ("a", "a", False, 200_000)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_models_are_listed(name: str) -> None:
    unlisted, entries, expected = LISTED[name]
    cards = listed_models("local", {"data": entries}, unlisted)
    found = [(card.ref.model, card.title, card.is_embedding, card.context_tokens) for card in cards]
    assert found == expected


@pytest.mark.parametrize(
    ("listing", "is_list"),
    [({"data": []}, True), ({"data": [{"id": "x"}]}, True), ({"models": [{"model": "x"}]}, True),
     ({"data": [{"id": ""}, {"id": "x"}, {"object": "model"}]}, True), ({"data": [{"object": "model"}]}, False),
     ({"data": [1]}, False), ({"data": "x"}, False), ({}, False), ([], False), (None, False)],
)  # fmt: skip
def test_a_list_of_models_is_recognized(listing: Any, is_list: bool) -> None:
    assert is_model_list(listing) is is_list

"""Which providers exist, where their keys go, and what loads when."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.domain.errors import InvalidInput, NotFound
from app.domain.provider_errors import KeyMissing
from app.providers.configuration import ProviderConfig, ProviderKind, check_provider_name
from app.providers.limits import Network
from app.providers.local_servers import find_local_servers
from app.providers.registry import ProviderRegistry
from app.system.keys import KeyPlace, KeyStore
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import hear, policy
from tests.fakes.loopback_script import error, html, json_reply, text
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES


class NoVault:
    """A machine without a keyring."""

    def usable(self) -> bool:
        return False

    def get(self, account: str) -> str | None:
        raise AssertionError(account)

    def put(self, account: str, text: str) -> bool:
        raise AssertionError(account)

    def drop(self, account: str) -> None:
        raise AssertionError(account)


def registry(*configs: ProviderConfig, environ: dict[str, str] | None = None) -> ProviderRegistry:
    environ = environ or {}
    keys = KeyStore(NoVault(), environ)
    return ProviderRegistry(lambda: configs, keys, environ=environ, policy=policy())


def compatible(name: str, base_url: str, **more: str | None) -> ProviderConfig:
    return ProviderConfig(name, ProviderKind.COMPATIBLE, base_url, **more)  # type: ignore[arg-type]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def test_openai_and_anthropic_always_exist_first() -> None:
    names = [config.name for config in registry(compatible("a", "http://localhost:1/v1")).configs()]
    assert names == ["openai", "anthropic", "a"]


def test_an_unknown_provider_suggests_the_nearest() -> None:
    with pytest.raises(NotFound, match="Did you mean openai"):
        registry().build("openia")


def test_nothing_is_loaded_or_looked_up_by_building() -> None:
    code = (
        "import sys; from app.providers.registry import ProviderRegistry;"
        "from app.system.keys import KeyStore;"
        "ProviderRegistry(tuple, KeyStore()).build('anthropic').chat_model();"
        "print([m for m in ('httpx2', 'openai', 'anthropic', 'keyring') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_environment_sends_the_built_in_providers_elsewhere_with_its_keys(
    server: Loopback,
) -> None:
    environ = {
        "OPENAI_BASE_URL": server.v1,
        "OPENAI_API_KEY": "sk-o",
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-a",
    }
    server.always(text("yes"))
    assert hear(registry(environ=environ).build("openai")).text == "yes"
    assert hear(registry(environ=environ).build("anthropic")).text == "yes"
    seen = [(each.wire, each.headers["authorization"]) for each in server.posts]
    assert seen == [(CHAT, "Bearer sk-o"), (MESSAGES, "Bearer sk-a")]


def test_a_configured_provider_of_kind_openai_speaks_responses(server: Loopback) -> None:
    server.always(text("yes"))
    config = ProviderConfig("gate", ProviderKind.OPENAI, server.v1)
    assert hear(registry(config).build("gate")).text == "yes"
    assert [each.wire for each in server.posts] == [RESPONSES]


def test_a_refused_key_of_the_environment_is_to_be_corrected_there(server: Loopback) -> None:
    environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-a"}
    server.always(error(401, "authentication_error"))
    heard = hear(registry(environ=environ).build("anthropic"))
    assert "does not accept the API key from ANTHROPIC_API_KEY" in str(heard.error)
    assert "Correct ANTHROPIC_API_KEY" in str(heard.error)


def test_a_vendors_own_host_demands_a_key_before_anything_is_sent() -> None:
    assert isinstance(hear(registry().build("openai")).error, KeyMissing)


def test_a_compatible_server_gets_no_key_of_the_vendors(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    ambient = {
        "OPENAI_API_KEY": "sk-o",
        "OPENAI_ADMIN_KEY": "sk-admin",
        "OPENAI_ORG_ID": "org-1",
        "OPENAI_PROJECT_ID": "proj-1",
        "OPENAI_CUSTOM_HEADERS": "X-Secret: one\nAuthorization: Bearer two",
        "ANTHROPIC_API_KEY": "sk-a",
        "ANTHROPIC_AUTH_TOKEN": "sk-b",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Other: three",
    }
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    server.always(text("yes"))
    built = registry(
        compatible("local", server.v1),
        ProviderConfig("mine", ProviderKind.ANTHROPIC, server.url),
        environ=ambient,
    )
    assert [hear(built.build(name)).text for name in ("local", "mine")] == ["yes", "yes"]
    for seen in server.posts:
        assert not {"authorization", "x-api-key", "x-secret", "x-other"} & seen.headers.keys()
        assert not [value for value in ambient.values() if value in str(seen.headers)]


def test_a_key_is_bound_to_the_origin_of_its_base_url(server: Loopback) -> None:
    configs = [compatible("local", server.v1)]
    environ: dict[str, str] = {}
    keys = KeyStore(NoVault(), environ)
    built = ProviderRegistry(lambda: configs, keys, environ=environ)
    assert built.save_key("local", " sk-1 \n") is KeyPlace.SESSION
    found = built.find_key("local")
    assert found is not None
    assert found.secret.reveal() == "sk-1"
    server.always(text("yes"))
    hear(built.build("local"))
    with Loopback() as other:
        configs[0] = compatible("local", other.v1)
        hear(built.build("local"))
        assert "authorization" not in other.posts[0].headers
    assert server.posts[0].headers["authorization"] == "Bearer sk-1"
    configs[0] = compatible("local", "http://127.0.0.1:9/v1")
    assert built.find_key("local") is None
    configs[0] = compatible("local", f"{server.url}/other/path")
    assert built.find_key("local") is not None
    built.forget_key("local")
    assert built.find_key("local") is None


def test_the_environments_key_does_not_follow_a_changed_base_url() -> None:
    environ = {"OPENAI_API_KEY": "sk-o"}
    moved = ProviderConfig("openai", ProviderKind.OPENAI, "https://gate.example/v1")
    assert registry(environ=environ).find_key("openai") is not None
    assert registry(moved, environ=environ).find_key("openai") is None
    named = ProviderConfig(
        "openai", ProviderKind.OPENAI, "https://gate.example/v1", "OPENAI_API_KEY"
    )
    assert registry(named, environ=environ).find_key("openai") is not None


def test_a_bad_base_url_in_the_environment_names_the_variable() -> None:
    with pytest.raises(InvalidInput, match="OPENAI_BASE_URL"):
        registry(environ={"OPENAI_BASE_URL": "http://evil.example/v1"}).build("openai")


def test_the_user_may_insist_on_plain_http_for_the_environments_base_url() -> None:
    environ = {"OPENAI_BASE_URL": "http://192.168.1.5:11434/v1"}
    insisted = ProviderConfig("openai", ProviderKind.OPENAI, allow_plain_http=True)
    built = registry(insisted, environ=environ)
    assert built.config("openai").url().origin == "http://192.168.1.5:11434"


@pytest.mark.parametrize("name", ["", "recall", "Big", "a:b", "a b", "-a", "ä", "a" * 41])
def test_names_that_could_be_misread_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_provider_name(name)


def test_a_compatible_provider_needs_a_base_url() -> None:
    with pytest.raises(InvalidInput, match="no base URL"):
        ProviderConfig("x", ProviderKind.COMPATIBLE).checked()
    assert ProviderConfig("x", ProviderKind.OPENAI).checked().url().host == "api.openai.com"


def test_a_proxy_is_used_for_the_world_and_never_for_this_machine(server: Loopback) -> None:
    server.always(text("yes"))
    with Loopback() as proxy:
        proxy.always(html(502))
        configs = (
            compatible("local", server.v1),
            ProviderConfig("world", ProviderKind.COMPATIBLE, "http://world.example/v1", allow_plain_http=True),
        )  # fmt: skip
        built = ProviderRegistry(
            lambda: configs,
            KeyStore(NoVault(), {}),
            environ={},
            network=lambda: Network(proxy_url=proxy.url),
            policy=policy(tries=1),
        )
        assert hear(built.build("local")).text == "yes"
        assert hear(built.build("world")).error is not None
        assert [seen.path for seen in proxy.requests] == [
            "http://world.example/v1/chat/completions"
        ]
        assert len(server.posts) == 1


def test_the_environments_proxy_is_used_where_none_is_set(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.always(text("yes"))
    with Loopback() as proxy:
        proxy.always(html(502))
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        world = ProviderConfig(
            "world", ProviderKind.COMPATIBLE, "http://world.example/v1", allow_plain_http=True
        )
        built = registry(world, compatible("local", server.v1))
        assert hear(built.build("local")).text == "yes"
        assert hear(built.build("world")).error is not None
        assert len(proxy.requests) == 4


def test_models_are_listed_and_the_connection_tested(server: Loopback) -> None:
    async def run(built: ProviderRegistry, name: str) -> None:
        source = built.build(name)
        report = await source.test()
        assert report.ok
        assert [str(card.ref) for card in report.models] == [
            f"{name}:test-model",
            f"{name}:test-model-mini",
        ]
        assert report.latency_ms >= 0
        await source.aclose()

    configs = (
        compatible("local", server.v1),
        ProviderConfig("claude", ProviderKind.ANTHROPIC, server.v1),
    )
    for config in configs:
        asyncio.run(run(registry(*configs), config.name))


def test_local_servers_are_found_by_what_they_answer(server: Loopback) -> None:
    with Loopback() as other, Loopback() as silent:
        other.always(html())
        silent.always(json_reply({"data": [{"id": "m", "owned_by": "vllm"}]}))
        ports = (
            ("ollama", server.port),
            ("lm-studio", other.port),
            ("llama.cpp", silent.port),
            ("jan", 1),
        )
        found = asyncio.run(find_local_servers(ports))
    assert [(each.name, each.base_url) for each in found] == [
        ("ollama", f"http://127.0.0.1:{server.port}/v1"),
        ("vllm", f"http://127.0.0.1:{silent.port}/v1"),
    ]
    assert [str(card.ref) for card in found[1].models] == ["vllm:m"]
    assert "authorization" not in server.requests[0].headers

"""Context windows: who says how much a model reads, in which order, and what a refusal teaches."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Barrier, BrokenBarrierError, Event

import pytest

from app.domain.chat import UNKNOWN_WINDOW_TOKENS, ModelRef
from app.domain.errors import ContextTooLong, InvalidInput, NotFound
from app.providers.configuration import ProviderConfig
from app.providers.http.endpoint import TimeLimits
from app.providers.registry import ProviderRegistry
from app.providers.vendors import model_list
from app.providers.vendors.model_list import ServerWindow, server_window
from app.providers.windows import ModelWindows
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.system.keys import KeyStore
from tests.fakes import loopback_servers as servers
from tests.fakes.fixtures import fixture_of
from tests.fakes.loopback import Loopback, Route, Seen
from tests.fakes.loopback_client import ask
from tests.fakes.loopback_script import Http, Step, html, json_reply
from tests.fakes.loopback_wire import CHAT, MESSAGES

REF = ModelRef("here", servers.MODEL)


class Bench:
    """The windows of provider `here`, a loopback server, with a clock that is moved by hand."""

    def __init__(self, store: Store, server: Loopback, kind: str = "compatible") -> None:
        self.settings = Settings(store)
        self.configs = [
            ProviderConfig("here", kind, server.url if kind == "anthropic" else server.v1)
        ]
        self.listed: dict[ModelRef, int] = {}
        self.now_s = 0.0
        registry = ProviderRegistry(lambda: self.configs, KeyStore())
        self.windows = ModelWindows(self.settings, registry, self.listed.get, lambda: self.now_s)

    def tokens(self) -> int:
        return self.windows.tokens(REF)

    def refuse(
        self, limit: int | None, prompt: int | None = None, estimated: int | None = None
    ) -> None:
        refusal = ContextTooLong("Too long")
        refusal.limit_tokens, refusal.prompt_tokens = limit, prompt
        refusal.estimated_tokens = estimated
        self.windows.note_refusal(REF, refusal)


bench = fixture_of(Bench, "store", "server")


SERVERS: Mapping[str, tuple[Mapping[str, Route], int]] = {
    "vLLM": (servers.vllm(16_384), 16_384),
    "llama-server": (servers.llama_server(12_288), 12_288),
    "llama-server without /props": (
        {**servers.llama_server(1), "/props": Http(501, b"{}")}, 131_072
    ),
    "LM Studio": (servers.lm_studio(6_000), 6_000),
    "LM Studio, not loaded": (servers.lm_studio(None, 32_768), 32_768),
    "Ollama": (servers.ollama(num_ctx=20_000), 20_000),
    "Ollama, loaded": (servers.ollama(num_ctx=20_000, loaded=24_000), 24_000),
    "Ollama, its default": (servers.ollama(), 4096),
    "a gateway": (servers.custom(200_000), 200_000),
    "no such routes": ({}, UNKNOWN_WINDOW_TOKENS),
    "no list of models": ({"/v1/models": Http(404, b"no")}, UNKNOWN_WINDOW_TOKENS),
    "web pages": (dict.fromkeys(("/v1/models", "/props", "/api/show", "/api/v0/models"), html()), 8192),
    "nonsense": (dict.fromkeys(("/v1/models", "/props", "/api/ps"), json_reply([{"n_ctx": "x"}])), 8192),
}  # fmt: skip


@pytest.mark.parametrize("name", SERVERS)
def test_each_kind_of_server_reports_its_window(bench: Bench, server: Loopback, name: str) -> None:
    routes, tokens = SERVERS[name]
    server.routes.update(routes)
    assert bench.tokens() == tokens


def test_a_server_that_answers_for_minutes_is_not_waited_for(
    bench: Bench, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, is_over, is_late = Event(), Event(), Event()

    def answer(_: Seen) -> Step:
        is_asked.set()
        if not is_over.wait(20):
            is_late.set()
        return json_reply({})

    monkeypatch.setattr(model_list, "_MOST_S", 1.0)
    monkeypatch.setattr(model_list, "_TIMES", TimeLimits(60.0, 60.0, 60.0))
    server.routes["/props"] = answer
    try:
        assert bench.tokens() == UNKNOWN_WINDOW_TOKENS
        assert is_asked.is_set()
        assert not is_late.is_set()
    finally:
        is_over.set()


@pytest.mark.parametrize(("is_near", "window"), [(True, ServerWindow(16_384)), (False, None)])
def test_the_only_model_of_a_remote_server_does_not_answer_for_others(
    bench: Bench, server: Loopback, is_near: bool, window: ServerWindow | None
) -> None:
    server.routes.update(servers.vllm(16_384))
    registry = ProviderRegistry(lambda: bench.configs, KeyStore())
    endpoint = registry.endpoint(registry.config("here"))
    endpoint = replace(endpoint, base_url=replace(endpoint.base_url, is_loopback=is_near))
    assert asyncio.run(server_window(endpoint, "/models", "another")) == window


def test_an_anthropic_wire_on_this_machine_is_asked_too(store: Store, server: Loopback) -> None:
    server.routes.update(servers.llama_server(12_288))
    assert Bench(store, server, "anthropic").tokens() == 12_288


def test_the_setting_comes_first_and_the_table_last(bench: Bench, server: Loopback) -> None:
    bench.listed[REF] = 50_000
    assert bench.tokens() == 50_000
    bench.now_s += 1_000
    server.routes.update(servers.vllm(16_384))
    assert bench.tokens() == 16_384
    assert bench.windows.put(" here: test-model", 9_000) == "here:test-model"
    assert bench.tokens() == 9_000
    assert bench.windows.own() == {"here:test-model": 9_000}
    bench.windows.remove("here:test-model")
    assert bench.tokens() == 16_384
    with pytest.raises(NotFound):
        bench.windows.remove("here:test-model")


@pytest.mark.parametrize(("model", "tokens"), [("here:m", 0), ("here:m", 10**9), ("m", 9_000)])
def test_a_window_that_cannot_be_is_refused(bench: Bench, model: str, tokens: int) -> None:
    with pytest.raises(InvalidInput):
        bench.windows.put(model, tokens)


def test_a_server_is_asked_again_after_minutes(bench: Bench, server: Loopback) -> None:
    server.routes.update(servers.vllm(16_384))
    assert (bench.tokens(), bench.tokens(), len(server.requests)) == (16_384, 16_384, 1)
    server.routes.update(servers.vllm(32_768))
    bench.now_s += 1_000
    assert bench.tokens() == 32_768


NO_WINDOW: Mapping[str, Route] = {"/v1/models": json_reply({"data": [{"id": servers.MODEL}]})}
GONE: Mapping[str, Mapping[str, Route]] = {
    "the model is unloaded": servers.ollama(),
    "no window any more": NO_WINDOW,
    "the model is being loaded": {"/v1/models": Http(503, b"{}")},
}


@pytest.mark.parametrize("name", GONE)
def test_a_final_report_stands_until_another(bench: Bench, server: Loopback, name: str) -> None:
    server.routes.update(servers.ollama(loaded=32_768))
    assert bench.tokens() == 32_768
    server.routes.clear()
    server.routes.update(GONE[name])
    bench.now_s += 1_000
    assert bench.tokens() == 32_768
    server.routes.clear()
    server.routes.update(servers.ollama(loaded=16_384))
    bench.now_s += 1_000
    assert bench.tokens() == 16_384


def test_a_final_report_stands_when_the_server_is_gone(bench: Bench, server: Loopback) -> None:
    server.routes.update(servers.vllm(32_768))
    assert bench.tokens() == 32_768
    server.stop()
    bench.now_s += 1_000
    assert bench.tokens() == 32_768


@pytest.mark.parametrize(
    ("routes", "is_asked_again"), [(NO_WINDOW, False), ({"/v1/models": Http(503, b"{}")}, True)]
)
def test_only_a_server_that_did_not_answer_is_asked_again_soon(
    bench: Bench, server: Loopback, routes: Mapping[str, Route], is_asked_again: bool
) -> None:
    server.routes.update(routes)
    assert bench.tokens() == UNKNOWN_WINDOW_TOKENS
    before = len(server.requests)
    bench.now_s += 100
    assert bench.tokens() == UNKNOWN_WINDOW_TOKENS
    assert (len(server.requests) > before) is is_asked_again


def test_what_is_known_is_found_without_asking(bench: Bench, server: Loopback) -> None:
    server.routes.update(servers.vllm(16_384))
    assert bench.windows.find(REF, asks_server=False).tokens == UNKNOWN_WINDOW_TOKENS
    assert server.requests == []
    assert bench.tokens() == 16_384
    bench.now_s += 1_000
    before = len(server.requests)
    assert bench.windows.find(REF, asks_server=False).tokens == 16_384
    assert len(server.requests) == before


def test_what_cannot_be_asked_has_an_unknown_window(bench: Bench, server: Loopback) -> None:
    assert bench.windows.tokens(ModelRef("nobody", "m")) == UNKNOWN_WINDOW_TOKENS
    assert bench.windows.tokens(ModelRef("openai", "m")) == UNKNOWN_WINDOW_TOKENS
    assert server.requests == []
    server.stop()
    assert bench.tokens() == UNKNOWN_WINDOW_TOKENS


# -- refusals
def test_a_refusal_holds_until_another_one(bench: Bench, server: Loopback, store: Store) -> None:
    server.routes.update(servers.vllm(16_384))
    bench.refuse(4_096, 9_000)
    assert bench.tokens() == 4_096
    assert Bench(store, server).tokens() == 4_096, "it is stored"
    bench.windows.put(str(REF), 6_000)
    assert bench.tokens() == 6_000
    bench.windows.remove(str(REF))
    server.routes.update(servers.vllm(32_768))
    bench.now_s += 1_000
    assert bench.tokens() == 32_768


@pytest.mark.parametrize(
    ("limit", "prompt", "tokens"),
    [
        (4_096, None, 4_096),
        (4_096, 32_768, 4_096),
        (8_192, 9_000, 8_192),
        (8_192, 4_000, 8_192),  # the reply was too long
        (100_000, None, 100_000),
    ],
)
def test_a_window_that_a_refusal_names_is_kept_however_often(
    bench: Bench, limit: int, prompt: int | None, tokens: int
) -> None:
    for _ in range(3):
        bench.refuse(limit, prompt)
        assert bench.tokens() == tokens


@pytest.mark.parametrize(
    ("estimated", "tokens"), [(2_500, 2_048), (6_000, 4_096), (5_000, 4_096), (0, 512)]
)
def test_a_window_is_less_in_estimates_that_were_too_low(
    bench: Bench, estimated: int, tokens: int
) -> None:
    bench.refuse(4_096, 5_000, estimated)
    assert bench.tokens() == tokens


def test_refusals_of_many_models_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal, names = ContextTooLong("Too long"), [f"m{number}" for number in range(4)]
    refusal.limit_tokens = 4_096
    together, read = Barrier(len(names)), bench.settings.text

    def slowly(key: str) -> str:
        found = read(key)
        if key == "refused_windows":
            with suppress(BrokenBarrierError):  # readers at the same time meet here
                together.wait(0.2)
        return found

    monkeypatch.setattr(bench.settings, "text", slowly)
    with ThreadPoolExecutor(len(names)) as pool:
        refs = [ModelRef("nobody", name) for name in names]
        list(pool.map(lambda ref: bench.windows.note_refusal(ref, refusal), refs))
    assert {bench.windows.tokens(ref) for ref in refs} == {4_096}


def test_a_refusal_shortens_the_next_request_and_enlarges_nothing(bench: Bench) -> None:
    bench.refuse(None)
    assert bench.tokens() == 6_144
    bench.windows.put(str(REF), 6_000)
    bench.refuse(8_192, 9_000)
    assert bench.tokens() == 6_000


@pytest.mark.parametrize("name", servers.REFUSALS)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_windows_are_read_from_each_refusal(server: Loopback, wire: str, name: str) -> None:
    step, prompt_tokens = servers.REFUSALS[name]
    error = ask(server, wire, step).error
    assert isinstance(error, ContextTooLong)
    assert error.limit_tokens == 4_096
    assert error.prompt_tokens == prompt_tokens


@pytest.mark.parametrize("name", servers.VAGUE_REFUSALS)
def test_a_refusal_may_name_no_window(server: Loopback, name: str) -> None:
    error = ask(server, CHAT, servers.VAGUE_REFUSALS[name]).error
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.prompt_tokens) == (None, None)

"""Asking a model once for background work, over the vendors' own wires: consent, caps, cancel, spend."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.workers import WorkerName
from app.providers.configuration import ProviderConfig, ProviderKind
from app.providers.prices import OwnPrice, PriceBook
from app.providers.registry import ProviderRegistry
from app.providers.retry import RetryPolicy
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.system.keys import KeyStore
from app.workers.background_model import BackgroundModel
from app.workers.prompts import Prompt
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, thinking, usage
from tests.fakes.stored import opened

WORKER = WorkerName.EXCHANGE_SUMMARIZER
ASKED = Prompt("Be brief.", "What is tea?")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
WIRES = {
    "compatible": ProviderKind.COMPATIBLE,
    "openai": ProviderKind.OPENAI,
    "anthropic": ProviderKind.ANTHROPIC,
}


class Bench:
    """A store, the loopback server as provider `here`, and what asks it."""

    def __init__(self, store: Store, server: Loopback, kind: ProviderKind) -> None:
        self.store = store
        self.server = server
        self.settings = Settings(store)
        self.spending = Spending(store)
        self.prices: dict[str, OwnPrice] = {}
        self.at = datetime.now(UTC)
        base_url = server.url if kind is ProviderKind.ANTHROPIC else server.v1
        self.configs = [ProviderConfig("here", kind, base_url)]
        registry = ProviderRegistry(lambda: self.configs, KeyStore(), policy=RetryPolicy(tries=1))
        book = PriceBook(registry.find_config, lambda: self.prices)
        self.model = BackgroundModel(store, self.settings, registry, book, self._now)
        self.settings.set("background_model", "here:test-model")

    def price(self, input_usd: float, output_usd: float) -> None:
        self.prices["here:test-model"] = OwnPrice(input_usd, output_usd)

    def _now(self) -> datetime:
        self.at += timedelta(milliseconds=1)
        return self.at

    def ask(self, **more: object) -> str:
        answer = self.model.ask(ASKED, WORKER, lambda: False, **more)  # type: ignore[arg-type]
        self.store.save(answer.spent)
        return answer.text


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as made:
        yield made


@pytest.fixture(params=list(WIRES))
def bench(request: pytest.FixtureRequest, tmp_path: Path, server: Loopback) -> Iterator[Bench]:
    with opened(tmp_path / "data") as store:
        made = Bench(store, server, WIRES[request.param])
        yield made
        made.model.close()


def test_an_answer_comes_with_its_model_and_what_it_cost(bench: Bench) -> None:
    bench.server.reply(thinking("hm"), text("Leaves in water.", chunks=3), usage(100, 20, 10))
    answer = bench.model.ask(ASKED, WORKER, lambda: False)
    spent = answer.spent
    assert (answer.text, answer.model) == ("Leaves in water.", "here:test-model")
    assert (spent.purpose, spent.input_tokens, spent.output_tokens) == (WORKER, 100, 20)
    assert spent.cached_tokens == 10
    assert spent.cost_usd is None


def test_json_is_found_in_what_was_said(bench: Bench) -> None:
    bench.server.reply(text('Here you are:\n```json\n{"a": 3,}\n```'), usage(10, 5))
    answer = bench.model.ask(ASKED, WORKER, lambda: False, SCHEMA)
    assert answer.fields == {"a": 3}

"""Asking a model once for background work, over the vendors' own wires: consent, caps, cancel, spend."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.chat import StreamEvent, TextDelta
from app.domain.errors import Cancelled, DiskFull
from app.domain.provider_errors import (
    ConnectionLost,
    KeyMissing,
    RateLimited,
    ServerFailed,
    Unreachable,
)
from app.domain.workers import WorkerName
from app.providers.configuration import ProviderConfig, ProviderKind
from app.providers.prices import OwnPrice, PriceBook
from app.providers.registry import ProviderRegistry
from app.providers.retry import RetryPolicy
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.system.keys import KeyStore
from app.workers.background_model import CONSENTS, BackgroundModel, UnusableAnswer, _Heard
from app.workers.job import Blocked
from app.workers.prompts import Prompt
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_script import Step, error, hang_up, stall, text, thinking, usage
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
    is_own = bench.configs[0].kind is ProviderKind.COMPATIBLE
    assert spent.cost_usd == (0.0 if is_own else None)  # a vendor's protocol may lead to the vendor


def test_json_is_found_in_what_was_said(bench: Bench) -> None:
    bench.server.reply(text('Here you are:\n```json\n{"a": 3,}\n```'), usage(10, 5))
    answer = bench.model.ask(ASKED, WORKER, lambda: False, SCHEMA)
    assert answer.fields == {"a": 3}


def test_garbage_is_asked_for_once_more_and_both_answers_are_paid_for(bench: Bench) -> None:
    bench.price(1.0, 2.0)
    bench.server.reply(text("I cannot do that"), usage(1000, 500))
    bench.server.reply(text('{"a": 1}'), usage(1000, 500))
    answer = bench.model.ask(ASKED, WORKER, lambda: False, SCHEMA)
    assert answer.fields == {"a": 1}
    bench.store.save(answer.spent)
    assert bench.spending.on_background(bench.at - timedelta(days=1)).requests == 2
    first, second = (str(seen.body) for seen in bench.server.posts)
    assert "earlier answer" in second
    assert "earlier answer" not in first


def test_garbage_twice_is_an_item_s_fault_and_on_record(bench: Bench) -> None:
    bench.server.always(text("no"), usage(10, 5))
    with pytest.raises(UnusableAnswer, match="answered twice"):
        bench.model.ask(ASKED, WORKER, lambda: False, SCHEMA)
    assert bench.spending.all_time(WORKER).tokens == 30
    assert len(bench.server.posts) == 2


def test_failures_come_at_once_so_that_the_worker_waits_where_it_is_seen(bench: Bench) -> None:
    bench.server.reply(error(429, "rate_limit_error", retry_after=7))
    with pytest.raises(RateLimited) as limited:
        bench.ask()
    assert limited.value.retry_after_s == pytest.approx(7)
    bench.server.reply(error(500, "api_error"))
    with pytest.raises(ServerFailed):
        bench.ask()
    bench.server.reply(error(401, "authentication_error"))
    with pytest.raises(KeyMissing):
        bench.ask()
    assert len(bench.server.posts) == 3
    assert bench.spending.all_time(WORKER).tokens == 0


def test_a_request_ends_within_a_second_when_its_worker_is_stopped(bench: Bench) -> None:
    bench.server.reply(stall(before_headers=True))
    stopped = threading.Event()
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            bench.model.ask(ASKED, WORKER, stopped.is_set)
        except Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    bench.server.wait_for(lambda: bench.server.posts)
    stopped.set()
    thread.join(1.0)
    assert not thread.is_alive()
    assert len(ended) == 1
    assert bench.server.posts[0].hung_up.wait(5.0)


def test_a_request_stopped_in_mid_stream_is_on_record_as_far_as_it_came(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = threading.Event()
    real = _Heard.take

    def take(into: _Heard, event: StreamEvent) -> None:
        real(into, event)
        if isinstance(event, TextDelta):
            heard.set()

    monkeypatch.setattr(_Heard, "take", take)
    bench.price(0.0, 100_000.0)
    bench.settings.set("spend_cap_daily_usd", 200.0)
    bench.server.reply(text("Leaves in hot water, " * 50), stall())
    with pytest.raises(Cancelled):
        bench.model.ask(ASKED, WORKER, heard.is_set)
    spent = bench.spending.all_time(WORKER)
    assert spent.tokens > 200
    assert spent.cost_usd is not None
    assert spent.cost_usd > 20
    bench.settings.set("spend_cap_daily_usd", spent.cost_usd)
    with pytest.raises(Blocked, match="is reached"):
        bench.ask()


def test_a_daily_cap_stops_before_it_is_passed_and_lets_go_the_next_day(bench: Bench) -> None:
    bench.price(1000.0, 0.0)
    bench.settings.set("spend_cap_daily_usd", 1.0)
    bench.server.always(text("tea"), usage(480, 5))
    assert bench.ask() == "tea"
    assert bench.ask() == "tea"
    with pytest.raises(Blocked, match=r"cap of \$1.00 a day is reached") as blocked:
        bench.ask()
    assert blocked.value.retry_after_s is not None
    assert len(bench.server.posts) == 2
    bench.settings.set("spend_cap_daily_usd", 2.0)
    assert bench.ask() == "tea"
    bench.settings.set("spend_cap_daily_usd", 1.0)
    bench.at += timedelta(days=1)
    assert bench.ask() == "tea"


def test_a_monthly_cap_holds_over_the_days(bench: Bench) -> None:
    bench.price(1000.0, 0.0)
    bench.at = datetime(2026, 3, 10, 12, tzinfo=UTC)
    bench.settings.set("spend_cap_monthly_usd", 1.0)
    bench.server.always(text("tea"), usage(950, 5))
    bench.ask()
    bench.at += timedelta(days=5)
    with pytest.raises(Blocked, match="a month is reached"):
        bench.ask()
    bench.at += timedelta(days=20)
    assert bench.ask() == "tea"


def test_an_answer_that_is_not_stored_yet_counts_against_the_cap_once(bench: Bench) -> None:
    bench.price(1000.0, 0.0)
    bench.settings.set("spend_cap_daily_usd", 1.0)
    bench.server.always(text("tea"), usage(950, 5))
    answer = bench.model.ask(ASKED, WORKER, lambda: False)
    with pytest.raises(Blocked, match=r"\$0.95\d* is spent"):
        bench.model.ask(ASKED, WorkerName.KNOWLEDGE_EXTRACTOR, lambda: False)
    bench.store.save(answer.spent)
    with pytest.raises(Blocked, match=r"\$0.95\d* is spent"):
        bench.model.ask(ASKED, WorkerName.KNOWLEDGE_EXTRACTOR, lambda: False)


def test_an_unknown_price_and_a_cap_say_how_to_give_a_price(bench: Bench) -> None:
    bench.settings.set("spend_cap_daily_usd", 5.0)
    kind = bench.configs[0].kind
    bench.configs[0] = ProviderConfig("here", kind, "https://models.example/v1")
    bench.settings.set(CONSENTS, "here:test-model@https://models.example")
    with pytest.raises(Blocked) as blocked:
        bench.ask()
    assert "price of here:test-model is unknown" in blocked.value.title
    assert "commonplace price set here:test-model" in blocked.value.hint
    assert bench.server.posts == []


def test_a_price_that_is_given_lets_it_go_on_under_a_cap(bench: Bench) -> None:
    bench.settings.set("spend_cap_daily_usd", 5.0)
    bench.price(0.0, 0.0)
    bench.server.reply(text("tea"), usage(10, 5))
    assert bench.ask() == "tea"


def test_a_model_of_this_machine_needs_no_price_under_a_cap(bench: Bench) -> None:
    bench.settings.set("spend_cap_daily_usd", 0.0)
    bench.configs[0] = ProviderConfig("here", ProviderKind.COMPATIBLE, bench.server.v1)
    bench.server.reply(text("tea"), usage(10, 5))
    assert bench.ask() == "tea"
    assert bench.spending.all_time(WORKER).cost_usd == 0


def test_nothing_is_sent_elsewhere_without_consent(bench: Bench) -> None:
    bench.configs[0] = ProviderConfig("here", ProviderKind.COMPATIBLE, "https://models.example/v1")
    with pytest.raises(Blocked, match=r"would be sent your history, to https://models\.example/v1"):
        bench.ask()
    assert bench.server.posts == []


def test_a_refusal_is_an_item_s_fault_and_on_record(bench: Bench) -> None:
    bench.server.reply(text(""), usage(10, 0))
    with pytest.raises(UnusableAnswer, match="answered nothing"):
        bench.ask()
    assert bench.spending.all_time(WORKER).tokens == 10


def test_without_a_model_it_says_so(bench: Bench) -> None:
    bench.settings.reset("background_model")
    with pytest.raises(Blocked, match="No model is chosen"):
        bench.ask()


# -- on record before it is sent


def under_way(bench: Bench) -> list[tuple[object, ...]]:
    return bench.store.read(
        lambda cursor: cursor.execute(
            "SELECT purpose, model, input_tokens > 0, output_tokens, cost_usd FROM spend_held"
        ).fetchall()
    )


def test_a_request_is_on_record_before_the_server_sees_it_and_its_answer_ends_that(
    bench: Bench,
) -> None:
    bench.price(0.0, 1000.0)
    seen: list[list[tuple[object, ...]]] = []

    def answer(_seen: Seen) -> list[Step]:
        seen.append(under_way(bench))
        return [text("tea"), usage(10, 5)]

    bench.server.by(answer)
    assert bench.ask() == "tea"
    ((held,),) = seen
    assert held[:3] == (WORKER, "here:test-model", True)
    assert isinstance(held[3], int)
    assert held[4] == pytest.approx(held[3] / 1000)
    assert under_way(bench) == []
    assert bench.spending.all_time(WORKER).estimated_usd == 0


def test_an_answer_that_is_not_stored_yet_is_still_on_record_as_under_way(bench: Bench) -> None:
    bench.server.reply(text("tea"), usage(10, 5))
    answer = bench.model.ask(ASKED, WORKER, lambda: False)
    assert len(under_way(bench)) == 1
    bench.model.write_off(answer)
    assert under_way(bench) == []


def test_what_the_server_refuses_is_taken_off_the_record(bench: Bench) -> None:
    bench.server.reply(error(429, "rate_limit_error"))
    with pytest.raises(RateLimited):
        bench.ask()
    bench.server.stop()
    with pytest.raises(Unreachable):
        bench.ask()
    assert under_way(bench) == []
    assert bench.spending.all_time(WORKER).tokens == 0


def test_a_connection_lost_before_the_answer_may_have_been_paid_for(bench: Bench) -> None:
    bench.price(1000.0, 0.0)
    bench.server.reply(hang_up())
    with pytest.raises(ConnectionLost):
        bench.ask()
    spent = bench.spending.all_time(WORKER)
    assert spent.estimated_usd == spent.cost_usd != 0
    assert under_way(bench) == []


def test_nothing_is_sent_that_cannot_be_put_on_record(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.price(1000.0, 0.0)
    bench.settings.set("spend_cap_daily_usd", 0.5)
    with monkeypatch.context() as broken:
        broken.setattr(Store, "save", full)
        with pytest.raises(DiskFull):
            bench.ask()
    assert bench.server.posts == []
    bench.server.reply(text("tea"), usage(10, 5))
    assert bench.ask() == "tea", "what was not sent holds nothing back"


def full(*_: object) -> None:
    raise DiskFull("The disk is full")

"""Choosing a model for background work on the command line: estimate, consent, prices, spend, work."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.changes import SpendAdded
from app.domain.errors import InvalidInput, NotFound
from app.domain.events import Changed
from app.domain.local_days import day_start, month_start, next_day, next_month
from app.domain.workers import WorkerName
from app.providers.own_prices import OwnPrices
from app.providers.prices import OwnPrice
from app.storage.attempts import Attempts
from app.storage.settings import ProviderRow, Settings
from app.storage.spending import Spending, Spent, by_month
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.workers.background_load import BackgroundLoad
from app.workers.board import WorkerBoard, extractor
from app.workers.open_conversation import OpenConversation
from tests.fakes.background import ScriptedAsker
from tests.fakes.command_line import CommandLine
from tests.fakes.jobs import until
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import error, text, usage
from tests.fakes.stored import made, opened, told

CLOUD = "openai:gpt-4o-mini"
LOCAL = "local:test-model"
SAMPLE = Path(__file__).resolve().parents[2] / "resources/samples/sample-archive.json"
REPLY = '{"summary": "About herbs.", "title": "Herbs", "tags": ["herbs"]}'


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.always(text(REPLY), usage(1000, 100))
        yield running


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str], server: Loopback) -> CommandLine:
    made(data_dir)
    with opened(data_dir) as store:
        told(store, "How do I keep basil alive?", "And mint?")
        Settings(store).put_provider(ProviderRow("local", "compatible", server.v1, None))
    return CommandLine(data_dir, capsys)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "other") as made_here:
        yield made_here


def test_a_cloud_model_is_not_chosen_before_a_yes_to_its_price(cli: CommandLine) -> None:
    ran = cli("config", "set", "background_model", CLOUD)
    assert ran.code == 1
    assert "would read 2 turns of your history now: 4 requests" in ran.err
    assert "for about $0.01" in ran.err
    assert "would be sent to https://api.openai.com/v1" in ran.err
    assert "Add --yes to agree" in ran.err
    assert cli.json("config", "get", "background_model")["value"] is None
    cli.done("config", "set", "background_model", CLOUD, "--yes")
    assert cli.json("config", "get", "background_model")["value"] == CLOUD
    assert "would be sent" not in cli.done("config", "set", "background_model", CLOUD).err


def test_a_model_of_this_machine_needs_no_yes_and_does_the_work(
    cli: CommandLine, server: Loopback
) -> None:
    assert "at no cost" in cli.done("config", "set", "background_model", LOCAL).err
    cli.done("price", "set", LOCAL, "1", "10")
    cli.done("work", "--until-idle", "--only", "exchange_summarizer")
    assert len(server.posts) == 2
    spend = cli.json("status")["spend"]
    assert spend["today_usd"] == pytest.approx(0.004)
    (row,), (of_month,) = spend["this_month"], spend["by_month"]
    assert of_month["known_usd"] == row["known_usd"]
    assert (row["purpose"], row["model"], row["requests"]) == ("exchange_summarizer", LOCAL, 2)
    assert "spent: $0.00 today" in cli.done("status").out
    turns = cli.json("show", "1")["turns"]
    assert [turn["summary"] for turn in turns] == [REPLY, REPLY]


def test_none_is_extractive_again(cli: CommandLine, server: Loopback) -> None:
    cli.done("config", "set", "background_model", LOCAL)
    cli.done("config", "set", "background_model", "none")
    cli.done("work", "--until-idle", "--only", "exchange_summarizer")
    assert server.posts == []


@pytest.mark.parametrize("model", ["recall:", "nowhere:model", "local:", "words alone"])
def test_what_is_no_model_of_a_provider_is_refused(cli: CommandLine, model: str) -> None:
    assert cli("config", "set", "background_model", model).code == 1
    assert cli.json("config", "get", "background_model")["value"] is None


def test_a_changed_place_of_a_provider_asks_again(cli: CommandLine, server: Loopback) -> None:
    add = ("provider", "add", "away", "--kind", "compatible", "--base-url")
    cli.done(*add, "https://first.example/v1")
    cli.done("config", "set", "background_model", "away:m", "--yes")
    cli.done(*add, "https://second.example/v1")
    ran = cli("work", "--until-idle", "--only", "exchange_summarizer")
    assert ran.code == 1
    assert "https://second.example/v1, and nobody has agreed" in ran.out


def test_an_import_says_what_it_takes_and_waits_for_a_yes(cli: CommandLine) -> None:
    cli.done("config", "set", "background_model", CLOUD, "--yes")
    ran = cli.done("import", SAMPLE)
    assert "would read 58 turns of your history now" in ran.err
    assert f"config set background_model {CLOUD} --yes" in ran.err
    waits = cli("work", "--until-idle", "--only", "exchange_summarizer")
    assert "nobody has agreed" in waits.err
    again = cli.done("import", SAMPLE)
    assert "would read" not in again.err


def test_an_import_takes_back_what_was_agreed_to_for_models_not_chosen_now(
    cli: CommandLine,
) -> None:
    add = ("provider", "add", "away", "--kind", "compatible", "--base-url")
    cli.done(*add, "https://api.example.org/v1")
    cli.done("config", "set", "background_model", "away:m", "--yes")
    cli.done("config", "set", "background_model", "none")
    cli.done("import", SAMPLE)
    ran = cli("config", "set", "background_model", "away:m")
    assert ran.code == 1
    assert "nobody agreed to send your history to https://api.example.org/v1" in ran.err
    assert cli.json("config", "get", "background_model")["value"] is None


def test_an_import_of_nothing_new_leaves_the_consent(cli: CommandLine) -> None:
    cli.done("import", SAMPLE)
    cli.done("config", "set", "background_model", CLOUD, "--yes")
    cli.done("import", SAMPLE)
    assert "would be sent" not in cli.done("config", "set", "background_model", CLOUD).err


def test_a_cap_ends_a_drain_with_plain_words_and_goes_on_when_it_is_raised(
    cli: CommandLine, server: Loopback
) -> None:
    cli.done("price", "set", LOCAL, "100", "100")
    cli.done("config", "set", "background_model", LOCAL)
    cli.done("config", "set", "spend_cap_daily_usd", "0.12")
    ran = cli("work", "--until-idle", "--only", "exchange_summarizer")
    assert (ran.code, server.posts) == (1, [])
    assert "The cap of $0.12 a day is reached" in ran.out
    cli.done("config", "set", "spend_cap_daily_usd", "0.7")
    ran = cli.done("work", "--until-idle", "--only", "exchange_summarizer")
    assert len(server.posts) == 2
    assert cli.json("status")["spend"]["today_usd"] == pytest.approx(0.22)


def test_a_rate_limit_is_waited_for(cli: CommandLine, server: Loopback) -> None:
    cli.done("config", "set", "background_model", LOCAL)
    server.reply(error(429, "rate_limit_error", retry_after=0.2))
    ran = cli.done("work", "--until-idle", "--only", "exchange_summarizer")
    assert "2 of 2" in ran.out
    assert len(server.posts) == 3


def test_own_prices_are_listed_and_removed(cli: CommandLine) -> None:
    cli.done("price", "set", LOCAL, "1.5", "2", "0.5")
    assert cli.json("price", "list")["prices"] == [
        {"model": LOCAL, "input_usd": 1.5, "output_usd": 2.0, "cached_usd": 0.5}
    ]
    assert "your price: $1.5 in" in cli.done("price", "list").out
    assert "list price" in cli.done("price", "list", CLOUD).out
    cli.done("price", "remove", LOCAL)
    assert cli.json("price", "list")["prices"] == []
    assert cli("price", "remove", LOCAL).code == 1
    assert cli("price", "set", LOCAL, "much", "1").code == 1
    assert cli("price", "set", LOCAL).code == 2


@pytest.mark.parametrize("usd", [-1.0, float("nan"), float("inf"), 1e9])
def test_what_is_no_price_is_not_kept(store: Store, usd: float) -> None:
    prices = OwnPrices(Settings(store))
    with pytest.raises(InvalidInput, match="is not a price"):
        prices.put("a:b", OwnPrice(usd, 1.0))
    with pytest.raises(InvalidInput, match="names no model"):
        prices.put("a", OwnPrice(1.0, 1.0))
    with pytest.raises(NotFound):
        prices.remove("a:b")
    assert prices.all() == {}


@pytest.mark.parametrize(
    "kept", ["", "[]", "no", '{"a:b": [1]}', '{"a:b": [1, -2, null]}', '{"a:b": 5}']
)
def test_a_table_that_cannot_be_read_makes_prices_unknown_again(store: Store, kept: str) -> None:
    settings = Settings(store)
    settings.set("own_prices", kept)
    assert OwnPrices(settings).all() == {}


def test_spend_is_summed_by_day_month_purpose_and_model(store: Store) -> None:
    noon = datetime(2026, 3, 31, 12).astimezone()
    for at, purpose, cost in (
        (noon, "chat", 1.0),
        (noon, "exchange_summarizer", 0.25),
        (noon + timedelta(hours=1), "exchange_summarizer", None),
        (noon + timedelta(days=1), "exchange_summarizer", 0.5),
    ):
        store.save(SpendAdded(at, purpose, "a:b", 10, 5, 0, cost))
    spending = Spending(store)
    rows = spending.by_day(month_start(noon))
    assert [(row.day, row.purpose) for row in rows] == [
        (date(2026, 4, 1), "exchange_summarizer"),
        (date(2026, 3, 31), "chat"),
        (date(2026, 3, 31), "exchange_summarizer"),
    ]
    assert rows[2].spent == Spent(2, 30, 0.25, 1)
    assert rows[2].spent.cost_usd is None
    assert by_month(rows)[date(2026, 3, 1), "exchange_summarizer", "a:b"] == Spent(2, 30, 0.25, 1)
    assert spending.today(noon).requests == 4
    assert spending.this_month(noon + timedelta(days=1)).known_usd == 0.5
    assert spending.on_background(day_start(noon)).known_usd == 0.75


def test_the_local_calendar_knows_where_days_and_months_begin() -> None:
    at = datetime(2026, 12, 31, 23, 59).astimezone()
    assert day_start(at) == datetime(2026, 12, 31).astimezone()
    assert month_start(at) == datetime(2026, 12, 1).astimezone()
    assert next_day(at) == next_month(at) == datetime(2027, 1, 1).astimezone()


def test_another_model_tries_again_what_the_one_before_spoilt(
    cli: CommandLine, server: Loopback
) -> None:
    cli.done("config", "set", "background_model", LOCAL)
    with opened(cli.data_dir) as held:
        for name in (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.EMBEDDING_PIPELINE):
            for item in (1, 2):
                Attempts(held, name).failed(item, 7, None, "answered in riddles")
    aside = "set_aside"
    assert cli.json("status")["workers"]["exchange_summarizer"][aside] == 2
    cli.done("config", "set", "background_model", LOCAL)
    assert cli.json("status")["workers"]["exchange_summarizer"][aside] == 2, "it is the same model"
    cli.done("config", "set", "background_model", "none")
    workers = cli.json("status")["workers"]
    assert workers["exchange_summarizer"][aside] == 0
    with opened(cli.data_dir) as held:
        assert len(Attempts(held, WorkerName.EMBEDDING_PIPELINE).tries()) == 2, "no model's matter"


def test_what_was_spent_is_a_change_that_screens_hear_of(store: Store) -> None:
    heard: list[Changed] = []
    unsubscribe = store.subscribe(heard.append)
    store.save(SpendAdded(datetime.now(UTC), "chat", LOCAL, 10, 5, 0, 0.1))
    until(lambda: bool(heard))
    unsubscribe()
    assert heard == [Changed(spend=True)]


def test_what_facts_would_take_is_what_they_take(store: Store) -> None:
    told(store, *(f"I live in town number {number}." for number in range(30)))
    load = BackgroundLoad(store, Settings(store)).facts()
    asker = ScriptedAsker(*[{"facts": []}] * 30)
    job = extractor(store, OpenConversation(SummaryWork(store), Settings(store)), model=asker)
    WorkerBoard(store, Settings(store), [job]).run_until_idle()
    assert (load.turns, load.requests) == (30, 3)
    assert len(asker.asked) == load.requests

"""A model for background work on the command line: estimate, consent, prices, spend, work."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.change_set import ChangeSet
from app.domain.changes import SpendAdded
from app.domain.chat import StoredProvider
from app.domain.errors import InvalidInput, NotFound
from app.domain.records.topics import TopicId
from app.domain.translation import day_start, month_start, next_day, next_month
from app.domain.workers import WorkerName
from app.providers.pricing.prices import OwnPrice, OwnPrices
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.settings import Settings
from app.storage.tables.spending import Spending, Spent, by_month
from app.storage.tables.topics import StoredTopic, TopicRows
from app.storage.work.queue import SUMMARIES, request_regeneration
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.jobs.part_reader import READERS
from app.workers.model_choice import Workloads
from tests.fakes.background import ScriptedAsker, part_answer
from tests.fakes.command_line import CommandLine, Ran
from tests.fakes.jobs import until
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import error, text, usage
from tests.fakes.stored import add_conversation, made, opened
from tests.fakes.summarizers import go_on

CLOUD = "openai:gpt-4o-mini"
LOCAL = "local:test-model"
SAMPLE = Path(__file__).resolve().parents[3] / "resources/samples/sample-archive.json"
REPLY = json.dumps(part_answer())


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.always(text(REPLY), usage(1000, 100))
        yield running


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str], server: Loopback) -> CommandLine:
    made(data_dir)
    with opened(data_dir) as store:
        add_conversation(store, "How do I keep basil alive?", "And mint?")
        Settings(store).put_provider(StoredProvider("local", "compatible", server.v1, None))
    return CommandLine(data_dir, capsys)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "other") as made_here:
        yield made_here


def work(cli: CommandLine) -> Ran:
    return cli("work", "--until-idle", "--only", "exchange_summarizer")


def choose(cli: CommandLine, model: str, *yes: str) -> Ran:
    return cli("config", "set", "background_model", model, *yes)


def chosen(cli: CommandLine) -> object:
    return cli.json("config", "get", "background_model")["value"]


def test_a_cloud_model_is_not_chosen_before_a_yes_to_its_price(cli: CommandLine) -> None:
    ran = choose(cli, CLOUD)
    assert ran.code == 1
    for words in ("2 turns", "2 requests", "$0.01", "https://api.openai.com/v1", "--yes"):
        assert words in ran.err
    for model in ("recall:", "nowhere:model", "local:", "words alone"):
        assert choose(cli, model).code == 1
    assert chosen(cli) is None
    assert choose(cli, CLOUD, "--yes").code == 0
    assert chosen(cli) == CLOUD
    assert "api.openai.com" not in choose(cli, CLOUD).err


def test_a_local_model_needs_no_yes_and_does_the_work(cli: CommandLine, server: Loopback) -> None:
    assert "at no cost" in choose(cli, LOCAL).err
    cli.done("price", "set", LOCAL, "100", "100")
    cli.done("config", "set", "spend_cap_daily_usd", "0.12")
    ran = work(cli)
    assert (ran.code, server.posts) == (1, [])
    assert "The limit of $0.12 per day is reached" in ran.out
    cli.done("price", "set", LOCAL, "1", "10")
    server.reply(error(429, "rate_limit_error", retry_after=0.2))
    assert "2 of 2" in work(cli).out
    assert len(server.posts) == 2
    spend = cli.json("status")["spend"]
    assert spend["today_usd"] == pytest.approx(0.002)
    (row,), (of_month,) = spend["this_month"], spend["by_month"]
    assert of_month["known_usd"] == row["known_usd"]
    assert (row["purpose"], row["model"], row["requests"]) == ("exchange_summarizer", LOCAL, 1)
    assert "spent: under $0.01 today" in cli.done("status").out
    assert [turn["summary"] for turn in cli.json("show", "1")["turns"]] == ["Line 1.", "Line 2."]


def test_a_changed_place_of_a_provider_asks_again(cli: CommandLine) -> None:
    add = ("provider", "add", "away", "--kind", "compatible", "--base-url")
    cli.done(*add, "https://first.example/v1")
    assert choose(cli, "away:m", "--yes").code == 0
    cli.done(*add, "https://second.example/v1")
    ran = work(cli)
    assert ran.code == 1
    assert "https://second.example/v1" in ran.out


def test_an_import_withdraws_consent_and_one_of_nothing_new_does_not(cli: CommandLine) -> None:
    add = ("provider", "add", "away", "--kind", "compatible", "--base-url")
    cli.done(*add, "https://api.example.org/v1")
    choose(cli, "away:m", "--yes")
    choose(cli, CLOUD, "--yes")
    ran = cli.done("import", SAMPLE)
    assert "58 turns" in ran.err
    assert f"config set background_model {CLOUD} --yes" in ran.err
    assert CLOUD in work(cli).err
    assert "58 turns" not in cli.done("import", SAMPLE).err
    ran = choose(cli, "away:m")
    assert (ran.code, chosen(cli)) == (1, CLOUD), "consent to other models is withdrawn too"
    assert "https://api.example.org/v1" in ran.err
    choose(cli, CLOUD, "--yes")
    cli.done("import", SAMPLE)
    assert choose(cli, CLOUD).code == 0


def test_another_model_retries_items_that_failed(cli: CommandLine, server: Loopback) -> None:
    choose(cli, LOCAL)
    with opened(cli.data_dir) as store:
        for name in (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.EMBEDDING_PIPELINE):
            for item in (1, 2):
                Attempts(store, name).failed(item, 7, None, "invalid answer")

    def failed() -> object:
        return cli.json("status")["workers"]["exchange_summarizer"]["set_aside"]

    choose(cli, LOCAL)
    assert failed() == 2, "it is the same model"
    choose(cli, "none")
    assert failed() == 0
    assert (work(cli).code, server.posts) == (0, []), "without a model, summaries are extractive"
    with opened(cli.data_dir) as store:
        tries = Attempts(store, WorkerName.EMBEDDING_PIPELINE).tries()
    assert len(tries) == 2, "embedding does not depend on the model"


def test_the_estimate_of_requests_is_what_is_asked(store: Store) -> None:
    add_conversation(store, *(f"I live in town number {number}." for number in range(50)))
    add_conversation(store, "I sail.")
    loads = Workloads(store, Settings(store))
    (load, *_, profile), asker = loads.all(""), ScriptedAsker()
    WorkerBoard(JobParts(store, Settings(store), model=asker)).run_until_idle(READERS)
    assert (load.turns, load.requests) == (51, 3)
    assert len(asker.asked) == load.requests
    assert (profile.requests, loads.all("")[-1].requests) == (1, 0), "the profile follows once"


def test_the_estimate_counts_the_topics_that_a_model_would_name(store: Store) -> None:
    settings, rows = Settings(store), TopicRows(store)
    loads = Workloads(store, settings)
    for number in range(18):
        add_conversation(store, f"Town number {number}.")
    assert loads.topic_names("m").requests == 1, "some three topics, before they are found"
    topics = [StoredTopic(TopicId(n), "A name", None, "m" if n == 1 else "") for n in range(1, 43)]
    rows.replace(topics, (), 18)
    assert loads.topic_names("m").requests == 3
    assert loads.topic_names("m") in loads.all("m")
    rows.replace(topics, (), 18, model="m")
    assert loads.topic_names("m").requests == 0, "it was asked"
    assert loads.topic_names("other").requests == 3
    settings.set("topic_finder_enabled", False)
    assert loads.topic_names("m").requests == 0


@pytest.mark.parametrize("again", [False, True], ids=["missing", "regenerated"])
def test_the_estimate_of_summaries_counts_the_turns_they_cover(store: Store, again: bool) -> None:
    settings, asker = Settings(store), ScriptedAsker()
    settings.set("background_model", asker.model)
    talk = add_conversation(store, *(f"Town number {number}." for number in range(60)))
    board = WorkerBoard(JobParts(store, settings, model=asker))
    board.run_until_idle(READERS if again else READERS[1:])
    asked = len(asker.asked)
    loads = Workloads(store, settings)
    if again:
        asker.model = "scripted:2"
        settings.set("background_model", asker.model)
        exchanges, conversations, load = loads.summaries_again()
        assert (exchanges, conversations) == (60, 1)
        facts = loads.facts_again()
        assert (facts.turns, facts.requests) == (60, 3)
        request_regeneration(settings, SUMMARIES)
    else:
        load = loads.parts()
    board.run_until_idle(READERS)
    assert (load.turns, load.requests) == (60, 3)
    assert len(asker.asked) - asked == load.requests
    go_on(store, talk.conversation, talk.exchanges[-1], "And one more.")
    assert loads.parts().turns == 1


# -- own prices
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


def test_own_windows_are_listed_and_removed(cli: CommandLine) -> None:
    unknown = "openai:no-such-model"
    cli.done("window", "set", unknown, "12,000")
    assert cli.json("window", "list")["windows"] == [
        {"model": unknown, "tokens": 12_000, "source": "user"}
    ]
    cli.done("window", "remove", unknown)
    assert cli.json("window", "list")["windows"] == []
    assert "8,192 tokens" in cli.done("window", "list", unknown).out
    assert cli("window", "set", unknown, "much").code == 1
    assert cli("window", "set", unknown).code == 2


def test_an_invalid_price_is_not_stored_and_an_unreadable_table_is_empty(store: Store) -> None:
    settings = Settings(store)
    prices = OwnPrices(settings)
    for usd in (-1.0, float("nan"), float("inf"), 1e9):
        with pytest.raises(InvalidInput, match="is not a price"):
            prices.put("a:b", OwnPrice(usd, 1.0))
    with pytest.raises(InvalidInput, match="names no model"):
        prices.put("a", OwnPrice(1.0, 1.0))
    with pytest.raises(NotFound):
        prices.remove("a:b")
    assert prices.all() == {}
    for stored in ("", "[]", "no", '{"a:b": [1]}', '{"a:b": [1, -2, null]}', '{"a:b": 5}'):
        settings.set("own_prices", stored)
        assert prices.all() == {}


# -- spend
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


def test_spend_is_a_change_that_screens_are_notified_of(store: Store) -> None:
    changes: list[ChangeSet] = []
    unsubscribe = store.subscribe(changes.append)
    store.save(SpendAdded(datetime.now(UTC), "chat", LOCAL, 10, 5, 0, 0.1))
    until(lambda: bool(changes))
    unsubscribe()
    assert changes == [ChangeSet(spend=True)]

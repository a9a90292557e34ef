"""Requests that are written down before they are sent: what a kill leaves of them counts as spend."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from app.check import check
from app.domain.changes import SpendAdded, SpendFreed, SpendHeld
from app.storage import migrations
from app.storage.spending import Spending, Spent
from app.storage.store import Store
from app.system.paths import DataPaths
from tests.fakes.stored import opened

AT = datetime(2026, 3, 4, 12, tzinfo=UTC)
WORKER = "exchange_summarizer"


def held(uid: str, cost_usd: float | None = 0.5) -> SpendHeld:
    return SpendHeld(uid, AT, WORKER, "a:m", 1000, 200, cost_usd)


def spent(store: Store) -> Spent:
    return Spending(store).on_background(AT - timedelta(days=1))


def test_a_request_found_at_the_start_is_spend_interrupted_and_counted_once(data_dir: Path) -> None:
    with opened(data_dir) as store:
        store.save(held("x"))
        assert spent(store) == Spent()
    for _ in range(2):
        with opened(data_dir) as store:
            assert spent(store) == Spent(1, 1200, 0.5, 0, 1, 0.5)
            assert check(store).problems == ()


def test_what_ended_in_an_answer_or_a_refusal_leaves_nothing(data_dir: Path) -> None:
    with opened(data_dir) as store:
        store.save(held("x"))
        store.save(held("y"))
        store.save(SpendAdded(AT, WORKER, "a:m", 10, 5, 0, 0.01, held="x"))
        store.save(SpendFreed("y"))
    with opened(data_dir) as store:
        assert spent(store) == Spent(1, 15, 0.01)


def test_an_unknown_price_stays_unknown(data_dir: Path) -> None:
    with opened(data_dir) as store:
        store.save(held("x", None))
    with opened(data_dir) as store:
        assert spent(store) == Spent(1, 1200, 0.0, 1, 1, 0.0)


def test_the_journal_alone_brings_a_request_back(data_dir: Path) -> None:
    """As after a torn file: an older image, and a journal that goes further."""
    image = data_dir.with_name("image")
    with opened(data_dir) as store:
        store.checkpoint().result()
        shutil.copy(store.paths.database, image)
        store.save(held("x"))
    shutil.copy(image, DataPaths(data_dir).database)
    with opened(data_dir) as store:
        assert spent(store).interrupted == 1


def test_a_database_of_before_gets_the_table_and_keeps_its_spend(data_dir: Path) -> None:
    with opened(data_dir) as store:
        store.save(SpendAdded(AT, WORKER, "a:m", 10, 5, 0, 0.01))
    with duckdb.connect(str(DataPaths(data_dir).database)) as file:
        file.execute("DROP TABLE spend_held")
        file.execute("ALTER TABLE spend DROP COLUMN estimated")
        file.execute("UPDATE meta SET value = '5' WHERE key = 'schema_version'")
    with opened(data_dir) as store:
        assert spent(store) == Spent(1, 15, 0.01)
        store.save(held("x"))
    with duckdb.connect(str(DataPaths(data_dir).database), read_only=True) as file:
        assert migrations.version_of(file) >= 6


def test_the_check_tells_of_a_request_that_nobody_ended_for_a_day(data_dir: Path) -> None:
    with opened(data_dir) as store:
        store.save(held("x"))
        (problem,) = check(store).problems
        assert "request x is on record as under way for over a day" in problem

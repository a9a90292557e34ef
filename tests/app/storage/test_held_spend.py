"""Spend: sums with unknown prices, and reservations that count as spent after a kill."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from app.check import check
from app.domain.changes import SpendAdded, SpendReleased, SpendReserved
from app.storage.engine import migrations
from app.storage.engine.connection import Connection
from app.storage.engine.store import Store
from app.storage.tables.spending import Spending, Spent
from app.system.paths import DataPaths
from tests.fakes.stored import make_earlier, opened

AT = datetime(2026, 3, 4, 12, tzinfo=UTC)
WORKER = "exchange_summarizer"


def held(uid: str, cost_usd: float | None = 0.5) -> SpendReserved:
    return SpendReserved(uid, AT, WORKER, "a:m", 1000, 200, cost_usd)


def spent(store: Store) -> Spent:
    return Spending(store).on_background(AT - timedelta(days=1))


def test_an_unknown_price_makes_the_sum_unknown(store: Store) -> None:
    spending = Spending(store)
    assert spending.totals("chat").cost_usd == 0
    store.save(
        SpendAdded(AT, "chat", "m", 10, 5, 2, 0.25), SpendAdded(AT, "chat", "m", 1, 1, 0, 0.5)
    )
    assert (spending.totals("chat").tokens, spending.totals("chat").cost_usd) == (17, 0.75)
    store.save(SpendAdded(AT, "chat", "m", 1, 1, 0, None), SpendAdded(AT, "w", "m", 1, 1, 0, 0.1))
    assert spending.totals("chat").cost_usd is None


def test_a_request_found_at_the_start_is_spend_interrupted_and_counted_once(data_dir: Path) -> None:
    image = data_dir.with_name("image")
    with opened(data_dir) as store:
        store.checkpoint().result()
        shutil.copy(store.paths.database, image)
        for uid in "abc":
            store.save(held(uid, None if uid == "c" else 0.5))
        store.save(SpendAdded(AT, WORKER, "a:m", 10, 5, 0, 0.01, held="a"))
        store.save(held("d"))
        store.save(SpendReleased("d"))
        assert spent(store) == Spent(1, 15, 0.01)
        assert len(check(store).problems) == 2, "reservations older than a day"
    # As after a torn file: the journal goes further.
    shutil.copy(image, DataPaths(data_dir).database)
    for _ in range(2):
        with opened(data_dir) as store:
            assert spent(store) == Spent(3, 2415, 0.51, 1, 2, 0.5)
            assert check(store).problems == ()


def test_an_earlier_database_gets_the_table_and_keeps_its_spend(data_dir: Path) -> None:
    with opened(data_dir) as store:
        store.save(SpendAdded(AT, WORKER, "a:m", 10, 5, 0, 0.01))
    make_earlier(store.paths.database, 5)
    with opened(data_dir) as store:
        assert spent(store) == Spent(1, 15, 0.01)
        store.save(held("x"))
    with Connection(duckdb.connect(str(store.paths.database), read_only=True)) as file:
        assert migrations.version_of(file) >= 6

"""The spend caps and the embedding pipeline: what is paid for stops before a cap, what is free goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.workers import WorkerName, WorkerStatus
from app.memory.embedders import EmbedderDirectory, provider_registry
from app.providers.own_prices import OwnPrices
from app.providers.prices import OwnPrice
from app.storage.settings import ProviderRow, Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.system.keys import KeyStore
from app.workers.board import WorkerBoard
from app.workers.job import Blocked
from app.workers.spend_guard import Most, SpendGuard
from tests.fakes.jobs import JumpingClock
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_embeddings import TOKENS_OF_A_TEXT
from tests.fakes.loopback_script import error
from tests.fakes.pipelines import long
from tests.fakes.stored import opened, told

PIPELINE = WorkerName.EMBEDDING_PIPELINE
HERE, FAR = "here:embed-model", "far:embed-model"
UNKNOWN_PRICE = f"The price of {FAR} is unknown, so the cap of $1.00 a day cannot be kept"


class Desk:
    """A store with the pipeline alone, the loopback server as provider `here`, `far` elsewhere."""

    def __init__(self, store: Store, server: Loopback) -> None:
        self.store, self.server = store, server
        self.settings = Settings(store)
        self.settings.put_provider(ProviderRow("here", "compatible", server.v1, None))
        far = ProviderRow("far", "compatible", "https://far.example/v1", None)
        self.settings.put_provider(far)
        registry = provider_registry(self.settings, KeyStore())
        self.embedders = EmbedderDirectory(self.settings, registry)
        self.guard = SpendGuard(store, self.settings)
        self.board = WorkerBoard(
            store, self.settings, (), JumpingClock(), embedder=self.embedders.active,
            guard=self.guard,
        )  # fmt: skip

    def price(self, model: str, input_usd: float) -> None:
        OwnPrices(self.settings).put(model, OwnPrice(input_usd, 0.0))

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([PIPELINE])
        return status

    @property
    def spent_usd(self) -> float | None:
        return Spending(self.store).all_time(PIPELINE).cost_usd


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def desk(data_dir: Path, server: Loopback) -> Iterator[Desk]:
    with opened(data_dir) as store:
        made = Desk(store, server)
        made.settings.set("spend_cap_daily_usd", 1.0)
        yield made
        made.embedders.close()


def test_a_server_of_this_machine_needs_no_price_under_a_cap(desk: Desk) -> None:
    told(desk.store, long("tea"), long("coffee"))
    desk.embedders.choose(HERE)
    assert (desk.run().done, desk.spent_usd) == (2, 0.0)


def test_an_unpriced_embedder_elsewhere_is_blocked_under_a_cap_and_says_how_to_give_a_price(
    desk: Desk,
) -> None:
    told(desk.store, long("tea"))
    desk.embedders.choose(FAR, agreed=True)
    status = desk.run()
    assert (status.done, status.failed, status.set_aside) == (0, 0, 0)
    assert UNKNOWN_PRICE in status.last_error
    assert f"commonplace price set {FAR}" in status.last_error


def test_a_cap_stops_the_pipeline_before_it_is_passed_and_raising_it_lets_it_go_on(
    desk: Desk,
) -> None:
    told(desk.store, *(long(number) for number in range(6)))
    desk.settings.set("embedding_batch_size", 1)
    desk.embedders.choose(HERE)
    desk.price(HERE, 0.2 / TOKENS_OF_A_TEXT * 1e6)  # a text costs $0.20, as the server counts
    status = desk.run()
    assert "The cap of $1.00 a day is reached" in status.last_error
    assert 0 <= status.done < 6
    assert (status.failed, status.set_aside) == (0, 0)
    assert desk.spent_usd is not None
    assert desk.spent_usd <= 1.0
    asked = len(desk.server.posts)
    assert "The cap of $1.00 a day is reached" in desk.run().last_error
    assert len(desk.server.posts) == asked, "nothing more was sent"
    desk.settings.set("spend_cap_daily_usd", 50.0)
    assert desk.run().done == 6
    assert desk.spent_usd == pytest.approx(0.2 * len(desk.server.posts))


def test_what_other_workers_have_on_the_way_counts_too(desk: Desk) -> None:
    told(desk.store, long("tea"))
    desk.embedders.choose(HERE)
    desk.price(HERE, 1.0)
    held = desk.guard.hold("w", "another:model", Most(1, 1, 1.0))
    assert "The cap of $1.00 a day is reached" in desk.run().last_error
    assert desk.server.posts == []
    desk.guard.release(held)
    assert desk.run().done == 1


def test_a_request_that_came_to_nothing_gives_back_what_was_set_aside(desk: Desk) -> None:
    told(desk.store, long("tea"))
    desk.embedders.choose(HERE)
    desk.price(HERE, 1.0)
    desk.server.always(error(401, message="no such key"))
    assert desk.run().done == 0
    assert desk.server.posts
    desk.guard.hold("w", "another:model", Most(1, 1, 1.0))
    with pytest.raises(Blocked):
        desk.guard.hold("w", "another:model", Most(1, 1, 0.01))

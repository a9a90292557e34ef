"""Workers in the middle of a request to a server that is silent; and workers that a turn wakes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.memory.embedders import EmbedderDirectory, provider_registry
from app.providers.prices import PriceBook
from app.providers.retry import RetryPolicy
from app.storage.settings import ProviderRow, Settings
from app.storage.store import Store
from app.system.keys import KeyStore
from app.workers.background_model import BackgroundModel
from app.workers.board import ENABLED_KEYS, WorkerBoard
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import until
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import stall, text, vectors
from tests.fakes.pipelines import long
from tests.fakes.stored import opened, told
from tests.fakes.tool_turns import called

PAID = tuple(name for name in WorkerName if name is not WorkerName.MAN_INDEXER)
PIPELINE = WorkerName.EMBEDDING_PIPELINE


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made_now:
        yield made_now


class Desk:
    """A library with work for every worker that asks a server, all of them off."""

    def __init__(self, store: Store, server: Loopback) -> None:
        self.store = store
        self.settings = settings = Settings(store)
        for key in ENABLED_KEYS.values():
            settings.set(key, False)
        settings.put_provider(ProviderRow("here", "compatible", server.v1, None))
        settings.set("background_model", "here:chat")
        settings.set("embedder", "here:embed")
        registry = provider_registry(settings, KeyStore(), RetryPolicy(tries=1))
        self.embedders = EmbedderDirectory(settings, registry)
        self.model = BackgroundModel(store, settings, registry, PriceBook(registry.find_config))
        self.board = WorkerBoard(store, settings, embedder=self.embedders.active, model=self.model)
        told(store, long("tea"))
        called(store, ("read_file", '{"path": "notes.txt"}', "one"))

    def switch_on(self, *names: WorkerName) -> None:
        for name in names:
            self.settings.set(ENABLED_KEYS[name], True)


@pytest.fixture
def desk(store: Store, server: Loopback) -> Iterator[Desk]:
    laid = Desk(store, server)
    yield laid
    laid.model.close()
    laid.embedders.close()


@contextmanager
def hosted(board: WorkerBoard) -> Iterator[list[threading.Thread]]:
    threads: list[threading.Thread] = []

    def host(loop: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=loop))
        threads[-1].start()

    board.start(host)
    try:
        yield threads
    finally:
        assert board.stop() == ()
        for thread in threads:
            thread.join(20)


def status_of(board: WorkerBoard, name: WorkerName) -> WorkerStatus:
    return next(each for each in board.statuses() if each.name is name)


@pytest.mark.parametrize("midway", [False, True])
@pytest.mark.parametrize("name", PAID)
def test_switched_off_in_the_middle_of_a_request_a_worker_hangs_up_and_is_stopped(
    desk: Desk, server: Loopback, name: WorkerName, midway: bool
) -> None:
    asked = 1
    if name is not PIPELINE:
        server.always(*(text("{"),) * midway, stall(before_headers=not midway))
    elif midway:  # the first request is about the model, the next about what was said
        server.reply(vectors()).always(stall(before_headers=True))
        asked = 2
    else:
        server.always(stall(before_headers=True))
    desk.switch_on(name)
    with hosted(desk.board) as threads:
        server.wait_for(lambda: len(server.posts) == asked)
        assert status_of(desk.board, name).state is WorkerState.RUNNING
        desk.board.set_enabled(name, False)
        threads[0].join(20)
        status = status_of(desk.board, name)
        assert (status.state, status.enabled) == (WorkerState.STOPPED, False)
        assert (status.failed, status.waiting_retry, status.current_item) == (0, 0, "")
        assert server.posts[-1].hung_up.wait(20)
        assert len(server.posts) == asked, "nothing more was asked"


def test_all_of_them_busy_at_once_end_together_and_in_time(desk: Desk, server: Loopback) -> None:
    server.always(stall(before_headers=True))
    desk.switch_on(*PAID)
    with hosted(desk.board):
        server.wait_for(lambda: len(server.posts) == len(PAID))
        assert desk.board.stop(timeout_s=3.0) == ()
        assert all(seen.hung_up.wait(20) for seen in server.posts)
        states = {status.state for status in desk.board.statuses()}
        assert states == {WorkerState.STOPPED}


# -- waking


class StillClock:
    """Time stands still: who waits goes on only when woken."""

    def now(self) -> datetime:
        return datetime(2026, 6, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        assert timeout_s >= 0
        return event.wait(20)


def test_a_turn_that_ends_wakes_all_that_have_work_by_it_though_no_poll_ever_comes(
    store: Store,
) -> None:
    settings, bag = Settings(store), BagOfWords()
    settings.set(ENABLED_KEYS[WorkerName.TOOL_SUMMARIZER], True)
    board = WorkerBoard(store, settings, clock=StillClock(), embedder=lambda: bag)
    with hosted(board):
        board.set_enabled(WorkerName.MAN_INDEXER, False)
        until(lambda: all(status_of(board, each).state is WorkerState.IDLE for each in PAID))
        called(store, ("read_file", '{"path": "notes.txt"}', "one"))
        until(lambda: all(status_of(board, each).completed > 0 for each in PAID))
        assert status_of(board, WorkerName.MAN_INDEXER).state is WorkerState.STOPPED


def test_a_provider_that_was_changed_wakes_whoever_was_blocked_by_it(
    desk: Desk, server: Loopback
) -> None:
    desk.settings.remove_provider("here")
    desk.switch_on(*PAID)
    with hosted(desk.board):
        until(
            lambda: all(status_of(desk.board, each).state is WorkerState.BLOCKED for each in PAID)
        )
        server.always(stall(before_headers=True))
        desk.settings.put_provider(ProviderRow("here", "compatible", server.v1, None))
        server.wait_for(lambda: len(server.posts) == len(PAID), 30.0)

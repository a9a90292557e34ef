"""The board: switching, hosting, waking, stopping, draining, warnings."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from app.domain.chat import StoredProvider
from app.domain.errors import KeyMissing, NotFound
from app.domain.workers import WORKERS, WorkerName, WorkerState, WorkerStatus
from app.memory.search.embedders import EmbedderDirectory
from app.providers.pricing.prices import PriceList
from app.providers.registry import provider_registry
from app.providers.windows import ModelWindows
from app.providers.wire.streaming import RetryPolicy
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.storage.work.summary_work import EXCHANGE_SUMMARIES, SummaryWork
from app.system.keys import KeyStore
from app.workers.background_model import BackgroundModel
from app.workers.board import WorkerBoard
from app.workers.job_interface import Clock, IsCancelled
from app.workers.jobs import JobParts
from app.workers.jobs.part_reader import READERS
from tests.fakes.embedders import BagOfWords
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import ListJob, blocks_until_cancelled, hosted, until
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import stall, text, vectors
from tests.fakes.pipelines import long
from tests.fakes.stored import add_conversation
from tests.fakes.summarizers import ScriptedSummarizer, go_on
from tests.fakes.tool_turns import called

EXCHANGES, CONVERSATIONS = WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER
PIPELINE, MANUAL = WorkerName.EMBEDDING_PIPELINE, WorkerName.MAN_INDEXER
WITHOUT_WORK = (  # without facts and routines, with too few conversations for topics
    MANUAL, WorkerName.PROFILE_WRITER, WorkerName.SOURCE_READER, WorkerName.ROUTINE_RUNNER,
    WorkerName.TOPIC_FINDER, WorkerName.DOCUMENT_INDEXER,
)  # fmt: skip
MAY_BE_PAID = tuple(name for name in WorkerName if name not in WITHOUT_WORK)
STOPPED, IDLE, BLOCKED = WorkerState.STOPPED, WorkerState.IDLE, WorkerState.BLOCKED


@pytest.fixture
def settings(store: Store) -> Settings:
    chosen = Settings(store)
    chosen.set("summarizer_idle_timeout", 86_400)  # no polling: what happens was woken
    return chosen


class Scripted:
    """A board of the two summarizers with a scripted summarizer."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.settings = settings
        self.summarizer = ScriptedSummarizer()
        self.busy = threading.Semaphore(0)
        parts = JobParts(store, settings)
        self.board = WorkerBoard(parts, self.summarizer.jobs(parts))

    def hang(self) -> None:
        """Make each item last until its worker is stopped; `busy` counts them."""

        def wait(_: str, is_cancelled: IsCancelled) -> None:
            self.busy.release()
            blocks_until_cancelled((), is_cancelled)

        self.summarizer.before = wait


scripted = fixture_of(Scripted, "store", "settings")


def status_of(board: WorkerBoard, name: WorkerName) -> WorkerStatus:
    return next(each for each in board.statuses() if each.name is name)


def done(board: WorkerBoard) -> list[int]:
    return [status.done for status in board.statuses()]


def are_all(board: WorkerBoard, state: WorkerState, *names: WorkerName) -> bool:
    return all(status_of(board, name).state is state for name in names)


# -- switching
def test_built_in_workers_wait_for_the_open_conversation(store: Store, settings: Settings) -> None:
    board = WorkerBoard(JobParts(store, settings))
    talk = add_conversation(store, "How do I brew green tea at home?", at=datetime.now(UTC))
    board.set_open_conversation(talk.conversation.id)
    with hosted(board) as threads:
        until(lambda: are_all(board, IDLE, EXCHANGES, CONVERSATIONS))
        until(lambda: [each.total for each in board.statuses()] == [1, 1, 1, 0, 0, 0, 0, 0])
        assert done(board)[:2] == [0, 0]
        board.set_open_conversation(None)
        until(lambda: done(board) == [1, 1, 1, 0, 0, 0, 0, 0])
        assert len(threads) == 6
    own = talk.conversation.id
    assert Summaries(store).latest("exchange", [talk.exchanges[0].id])[1].model == "extractive"
    assert Summaries(store).latest("conversation", [own])[own].model == "extractive"
    assert Conversations(store).get(own).title == "A talk", "the first words stay without a model"


def test_a_worker_switched_off_stays_off_after_restarts(store: Store, scripted: Scripted) -> None:
    add_conversation(store, "tea")
    scripted.board.set_enabled(EXCHANGES, False)
    with hosted(scripted.board):
        until(lambda: done(scripted.board)[1] == 1)
    again = Scripted(store, Settings(store))
    with hosted(again.board) as threads:
        until(lambda: are_all(again.board, IDLE, CONVERSATIONS))
        status = status_of(again.board, EXCHANGES)
        assert (status.state, status.enabled, len(threads)) == (STOPPED, False, 1)
        again.board.set_enabled(EXCHANGES, True)
        until(lambda: done(again.board) == [1, 1])
    assert Settings(store).flag("summarizer_exchange_enabled")


def test_a_setting_changed_elsewhere_switches_the_worker(scripted: Scripted) -> None:
    board = scripted.board
    with hosted(board) as threads:
        until(lambda: are_all(board, IDLE, EXCHANGES))
        scripted.settings.set("summarizer_exchange_enabled", False)
        until(lambda: are_all(board, STOPPED, EXCHANGES))
        until(lambda: sum(each.is_alive() for each in threads) == 1)
        scripted.settings.reset("summarizer_exchange_enabled")
        until(lambda: are_all(board, IDLE, EXCHANGES))


def test_quickly_off_and_on_again_leaves_it_running_once(store: Store, scripted: Scripted) -> None:
    for number in range(5):
        add_conversation(store, f"question {number}")
    with hosted(scripted.board) as threads:
        for on in (False, True, False, True):
            scripted.board.set_enabled(EXCHANGES, on)
        until(lambda: done(scripted.board) == [5, 5])
        until(lambda: sum(each.is_alive() for each in threads) == 2)
    tally = SummaryWork(store).tally(EXCHANGE_SUMMARIES, 1)
    assert (tally.done, tally.total) == (5, 5)


def test_the_manual_page_indexer_is_off_at_every_start(store: Store, settings: Settings) -> None:
    job = ListJob(store, [1])
    job.name = MANUAL
    settings.set("index_man_enabled", True)
    board = WorkerBoard(JobParts(store, settings), [job])
    with hosted(board) as threads:
        assert not settings.flag("index_man_enabled")
        assert threads == []
        board.set_enabled(MANUAL, True)
        until(lambda: job.saved == [1])


def test_every_worker_has_a_row_and_unknown_workers_are_refused(scripted: Scripted) -> None:
    assert set(WORKERS) == set(WorkerName)
    with pytest.raises(NotFound, match="man_indexer"):
        scripted.board.set_enabled(MANUAL, True)
    with pytest.raises(NotFound):
        scripted.board.run_until_idle([MANUAL])


# -- waking
def test_settings_and_new_turns_wake_without_polling(store: Store, scripted: Scripted) -> None:
    scripted.settings.set("min_exchanges_for_conversation_summary", 2)
    board = scripted.board
    for _ in range(2):  # a stopped board can be started again
        with hosted(board):
            until(lambda: are_all(board, IDLE, EXCHANGES, CONVERSATIONS))
            before = done(board)[0]
            add_conversation(store, "tea")
            until(lambda before=before: done(board)[0] == before + 1)  # type: ignore[misc]
    with hosted(board):
        assert status_of(board, CONVERSATIONS).total == 0
        scripted.settings.set("min_exchanges_for_conversation_summary", 1)
        until(lambda: done(board) == [2, 2])


def test_a_blocked_worker_is_freed_by_waking_it(store: Store, settings: Settings) -> None:
    job = ListJob(store, [1])
    job.poison[1] = KeyMissing("There is no key", "Enter one.")
    board = WorkerBoard(JobParts(store, settings), [job])
    with hosted(board):
        until(lambda: are_all(board, BLOCKED, job.name))
        (warning,) = board.warnings()
        assert warning.endswith("is waiting: There is no key. Enter one.")
        assert board.warnings([CONVERSATIONS]) == ()
        job.poison.clear()
        board.wake([job.name])
        until(lambda: job.saved == [1])
    assert board.warnings() == ()


class StillClock(Clock):
    """Time that does not pass: a wait ends only by waking."""

    def now(self) -> datetime:
        return datetime(2026, 6, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        assert timeout_s >= 0
        return event.wait(60)


def test_the_end_of_a_turn_wakes_all_workers_that_have_work_by_it(store: Store) -> None:
    settings, bag = Settings(store), BagOfWords()
    settings.set(WORKERS[WorkerName.TOOL_SUMMARIZER].enabled_key, True)
    board = WorkerBoard(JobParts(store, settings, clock=StillClock(), embedder=lambda: bag))
    with hosted(board):
        until(lambda: are_all(board, IDLE, *MAY_BE_PAID))
        called(store, ("read_file", '{"path": "notes.txt"}', "one"))
        until(lambda: all(status_of(board, each).completed > 0 for each in MAY_BE_PAID))
        assert are_all(board, STOPPED, MANUAL)


# -- stopping
def test_workers_run_in_parallel_and_stop_within_items(store: Store, scripted: Scripted) -> None:
    add_conversation(store, "tea")
    scripted.hang()
    board = scripted.board
    with hosted(board) as threads:
        for _ in range(2):
            assert scripted.busy.acquire(timeout=60)
        board.set_enabled(EXCHANGES, False)
        until(lambda: are_all(board, STOPPED, EXCHANGES))
        status = status_of(board, EXCHANGES)
        assert (status.done, status.failed, status.waiting_retry) == (0, 0, 0)
        assert board.stop(timeout_s=60) == ()
        until(lambda: not any(each.is_alive() for each in threads))
        assert are_all(board, STOPPED, EXCHANGES, CONVERSATIONS)


def test_a_worker_that_does_not_stop_in_time_is_named(store: Store, settings: Settings) -> None:
    job = ListJob(store, [1])
    begun, released = threading.Event(), threading.Event()

    def ignore_stop(*_: object) -> None:
        begun.set()
        released.wait(60)

    job.before_make = ignore_stop
    board = WorkerBoard(JobParts(store, settings), [job])
    with hosted(board):
        assert begun.wait(60)
        assert board.stop(timeout_s=0.05) == (job.name,)
        released.set()


class Desk:
    """A library with work for every worker that asks a server, all of them off."""

    def __init__(self, store: Store, server: Loopback) -> None:
        self.settings = settings = Settings(store)
        for key in (each.enabled_key for each in WORKERS.values()):
            settings.set(key, False)
        settings.put_provider(StoredProvider("here", "compatible", server.v1, None))
        settings.set("background_model", "here:chat")
        settings.set("embedder", "here:embed")
        registry = provider_registry(settings, KeyStore(), RetryPolicy(tries=1))
        self.embedders = EmbedderDirectory(settings, registry)
        prices = PriceList(registry.find_config)
        windows = ModelWindows(settings, registry, prices.context_tokens)
        self.model = BackgroundModel(store, settings, registry, prices, windows)
        self.board = WorkerBoard(JobParts(store, settings, self.embedders.active, self.model))
        add_conversation(store, long("tea"))
        called(store, ("read_file", '{"path": "notes.txt"}', "one"))

    @contextmanager
    def hosted(self, *names: WorkerName) -> Iterator[None]:
        for name in names:
            self.settings.set(WORKERS[name].enabled_key, True)
        with hosted(self.board):
            yield


desk = fixture_of(Desk, "store", "server", then="model.close embedders.close")


@pytest.mark.parametrize(
    ("name", "midway"), [(EXCHANGES, True), (PIPELINE, False), (PIPELINE, True)]
)
def test_a_worker_switched_off_during_a_request_hangs_up_and_stops(
    desk: Desk, server: Loopback, name: WorkerName, midway: bool
) -> None:
    asked = 1
    if name is not PIPELINE:
        server.always(text("{"), stall())
    elif midway:  # the first request is about the model, the next about a turn
        server.reply(vectors()).always(stall(before_headers=True))
        asked = 2
    else:
        server.always(stall(before_headers=True))
    with desk.hosted(name):
        server.wait_for(lambda: len(server.posts) == asked)
        assert status_of(desk.board, name).state is WorkerState.RUNNING
        desk.board.set_enabled(name, False)
        until(lambda: are_all(desk.board, STOPPED, name))
        status = status_of(desk.board, name)
        assert (status.failed, status.waiting_retry, status.current_item) == (0, 0, "")
        assert not status.enabled
        assert server.posts[-1].hung_up.wait(60)
        assert len(server.posts) == asked, "nothing more was asked"


def test_a_changed_provider_wakes_blocked_workers_and_all_stop_during_their_requests(
    desk: Desk, server: Loopback
) -> None:
    url = server.v1
    desk.settings.remove_provider("here")
    with desk.hosted(*MAY_BE_PAID):
        until(lambda: are_all(desk.board, BLOCKED, *MAY_BE_PAID))
        server.always(stall(before_headers=True))
        desk.settings.put_provider(StoredProvider("here", "compatible", url, None))
        at_once = len(MAY_BE_PAID) - len(READERS) + 1  # the readers send one request together
        server.wait_for(lambda: len(server.posts) == at_once, 60.0)
        assert desk.board.stop(timeout_s=60) == ()
        assert all(seen.hung_up.wait(60) for seen in server.posts)
        assert are_all(desk.board, STOPPED, *MAY_BE_PAID)


# -- status
def test_subscribers_get_every_state_until_they_unsubscribe(scripted: Scripted) -> None:
    heard: list[WorkerStatus] = []
    unsubscribe = scripted.board.subscribe(heard.append)
    with hosted(scripted.board):
        until(lambda: done(scripted.board) == [0, 0] and len(heard) >= 4)
    states = [status.state for status in heard if status.name is EXCHANGES]
    assert [states[0], states[-1]] == [WorkerState.RUNNING, STOPPED]
    unsubscribe()
    unsubscribe()
    count = len(heard)
    scripted.board.refresh()
    assert len(heard) == count


def test_warnings_count_what_waits_for_off_workers(store: Store, scripted: Scripted) -> None:
    add_conversation(store, *(f"question {number}" for number in range(27)))
    assert scripted.board.warnings() == ()  # nothing is counted yet
    scripted.board.set_enabled(EXCHANGES, False)
    scripted.board.set_enabled(CONVERSATIONS, False)
    scripted.board.refresh()
    first, second = scripted.board.warnings()
    assert (first.partition(":")[0], second.partition(":")[0]) == (
        "27 turns without a summary", "1 conversation without a summary",
    )  # fmt: skip


# -- until idle
def test_until_idle_runs_what_is_on_or_named(store: Store, scripted: Scripted) -> None:
    add_conversation(store, "tea", "coffee")
    scripted.board.set_enabled(EXCHANGES, False)
    (status,) = scripted.board.run_until_idle()
    assert (status.name, status.done, status.total) == (CONVERSATIONS, 1, 1)
    assert status.state is STOPPED
    (status,) = scripted.board.run_until_idle([EXCHANGES])
    assert (status.done, status.enabled) == (2, False)


def test_until_idle_can_be_cancelled(store: Store, scripted: Scripted) -> None:
    add_conversation(store, "tea")
    scripted.hang()
    statuses = scripted.board.run_until_idle(
        is_cancelled=lambda: scripted.busy.acquire(blocking=False)
    )
    assert {each.state for each in statuses} == {STOPPED}


def test_until_idle_waits_for_a_running_board_s_workers(store: Store, scripted: Scripted) -> None:
    board = scripted.board
    with hosted(board) as threads:
        until(lambda: are_all(board, IDLE, EXCHANGES, CONVERSATIONS))
        talk = add_conversation(store, "tea")
        go_on(store, talk.conversation, talk.exchanges[0], "coffee")
        assert [each.done for each in board.run_until_idle()] == [2, 1]
        assert len(threads) == sum(each.is_alive() for each in threads) == 2


def test_until_idle_waits_for_work_made_by_other_workers(store: Store, settings: Settings) -> None:
    maker, summarizer = ListJob(store, [1]), ScriptedSummarizer()
    maker.name = WorkerName.TOOL_SUMMARIZER
    taker, _ = summarizer.jobs(JobParts(store, settings))
    add_conversation(store, "tea")

    def make_more(*_: object) -> None:
        until(lambda: summarizer.read == ["tea"])
        add_conversation(store, "coffee")

    maker.before_make = make_more
    board = WorkerBoard(JobParts(store, settings), [maker, taker])
    assert [each.done for each in board.run_until_idle([maker.name, taker.name])] == [1, 2]

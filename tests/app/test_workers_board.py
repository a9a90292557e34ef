"""The board: on and off, hosting, waking, stopping, draining, what it tells and warns of."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import NotFound
from app.domain.provider_errors import KeyMissing
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.storage.conversations import Conversations
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.storage.summary_work import SummaryWork
from app.workers.board import ENABLED_KEYS, WorkerBoard
from app.workers.conversation_summarizer import ConversationSummarizer
from app.workers.exchange_summarizer import ExchangeSummarizer
from app.workers.job import IsCancelled, Job
from app.workers.open_conversation import OpenConversation
from app.workers.wording import CALLED
from tests.fakes.jobs import JumpingClock, ListJob, blocks_until_cancelled, until
from tests.fakes.stored import opened, told
from tests.fakes.summarisers import ScriptedSummariser, go_on

EXCHANGES, CONVERSATIONS = WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


@pytest.fixture
def settings(store: Store) -> Settings:
    chosen = Settings(store)
    chosen.set("summarizer_idle_timeout", 86_400)  # nobody polls: what happens was woken
    return chosen


class Threads:
    """A host that gives every worker a plain thread."""

    def __init__(self) -> None:
        self.made: list[threading.Thread] = []

    def __call__(self, loop: Callable[[], None]) -> None:
        self.made.append(threading.Thread(target=loop))
        self.made[-1].start()

    @property
    def alive(self) -> int:
        return sum(thread.is_alive() for thread in self.made)


@contextmanager
def started(board: WorkerBoard) -> Iterator[Threads]:
    threads = Threads()
    board.start(threads)
    try:
        yield threads
    finally:
        assert board.stop() == ()
        for thread in threads.made:
            thread.join(3)


def scripted(store: Store, settings: Settings) -> tuple[WorkerBoard, ScriptedSummariser]:
    summariser = ScriptedSummariser()
    left_alone = OpenConversation(SummaryWork(store), settings)
    parts = (store, settings, summariser, left_alone)
    jobs: list[Job[Any, Any]] = [ExchangeSummarizer(*parts), ConversationSummarizer(*parts)]
    return WorkerBoard(store, settings, jobs), summariser


def state_of(board: WorkerBoard, name: WorkerName) -> WorkerState:
    return next(status.state for status in board.statuses() if status.name is name)


def done(board: WorkerBoard) -> list[int]:
    return [status.done for status in board.statuses()]


# -- on and off


def test_all_that_is_switched_on_runs_and_the_built_in_summariser_works(
    store: Store, settings: Settings
) -> None:
    talk = told(store, "How do I brew green tea at home?")
    board = WorkerBoard(store, settings)
    with started(board) as threads:
        until(lambda: done(board) == [1, 1, 1, 0, 0])
        assert threads.alive == 3
    assert Conversations(store).get(talk.conversation.id).title == "Brew green tea at home"
    assert Summaries(store).latest("exchange", [talk.exchanges[0].id])[1].model == "extractive"


def test_a_worker_switched_off_stays_off_after_a_restart_and_comes_back_on(
    store: Store, settings: Settings
) -> None:
    told(store, "tea")
    board, summariser = scripted(store, settings)
    board.set_enabled(EXCHANGES, False)
    with started(board):
        until(lambda: done(board)[1] == 1)
    again, _ = scripted(store, Settings(store))
    with started(again) as threads:
        until(lambda: state_of(again, CONVERSATIONS) is WorkerState.IDLE)
        assert state_of(again, EXCHANGES) is WorkerState.STOPPED
        assert threads.alive == 1
        assert not again.statuses()[0].enabled
        again.set_enabled(EXCHANGES, True)
        until(lambda: done(again) == [1, 1])
    assert summariser.read == ["tea"]
    assert Settings(store).flag("summarizer_exchange_enabled")


def test_a_setting_changed_elsewhere_switches_the_worker_too(
    store: Store, settings: Settings
) -> None:
    board, _ = scripted(store, settings)
    with started(board) as threads:
        until(lambda: state_of(board, EXCHANGES) is WorkerState.IDLE)
        settings.set("summarizer_exchange_enabled", False)
        until(lambda: state_of(board, EXCHANGES) is WorkerState.STOPPED)
        until(lambda: threads.alive == 1)
        settings.reset("summarizer_exchange_enabled")
        until(lambda: state_of(board, EXCHANGES) is WorkerState.IDLE)


def test_a_worker_switched_off_stops_in_the_middle_of_an_item(
    store: Store, settings: Settings
) -> None:
    told(store, "tea")
    board, summariser = scripted(store, settings)
    begun = threading.Event()

    def hang(_: str, is_cancelled: IsCancelled) -> None:
        begun.set()
        blocks_until_cancelled((), is_cancelled)

    summariser.before = hang
    with started(board):
        assert begun.wait(10)
        board.set_enabled(EXCHANGES, False)
        until(lambda: state_of(board, EXCHANGES) is WorkerState.STOPPED)
        status = board.statuses()[0]
        assert (status.done, status.failed, status.waiting_retry) == (0, 0, 0)


def test_quickly_off_and_on_again_leaves_it_running_once(store: Store, settings: Settings) -> None:
    for number in range(30):
        told(store, f"question {number}")
    board, summariser = scripted(store, settings)
    with started(board) as threads:
        for on in (False, True, False, True):
            board.set_enabled(EXCHANGES, on)
        until(lambda: done(board) == [30, 30])
        until(lambda: threads.alive == 2)
    assert len(summariser.read) >= 60
    tally = SummaryWork(store).exchange_tally(1)
    assert (tally.done, tally.total) == (30, 30)


def test_the_man_page_indexer_is_off_at_every_start(store: Store, settings: Settings) -> None:
    job = ListJob(store, [1])
    job.name = WorkerName.MAN_INDEXER
    settings.set("index_man_enabled", True)
    board = WorkerBoard(store, settings, [job])
    with started(board) as threads:
        assert not settings.flag("index_man_enabled")
        assert threads.made == []
        board.set_enabled(WorkerName.MAN_INDEXER, True)
        until(lambda: job.saved == [1])


def test_every_worker_there_will_be_has_a_switch_and_a_name() -> None:
    assert set(ENABLED_KEYS) == set(CALLED) == set(WorkerName)


def test_a_worker_that_does_not_exist_is_named(store: Store, settings: Settings) -> None:
    board, _ = scripted(store, settings)
    with pytest.raises(NotFound, match="man_indexer"):
        board.set_enabled(WorkerName.MAN_INDEXER, True)
    with pytest.raises(NotFound):
        board.run_until_idle([WorkerName.MAN_INDEXER])


# -- waking


def test_a_turn_that_ends_wakes_both_summarisers(store: Store, settings: Settings) -> None:
    board, _ = scripted(store, settings)
    with started(board):
        until(lambda: {each.state for each in board.statuses()} == {WorkerState.IDLE})
        told(store, "tea")
        until(lambda: done(board) == [1, 1])


def test_leaving_the_open_conversation_lets_it_be_summarised(
    store: Store, settings: Settings
) -> None:
    board, both = WorkerBoard(store, settings), (EXCHANGES, CONVERSATIONS)
    talk = told(store, "tea", at=datetime.now(UTC))
    board.conversation_opened(talk.conversation.id)
    with started(board):
        until(lambda: all(state_of(board, each) is WorkerState.IDLE for each in both))
        until(lambda: [each.total for each in board.statuses()] == [1, 1, 1, 0, 0])
        assert done(board)[:2] == [0, 0]
        board.conversation_opened(None)
        until(lambda: done(board) == [1, 1, 1, 0, 0])


def test_a_changed_minimum_takes_effect_at_once(store: Store, settings: Settings) -> None:
    settings.set("min_exchanges_for_conversation_summary", 2)
    told(store, "tea")
    board, _ = scripted(store, settings)
    with started(board):
        until(lambda: done(board)[0] == 1)
        assert board.statuses()[1].total == 0
        settings.set("min_exchanges_for_conversation_summary", 1)
        until(lambda: done(board) == [1, 1])


def test_a_blocked_worker_is_freed_by_waking_it(store: Store, settings: Settings) -> None:
    job = ListJob(store, [1])
    job.poison[1] = KeyMissing("There is no key", "Enter one.")
    board = WorkerBoard(store, settings, [job])
    with started(board):
        until(lambda: state_of(board, job.name) is WorkerState.BLOCKED)
        assert board.warnings() == ("The exchange summariser waits: There is no key. Enter one.",)
        job.poison.clear()
        board.wake([job.name])
        until(lambda: job.saved == [1])
    assert board.warnings() == ()


# -- hosting


def test_workers_work_at_the_same_time(store: Store, settings: Settings) -> None:
    told(store, "tea")
    board, summariser = scripted(store, settings)
    both = threading.Barrier(2, timeout=20)

    def meet(_: str, __: IsCancelled) -> None:
        both.wait()

    summariser.before = meet
    with started(board):
        until(lambda: done(board) == [1, 1])
    assert not both.broken


def test_quitting_with_all_workers_busy_stops_them_all(store: Store, settings: Settings) -> None:
    told(store, "tea")
    board, summariser = scripted(store, settings)
    busy = threading.Semaphore(0)

    def hang(_: str, is_cancelled: IsCancelled) -> None:
        busy.release()
        blocks_until_cancelled((), is_cancelled)

    summariser.before = hang
    with started(board) as threads:
        assert busy.acquire(timeout=10)
        assert busy.acquire(timeout=10)
        assert board.stop(timeout_s=3.0) == ()
        until(lambda: threads.alive == 0)
    assert {each.state for each in board.statuses()} == {WorkerState.STOPPED}


def test_a_worker_that_will_not_stop_is_named(store: Store, settings: Settings) -> None:
    job = ListJob(store, [1])
    begun, released = threading.Event(), threading.Event()

    def deaf(*_: object) -> None:
        begun.set()
        released.wait(20)

    job.before_make = deaf
    board = WorkerBoard(store, settings, [job])
    with started(board):
        assert begun.wait(10)
        assert board.stop(timeout_s=0.05) == (job.name,)
        released.set()


def test_a_stopped_board_can_be_started_again(store: Store, settings: Settings) -> None:
    board, _ = scripted(store, settings)
    with started(board):
        until(lambda: state_of(board, EXCHANGES) is WorkerState.IDLE)
    with started(board):
        told(store, "tea")
        until(lambda: done(board) == [1, 1])
    assert board.stop() == ()


# -- telling


def test_subscribers_hear_every_state_until_they_leave(store: Store, settings: Settings) -> None:
    board, _ = scripted(store, settings)
    heard: list[WorkerStatus] = []
    leave = board.subscribe(heard.append)
    with started(board):
        until(lambda: done(board) == [0, 0] and len(heard) >= 4)
    states = [status.state for status in heard if status.name is EXCHANGES]
    assert [states[0], states[-1]] == [WorkerState.RUNNING, WorkerState.STOPPED]
    leave()
    leave()
    count = len(heard)
    board.refresh()
    assert len(heard) == count


def test_what_waits_for_a_worker_that_is_off_is_said_in_plain_words(
    store: Store, settings: Settings
) -> None:
    told(store, *(f"question {number}" for number in range(27)))
    board, _ = scripted(store, settings)
    assert board.warnings() == ()  # nobody has counted yet
    board.set_enabled(EXCHANGES, False)
    board.set_enabled(CONVERSATIONS, False)
    board.refresh()
    assert board.warnings() == (
        "27 exchanges wait for summaries, the exchange summariser is off.",
        "1 conversation waits for its summary, the conversation summariser is off.",
    )


# -- until idle


def test_until_idle_does_all_there_is_and_tells_on_the_calling_thread(
    store: Store, settings: Settings
) -> None:
    told(store, "tea", "coffee")
    board, _ = scripted(store, settings)
    heard: list[tuple[WorkerStatus, int]] = []
    statuses = board.run_until_idle(
        on_status=lambda status: heard.append((status, threading.get_ident()))
    )
    assert [(each.name, each.done, each.total) for each in statuses] == [
        (EXCHANGES, 2, 2),
        (CONVERSATIONS, 1, 1),
    ]
    assert {thread for _, thread in heard} == {threading.get_ident()}
    assert heard[-1][0].state is WorkerState.STOPPED


def test_until_idle_ends_although_items_failed_for_good(store: Store, settings: Settings) -> None:
    job = ListJob(store, range(10))
    job.poison = {2: ValueError(), 3: ValueError()}
    board = WorkerBoard(store, settings, [job], clock=JumpingClock())
    (status,) = board.run_until_idle()
    assert (status.done, status.set_aside, status.waiting_retry) == (8, 2, 0)


def test_until_idle_ends_although_a_key_is_missing(store: Store, settings: Settings) -> None:
    job = ListJob(store, range(10))
    job.poison[0] = KeyMissing("There is no key")
    board = WorkerBoard(store, settings, [job])
    (status,) = board.run_until_idle()
    assert (status.done, status.last_error) == (0, "There is no key")


def test_until_idle_runs_only_what_is_on_unless_it_is_named(
    store: Store, settings: Settings
) -> None:
    told(store, "tea")
    board, _ = scripted(store, settings)
    board.set_enabled(EXCHANGES, False)
    assert [each.name for each in board.run_until_idle()] == [CONVERSATIONS]
    (status,) = board.run_until_idle([EXCHANGES])
    assert (status.done, status.enabled) == (1, False)


def test_until_idle_can_be_cancelled(store: Store, settings: Settings) -> None:
    told(store, "tea")
    board, summariser = scripted(store, settings)
    begun = threading.Event()

    def hang(_: str, is_cancelled: IsCancelled) -> None:
        begun.set()
        blocks_until_cancelled((), is_cancelled)

    summariser.before = hang
    statuses = board.run_until_idle(is_cancelled=begun.is_set)
    assert {each.state for each in statuses} == {WorkerState.STOPPED}


def test_until_idle_beside_a_running_board_waits_for_its_workers(
    store: Store, settings: Settings
) -> None:
    board, summariser = scripted(store, settings)
    with started(board) as threads:
        until(lambda: all(each.state is WorkerState.IDLE for each in board.statuses()))
        talk = told(store, "tea")
        go_on(store, talk.conversation, talk.exchanges[0], "coffee")
        statuses = board.run_until_idle()
        assert [each.done for each in statuses] == [2, 1]
        assert len(threads.made) == threads.alive == 2
    assert sorted(summariser.read)[:2] == ["coffee", "tea"]


def test_until_idle_waits_for_work_that_one_worker_makes_for_another(
    store: Store, settings: Settings
) -> None:
    """Each save of the first ends an exchange, which wakes the second; as summaries wake others."""
    told(store, "tea")
    maker = ListJob(store, [1])
    maker.name = WorkerName.TOOL_SUMMARIZER
    summariser = ScriptedSummariser()
    left_alone = OpenConversation(SummaryWork(store), settings)
    taker = ExchangeSummarizer(store, settings, summariser, left_alone)

    def make_more(*_: object) -> None:
        until(lambda: summariser.read == ["tea"])
        told(store, "coffee")

    maker.before_make = make_more
    board = WorkerBoard(store, settings, [maker, taker])
    names = [maker.name, taker.name]
    assert [each.done for each in board.run_until_idle(names)] == [1, 2]

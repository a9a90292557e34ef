"""The worker loop: states, failures, retries, blocking, stopping, counts, yielding to the user."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from unittest.mock import Mock

import pytest

from app.domain.change_set import ChangeSet
from app.domain.changes import SettingPut, SpendAdded
from app.domain.errors import (
    DiskFull,
    KeyRejected,
    RateLimited,
    ServerFailed,
    StorageError,
    TimedOut,
    Unreachable,
)
from app.domain.workers import UsageTotals, WorkerState, WorkerStatus
from app.providers.http.endpoint import RequestTarget
from app.providers.http.error_classification import ErrorResponse, classify
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.spending import Spending
from app.storage.work.queue import Tally
from app.workers.background_model import UnusableAnswer
from app.workers.job_interface import Blocked, IsCancelled, Pace, Saved, UiPriority
from app.workers.loop import WorkerLoop
from app.workers.progress import Progress
from app.workers.retries import Backoff, blocked_wait_s
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock, ListJob, blocks_until_cancelled, until

LONGEST_WAIT = float  # jitter that always takes the longest wait
STOPPED, RUNNING, IDLE, BLOCKED = (
    WorkerState.STOPPED, WorkerState.RUNNING, WorkerState.IDLE, WorkerState.BLOCKED,
)  # fmt: skip
FAILED = ServerFailed("The server failed", "Try later.")
UNUSABLE = UnusableAnswer("no JSON")


class Watched:
    """A worker on a list of numbers, and every status it published. `clock` None: real time."""

    def __init__(
        self,
        store: Store,
        items: Sequence[int],
        pace: Pace | None = None,
        clock: JumpingClock | None = None,
        totals: Callable[[datetime | None], UsageTotals] | None = None,
    ) -> None:
        self.job = ListJob(store, items, pace)
        self.attempts = Attempts(store, self.job.name)
        self.published: list[WorkerStatus] = []
        self.worker: WorkerLoop[int, tuple[int, ...]] = WorkerLoop(
            self.job, self.attempts, clock=clock, jitter=LONGEST_WAIT, totals=totals
        )
        self.worker.on_status = self.published.append

    @property
    def states(self) -> list[WorkerState]:
        """The states it went through, in order."""
        states = [status.state for status in self.published]
        return [now for before, now in zip([None, *states], states, strict=False) if now != before]

    @contextmanager
    def hosted(self) -> Iterator[threading.Event]:
        stop = threading.Event()
        thread = threading.Thread(target=self.worker.run, args=(stop,))
        thread.start()
        try:
            yield stop
        finally:
            stop.set()
            self.worker.wake()
            thread.join(60)
            assert not thread.is_alive()

    def drain(self) -> WorkerStatus:
        with self.hosted():
            until(lambda: self.worker.is_drained)
        return self.worker.status()


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


def test_a_worker_runs_until_nothing_is_left_idles_until_woken_and_stops(store: Store) -> None:
    watched = Watched(store, range(250))
    assert (watched.worker.status().state, watched.worker.status().total) == (STOPPED, 0)
    status = watched.worker.refresh()
    assert (status.state, status.done, status.total) == (STOPPED, 0, 250)
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        watched.job.items.append(250)
        watched.worker.wake()
        until(lambda: len(watched.job.saved) == 251 and watched.worker.is_drained)
    assert watched.states == [STOPPED, RUNNING, IDLE, RUNNING, IDLE, STOPPED]
    assert watched.job.saved == list(range(251))
    status = watched.worker.status()
    assert (status.done, status.total, status.completed, status.failed) == (251, 251, 251, 0)
    assert (status.session, status.current_item) == (UsageTotals(251, 125.5), "")


def test_it_looks_for_work_after_the_poll_interval(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, [1], clock=clock)
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        watched.job.items.append(2)
        until(lambda: watched.job.saved == [1, 2])


def test_one_state_is_published_ten_times_a_second(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, range(100), Pace(save_items=1), clock)
    watched.job.before_make = lambda _, __: clock.pass_s(0.01)
    watched.drain()
    running = [status for status in watched.published if status.state is RUNNING]
    assert 8 <= len(running) <= 13  # a second's work, and the change of state itself


def test_every_count_published_is_the_database_s(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, range(120), Pace(save_items=10), clock)
    watched.job.poison = {7: ValueError(), 77: ValueError()}
    wrong: list[WorkerStatus] = []
    counts: list[tuple[int, int, int]] = []

    def compare(status: WorkerStatus) -> None:
        tally = watched.job.tally()
        counts.append((status.done, status.waiting_retry, status.abandoned))
        if counts[-1] != (tally.done, tally.waiting_retry, tally.abandoned):
            wrong.append(status)

    watched.worker.on_status = compare
    watched.drain()
    assert not wrong
    assert counts[-1] == (118, 0, 2)


def test_rate_and_time_left_come_from_the_last_minute(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, range(200), Pace(save_items=2), clock)
    watched.job.before_make = lambda _, __: clock.pass_s(0.5)
    watched.drain()
    first = watched.published[0]
    assert (first.rate_per_minute, first.remaining_s) == (None, None)
    late = next(status for status in watched.published if 130 <= status.done < 200)
    assert late.rate_per_minute == pytest.approx(120, rel=0.05)
    assert late.remaining_s == pytest.approx((200 - late.done) / 2, rel=0.05)


def test_the_forecast_of_slow_batches_is_right_at_any_time(clock: JumpingClock) -> None:
    batch = 0
    progress = Progress(lambda: Tally(total=400, done=10 * batch), clock)
    progress.ask()
    progress.begin()
    for batch in range(1, 40):
        clock.pass_s(15.0)
        _check_forecast(progress, batch, 1000.0 - 25.0 * (batch - 1) - 15.0)
        clock.pass_s(10.0)
        progress.saved(Saved(10, 0, UsageTotals()))
        _check_forecast(progress, batch + 1, 1000.0 - 25.0 * batch)


def _check_forecast(progress: Progress, batch: int, remaining_s: float) -> None:
    status = progress.status(ListJob.name, enabled=True, state=WorkerState.RUNNING)
    assert status.remaining_s == (None if batch <= 2 else pytest.approx(remaining_s))


# -- failures
@pytest.mark.parametrize("together", [1, 16])
def test_a_failing_item_is_set_aside_after_growing_waits_and_can_be_retried(
    store: Store, clock: JumpingClock, together: int
) -> None:
    watched = Watched(store, range(32), Pace(together), clock)
    watched.job.poison[9] = FAILED
    tried: list[float] = []

    def note(items: Sequence[int], _: IsCancelled) -> None:
        if tuple(items) == (9,):
            tried.append(clock.monotonic())

    watched.job.before_make = note
    with watched.hosted():
        until(lambda: watched.worker.is_drained and watched.worker.status().abandoned == 1)
        status = watched.worker.status()
        assert sorted(watched.job.saved) == [each for each in range(32) if each != 9]
        assert (status.done, status.total, status.failed, status.waiting_retry) == (31, 32, 1, 0)
        assert status.last_error == "The server failed. Try later."
        waits = [after - before for before, after in pairwise(tried)]
        assert waits == pytest.approx([1, 2, 4, 8, 16, 32], abs=0.1)
        assert sum(9 in made and len(made) > 1 for made in watched.job.made) == (together > 1) * 4
        watched.job.poison.clear()
        watched.worker.retry_failed()
        until(lambda: 9 in watched.job.saved)
    assert watched.worker.status().abandoned == 0


def test_others_go_on_while_an_item_waits_and_its_tries_survive_a_restart(store: Store) -> None:
    before = Watched(store, range(5))
    before.job.poison[0] = FAILED
    with before.hosted():
        until(lambda: before.worker.status().state is IDLE)
        status = before.worker.status()
        assert before.job.saved == [1, 2, 3, 4]
        assert (status.waiting_retry, status.abandoned, status.failed) == (1, 0, 0)
        assert status.next_attempt_at is not None
        assert not before.worker.is_drained
    tries = before.attempts.tries()[0]
    after = Watched(store, [0], clock=JumpingClock())
    after.job.poison = before.job.poison
    after.drain()
    assert len(after.job.made) == 7 - tries


def test_a_server_s_wait_is_kept_success_clears_failures(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, [1], clock=clock)
    tried: list[float] = []

    def fail_once(_: Sequence[int], __: IsCancelled) -> None:
        tried.append(clock.monotonic())
        if len(tried) == 1:
            raise ServerFailed("The server failed", retry_after_s=20)

    watched.job.before_make = fail_once
    status = watched.drain()
    assert (status.done, status.waiting_retry, status.abandoned) == (1, 0, 0)
    assert tried[1] - tried[0] == pytest.approx(20, abs=0.1)
    assert watched.attempts.tries() == {}


def test_a_result_that_cannot_be_saved_is_isolated(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, [1, 2, 3], clock=clock)
    watched.job.refusals = [ValueError("all three"), ValueError("the first alone")]
    status = watched.drain()
    assert sorted(watched.job.saved) == [1, 2, 3]
    assert (status.done, status.waiting_retry) == (3, 0)
    assert watched.job.made.count((1,)) == 2


def test_a_bug_is_named_and_logged_without_its_message(
    store: Store, clock: JumpingClock, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(store, [1], clock=clock)
    watched.job.poison[1] = ValueError("the secret of the conversation")
    error = watched.drain().last_error
    assert "ValueError" in error
    assert "ValueError at" in caplog.text
    assert "jobs.py" in caplog.text
    assert "secret" not in error + caplog.text


def test_bugs_in_finding_and_listening_stop_nothing(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, [1], clock=clock)
    watched.job.finding = RuntimeError("broken")

    def fail(_: WorkerStatus) -> None:
        raise RuntimeError("a broken window")

    watched.worker.on_status = fail
    with watched.hosted():
        until(lambda: "RuntimeError" in watched.worker.status().last_error)
        watched.job.finding = None
        until(lambda: watched.job.saved == [1])


# -- blocked
def test_a_rejected_key_blocks_the_worker_until_it_is_woken(store: Store) -> None:
    watched = Watched(store, [1, 2])
    watched.job.poison[1] = KeyRejected("The key was not accepted", "Enter another.")
    with watched.hosted():
        until(lambda: watched.worker.status().state is BLOCKED)
        status = watched.worker.status()
        assert status.blocked_by == "The key was not accepted. Enter another."
        assert status.next_attempt_at is None
        until(lambda: watched.worker.is_drained)
        assert watched.job.made == [(1,)]  # not tried a second time
        watched.job.poison.clear()
        watched.worker.wake()
        until(lambda: watched.job.saved == [1, 2])
    assert watched.worker.status().blocked_by == ""
    assert watched.attempts.tries() == {}


@pytest.mark.parametrize(
    "error", [Unreachable("No network"), RateLimited("Too many", retry_after_s=45)]
)
def test_an_outage_of_an_hour_costs_at_most_a_probe_a_minute(
    store: Store, clock: JumpingClock, error: Exception
) -> None:
    watched = Watched(store, range(5), clock=clock)
    watched.job.poison = dict.fromkeys(range(5), error)

    def repair(_: Sequence[int], __: IsCancelled) -> None:
        if clock.monotonic() > 3600:
            watched.job.poison.clear()

    watched.job.before_make = repair
    with watched.hosted():
        until(lambda: len(watched.job.saved) == 5)
    assert 7 < len(watched.job.made) - 5 <= 60 + 6
    assert BLOCKED in watched.states
    assert watched.attempts.tries() == {}  # no item was to blame


def test_after_days_of_outage_it_still_probes_once_a_minute() -> None:
    down = Blocked("Down", retry_after_s=0.0)
    waits = [blocked_wait_s(probes, down, LONGEST_WAIT) for probes in (1, 2, 7, 9_999)]
    assert waits == [1.0, 2.0, 60.0, 60.0]
    assert blocked_wait_s(1, Blocked("No key"), LONGEST_WAIT) is None


def test_a_drain_waits_for_an_outage_but_not_for_a_limit() -> None:
    waits = [
        Backoff(LONGEST_WAIT).blocked(Blocked("", retry_after_s=9.0, ends_drain=ends), 0)
        for ends in (False, True)
    ]
    assert [each.is_drained for each in waits] == [False, True]


def test_a_drain_ends_in_an_outage_after_seven_probes(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, [1], clock=clock)
    watched.job.poison[1] = Unreachable("No network")
    status = watched.drain()
    assert (status.done, status.abandoned) == (0, 0)
    assert len(watched.job.made) >= 7


def test_timeouts_of_three_items_in_a_row_are_an_outage(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, range(9), clock=clock)
    watched.job.poison = dict.fromkeys(range(9), TimedOut("No answer in time"))
    with watched.hosted():
        until(lambda: watched.worker.status().state is BLOCKED)
        watched.job.poison.clear()
        until(lambda: len(watched.job.saved) == 9)
    assert watched.job.made[:3] == [(0,), (1,), (2,)]


def test_a_full_disk_blocks_and_results_wait_for_room(store: Store, clock: JumpingClock) -> None:
    watched = Watched(store, [1, 2], clock=clock)
    watched.job.refusals = [DiskFull("There is no room"), DiskFull("There is no room")]
    assert watched.drain().done == 2
    assert watched.job.saved == [1, 2]
    assert watched.job.made == [(1,), (2,)]  # nothing was made twice
    assert BLOCKED in watched.states


# -- stopping
def test_it_stops_during_an_item_and_saves_finished_ones(store: Store) -> None:
    watched = Watched(store, [1, 2, 3])

    def hang_at_three(items: Sequence[int], is_cancelled: IsCancelled) -> None:
        if 3 in items:
            blocks_until_cancelled(items, is_cancelled)

    watched.job.before_make = hang_at_three
    with watched.hosted():
        until(lambda: watched.job.made == [(1,), (2,)])
    assert watched.job.saved == [1, 2]
    status = watched.worker.status()
    assert (status.state, status.done, status.failed) == (STOPPED, 2, 0)
    assert watched.attempts.tries() == {}


def test_a_host_that_only_sets_the_event_stops_it_too(store: Store) -> None:
    watched = Watched(store, [1])
    stop = threading.Event()
    thread = threading.Thread(target=watched.worker.run, args=(stop,))
    thread.start()
    until(lambda: watched.worker.status().state is IDLE)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def test_a_run_stopped_before_it_began_does_not_wait_for_the_one_that_goes_on(store: Store) -> None:
    watched, stop = Watched(store, [1]), threading.Event()
    with watched.hosted():
        until(lambda: watched.worker.status().state is IDLE)
        second = threading.Thread(target=watched.worker.run, args=(stop,))
        second.start()
        stop.set()
        second.join(60)
        assert not second.is_alive()
        assert watched.worker.status().state is IDLE


def test_two_hosts_never_run_it_at_once(store: Store) -> None:
    watched = Watched(store, range(60), Pace(save_items=1))
    inside: list[int] = []
    most: list[int] = []

    def count(_: Sequence[int], __: IsCancelled) -> None:
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    watched.job.before_make = count
    with watched.hosted() as first:
        until(lambda: len(watched.job.saved) > 5)
        with watched.hosted():
            first.set()
            until(lambda: len(watched.job.saved) == 60)
    assert max(most) == 1
    assert watched.job.saved == list(range(60))


# -- a model whose answers are unusable
def test_three_unusable_answers_in_a_row_block_the_worker_until_the_user_acts(
    store: Store, clock: JumpingClock
) -> None:
    watched = Watched(store, range(20), Pace(save_items=1), clock)
    watched.job.poison = dict.fromkeys(range(20), UNUSABLE)
    worker, tries = watched.worker, watched.job.made
    with watched.hosted():
        until(lambda: worker.is_drained)
        assert (worker.status().state, len(tries)) == (BLOCKED, 3)
        assert "no JSON" in worker.status().blocked_by
        worker.wake()
        until(lambda: worker.is_drained)
        assert len(tries) == 3, "the end of a turn is no reason to ask again"
        worker.run_now()
        until(lambda: worker.is_drained and len(tries) == 6)
        for count, change in enumerate(
            (
                ChangeSet(settings=frozenset(("background_model",))),
                ChangeSet(settings=frozenset(("own_prices",))),
                ChangeSet(providers=frozenset(("here",))),
            ),
            start=3,
        ):
            worker.follow(change)
            worker.wake()
            until(lambda count=count: worker.is_drained and len(tries) == 3 * count)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("items", "pace", "unusable", "saved", "abandoned", "first"),
    [
        (range(9), Pace(save_items=1, retries=0), (0, 1, 3, 4, 6, 7), [2, 5, 8], 6, [(0,), (1,)]),
        ([1], Pace(save_items=1), (1,), [], 1, [(1,)] * 7),
        (
            range(8), Pace(together=4, save_items=1), (1,), [0, 2, 3, 4, 5, 6, 7], 1,
            [(0, 1, 2, 3), (4, 5, 6, 7)],
        ),
    ],
    ids=["success resets the count", "retries of one item count once", "a batch is not halved"],
)  # fmt: skip
def test_unusable_answers_between_usable_ones_block_nothing(
    store: Store, clock: JumpingClock, items: Sequence[int], pace: Pace,
    unusable: Sequence[int], saved: list[int], abandoned: int, first: list[tuple[int, ...]],
) -> None:  # fmt: skip
    watched = Watched(store, items, pace, clock)
    watched.job.poison = dict.fromkeys(unusable, UNUSABLE)
    status = watched.drain()
    assert (sorted(watched.job.saved), status.abandoned) == (saved, abandoned)
    assert watched.job.made[: len(first)] == first
    assert status.blocked_by == ""
    assert all(len(each) == 1 for each in watched.job.made[2:])


def test_a_server_s_message_is_on_the_screen_but_in_neither_log_nor_database(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    target = RequestTarget("here", "http://127.0.0.1:1")
    watched = Watched(store, [1, 2])
    watched.job.poison = {
        1: classify(ErrorResponse(400, "cannot parse 'my diary'"), target),
        2: classify(ErrorResponse(403, "not about 'my diary'"), target),
    }
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        assert "not about “my diary”" in watched.worker.status().blocked_by
    ((failed,),) = store.read(lambda c: c.execute("SELECT error FROM attempt").fetchall())
    assert "does not accept the request" in failed
    assert "here does not allow this key" in caplog.text
    assert "diary" not in caplog.text + failed


def test_spending_is_published_while_an_item_is_made(store: Store, clock: JumpingClock) -> None:
    spending, paid = Spending(store), UsageTotals(15, 0.25)
    watched = Watched(store, [1], clock=clock, totals=lambda at: spending.totals(ListJob.name, at))

    def notify(changed: ChangeSet) -> None:
        watched.worker.follow(changed)

    unsubscribe = store.subscribe(notify)

    def pay(_: object, is_cancelled: IsCancelled) -> None:
        store.save(SpendAdded(datetime.now(UTC), ListJob.name, "here:m", 10, 5, 0, 0.25))
        clock.pass_s(1.0)
        until(lambda: is_cancelled() or watched.published[-1].all_time == paid)

    watched.job.before_make = pay
    watched.drain()
    unsubscribe()
    assert watched.published[-1].all_time == paid


priority = fixture_of(UiPriority, "clock")


@pytest.mark.parametrize("is_active", [False, True])
def test_workers_pause_between_items_while_the_user_is_active(
    store: Store, clock: JumpingClock, priority: UiPriority, is_active: bool
) -> None:
    watched, begun_at = Watched(store, range(10), clock=clock), list[float]()
    watched.job.before_make = lambda _, __: begun_at.append(clock.monotonic())
    watched.worker.throttle = priority.throttle
    if is_active:
        priority.user_active()
    watched.drain()
    assert watched.job.saved == list(range(10))
    if is_active:
        assert begun_at[:3] == pytest.approx([0.1, 0.2, 0.3])
        assert begun_at[4] == begun_at[-1] <= 0.41
    else:
        assert begun_at == [0.0] * 10


def test_stopped_workers_and_windows_never_wait(clock: JumpingClock, priority: UiPriority) -> None:
    stop = threading.Event()
    priority.user_active()
    stop.set()
    priority.throttle(stop)
    assert clock.monotonic() == 0.0
    priority.gui_ready()
    priority.ping_gui = lambda: pytest.fail("it would have to answer itself")
    assert {pause_after(priority, clock, 0.02) for _ in range(3)} == {0.0}


def answer(priority: UiPriority) -> None:
    """Answer as the window would, on another thread."""
    thread = threading.Thread(target=priority.gui_ready)
    thread.start()
    thread.join()


def pause_after(priority: UiPriority, clock: JumpingClock, passed_s: float) -> float:
    """Return how long `yield_if_late` waits after so much time, in seconds."""
    clock.pass_s(passed_s)
    began = clock.monotonic()
    priority.yield_if_late()
    return clock.monotonic() - began


def test_work_pings_the_window_every_5_ms(clock: JumpingClock, priority: UiPriority) -> None:
    pings = list[float]()
    priority.yield_if_late()  # without a window

    def ping() -> None:
        pings.append(clock.monotonic())
        answer(priority)

    priority.ping_gui = ping
    assert {pause_after(priority, clock, 0.001) for _ in range(100)} == {0.0}
    assert 15 <= len(pings) <= 20


def test_work_pauses_for_late_windows_only(clock: JumpingClock, priority: UiPriority) -> None:
    pings = list[int]()
    priority.ping_gui = lambda: pings.append(1)
    assert pause_after(priority, clock, 0.001) == 0.0
    assert pause_after(priority, clock, 0.001) == 0.0, "it may still answer in time"
    assert pause_after(priority, clock, 0.004) == pytest.approx(0.1, abs=0.005)
    assert pause_after(priority, clock, 5.0) == 0.0
    answer(priority)
    assert pause_after(priority, clock, 0.001) == 0.0
    assert len(pings) == 2


def test_an_answer_ends_the_pause(clock: JumpingClock, priority: UiPriority) -> None:
    priority.ping_gui = lambda: None
    priority.yield_if_late()
    waits = clock.wait
    clock.wait = lambda event, timeout_s: answer(priority) or waits(event, timeout_s)  # type: ignore[func-returns-value,method-assign]
    assert pause_after(priority, clock, 0.01) == 0.0
    assert pause_after(priority, clock, 0.01) == 0.0, "it pinged again"


def test_the_store_yields_between_the_parts_of_a_write(store: Store) -> None:
    threads = list[str]()
    store.throttle = lambda: threads.append(threading.current_thread().name)
    store.save(SettingPut("theme", '"dark"'))
    assert set(threads) == {threading.current_thread().name, "writer"}


def test_spending_of_which_a_part_cannot_be_read_stays_as_it_was() -> None:
    totals = Mock(side_effect=[UsageTotals(tokens=9), StorageError("the disk is gone")])
    progress = Progress(lambda: Tally(0, 0), JumpingClock(), totals)
    with pytest.raises(StorageError):
        progress.read_spend()
    assert progress.counts.session == progress.counts.all_time == UsageTotals()

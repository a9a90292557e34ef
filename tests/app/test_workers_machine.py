"""The state machine of a worker: states, failures, retries, blocking, stopping, numbers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from app.domain.changes import SpendAdded
from app.domain.errors import DiskFull
from app.domain.events import Changed
from app.domain.provider_errors import KeyRejected, RateLimited, ServerFailed, TimedOut, Unreachable
from app.domain.workers import Ledger, WorkerState, WorkerStatus
from app.providers.subject import Subject
from app.providers.verdicts import Complaint, verdict
from app.storage.attempts import Attempts
from app.storage.spending import Spending
from app.storage.store import Store
from app.workers.background_model import UnusableAnswer
from app.workers.job import Blocked, IsCancelled, Pace
from app.workers.machine import Worker
from app.workers.verdicts import world_wait_s
from tests.fakes.jobs import JumpingClock, ListJob, blocks_until_cancelled, until
from tests.fakes.stored import opened

LONGEST_WAIT = float  # jitter that always takes the longest wait
STOPPED, RUNNING, IDLE, BLOCKED = (
    WorkerState.STOPPED,
    WorkerState.RUNNING,
    WorkerState.IDLE,
    WorkerState.BLOCKED,
)
Numbers = tuple[int, ...]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


class Watched:
    """A worker on a list of numbers, and all it ever said."""

    def __init__(self, job: ListJob, store: Store, clock: JumpingClock | None = None) -> None:
        self.job = job
        self.said: list[WorkerStatus] = []
        self.worker: Worker[int, Numbers] = Worker(
            job, Attempts(store, job.name), clock=clock, jitter=LONGEST_WAIT
        )
        self.worker.on_status = self.said.append

    @property
    def states(self) -> list[WorkerState]:
        """The states it went through, in order."""
        states = [status.state for status in self.said]
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
            thread.join(10)
            assert not thread.is_alive()

    def drain(self) -> WorkerStatus:
        with self.hosted():
            until(lambda: self.worker.is_drained)
        return self.worker.status()


def test_a_worker_runs_until_nothing_is_left_idles_and_stops_when_told(store: Store) -> None:
    watched = Watched(ListJob(store, range(250)), store)
    assert watched.worker.status().state is STOPPED
    status = watched.drain()
    assert watched.states == [RUNNING, IDLE, STOPPED]
    assert watched.job.saved == list(range(250))
    assert (status.done, status.total, status.completed, status.failed) == (250, 250, 250, 0)
    assert status.session == Ledger(250, 125.0)
    assert status.current_item == ""


def test_it_idles_until_it_is_woken(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store)
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        watched.job.items.append(2)
        watched.worker.wake()
        assert not watched.worker.is_drained or watched.job.saved == [1, 2]
        until(lambda: watched.job.saved == [1, 2])


def test_it_looks_again_unasked_when_the_poll_interval_has_passed(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store, JumpingClock())
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        watched.job.items.append(2)
        until(lambda: watched.job.saved == [1, 2])


def test_in_one_state_it_speaks_at_most_ten_times_a_second(store: Store) -> None:
    clock = JumpingClock()
    job = ListJob(store, range(100), Pace(save_items=1))
    job.before_make = lambda _, __: clock.pass_s(0.01)
    watched = Watched(job, store, clock)
    watched.drain()
    running = [status for status in watched.said if status.state is RUNNING]
    assert 8 <= len(running) <= 13  # a second's work, and the change of state itself


def test_every_number_said_is_the_database_s(store: Store) -> None:
    job = ListJob(store, range(300), Pace(save_items=10))
    job.poison = {7: ValueError(), 77: ValueError()}
    watched = Watched(job, store, JumpingClock())
    truths: list[tuple[int, int, int]] = []

    def compare(status: WorkerStatus) -> None:
        tally = job.tally()
        assert status.done == tally.done
        assert status.waiting_retry == tally.waiting_retry
        assert status.set_aside == tally.set_aside
        truths.append((status.done, status.waiting_retry, status.set_aside))

    failures: list[AssertionError] = []

    def listen(status: WorkerStatus) -> None:
        try:
            compare(status)
        except AssertionError as error:
            failures.append(error)

    watched.worker.on_status = listen
    watched.drain()
    assert not failures
    assert truths[-1] == (298, 0, 2)


def test_rate_and_time_left_come_from_the_last_minute(store: Store) -> None:
    clock = JumpingClock()
    job = ListJob(store, range(200), Pace(save_items=2))
    job.before_make = lambda _, __: clock.pass_s(0.5)
    watched = Watched(job, store, clock)
    watched.drain()
    first = watched.said[0]
    assert (first.rate_per_minute, first.remaining_s) == (None, None)
    late = next(status for status in watched.said if 130 <= status.done < 200)
    assert late.rate_per_minute == pytest.approx(120, rel=0.05)
    assert late.remaining_s == pytest.approx((200 - late.done) / 2, rel=0.05)


# -- failures


def test_a_poison_item_is_set_aside_after_its_tries_while_the_others_finish(store: Store) -> None:
    watched = Watched(ListJob(store, range(20)), store, JumpingClock())
    watched.job.poison[5] = ServerFailed("The server failed", "Try later.")
    status = watched.drain()
    assert sorted(watched.job.saved) == [each for each in range(20) if each != 5]
    assert watched.job.made.count((5,)) == 7  # once, and six times again
    assert (status.done, status.total, status.failed) == (19, 20, 1)
    assert (status.set_aside, status.waiting_retry) == (1, 0)
    assert status.last_error == "The server failed. Try later."


def test_others_go_on_while_an_item_waits_for_its_next_try(store: Store) -> None:
    watched = Watched(ListJob(store, range(5)), store)
    watched.job.poison[0] = ServerFailed("The server failed")
    with watched.hosted():
        until(lambda: watched.worker.status().state is IDLE)
        status = watched.worker.status()
        assert watched.job.saved == [1, 2, 3, 4]
        assert (status.waiting_retry, status.set_aside, status.failed) == (1, 0, 0)
        assert status.next_attempt_at is not None
        assert not watched.worker.is_drained


def test_waits_grow_from_one_second_to_thirty_two(store: Store) -> None:
    clock = JumpingClock()
    watched = Watched(ListJob(store, [1]), store, clock)
    watched.job.poison[1] = ServerFailed("The server failed")
    began, tried = clock.monotonic(), []
    watched.job.before_make = lambda _, __: tried.append(clock.monotonic() - began)
    watched.drain()
    waits = [after - before for before, after in pairwise(tried)]
    assert waits == pytest.approx([1, 2, 4, 8, 16, 32], abs=0.1)


def test_the_server_s_wish_is_the_shortest_wait(store: Store) -> None:
    clock = JumpingClock()
    watched = Watched(ListJob(store, [1]), store, clock)
    tried: list[float] = []

    def fail_once(_: Sequence[int], __: IsCancelled) -> None:
        tried.append(clock.monotonic())
        if len(tried) == 1:
            raise ServerFailed("The server failed", retry_after_s=20)

    watched.job.before_make = fail_once
    assert watched.drain().done == 1
    assert tried[1] - tried[0] == pytest.approx(20, abs=0.1)


def test_tries_and_the_next_one_survive_a_restart(store: Store) -> None:
    before = Watched(ListJob(store, [1, 2]), store)
    before.job.poison[1] = ServerFailed("The server failed")
    with before.hosted():
        until(lambda: before.worker.status().waiting_retry == 1)
    clock = JumpingClock()
    after = Watched(ListJob(store, [1, 2]), store, clock)
    after.job.saved = [2]
    after.job.poison = before.job.poison
    assert Attempts(store, after.job.name).tries() == {1: 1}
    after.drain()
    assert after.job.made.count((1,)) == 6  # with the one before: seven


def test_an_item_that_comes_through_is_no_longer_held_against_anyone(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store, JumpingClock())
    watched.job.poison[1] = ServerFailed("The server failed")
    watched.job.before_make = lambda _, __: (
        watched.job.poison.clear() if len(watched.job.made) == 2 else None
    )
    status = watched.drain()
    assert (status.done, status.waiting_retry, status.set_aside) == (1, 0, 0)
    assert Attempts(store, watched.job.name).tries() == {}


def test_what_was_set_aside_can_be_tried_again_by_hand(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store, JumpingClock())
    watched.job.poison[1] = ServerFailed("The server failed")
    with watched.hosted():
        until(lambda: watched.worker.is_drained and watched.worker.status().set_aside == 1)
        watched.job.poison.clear()
        watched.worker.retry_set_aside()
        until(lambda: watched.job.saved == [1])
    assert watched.worker.status().set_aside == 0


def test_one_bad_item_does_not_hold_back_its_batch(store: Store) -> None:
    watched = Watched(ListJob(store, range(32), Pace(together=16)), store, JumpingClock())
    watched.job.poison[9] = ServerFailed("The server failed")
    status = watched.drain()
    assert sorted(watched.job.saved) == [each for each in range(32) if each != 9]
    assert status.set_aside == 1
    assert all(9 not in made or len(made) == 1 for made in watched.job.made[5:])


def test_a_result_that_cannot_be_saved_is_isolated_too(store: Store) -> None:
    job = ListJob(store, [1, 2, 3])
    watched = Watched(job, store, JumpingClock())
    job.refusals = [ValueError("all three"), ValueError("the first alone")]
    status = watched.drain()
    assert sorted(job.saved) == [1, 2, 3]
    assert (status.done, status.waiting_retry) == (3, 0)
    assert job.made.count((1,)) == 2


def test_a_bug_is_named_and_logged_without_quoting_what_it_was_about(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(ListJob(store, [1]), store, JumpingClock())
    watched.job.poison[1] = ValueError("the secret of the conversation")
    status = watched.drain()
    assert "ValueError" in status.last_error
    assert "secret" not in status.last_error
    assert "ValueError at" in caplog.text
    assert "jobs.py" in caplog.text
    assert "secret" not in caplog.text


def test_a_bug_in_finding_work_is_shown_and_lived_through(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store, JumpingClock())
    watched.job.finding = RuntimeError("broken")
    with watched.hosted():
        until(lambda: "RuntimeError" in watched.worker.status().last_error)
        watched.job.finding = None
        until(lambda: watched.job.saved == [1])


def test_a_listener_that_fails_stops_nothing(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store)

    def fail(_: WorkerStatus) -> None:
        raise RuntimeError("a broken window")

    watched.worker.on_status = fail
    assert watched.drain().done == 1


# -- blocked


def test_a_rejected_key_blocks_the_worker_until_it_is_woken(store: Store) -> None:
    watched = Watched(ListJob(store, [1, 2]), store)
    watched.job.poison[1] = KeyRejected("The key was not accepted", "Enter another.")
    with watched.hosted():
        until(lambda: watched.worker.status().state is BLOCKED)
        status = watched.worker.status()
        assert status.blocked_by == "The key was not accepted. Enter another."
        assert status.next_attempt_at is None
        assert watched.worker.is_drained
        assert watched.job.made == [(1,)]  # not asked a second time
        watched.job.poison.clear()
        watched.worker.wake()
        until(lambda: watched.job.saved == [1, 2])
    assert watched.worker.status().blocked_by == ""
    assert Attempts(store, watched.job.name).tries() == {}


@pytest.mark.parametrize(
    "error", [Unreachable("No network"), RateLimited("Too many", retry_after_s=45)]
)
def test_an_outage_of_six_hours_costs_at_most_a_probe_a_minute(
    store: Store, error: Exception
) -> None:
    clock = JumpingClock()
    watched = Watched(ListJob(store, range(50)), store, clock)
    watched.job.poison = dict.fromkeys(range(50), error)

    def repair(_: Sequence[int], __: IsCancelled) -> None:
        if clock.monotonic() > 6 * 3600:
            watched.job.poison.clear()

    watched.job.before_make = repair
    with watched.hosted():
        until(lambda: len(watched.job.saved) == 50)
    probes = len(watched.job.made) - 50
    assert 0 < probes <= 6 * 60 + 6
    assert BLOCKED in watched.states
    assert Attempts(store, watched.job.name).tries() == {}  # no item was to blame


def test_a_drain_does_not_wait_for_the_network_for_ever(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store, JumpingClock())
    watched.job.poison[1] = Unreachable("No network")
    status = watched.drain()
    assert (status.done, status.set_aside) == (0, 0)
    assert len(watched.job.made) >= 7


def test_time_limits_of_several_items_in_a_row_are_the_world_s_fault(store: Store) -> None:
    watched = Watched(ListJob(store, range(9)), store, JumpingClock())
    watched.job.poison = dict.fromkeys(range(9), TimedOut("No answer in time"))
    with watched.hosted():
        until(lambda: watched.worker.status().state is BLOCKED)
        watched.job.poison.clear()
        until(lambda: len(watched.job.saved) == 9)


def test_a_full_disk_blocks_and_what_was_made_is_saved_first_when_there_is_room(
    store: Store,
) -> None:
    watched = Watched(ListJob(store, [1, 2]), store, JumpingClock())
    watched.job.refusals = [DiskFull("There is no room"), DiskFull("There is no room")]
    status = watched.drain()
    assert watched.job.saved == [1, 2]
    assert watched.job.made == [(1,), (2,)]  # nothing was made twice
    assert BLOCKED in watched.states
    assert status.done == 2


# -- stopping


def test_it_stops_in_the_middle_of_an_item_and_keeps_what_was_finished(store: Store) -> None:
    watched = Watched(ListJob(store, [1, 2, 3]), store)

    def hang_at_three(items: Sequence[int], is_cancelled: IsCancelled) -> None:
        if 3 in items:
            blocks_until_cancelled(items, is_cancelled)

    watched.job.before_make = hang_at_three
    with watched.hosted():
        until(lambda: watched.job.made == [(1,), (2,)])
    assert watched.job.saved == [1, 2]
    status = watched.worker.status()
    assert (status.state, status.done, status.failed) == (STOPPED, 2, 0)
    assert Attempts(store, watched.job.name).tries() == {}


def test_a_host_that_only_sets_the_event_is_heard_too(store: Store) -> None:
    watched = Watched(ListJob(store, [1]), store)
    stop = threading.Event()
    thread = threading.Thread(target=watched.worker.run, args=(stop,))
    thread.start()
    until(lambda: watched.worker.status().state is IDLE)
    stop.set()
    thread.join(3)
    assert not thread.is_alive()


def test_two_hosts_never_run_it_at_once(store: Store) -> None:
    watched = Watched(ListJob(store, range(200), Pace(save_items=1)), store)
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
            until(lambda: len(watched.job.saved) == 200)
    assert max(most) == 1
    assert watched.job.saved == list(range(200))


def test_refresh_tells_the_truth_about_a_worker_that_does_not_run(store: Store) -> None:
    watched = Watched(ListJob(store, range(27)), store)
    assert watched.worker.status().total == 0
    status = watched.worker.refresh()
    assert (status.state, status.done, status.total) == (STOPPED, 0, 27)


# -- a model whose answers come to nothing


def test_three_unusable_answers_in_a_row_block_the_worker_until_the_user_acts(store: Store) -> None:
    job = ListJob(store, range(20), Pace(save_items=1))
    job.poison = {item: UnusableAnswer("here:m answered twice in riddles") for item in range(20)}
    watched = Watched(job, store, JumpingClock())
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        status = watched.worker.status()
        assert (status.state, len(job.made)) == (BLOCKED, 3)
        assert "here:m answered twice in riddles" in status.blocked_by
        assert "Choose another model" in status.blocked_by
        watched.worker.wake()
        until(lambda: watched.worker.is_drained)
        assert len(job.made) == 3, "a turn that ends is no reason to ask again"
        watched.worker.run_now()
        until(lambda: watched.worker.is_drained and len(job.made) == 6)


@pytest.mark.parametrize(
    "change",
    [
        Changed(settings=frozenset(("background_model",))),
        Changed(settings=frozenset(("own_prices",))),
        Changed(providers=frozenset(("here",))),
    ],
)
def test_another_model_or_settings_end_the_block(store: Store, change: Changed) -> None:
    job = ListJob(store, range(20), Pace(save_items=1))
    job.poison = {item: UnusableAnswer("riddles") for item in range(20)}
    watched = Watched(job, store, JumpingClock())
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        job.poison.clear()
        watched.worker.wakes_for(change)
        watched.worker.wake()
        until(lambda: len(job.saved) == 20)


def test_a_success_between_unusable_answers_starts_the_count_anew(store: Store) -> None:
    job = ListJob(store, range(9), Pace(save_items=1, retries=0))
    job.poison = {item: UnusableAnswer("riddles") for item in (0, 1, 3, 4, 6, 7)}
    status = Watched(job, store, JumpingClock()).drain()
    assert (job.saved, status.set_aside) == ([2, 5, 8], 6)


def test_one_item_that_spoils_every_answer_is_set_aside_and_blocks_nobody(store: Store) -> None:
    job = ListJob(store, [1], Pace(save_items=1))
    job.poison = {1: UnusableAnswer("riddles")}
    status = Watched(job, store, JumpingClock()).drain()
    assert (status.set_aside, len(job.made), status.blocked_by) == (1, 7, "")


def test_a_batch_with_an_unusable_answer_is_not_halved_but_tried_one_by_one_later(
    store: Store,
) -> None:
    job = ListJob(store, range(8), Pace(together=4, save_items=1))
    job.poison = {1: UnusableAnswer("riddles")}
    Watched(job, store, JumpingClock()).drain()
    assert job.made[:2] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert all(len(each) == 1 for each in job.made[2:])
    assert sorted(job.saved) == [0, 2, 3, 4, 5, 6, 7]


def test_what_a_server_says_is_on_the_screen_but_in_neither_log_nor_database(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    subject = Subject("here", "http://127.0.0.1:1")
    rejected = verdict(Complaint(400, "cannot parse 'my diary'"), subject)
    refused = verdict(Complaint(403, "not about 'my diary'"), subject)
    job = ListJob(store, [1, 2])
    job.poison = {1: rejected, 2: refused}
    watched = Watched(job, store)
    with watched.hosted():
        until(lambda: watched.worker.is_drained)
        status = watched.worker.status()
    assert "The server says: not about 'my diary'" in status.blocked_by
    assert "here does not allow this key" in caplog.text
    assert "diary" not in caplog.text
    (failed,) = store.read(lambda c: c.execute("SELECT error FROM attempt").fetchall())
    assert "does not accept the request" in failed[0]
    assert "diary" not in failed[0]


def test_a_card_s_spend_is_current_while_an_item_is_still_being_made(store: Store) -> None:
    clock = JumpingClock()
    job = ListJob(store, [1])
    watched = Watched(job, store, clock)
    spending = Spending(store)
    worker: Worker[int, Numbers] = Worker(
        job, Attempts(store, job.name), all_time=lambda: spending.all_time(job.name), clock=clock
    )
    worker.on_status = watched.said.append
    watched.worker = worker

    def tell(changed: Changed) -> None:
        worker.wakes_for(changed)

    unsubscribe = store.subscribe(tell)

    def pay(_: object, is_cancelled: IsCancelled) -> None:
        store.save(SpendAdded(datetime.now(UTC), job.name, "here:m", 10, 5, 0, 0.25))
        clock.pass_s(1.0)
        until(lambda: is_cancelled() or watched.said[-1].all_time == Ledger(15, 0.25))

    job.before_make = pay
    watched.drain()
    unsubscribe()
    assert watched.said[-1].all_time == Ledger(15, 0.25)


def test_after_days_of_outage_it_still_probes_once_a_minute() -> None:
    waits = {
        world_wait_s(probes, Blocked("Down", retry_after_s=0.0), max_of) for probes in (7, 9_999)
    }
    assert waits == {60.0}


def max_of(limit_s: float) -> float:
    return limit_s

"""Workers give way to whoever uses the window, and get on all the same."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.changes import SettingPut
from app.storage.attempts import Attempts
from app.storage.store import Store
from app.workers.courtesy import Courtesy
from app.workers.machine import Worker
from tests.fakes.jobs import JumpingClock, ListJob, until
from tests.fakes.stored import opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


def begun_at(store: Store, served: int) -> list[float]:
    """When each of ten items was begun, in seconds, the user being served `served` times at first."""
    clock, job, moments = JumpingClock(), ListJob(store, range(10)), list[float]()
    courtesy = Courtesy(clock)
    job.before_make = lambda _, __: moments.append(clock.monotonic())
    worker: Worker[int, tuple[int, ...]] = Worker(job, Attempts(store, job.name), clock=clock)
    worker.give_way = courtesy.give_way
    for _ in range(served):
        courtesy.serve()
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    until(lambda: worker.is_drained)
    stop.set()
    worker.wake()
    thread.join(10)
    assert sorted(job.saved) == list(range(10))
    return moments


def test_nobody_rests_while_the_window_is_left_alone(store: Store) -> None:
    assert begun_at(store, served=0) == [0.0] * 10


def test_workers_rest_between_items_for_a_moment_after_the_window_was_used(store: Store) -> None:
    moments = begun_at(store, served=2)
    assert moments[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert moments[4] == moments[-1] <= 0.41


def test_a_rest_ends_when_the_worker_is_stopped() -> None:
    clock, stop = JumpingClock(), threading.Event()
    courtesy = Courtesy(clock)
    courtesy.serve()
    stop.set()
    courtesy.give_way(stop)
    assert clock.monotonic() == 0.0


def answer(courtesy: Courtesy) -> None:
    """Answer as the window would, on a thread of its own."""
    thread = threading.Thread(target=courtesy.answer)
    thread.start()
    thread.join()


def late(courtesy: Courtesy, clock: JumpingClock, passed_s: float) -> float:
    """How long somebody at work rests, in seconds, when that much time has passed."""
    clock.pass_s(passed_s)
    began = clock.monotonic()
    courtesy.step_aside()
    return clock.monotonic() - began


def test_who_is_at_work_asks_the_window_now_and_then_and_goes_on() -> None:
    clock, asked = JumpingClock(), list[float]()
    courtesy = Courtesy(clock)
    courtesy.step_aside()

    def ask() -> None:
        asked.append(clock.monotonic())
        answer(courtesy)

    courtesy.ask_window = ask
    for _ in range(100):
        assert late(courtesy, clock, 0.001) == 0.0
    assert 15 <= len(asked) <= 20


def test_who_is_at_work_rests_while_the_window_is_late_but_not_for_long() -> None:
    clock, asked = JumpingClock(), list[int]()
    courtesy = Courtesy(clock)
    courtesy.ask_window = lambda: asked.append(1)
    assert late(courtesy, clock, 0.001) == 0.0
    assert late(courtesy, clock, 0.001) == 0.0, "it may still answer in time"
    assert late(courtesy, clock, 0.004) == pytest.approx(0.1, abs=0.005)
    assert late(courtesy, clock, 5.0) == 0.0, "nobody stands still with a window that hangs"
    answer(courtesy)
    assert late(courtesy, clock, 0.001) == 0.0
    assert len(asked) == 2


def test_an_answer_ends_the_rest() -> None:
    clock = JumpingClock()
    courtesy = Courtesy(clock)
    courtesy.ask_window = lambda: None
    courtesy.step_aside()
    waits = clock.wait
    clock.wait = lambda event, timeout_s: answer(courtesy) or waits(event, timeout_s)  # type: ignore[func-returns-value,method-assign]
    assert late(courtesy, clock, 0.01) == 0.0
    assert late(courtesy, clock, 0.01) == 0.0, "it asked anew"


def test_the_window_never_waits_for_itself() -> None:
    clock = JumpingClock()
    courtesy = Courtesy(clock)
    courtesy.answer()
    courtesy.ask_window = lambda: pytest.fail("it would have to answer itself")
    for _ in range(3):
        assert late(courtesy, clock, 0.02) == 0.0


def test_the_store_gives_way_between_the_parts_of_a_write(store: Store) -> None:
    rests = list[str]()
    store.give_way = lambda: rests.append(threading.current_thread().name)
    store.save(SettingPut("theme", '"dark"'))
    assert set(rests) == {threading.current_thread().name, "writer"}

"""Workers give way to whoever uses the window, and get on all the same."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

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

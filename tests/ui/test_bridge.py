"""The bridge: work goes to other threads and comes back, news are gathered, tasks are named."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import qasync
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.domain.events import Changed
from app.domain.ids import ConversationId
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from ui.bridge import Bridge

Run = Callable[[Any], Any]


@pytest.fixture
def bridge(qtbot: QtBot) -> Iterator[Bridge]:
    made = Bridge()
    yield made
    made.cancel_all()
    assert made.wait_for_pools(3000)


@pytest.fixture
def run(qapp: QApplication) -> Iterator[Run]:
    loop = qasync.QEventLoop(qapp)
    asyncio.set_event_loop(loop)
    yield lambda work: loop.run_until_complete(asyncio.wait_for(work, 10))
    loop.close()
    asyncio.set_event_loop(None)


def test_a_call_runs_on_another_thread_and_its_result_comes_back(bridge: Bridge, run: Run) -> None:
    here = threading.get_ident()
    assert run(bridge.run(threading.get_ident)) != here


def test_what_a_call_raises_is_raised_where_it_is_awaited(bridge: Bridge, run: Run) -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run(bridge.run(fail))


def test_a_failure_that_nobody_waits_for_any_more_is_logged_and_no_error_of_the_loop(
    bridge: Bridge, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    gate, complaints = threading.Event(), list[Any]()

    def fail_late() -> None:
        gate.wait(5)
        raise LookupError("the program is closing")

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context)
        )
        task = bridge.start("draft", bridge.write(fail_late))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        gate.set()
        await bridge.write(lambda: None)  # comes after it
        await asyncio.sleep(0)
        gc.collect()

    with caplog.at_level("INFO"):
        run(story())
    assert not complaints
    assert "the program is closing" in caplog.text


def test_a_task_started_again_cancels_the_one_before(bridge: Bridge, run: Run) -> None:
    async def story() -> list[str]:
        told: list[str] = []

        async def tell(words: str, gate: asyncio.Event) -> None:
            await gate.wait()
            told.append(words)

        gate = asyncio.Event()
        bridge.start("story", tell("first", gate))
        await asyncio.sleep(0)
        second = bridge.start("story", tell("second", gate))
        gate.set()
        await second
        return told

    assert run(story()) == ["second"]


def test_a_failed_task_is_reported(bridge: Bridge, run: Run, qtbot: QtBot) -> None:
    failures: list[BaseException] = []
    bridge.task_failed.connect(failures.append)

    async def fail() -> None:
        raise LookupError("gone")

    async def story() -> None:
        await asyncio.wait([bridge.start("fail", fail())])
        await asyncio.sleep(0)

    run(story())
    assert [type(error) for error in failures] == [LookupError]


def test_a_flood_of_changes_arrives_as_few_on_the_gui_thread(bridge: Bridge, qtbot: QtBot) -> None:
    seen: list[Changed] = []
    threads: list[int] = []

    def note(changed: Changed) -> None:
        seen.append(changed)
        threads.append(threading.get_ident())

    bridge.changed.connect(note)

    def flood() -> None:
        for number in range(1000):
            bridge.take_change(Changed(conversations=frozenset({ConversationId(number)})))

    writer = threading.Thread(target=flood)
    writer.start()
    writer.join()
    qtbot.waitUntil(lambda: sum(len(each.conversations) for each in seen) == 1000)
    assert len(seen) < 20
    assert set(threads) == {threading.get_ident()}


def test_only_the_newest_status_of_each_worker_arrives(bridge: Bridge, qtbot: QtBot) -> None:
    seen: list[WorkerStatus] = []
    bridge.worker_changed.connect(seen.append)
    for done in range(100):
        bridge.take_status(
            WorkerStatus(WorkerName.EXCHANGE_SUMMARIZER, True, WorkerState.RUNNING, done=done)
        )
    qtbot.waitUntil(lambda: bool(seen))
    assert [each.done for each in seen] == [99]


def test_a_call_wanted_by_another_thread_runs_on_the_gui_thread(
    bridge: Bridge, qtbot: QtBot
) -> None:
    threads: list[int] = []
    call = bridge.on_gui(lambda: threads.append(threading.get_ident()))
    other = threading.Thread(target=call)
    other.start()
    other.join()
    qtbot.waitUntil(lambda: threads == [threading.get_ident()])

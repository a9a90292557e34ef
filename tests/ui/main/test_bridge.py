"""The bridge: calls on other threads, merged events, named tasks; and the start of the window."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import qasync
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.domain.change_set import ChangeSet
from app.domain.errors import StorageError
from app.domain.ids import ConversationId
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from ui.bridge import Bridge
from ui.main.composition import Presenters
from ui.widgets.dialog import Dialog

Run = Callable[[Any], Any]


@pytest.fixture
def bridge() -> Iterator[Bridge]:
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


def fail() -> None:
    raise LookupError("gone")


def test_a_call_runs_on_another_thread_and_its_outcome_comes_back(bridge: Bridge, run: Run) -> None:
    assert run(bridge.run(threading.get_ident)) != threading.get_ident()
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
    done: list[str] = []

    async def wait(name: str, gate: asyncio.Event) -> None:
        await gate.wait()
        done.append(name)

    async def story() -> None:
        gate = asyncio.Event()
        bridge.start("story", wait("first", gate))
        await asyncio.sleep(0)
        second = bridge.start("story", wait("second", gate))
        gate.set()
        await second

    run(story())
    assert done == ["second"]


def test_a_failed_task_is_reported_unless_its_error_is_expected(bridge: Bridge, run: Run) -> None:
    failures: list[BaseException] = []
    expected: list[BaseException] = []
    bridge.task_failed.connect(failures.append)

    async def raise_it(error: Exception) -> None:
        raise error

    async def story() -> None:
        for error in (LookupError("gone"), StorageError("full")):
            await asyncio.wait([bridge.submit(raise_it(error), expected.append)])
        await asyncio.wait([bridge.submit(raise_it(StorageError("unhandled")))])
        await asyncio.sleep(0)
        await bridge.settle(0)
        late = bridge.start("late", raise_it(LookupError("never")))
        await asyncio.wait([late])
        assert late.cancelled()

    run(story())
    assert [str(each) for each in failures] == ["gone", "unhandled"]
    assert [str(each) for each in expected] == ["full"]


def test_nothing_is_shown_in_a_dialog_that_is_gone(bridge: Bridge, run: Run) -> None:
    reported: list[BaseException] = []
    bridge.task_failed.connect(reported.append)
    dialog = Dialog("Past imports", (300, 200), None)
    refusal = StorageError("The disk is full")

    def refuse() -> None:
        raise refusal

    async def story() -> None:
        bridge.load("list", lambda: refusal, dialog.show_error)
        bridge.save(refuse, on_error=dialog.show_error)
        delete(dialog)
        await bridge.settle(5)
        await asyncio.sleep(0)

    run(story())
    assert reported == [refusal]  # of the change, since what was read is of no use any more


def test_a_flood_of_changes_arrives_as_few_on_the_gui_thread(bridge: Bridge, qtbot: QtBot) -> None:
    seen: list[ChangeSet] = []
    threads: list[int] = []

    def note(changed: ChangeSet) -> None:
        seen.append(changed)
        threads.append(threading.get_ident())

    bridge.changed.connect(note)

    def flood() -> None:
        for number in range(1000):
            bridge.post_change(ChangeSet(conversations=frozenset({ConversationId(number)})))

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
        bridge.post_status(
            WorkerStatus(WorkerName.EXCHANGE_SUMMARIZER, True, WorkerState.RUNNING, done=done)
        )
    qtbot.waitUntil(lambda: bool(seen))
    assert [each.done for each in seen] == [99]


def test_a_new_day_is_told_once(qtbot: QtBot) -> None:
    days = iter((date(2026, 3, 18), date(2026, 3, 18), date(2026, 3, 19), date(2026, 3, 19)))
    bridge = Bridge(today=lambda: next(days))
    with qtbot.assertNotEmitted(bridge.day_began):
        bridge.date_check.timeout.emit()
    with qtbot.waitSignal(bridge.day_began):
        bridge.date_check.timeout.emit()
    with qtbot.assertNotEmitted(bridge.day_began):
        bridge.date_check.timeout.emit()


def test_another_thread_s_call_runs_on_the_gui_thread(bridge: Bridge, qtbot: QtBot) -> None:
    threads: list[int] = []
    call = bridge.on_gui(lambda: threads.append(threading.get_ident()))
    other = threading.Thread(target=call)
    other.start()
    other.join()
    qtbot.waitUntil(lambda: threads == [threading.get_ident()])


@pytest.mark.parametrize("error", [StorageError("The disk failed"), RuntimeError("a bug")])
@pytest.mark.parametrize("failing", ["begin", "load"])
def test_workers_start_when_the_first_screen_cannot_be_loaded(
    bridge: Bridge, run: Run, failing: str, error: Exception
) -> None:
    reported: list[BaseException] = []
    banner = SimpleNamespace(show_error=reported.append, show_message=lambda *_, **__: None)
    bridge.task_failed.connect(reported.append)
    calls: list[str] = []

    async def step(name: str, *_given: object) -> None:
        calls.append(name)
        if name == failing:
            raise error

    window = SimpleNamespace(
        conversation_id=None, scroll_position=None, begin=lambda: None,
        memory=SimpleNamespace(knowledge=SimpleNamespace(isVisible=lambda: False)),
    )  # fmt: skip
    presenters: Any = SimpleNamespace(
        _window=window, _banner=banner, _bridge=bridge,
        _services=SimpleNamespace(store=SimpleNamespace(notices=()), maintenance=SimpleNamespace()),
        conversation=SimpleNamespace(begin=partial(step, "begin")),
        conversations=SimpleNamespace(load=partial(step, "load")),
        dashboard=SimpleNamespace(start=lambda: calls.append("start")), ready=asyncio.Event(),
    )  # fmt: skip
    run(Presenters._begin(presenters))
    assert (calls, reported) == (["begin", "load", "start"], [error])
    assert presenters.ready.is_set()

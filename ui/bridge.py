"""The only module that knows that two threads exist.

Blocking work goes to a pool of our own and comes back as an awaitable; news from other threads
come back as queued signals, gathered so that a flood of them costs one repaint.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, QTimer, Signal, Slot

from app.domain.events import Changed
from app.domain.workers import WorkerName, WorkerStatus

T = TypeVar("T")
_log = logging.getLogger(__name__)
_POOL_THREADS = 4
_GATHER_MS = 50


class _Work(QRunnable):
    """One call on a pool; its outcome goes into a future."""

    def __init__(self, call: Callable[[], Any], future: "Future[Any]") -> None:
        super().__init__()
        self._task: tuple[Callable[[], Any], Future[Any]] | None = (call, future)
        self.setAutoDelete(True)

    # Qt overrides

    def run(self) -> None:
        assert self._task is not None
        call, future = self._task
        self._task = None  # Qt may let go of this object late, or at the end never
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits it
            future.set_exception(error)


class Bridge(QObject):
    """Between the GUI thread, where it lives, and every other.

    Attributes:
        is_settled: Whether `settle` has ended: no task is waited for any more.

    Signals, all emitted on the GUI thread:
        changed: A `Changed`, the union of what was written since the last one.
        worker_changed: A `WorkerStatus`, the newest of each worker that changed.
        task_failed: The exception of a task that nobody awaited.
    """

    changed = Signal(object)
    worker_changed = Signal(object)
    task_failed = Signal(object)
    _news_arrived = Signal()
    _call_wanted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(_POOL_THREADS)
        self._writes_pool = QThreadPool(self)
        self._writes_pool.setMaxThreadCount(1)
        self._workers_pool = QThreadPool(self)
        self._workers_pool.setMaxThreadCount(len(WorkerName) + 1)
        self._lock = threading.Lock()
        self._pending_change = Changed()
        self._pending_statuses: dict[WorkerName, WorkerStatus] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._wishes = 0
        self._is_closing = False
        self.is_settled = False
        self._gather = QTimer(self, singleShot=True, interval=_GATHER_MS)
        self._gather.timeout.connect(self._on_gather_timeout)
        self._call_wanted.connect(self._on_call_wanted, Qt.ConnectionType.QueuedConnection)
        self._news_arrived.connect(self._on_news_arrived, Qt.ConnectionType.QueuedConnection)

    # -- work for other threads

    async def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, having run it on the pool; raise what it raises."""
        future: Future[T] = Future()
        self._pool.start(_Work(call, future))
        return await asyncio.wrap_future(future)

    async def write(self, call: Callable[[], T]) -> T:
        """Like `run`, for what changes something: one after the other, in the order of the calls.

        Once called it is carried out, whatever becomes of the task that waits for it.
        """
        future: Future[T] = Future()
        self._writes_pool.start(_Work(call, future))
        return await _outlasting(future)

    async def wait(self, future: "Future[T]") -> T:
        """Return the result of another thread's future; it goes on if nobody waits any more."""
        return await _outlasting(future)

    def host_worker(self, loop: Callable[[], None]) -> None:
        """Run a worker's loop in a QRunnable of its own until it returns; not after `settle`."""
        if not self.is_settled:
            self._workers_pool.start(_Work(loop, Future()))

    def on_gui(self, call: Callable[[], object]) -> Callable[[], None]:
        """Return a function that any thread may call to have `call` run on the GUI thread."""
        return lambda: self._call_wanted.emit(call)

    # -- tasks on the GUI thread's loop

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine as the task `name`; one of that name that still runs is cancelled.

        After `settle` it is cancelled before it begins.
        """
        if (earlier := self._tasks.pop(name, None)) is not None:
            earlier.cancel()
        task = asyncio.get_event_loop().create_task(work, name=name)
        if self._is_closing:
            task.cancel()
        self._tasks[name] = task
        task.add_done_callback(self._on_task_done)
        return task

    def carry_out(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine that no other one takes the place of: something the user wished."""
        self._wishes += 1
        return self.start(f"wish {self._wishes}", work)

    def cancel(self, name: str) -> None:
        """Cancel the task `name`, if it runs."""
        if (task := self._tasks.pop(name, None)) is not None:
            task.cancel()

    async def settle(self, timeout_s: float) -> None:
        """Begin nothing new, let tasks end, such as a draft being saved, and cancel the late ones."""
        self._is_closing = True
        if tasks := tuple(self._tasks.values()):
            await asyncio.wait(tasks, timeout=timeout_s)
        self.cancel_all()
        self.is_settled = True

    def cancel_all(self) -> None:
        """Cancel every task."""
        for name in tuple(self._tasks):
            self.cancel(name)

    def wait_for_pools(self, timeout_ms: int) -> bool:
        """Wait for the pools to empty; blocking, for the goodbye."""
        pools = (self._pool, self._writes_pool, self._workers_pool)
        return all(pool.waitForDone(timeout_ms) for pool in pools)

    # -- news, from any thread

    def take_change(self, changed: Changed) -> None:
        """Pass on what a commit changed; called on the writer thread."""
        with self._lock:
            self._pending_change = self._pending_change | changed
        self._news_arrived.emit()

    def take_status(self, status: WorkerStatus) -> None:
        """Pass on a worker's status; called on its thread."""
        with self._lock:
            self._pending_statuses[status.name] = status
        self._news_arrived.emit()

    @Slot(object)
    def _on_call_wanted(self, call: Callable[[], object]) -> None:
        call()

    @Slot()
    def _on_news_arrived(self) -> None:
        if not self._gather.isActive():
            self._gather.start()

    @Slot()
    def _on_gather_timeout(self) -> None:
        with self._lock:
            change, self._pending_change = self._pending_change, Changed()
            statuses, self._pending_statuses = self._pending_statuses, {}
        if change != Changed():
            self.changed.emit(change)
        for status in statuses.values():
            self.worker_changed.emit(status)

    def _on_task_done(self, task: "asyncio.Task[Any]") -> None:
        if self._tasks.get(task.get_name()) is task:
            del self._tasks[task.get_name()]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the task %s failed", task.get_name(), exc_info=error)
            self.task_failed.emit(error)


async def _outlasting(future: "Future[T]") -> T:
    """Return the result of a future that goes on when the task that waits is cancelled.

    Then nobody is left to be told of a failure, at the goodbye above all: it goes to the log.
    """
    inner = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(inner)
    except asyncio.CancelledError:
        inner.add_done_callback(_log_failure)
        raise


def _log_failure(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        _log.info("what nobody waited for any more has failed", exc_info=error)

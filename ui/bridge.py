"""The bridge between the GUI thread and all others; no other module of `ui` knows of threads.

Blocking calls run on a thread pool and are awaited; changes and worker statuses of other threads
arrive as queued signals, merged so that a burst of them costs one repaint.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import date
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.workers import WorkerName, WorkerStatus

T = TypeVar("T")
Work = Coroutine[Any, Any, Any]
Listener = Callable[[ChangeSet], object]
OnError = Callable[[KnownError], object]
_log = logging.getLogger(__name__)
_POOL_THREADS = 4
_LONG_CALLS = 4
_GATHER_MS = 50
_DATE_CHECK_MS = 30_000  # a timer to midnight would be late after a suspend


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
    """Runs blocking calls and named tasks, and brings events of other threads to the GUI thread.

    Attributes:
        is_settled: Whether `settle` has ended.

    Signals, all emitted on the GUI thread:
        changed: A `ChangeSet`, the union of all changes since the last one.
        day_began: Nothing; a new local day, within half a minute of it.
        worker_changed: A `WorkerStatus`, the newest one of each worker that changed.
        task_failed: The exception of a failed task, unless its `on_error` took it.
    """

    changed = Signal(object)
    day_began = Signal()
    worker_changed = Signal(object)
    task_failed = Signal(object)
    _event_posted = Signal()
    _call_posted = Signal(object)

    def __init__(
        self, parent: QObject | None = None, today: Callable[[], date] = date.today
    ) -> None:
        super().__init__(parent)
        self._today, self._day = today, today()
        self.date_check = QTimer(self, interval=_DATE_CHECK_MS)
        self.date_check.timeout.connect(self._on_date_check)
        self.date_check.start()
        self._pool = QThreadPool(self, maxThreadCount=_POOL_THREADS)
        self._writes_pool = QThreadPool(self, maxThreadCount=1)
        self._workers_pool = QThreadPool(self, maxThreadCount=len(WorkerName) + _LONG_CALLS)
        self._lock = threading.Lock()
        self._pending_change = ChangeSet()
        self._pending_statuses: dict[WorkerName, WorkerStatus] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._submitted = 0
        self._is_closing = False
        self.is_settled = False
        self._gather = QTimer(self, singleShot=True, interval=_GATHER_MS)
        self._gather.timeout.connect(self._on_gather_timeout)
        self._call_posted.connect(self._on_call_posted, Qt.ConnectionType.QueuedConnection)
        self._event_posted.connect(self._on_event_posted, Qt.ConnectionType.QueuedConnection)

    # -- work for other threads

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` on the pool; return what it returns, raise what it raises."""
        future: Future[T] = Future()
        self._pool.start(_Work(call, future))
        return await asyncio.wrap_future(future)

    async def write(self, call: Callable[[], T]) -> T:
        """Like `run`, for changes: one at a time, in the order of the calls.

        The call is carried out even if the task that awaits it is cancelled.
        """
        future: Future[T] = Future()
        self._writes_pool.start(_Work(call, future))
        return await _shielded(future)

    async def wait(self, future: "Future[T]") -> T:
        """Return the result of another thread's future, which is not cancelled with this task."""
        return await _shielded(future)

    def host_worker(self, loop: Callable[[], None]) -> None:
        """Run a worker's loop in a QRunnable of its own until it returns; not after `settle`."""
        if not self.is_settled:
            self._workers_pool.start(_Work(loop, Future()))

    def run_long(self, call: Callable[[], object], on_error: OnError) -> None:
        """Submit a call that may take minutes, beside the pool; it is not waited for at the shutdown."""
        future: Future[object] = Future()
        self._workers_pool.start(_Work(call, future))
        self.submit(self.wait(future), on_error)

    def on_gui(self, call: Callable[[], object]) -> Callable[[], None]:
        """Return a function for any thread that runs `call` on the GUI thread."""
        return lambda: self._call_posted.emit(call)

    # -- tasks on the GUI thread's loop

    def start(self, name: str, work: Work, on_error: OnError | None = None) -> "asyncio.Task[Any]":
        """Run a coroutine as the task `name`, after cancelling the one of that name.

        A `KnownError` goes to `on_error`, if given and not of a dialog that is gone; others become
        `task_failed`, which the window shows. After `settle` the task is cancelled before it begins.
        """
        if (earlier := self._tasks.pop(name, None)) is not None:
            earlier.cancel()
        task = asyncio.get_event_loop().create_task(work, name=name)
        if self._is_closing:
            task.cancel()
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._on_task_done(done, on_error))
        return task

    def submit(self, work: Work, on_error: OnError | None = None) -> "asyncio.Task[Any]":
        """Run a coroutine as a task that no later one replaces, such as a command of the user."""
        self._submitted += 1
        return self.start(f"command {self._submitted}", work, on_error)

    def load(
        self,
        name: str,
        read: Callable[[], T],
        show: Callable[[T], object],
        on_error: OnError | None = None,
    ) -> None:
        """Call `read` on the pool, then `show` with its result, as the task `name`.

        Nothing happens with a method of a dialog that is gone.
        """

        async def work() -> None:
            if is_there(show):
                found = await self.run(read)
                if is_there(show):
                    show(found)

        self.start(name, work(), on_error)

    def save(
        self,
        write: Callable[[], T],
        then: Callable[[T], object] = lambda _: None,
        on_error: OnError | None = None,
    ) -> None:
        """Submit a write; call `then` with its result once it has succeeded."""

        async def work() -> None:
            done = await self.write(write)
            if is_there(then):
                then(done)

        self.submit(work(), on_error)

    async def run_alone(self, name: str, call: Callable[[], T]) -> T | KnownError | None:
        """Like `run`, after an earlier call of that name has ended: at most one thread is busy.

        A known error is returned; None means that the call was cancelled or failed.
        """

        async def outcome() -> T | KnownError:
            try:
                return await self.run(call)
            except KnownError as error:
                return error

        while (earlier := self._tasks.get(name)) is not None:
            await asyncio.wait([earlier])
        task = self.start(name, outcome())
        await asyncio.wait([task])
        if task.cancelled() or task.exception() is not None:
            return None
        found: T | KnownError = task.result()
        return found

    def is_running(self, name: str) -> bool:
        """Return whether the task `name` has not ended."""
        return name in self._tasks

    def cancel(self, name: str) -> None:
        """Cancel the task `name`, if it runs."""
        if (task := self._tasks.pop(name, None)) is not None:
            task.cancel()

    async def settle(self, timeout_s: float) -> None:
        """Accept no new tasks, wait for those that run, then cancel the rest."""
        self._is_closing = True
        if tasks := tuple(self._tasks.values()):
            await asyncio.wait(tasks, timeout=timeout_s)
        self.cancel_all()
        self.is_settled = True

    def cancel_all(self) -> None:
        for name in tuple(self._tasks):
            self.cancel(name)

    def wait_for_pools(self, timeout_ms: int) -> bool:
        """Wait for the pools to empty; blocking, for the shutdown."""
        pools = (self._pool, self._writes_pool, self._workers_pool)
        return all(pool.waitForDone(timeout_ms) for pool in pools)

    # -- events of other threads

    def subscribe(
        self, listener: Listener, *topics: str, while_shown: QWidget | None = None
    ) -> None:
        """Call `listener` after changes of a topic: a field of `ChangeSet`, or the key of a setting.

        With `while_shown`, only while that is on screen.
        """
        wanted = frozenset(topics)

        def on_changed(change: ChangeSet) -> None:
            is_shown = while_shown is None or while_shown.isVisible()
            if is_shown and not wanted.isdisjoint(change.topics):
                listener(change)

        self.changed.connect(on_changed)

    def post_change(self, changed: ChangeSet) -> None:
        """Emit `changed` soon; called on the writer thread."""
        with self._lock:
            self._pending_change = self._pending_change | changed
        self._event_posted.emit()

    def post_status(self, status: WorkerStatus) -> None:
        """Emit `worker_changed` soon; called on the worker's thread."""
        with self._lock:
            self._pending_statuses[status.name] = status
        self._event_posted.emit()

    @Slot(object)
    def _on_call_posted(self, call: Callable[[], object]) -> None:
        call()

    @Slot()
    def _on_event_posted(self) -> None:
        if not self._gather.isActive():
            self._gather.start()

    @Slot()
    def _on_date_check(self) -> None:
        before, self._day = self._day, self._today()
        if self._day != before:
            self.day_began.emit()

    @Slot()
    def _on_gather_timeout(self) -> None:
        with self._lock:
            change, self._pending_change = self._pending_change, ChangeSet()
            statuses, self._pending_statuses = self._pending_statuses, {}
        if change != ChangeSet():
            self.changed.emit(change)
        for status in statuses.values():
            self.worker_changed.emit(status)

    def _on_task_done(self, task: "asyncio.Task[Any]", on_error: OnError | None) -> None:
        if self._tasks.get(task.get_name()) is task:
            del self._tasks[task.get_name()]
        if task.cancelled() or (error := task.exception()) is None:
            return
        if on_error is not None and isinstance(error, KnownError) and is_there(on_error):
            on_error(error)
            return
        if not isinstance(error, KnownError):
            _log.error("the task %s failed", task.get_name(), exc_info=error)
        self.task_failed.emit(error)


class Refresh(QTimer):
    """A task that runs at most once per interval, and once at a time.

    A slow query that is restarted again and again would never show anything. `parent` ends it.
    """

    def __init__(
        self, parent: QObject, bridge: Bridge, name: str, interval_ms: int, work: Callable[[], Work]
    ) -> None:
        super().__init__(parent, singleShot=True, interval=interval_ms)
        self._bridge = bridge
        self._name = name
        self._work = work
        self.timeout.connect(self.run)

    def request(self) -> None:
        """Run the task after the interval."""
        if not self.isActive():
            self.start()

    def run(self) -> None:
        """Run the task now, or after the interval if it is running."""
        if self._bridge.is_running(self._name):
            self.start()
        else:
            self._bridge.start(self._name, self._work())


def is_there(call: Callable[..., object]) -> bool:
    """Return whether a function is no method of a widget that was deleted."""
    owner = getattr(call, "__self__", None)
    return not isinstance(owner, QObject) or isValid(owner)


async def _shielded(future: "Future[T]") -> T:
    """Return the result of a future that goes on when the waiting task is cancelled.

    After a cancellation, as during shutdown, nobody handles its error: it is logged.
    """
    inner = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(inner)
    except asyncio.CancelledError:
        inner.add_done_callback(_log_failure)
        raise


def _log_failure(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        _log.info("a call whose task was cancelled has failed", exc_info=error)

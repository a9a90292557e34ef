"""Leftovers of a test: threads, asyncio tasks, work in Qt's global pool, open windows."""

import asyncio
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

GRACE_S = 30.0
TRIES = 1000  # as asyncio.all_tasks() does
# Threads that belong to the test runner itself.
ALLOWED_PREFIXES = ("pytest_timeout", "execnet", "xdist")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was there before the test: a fixture of a wider scope may keep it."""

    threads: frozenset[threading.Thread]
    loops: frozenset[int]
    windows: frozenset[int]


def snapshot() -> Snapshot:
    """Return what runs now."""
    loops = frozenset(id(task.get_loop()) for task in _pending_tasks())
    windows = frozenset(_open_windows())
    return Snapshot(frozenset(threading.enumerate()), loops, windows)


def since(before: Snapshot, grace_s: float = GRACE_S) -> list[str]:
    """Return as text what is new and does not end within `grace_s`; close new windows."""
    return [
        *_threads(before.threads, grace_s), *_tasks(before.loops), *_qt_pool(grace_s),
        *_close_windows(before.windows),
    ]  # fmt: skip


def _threads(before: frozenset[threading.Thread], grace_s: float) -> list[str]:
    deadline = time.monotonic() + grace_s
    left = [thread for thread in threading.enumerate() if thread not in before]
    left = [thread for thread in left if not _is_allowed(thread)]
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [f"thread {thread.name}" for thread in left if thread.is_alive()]


def _is_allowed(thread: threading.Thread) -> bool:
    # A dummy stands for a thread Python did not start (Qt's, DuckDB's) and outlives it.
    return isinstance(thread, threading._DummyThread) or thread.name.startswith(ALLOWED_PREFIXES)


def _tasks(loops_before: frozenset[int]) -> list[str]:
    return [
        f"task {task.get_name()} ({task.get_coro()!r})"
        for task in _pending_tasks()
        if id(task.get_loop()) not in loops_before
    ]


def _pending_tasks() -> list["asyncio.Task[Any]"]:
    # Python 3.12 renamed the set; asyncio.all_tasks() would answer for one loop only.
    name = "_scheduled_tasks" if sys.version_info >= (3, 12) else "_all_tasks"
    known = getattr(asyncio.tasks, name)
    for _ in range(TRIES):
        try:
            return [task for task in list(known) if not task.done()]
        except RuntimeError:  # the set grew meanwhile, in another thread
            continue
    return []


def _qt_pool(grace_s: float) -> list[str]:
    core = sys.modules.get("PySide6.QtCore")
    if core is None:
        return []
    pool = core.QThreadPool.globalInstance()
    if pool.waitForDone(int(grace_s * 1000)):
        return []
    return [f"{pool.activeThreadCount()} runnables in Qt's global pool"]


def _open_windows() -> dict[int, Any]:
    """Return the visible windows by their address in Qt, which wrappers in Python share."""
    widgets, shiboken = sys.modules.get("PySide6.QtWidgets"), sys.modules.get("shiboken6")
    if widgets is None or shiboken is None or widgets.QApplication.instance() is None:
        return {}
    _delete_now()
    shown = (each for each in widgets.QApplication.topLevelWidgets() if each.isVisible())
    return {shiboken.getCppPointer(each)[0]: each for each in shown}


def _close_windows(before: frozenset[int]) -> list[str]:
    left = [each for address, each in _open_windows().items() if address not in before]
    names = [f"window {type(each).__name__} '{each.windowTitle()}'" for each in left]
    for each in left:
        each.hide()
        each.deleteLater()
    if left:
        _delete_now()
    return names


def _delete_now() -> None:
    """Delete what was to be deleted by the event loop, such as the children of closed windows."""
    core = sys.modules["PySide6.QtCore"]
    core.QCoreApplication.sendPostedEvents(None, core.QEvent.Type.DeferredDelete.value)

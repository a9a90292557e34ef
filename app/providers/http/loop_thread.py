"""Event loops in threads of their own, for blocking callers of asynchronous code."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from app.domain.errors import Cancelled

T = TypeVar("T")

_CANCEL_CHECK_S = 0.05
_CLOSE_LIMIT_S = 3.0


class EventLoopThread:
    """An event loop that runs coroutines for callers on other threads; its thread starts with the first.

    It is a daemon, so that a program that does not call `close` can end.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = asyncio.Event()
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._is_closed = False

    def at_close(self, closer: Callable[[], Awaitable[object]]) -> None:
        """Await `closer` on the loop before it ends."""
        with self._lock:
            self._closers.append(closer)

    def call(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        cancelled: Callable[[], bool] | None = None,
    ) -> T:
        """Return the result of `work()` or raise its exception. Blocks.

        Raises Cancelled within about 50 ms of `cancelled()`, and when the loop is closed.
        """
        with self._lock:  # a call that precedes `close` is cancelled by it
            loop = self._running()
            future = asyncio.run_coroutine_threadsafe(work(), loop)
        interval_s = None if cancelled is None else _CANCEL_CHECK_S
        while not concurrent.futures.wait([future], interval_s).done:
            if cancelled is not None and cancelled():
                future.cancel()
                break
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled("The request was stopped") from None

    def close(self) -> None:
        """Cancel all work, close connections, and wait for the thread for at most 3 s. Idempotent."""
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(self._closing.set)
        thread.join(_CLOSE_LIMIT_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._is_closed:
            raise Cancelled("The program is closing")
        if self._loop is None:
            started = threading.Event()
            self._thread = threading.Thread(
                target=self._main, args=(started,), name=self._name, daemon=True
            )
            self._thread.start()
            started.wait()
        if self._loop is None:
            raise RuntimeError(f"the loop {self._name} did not start")
        return self._loop

    def _main(self, started: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            started.set()
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._closing.wait()
        own = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for closer in self._closers:
            await closer()

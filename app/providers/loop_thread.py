"""An event loop in a thread of its own, for blocking callers of what is asynchronous."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from app.domain.errors import Cancelled

T = TypeVar("T")

_LOOK_S = 0.05  # how long a cancelled call may go on
_GOODBYE_S = 3.0


class LoopThread:
    """Runs coroutines for callers on other threads. The thread starts with the first call.

    It is a daemon, so that a program that forgets `close` still ends.
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
        """Have `closer` awaited on the loop before it ends."""
        with self._lock:
            self._closers.append(closer)

    def call(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        cancelled: Callable[[], bool] | None = None,
    ) -> T:
        """Return what `work()` returns or raise what it raises. Blocks.

        Raises Cancelled within some 50 ms of `cancelled()`, and when the loop is closed.
        """
        with self._lock:  # what is handed over before the loop is told to end still gets its end
            loop = self._running()
            future = asyncio.run_coroutine_threadsafe(work(), loop)
        patience_s = None if cancelled is None else _LOOK_S
        while not concurrent.futures.wait([future], patience_s).done:
            if cancelled is not None and cancelled():
                future.cancel()
                break
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled("The request was stopped") from None

    def close(self) -> None:
        """Stop what runs, close connections, and wait for the thread: 3 s at most. Idempotent."""
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(self._closing.set)
        thread.join(_GOODBYE_S)

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

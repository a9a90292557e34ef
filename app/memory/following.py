"""A thread that keeps something in step with the store: what it does is its owner's business."""

import logging
import threading
from collections.abc import Callable

from app.domain.errors import KnownError
from app.domain.events import Changed
from app.storage.store import Store

_log = logging.getLogger(__name__)
_RETRY_S = 10.0


class Follower:
    """Calls `catch_up` on a thread of its own: at first, after each change that matters, when woken.

    What is refused, or fails by a bug, is tried again after a while. All its methods but `stop`
    return at once, may be called from any thread and work whether or not the thread is there.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        catch_up: Callable[[], None],
        matters: Callable[[Changed], bool],
    ) -> None:
        """Follow `store`; `name` is the thread's, such as "text index", and stands in the log."""
        self._store = store
        self._name = name
        self._catch_up = catch_up
        self._matters = matters
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._thread is not None

    @property
    def is_stopping(self) -> bool:
        """Whether `catch_up` should end after the batch at hand."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Catch up in the background, now and after every change; safe to call twice."""
        if self._thread is not None:
            return
        self._unsubscribe = self._store.subscribe(self._on_changed)
        self._news.set()
        self._thread = threading.Thread(
            target=self._serve, name=self._name.replace(" ", "-"), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the batch at hand; safe to call twice. Blocking."""
        self._unsubscribe()
        self._unsubscribe = lambda: None
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Catch up soon, where there is a thread for it."""
        self._news.set()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._news.wait()
            self._news.clear()
            if self._stopping.is_set():
                return
            try:
                self._catch_up()
            except KnownError as error:
                _log.warning("the %s waits: %s", self._name, error)
                self._wait_to_retry()
            except Exception:  # noqa: BLE001 - the thread must live: search answers without it
                _log.exception("the %s could not be brought in step", self._name)
                self._wait_to_retry()

    def _wait_to_retry(self) -> None:
        self._stopping.wait(_RETRY_S)
        self._news.set()

    def _on_changed(self, changed: Changed) -> None:
        if self._matters(changed):
            self._news.set()

"""Follower: a background thread that brings an index up to date after each change."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.storage.engine.store import Store

_log = logging.getLogger(__name__)
_RETRY_S = 10.0
_IDLE_S = 5.0

IsCancelled = Callable[[], bool]


class Follower(ABC):
    """Catches up on its own thread: at the start, after each relevant change, and when woken.

    Known errors and bugs are retried after a delay. Thread-safe; `start` and `wake` return at once.
    """

    def __init__(self, store: Store, name: str) -> None:
        """Follow `store`; `name` names the thread and appears in the log, such as "text index"."""
        self._store = store
        self._name = name
        self._busy = threading.Lock()
        self._wake_event = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Catch up in the background, now and after every change; may be called twice."""
        if self._thread is not None:
            return
        self._unsubscribe = self._store.subscribe(self._on_changed)
        self._wake_event.set()
        self._thread = threading.Thread(
            target=self._run, name=self._name.replace(" ", "-"), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the current batch; may be called twice. Blocking."""
        self._unsubscribe()
        self._unsubscribe = lambda: None
        self._stopping.set()
        self._wake_event.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Catch up soon, if the thread runs."""
        self._wake_event.set()

    def catch_up(self, is_cancelled: IsCancelled = lambda: False) -> None:
        """Bring the index up to date now. Blocking; raises StorageError, IndexUnavailable.

        `is_cancelled` is called between batches; finished batches are kept.
        """
        with self._busy:
            self._catch_up(is_cancelled)

    @abstractmethod
    def _catch_up(self, is_cancelled: IsCancelled) -> None:
        """Catch up, holding the lock; end after the current batch if cancelled or stopping."""

    @abstractmethod
    def _is_relevant(self, changed: ChangeSet) -> bool:
        """Whether a change makes the index fall behind."""

    def _on_idle(self) -> None:  # noqa: B027 - most followers hold nothing
        """Release what only long work needs; called once after some seconds without work."""

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._wake_event.wait(_IDLE_S):
                    with self._busy:
                        self._on_idle()
                    self._wake_event.wait()
                self._wake_event.clear()
                if self._stopping.is_set():
                    return
                self.catch_up()
                continue
            except KnownError as error:
                _log.warning("the %s waits: %s", self._name, error)
            except Exception:  # noqa: BLE001 - the thread must live: search answers without it
                _log.exception("the %s failed", self._name)
            self._stopping.wait(_RETRY_S)
            self._wake_event.set()

    def _on_changed(self, changed: ChangeSet) -> None:
        if self._is_relevant(changed):
            self._wake_event.set()

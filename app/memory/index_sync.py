"""Keeps the text index in step with the database: what is missing is found by position.

The index is written after the database, so a crash between the two leaves it behind, never ahead;
the next start goes on from where it stands, and an index that is missing or damaged starts at 0.
"""

import logging
import threading
import time
from collections.abc import Callable

from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.ports import TextIndex
from app.storage.passages import Passages
from app.storage.store import Store

_log = logging.getLogger(__name__)
_BATCH = 500
_COMMIT_EVERY_S = 1.0
_RETRY_S = 10.0


class IndexSync:
    """One text index and the thread that feeds it.

    Attributes:
        covered_share: The share (0-1) of passages that search can find; 1.0 when in step.
    """

    def __init__(self, store: Store, index: TextIndex) -> None:
        self._passages = Passages(store)
        self._store = store
        self._index = index
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._busy = threading.Lock()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self.covered_share = 1.0

    def start(self) -> None:
        """Catch up in the background, now and after every change."""
        self._unsubscribe = self._store.subscribe(self._on_changed)
        self._news.set()
        self._thread = threading.Thread(target=self._serve, name="text-index", daemon=True)
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
        self._index.close()

    def catch_up(self) -> None:
        """Bring the index in step now. Blocking; raises StorageError, IndexUnavailable."""
        with self._busy:
            self._catch_up()

    def rebuild(self) -> None:
        """Throw the index away and make it anew. Blocking; search answers partially meanwhile."""
        with self._busy:
            self._index.start_over()
            self._catch_up()

    def _catch_up(self) -> None:
        if self._index.needs_rebuild is not None:
            _log.info("the text index is built anew: %s", self._index.needs_rebuild)
            self._index.start_over()
        committed_at = time.monotonic()
        total = sum(self._passages.count_by_kind().values())
        done, written = self._index.position, 0
        while not self._stopping.is_set():
            work = self._passages.work_since(done, _BATCH)
            if work.removed:
                self._index.remove(work.removed)
            if work.added:
                self._index.put(self._passages.texts(work.added))
            written += len(work.added) + len(work.removed)
            done = work.position
            if written and (work.is_last or time.monotonic() - committed_at > _COMMIT_EVERY_S):
                self._index.commit(done)
                committed_at, written = time.monotonic(), 0
                self.covered_share = min(1.0, self._index.passage_count / total) if total else 1.0
            if work.is_last:
                break
        else:
            return
        self.covered_share = 1.0

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._news.wait()
            self._news.clear()
            if self._stopping.is_set():
                return
            try:
                self.catch_up()
            except KnownError as error:
                _log.warning("the text index waits: %s", error)
                self._stopping.wait(_RETRY_S)
                self._news.set()
            except Exception:  # noqa: BLE001 - the thread must live: search answers without it
                _log.exception("the text index could not be brought in step")
                self._stopping.wait(_RETRY_S)

    def _on_changed(self, changed: Changed) -> None:
        if changed.passages:
            self._news.set()

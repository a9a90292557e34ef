"""Keeps the text index in step with the database: what is missing is found by position.

The index is written after the database, so a crash between the two leaves it behind, never ahead;
the next start goes on from where it stands, and an index that is missing or damaged starts at 0.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from app.domain.errors import KnownError
from app.domain.passages import PassageText
from app.domain.ports import TextIndex
from app.memory.following import Follower
from app.storage.passages import Passages
from app.storage.store import Store

_log = logging.getLogger(__name__)
_BATCH = 500
_COMMIT_EVERY_S = 1.0
_PATIENCE_S = 1.0

IsCancelled = Callable[[], bool]


def _never() -> bool:
    return False


class IndexSync:
    """One text index and the thread that feeds it.

    Attributes:
        covered_share: The share (0-1) of passages that search can find, without the manual's, which
            are no history; 1.0 when in step.
        give_way: Called on the thread at work before each passage; it may rest.
    """

    def __init__(self, store: Store, index: TextIndex) -> None:
        self._passages = Passages(store)
        self._index = index
        self._busy = threading.Lock()
        self._follower = Follower(
            store, "text index", self.catch_up, lambda changed: changed.passages
        )
        self._is_counted = False
        self._made_at = 0  # what was forgotten up to this position of the journal is not in it
        self.covered_share = self._share()
        self.give_way: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Catch up in the background, now and after every change; safe to call twice."""
        self._follower.start()

    def stop(self) -> None:
        """End the thread after the batch at hand; safe to call twice. Blocking."""
        self._follower.stop()
        with self._busy:
            self._index.close()

    def catch_up(self, is_cancelled: IsCancelled = _never) -> None:
        """Bring the index in step now. Blocking; raises StorageError, IndexUnavailable.

        `is_cancelled` is asked between batches; what is done by then is kept.
        """
        with self._busy:
            self._catch_up(is_cancelled)

    def catch_up_a_little(self, is_cancelled: IsCancelled = _never) -> None:
        """Like `catch_up`, before a search; while another thread is at it, wait a second at most.

        Search then answers with what it has, and `covered_share` says so. Never raises.
        """
        if not self._busy.acquire(timeout=_PATIENCE_S):
            return
        try:
            self._catch_up(is_cancelled)
        except KnownError as error:
            _log.warning("the text index waits: %s", error)
        finally:
            self._busy.release()

    def wake(self) -> None:
        """Look at once whether the index is in step, where there is a thread to do it."""
        self._follower.wake()

    def catch_up_soon(self) -> None:
        """Catch up in the background where there is a thread for it, else now; raises likewise."""
        if self._follower.is_running:
            self.wake()
        else:
            self.catch_up()

    def rebuild(self, is_cancelled: IsCancelled = _never) -> None:
        """Throw the index away and make it anew, in the background where there is a thread.

        Then it returns at once, else it blocks; search answers partially meanwhile. Raises
        StorageError, IndexUnavailable.
        """
        with self._busy:
            self._start_over("someone asked for it")
        if self._follower.is_running:
            self.wake()
        else:
            self.catch_up(is_cancelled)

    def _share(self) -> float:
        held, total = self._passages.history_at(self._index.position)
        if self._index.needs_rebuild is not None and not self._index.passage_count:
            held = 0
        return held / total if total else 1.0

    def _catch_up(self, is_cancelled: IsCancelled) -> None:
        reason = self._index.needs_rebuild
        if reason is None and not self._is_counted and not self._counts_agree():
            reason = "it does not hold what it should"
        if reason is not None:
            self._start_over(reason)
        self._is_counted = True
        while not self._follow(is_cancelled):
            self._start_over("its files hold words that are forgotten")

    def _start_over(self, reason: str) -> None:
        _log.info("the text index is built anew: %s", reason)
        _, self._made_at = self._passages.forgetting()
        self._index.start_over()
        self.covered_share = self._share()

    def _counts_agree(self) -> bool:
        """Whether the index holds as many passages as there were at its position."""
        least, most = self._passages.count_at(self._index.position)
        return least <= self._index.passage_count <= most

    def _follow(self, is_cancelled: IsCancelled) -> bool:
        """Take in what came after the index's position, up to the end or the wish to stop.

        Return False, at once, when something was forgotten that the index may hold: dropping it
        would leave its words in the files.
        """
        committed_at = time.monotonic()
        done, written = self._index.position, 0
        self._made_at = max(self._made_at, done)
        while True:
            is_last = self._follower.is_stopping or is_cancelled()
            if not is_last:
                work = self._passages.work_since(done, _BATCH)
                # Asked after the work, so that what is forgotten later lies beyond its position.
                if self._passages.forgetting()[0] > self._made_at:
                    return False
                if work.removed:
                    self._index.remove(work.removed)
                if work.added:
                    affected = self._passages.with_turns_before(work.added)
                    self._index.put(self._politely(self._passages.texts(affected)))
                written += len(work.added) + len(work.removed)
                done, is_last = work.position, work.is_last
            is_due = is_last or time.monotonic() - committed_at > _COMMIT_EVERY_S
            if is_due and (written or (done and not self._index.position)):
                self._index.commit(done)
                committed_at, written = time.monotonic(), 0
            if is_due:
                self.covered_share = self._share()
            if is_last:
                return True

    def _politely(self, texts: Iterable[PassageText]) -> Iterator[PassageText]:
        """Yield texts, giving way before each."""
        for text in texts:
            self.give_way()
            yield text

"""Text index synchronization with the database, by journal position.

The index is written after the database, so a crash leaves it behind, never ahead. The next start
continues at its position; a missing or damaged index starts at 0.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.passages import PassageText
from app.domain.translation import tr
from app.index.follower import Follower, IsCancelled
from app.index.text_index import TantivyTextIndex
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.texts import PassageTexts

_log = logging.getLogger(__name__)
_BATCH = 500
_COMMIT_EVERY_S = 1.0
_COMMIT_BY_PROCESS_EVERY_S = 3.0  # each takes 70 ms, with what is written and opened after it
_BUSY_S = 0.5  # of processor time within `_RECENT_S`: worth a process, which takes 0.4 to start
_RECENT_S = 5.0
_AFTER_FAILURE_S = 600.0  # without a process
_MANY = 50  # passages at once, as in an import
_MAX_WAIT_S = 1.0
_FEW_BATCHES = 2  # some 0.7 s of processor time


class TextIndexSync(Follower):
    """Feeds one text index.

    Attributes:
        covered_share: The share (0-1) of passages, without manual pages, that search finds; 1.0 if
            up to date.
        throttle: Called on the working thread before each passage; it may sleep.
    """

    def __init__(self, store: Store, index: TantivyTextIndex) -> None:
        super().__init__(store, "text index")
        self._passages = Passages(store)
        self._index = index
        self._is_counted = False
        self._spent_s = self._spent_at = self._many_at = 0.0  # in puts of late; when, and of many
        self._process_again_at = 0.0
        self.covered_share = self._share()
        self.throttle: Callable[[], None] = lambda: None

    def stop(self) -> None:
        """End the thread after the current batch and close the index; idempotent. Blocking."""
        super().stop()
        with self._busy:
            self._index.close()

    def catch_up_a_little(self, is_cancelled: IsCancelled = lambda: False) -> KnownError | None:
        """Catch up by some 1,000 passages at most; if another thread is at it, wait a second for it.

        Search then uses what is there, and `covered_share` says how much: an index that is built anew is
        left to the thread, and to commands that take long anyway. Return why it failed; never raises.
        """
        if not self._busy.acquire(timeout=_MAX_WAIT_S):
            return None
        try:
            self._catch_up(is_cancelled, _FEW_BATCHES)
        except KnownError as error:
            _log.warning("the text index waits: %s", error)
            return error
        else:
            return None
        finally:
            self._busy.release()
            self.wake()

    def catch_up_soon(self) -> tuple[str, ...]:
        """Catch up in the background if the thread runs, else a little now, after a deletion. Never raises.

        Return what remains in the index where that failed, as sentences for the user.
        """
        if self._thread is not None:
            self.wake()
        elif error := self.catch_up_a_little():
            left = tr("It was deleted, but its words remain in the search index for now: {why}")
            return (left.format(why=error.display_text),)
        return ()

    def rebuild(self, is_cancelled: IsCancelled = lambda: False) -> None:
        """Delete the index and build it again, by the thread if it runs; search is partial meanwhile."""
        with self._busy:
            self._start_over("requested")
        if self._thread is not None:
            self.wake()
        else:
            self.catch_up(is_cancelled)

    @property
    def owes_erasure(self) -> bool:
        """Whether words of forgotten passages, which no search finds, are still in the files."""
        return self._passages.forgetting()[0] > self._index.clean_position

    def erase(self, is_cancelled: IsCancelled = lambda: False) -> None:
        """Rebuild the index if it `owes_erasure`, beside the present one, which answers meanwhile.

        Removing a passage leaves its words in the files until they are merged, and the binding
        cannot merge chosen files. Blocking; as `catch_up`.
        """
        with self._busy:
            self._catch_up(is_cancelled)
            if self.owes_erasure and not is_cancelled():
                _log.info("the text index is rebuilt: it contains forgotten passages")
                self._index.start_anew(self._passages.forgetting()[1])
                self._follow(is_cancelled)

    def _is_relevant(self, changed: ChangeSet) -> bool:
        return changed.passages

    def _on_idle(self) -> None:
        self._use_process(wanted=False)

    def _share(self) -> float:
        held, total = self._passages.history_at(self._index.answering_position)
        if self._index.needs_rebuild is not None and not self._index.passage_count:
            held = 0
        return held / total if total else 1.0

    def _catch_up(self, is_cancelled: IsCancelled, most_batches: float = math.inf) -> None:
        reason: str | None = self._index.needs_rebuild
        if reason is None and not self._is_counted:
            least, most = self._passages.count_at(self._index.position)
            if not least <= self._index.passage_count <= most:
                reason = "its passages do not match the database"
        if reason is not None:
            self._start_over(reason)
        self._is_counted = True
        self._follow(is_cancelled, most_batches)

    def _start_over(self, reason: str) -> None:
        _log.info("the text index is rebuilt: %s", reason)
        self._index.start_over(self._passages.forgetting()[1])
        self.covered_share = self._share()

    def _follow(self, is_cancelled: IsCancelled, most_batches: float = math.inf) -> None:
        """Index what came after the index's position, until the end, a stop or the last batch."""
        committed_at = time.monotonic()
        done, written = self._index.position, 0
        for batches in count():
            is_last = batches >= most_batches or self._stopping.is_set() or is_cancelled()
            is_whole = False
            if not is_last:
                work = self._passages.work_since(done, _BATCH)
                if work.removed:
                    self._index.remove(work.removed)
                if work.added:
                    affected = self._passages.with_turns_before(work.added)
                    self._put(self._passages.texts(affected), len(work.added))
                written += len(work.added) + len(work.removed)
                done, is_last = work.position, work.is_last
                is_whole = is_last
            wanted = most_batches == math.inf and self._is_worth_a_process()
            every_s = _COMMIT_BY_PROCESS_EVERY_S if wanted else _COMMIT_EVERY_S
            is_other = wanted is not self._index.has_process
            is_due = is_last or is_other or time.monotonic() - committed_at > every_s
            if is_due and (written or (done and not self._index.position)):
                self._index.commit(done)
                committed_at, written = time.monotonic(), 0
            self._use_process(wanted=wanted and not (is_last and self._thread is None))
            if is_whole:
                self._index.finish()
            if is_due:
                self.covered_share = self._share()
            if is_last:
                return

    def _put(self, texts: PassageTexts, count: int) -> None:
        """Index texts, and note how long it took and whether they were many."""
        started = time.thread_time()
        self._index.put(texts if self._index.has_process else self._throttled(texts))
        ended = time.monotonic()
        self._spent_s *= math.exp((self._spent_at - ended) / _RECENT_S)
        self._spent_s += time.thread_time() - started
        self._spent_at = ended
        if count >= _MANY:
            self._many_at = ended

    def _is_worth_a_process(self) -> bool:
        """Whether much was indexed lately; a process that was started goes on while much comes."""
        if self._index.has_process:
            return time.monotonic() - self._many_at < _RECENT_S
        return self._spent_s > _BUSY_S and time.monotonic() >= self._process_again_at

    def _use_process(self, *, wanted: bool) -> None:
        """Write in a process of its own, or here; one that fails is not started again for a while."""
        if wanted is not self._index.has_process:
            self._process_again_at = time.monotonic() + _AFTER_FAILURE_S if wanted else 0.0
            self._index.use_process(wanted=wanted)

    def _throttled(self, texts: Iterable[PassageText]) -> Iterator[PassageText]:
        """Yield texts, throttled before each."""
        for text in texts:
            self.throttle()
            yield text

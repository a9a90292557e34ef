"""What keeps a store in order while nobody asks: checkpoints, backups, an empty trash, memory.

One background thread that waits for quiet moments: no write for some seconds. What is overdue for
minutes is done in any case. No Qt; how each duty is done stands in its own module.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.errors import Cancelled, KnownError, StorageError
from app.domain.events import Changed
from app.storage.apply import read_state
from app.storage.backup import backups_of, make_backup
from app.storage.forget import finish_forgetting, purge_trash
from app.storage.image import read_everything
from app.storage.store import Store
from app.storage.times import now

_log = logging.getLogger(__name__)
QUIET_S = 5.0
OVERDUE_S = 600.0
RETRY_S = 300.0
BACKUP_EVERY_S = 1800.0
REST_EVERY_S = 30.0
STOP_WITHIN_S = 3.0
TRASH_KEPT_FOR = timedelta(days=30)
_FULL_READ_EVERY_S = 24 * 3600.0
_LOOK_EVERY_S = 3600.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Clock:
    """Two clocks: seconds that never jump, for waiting; the time (UTC), for ages on disk."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = now


@dataclass(slots=True)
class _Duty:
    """Something to do when it is due and the moment is quiet; `every_s` later it is due again."""

    work: Callable[[], None]
    every_s: float
    due_at: float
    problem: str = ""


class Caretaker:
    """Looks after one store from `start` to `stop`. No method raises."""

    def __init__(
        self, store: Store, clock: Clock = Clock(), tell: Callable[[str], None] = _log.warning
    ) -> None:
        """`tell` is called, from the caretaker's thread, with what the user should know at once."""
        self._store = store
        self._clock = clock
        self._tell = tell
        self._news = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        at = clock.monotonic()
        self._written_at = at
        self._checkpoint = _Duty(self._fold_log, _NEVER, at)
        self._duties = (
            self._checkpoint,
            _Duty(lambda: _finish(store), _LOOK_EVERY_S, at),
            _Duty(self._back_up, BACKUP_EVERY_S, at + self._until_backup_s()),
            _Duty(self._purge, _LOOK_EVERY_S, at + 30),
            _Duty(self._read_all, _LOOK_EVERY_S, at + 60),
            _Duty(store.database.rest, REST_EVERY_S, at + REST_EVERY_S),
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be done the last time it was tried, in words for the user."""
        return tuple(duty.problem for duty in self._duties if duty.problem)

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._unsubscribe = self._store.subscribe(self._on_changed)
        self._thread = threading.Thread(target=self._serve, name="caretaker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End within three seconds, breaking off a backup; safe to call twice. Blocking."""
        self._unsubscribe()
        with self._news:
            self._stopping = True
            self._news.notify_all()
        thread, self._thread = self._thread, None
        if thread is None or thread.ident is None:
            return
        until = time.monotonic() + STOP_WITHIN_S
        while thread.is_alive() and time.monotonic() < until:
            self._store.database.interrupt(thread.ident)
            thread.join(0.05)
        if thread.is_alive():
            _log.warning("the caretaker is still busy; its work goes on at the next start")

    def run_due(self) -> float:
        """Do what is due; return in how many seconds something will be. The thread calls it."""
        for duty in self._duties:
            with self._news:
                if self._stopping:
                    break
            if self._due_in_s(duty) <= 0:
                self._do(duty)
        return self._wait_s()

    def _serve(self) -> None:
        while True:
            self.run_due()
            with self._news:
                if self._stopping:
                    return
                self._news.wait(min(self._wait_s(), _LOOK_EVERY_S))

    def _do(self, duty: _Duty) -> None:
        next_in_s = duty.every_s
        duty.due_at = _NEVER
        try:
            duty.work()
            duty.problem = ""
        except Cancelled:
            next_in_s = RETRY_S
        except KnownError as error:
            _log.warning("put off: %s", error)
            duty.problem, next_in_s = str(error), RETRY_S
        except Exception:  # noqa: BLE001 - the thread must live, the log gets it
            _log.exception("the caretaker failed")
            next_in_s = RETRY_S
        with self._news:
            duty.due_at = min(duty.due_at, self._clock.monotonic() + next_in_s)

    def _wait_s(self) -> float:
        return max(0.0, min(map(self._due_in_s, self._duties)))

    def _due_in_s(self, duty: _Duty) -> float:
        quiet_at = min(self._written_at + QUIET_S, duty.due_at + OVERDUE_S)
        return max(duty.due_at, quiet_at) - self._clock.monotonic()

    def _on_changed(self, _changed: Changed) -> None:
        with self._news:
            self._written_at = self._clock.monotonic()
            if self._checkpoint.due_at == _NEVER:
                self._checkpoint.due_at = self._written_at
                self._news.notify_all()

    # -- the duties

    def _fold_log(self) -> None:
        if not self._store.checkpoint().result():
            raise StorageError("The database's log could not be folded in now")

    def _back_up(self) -> None:
        position = int(self._store.read(read_state)[0])
        newest = backups_of(self._store.paths.backups, self._store.uid)[:1]
        if position > (newest[0].position if newest else 0):
            make_backup(self._store)

    def _until_backup_s(self) -> float:
        """Return when the first backup is due: what a short session leaves, the next one does."""
        newest = backups_of(self._store.paths.backups, self._store.uid)[:1]
        if not newest:
            return QUIET_S
        age_s = (self._clock.now() - newest[0].made_at).total_seconds()
        return BACKUP_EVERY_S - age_s if 0 <= age_s < BACKUP_EVERY_S else QUIET_S

    def _purge(self) -> None:
        purge_trash(self._store, self._clock.now() - TRASH_KEPT_FOR)

    def _read_all(self) -> None:
        stamp = self._store.paths.checked
        read_at = stamp.stat().st_mtime if stamp.exists() else 0.0
        if abs(self._clock.now().timestamp() - read_at) < _FULL_READ_EVERY_S:
            return
        try:
            self._store.read(read_everything)
        except StorageError:
            self._store.suspect_damage()
            self._tell("The database is damaged. Start the program again: it will mend itself.")
            return
        stamp.touch(0o600)


def _finish(store: Store) -> None:
    finish_forgetting(store)

"""Maintenance in the background: checkpoints, backups, emptying the trash, releasing memory.

One thread waits until nothing has been written for some seconds. A task that is overdue for minutes
runs in any case. How each task is done is in its own module.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from app.domain.change_set import ChangeSet
from app.domain.errors import Cancelled, KnownError, StorageError
from app.storage.deletion.erasure import deletions_owed, erase_bytes, owe_superseded
from app.storage.deletion.forget import is_trash_due, purge_trash
from app.storage.engine.aggregate import read_state
from app.storage.engine.errors import directory_is_gone
from app.storage.engine.full_read import read_all_tables
from app.storage.engine.space import disk_is_full
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.safety.attachments import remove_unreferenced
from app.storage.safety.backup import backups_of, make_backup, newest_backup, try_backup

_log = logging.getLogger(__name__)
QUIET_S = 5.0
OVERDUE_S = 600.0
RETRY_S = 300.0
BACKUP_EVERY_S = 1800.0
REST_EVERY_S = 30.0
RESERVE_EVERY_S = 60.0
ERASE_EVERY_S = 120.0
ERASE_QUIET_S = 60.0
ERASE_WITHIN_S = 3600.0
"""Forgotten text is removed from the files together, after a minute without writes, within an hour."""

STOP_WITHIN_S = 3.0
TRASH_KEPT_FOR = timedelta(days=30)
SUPERSEDED_KEPT_FOR = timedelta(days=7)  # in a large library, whose files take minutes to rewrite
_DAY = timedelta(days=1)
_RECORDS_WITHOUT_BACKUP = 1_000
_QUICK_BYTES = 32 << 20  # of database and backups
_FULL_READ_EVERY_S = 24 * 3600.0
# After a full read that failed, as with too little memory: it takes long.
_READ_AGAIN_S = 6 * 3600.0
_LOOK_EVERY_S = 3600.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class MaintenanceClock:
    """Two clocks: seconds that never jump, for waiting; the time (UTC), for ages on disk."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = now


@dataclass(slots=True)
class _Task:
    """Work that runs when it is due and the store is quiet; `every_s` later it is due again.

    `quiet_s` and `overdue_s` are longer than the usual times, or 0. After a failure it is due in `retry_s`.
    """

    work: Callable[[], object]
    every_s: float
    due_at: float
    quiet_s: float = 0.0
    overdue_s: float = 0.0
    retry_s: float = RETRY_S


class Maintenance:
    """Maintains one store from `start` to `stop`. Only `erase` raises.

    Attributes:
        notify: Called from the maintenance thread with errors that the user should know at once, `inform`
            with other news.
        erase_index: Removes what was forgotten from the files of an index; called with a function that
            says whether to stop.
        repair_migrated: Repairs what an older version stored otherwise; called like `erase_index`, once
            after an update of the schema, and again until it succeeds.
    """

    def __init__(self, store: Store, clock: MaintenanceClock = MaintenanceClock()) -> None:
        self._store = store
        self._clock = clock
        self.notify: Callable[[KnownError], object] = _log.warning
        self.inform: Callable[[str], object] = _log.info
        self.erase_index: Callable[[Callable[[], bool]], object] = lambda _: None
        self.repair_migrated: Callable[[Callable[[], bool]], object] = lambda _: None
        store.database.on_damaged = lambda error: self.notify(error)  # noqa: PLW0108 - it is set later
        self._condition = threading.Condition()
        self._stopping = False
        self._is_short = self._is_away = False
        self._place = _place_of(store.paths.root)
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        at = clock.monotonic()
        self._written_at = self._started_at = at
        newest = newest_backup(store)
        self._last_known_time = clock.now() if newest is None else newest.made_at
        self._checkpoint = _Task(self._write_checkpoint, _NEVER, at)
        self._tasks = (
            self._checkpoint,
            _Task(self._back_up, BACKUP_EVERY_S, at + self._until_backup_s()),
            _Task(self._empty_trash, _LOOK_EVERY_S, at + 30),
            _Task(lambda: remove_unreferenced(store), _LOOK_EVERY_S, at + 45),
            _Task(lambda: self._check_migrated(lambda: self._stopping), _LOOK_EVERY_S, at + 50),
            _Task(self._read_all, _LOOK_EVERY_S, at + 60, retry_s=_READ_AGAIN_S),
            _Task(self._fill_reserve, RESERVE_EVERY_S, at + RESERVE_EVERY_S),
            _Task(store.database.release_memory, REST_EVERY_S, at + REST_EVERY_S),
            _Task(
                self._erase_due,
                ERASE_EVERY_S,
                at + ERASE_EVERY_S,
                quiet_s=ERASE_QUIET_S,
                overdue_s=ERASE_WITHIN_S,
            ),
        )

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._unsubscribe = self._store.subscribe(self._on_changed)
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop within three seconds, canceling a backup; safe to call twice. Blocking."""
        self._unsubscribe()
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        thread, self._thread = self._thread, None
        if thread is None or thread.ident is None:
            return
        until = time.monotonic() + STOP_WITHIN_S
        while thread.is_alive() and time.monotonic() < until:
            self._store.database.interrupt(thread.ident)
            thread.join(0.05)
        if thread.is_alive():
            _log.warning("maintenance is still busy; it continues at the next start")

    def erase(self) -> None:
        """Remove the bytes of what was forgotten from all files now. Blocking.

        Raises Cancelled when the program stops, StorageError, IndexUnavailable.
        """
        erase_bytes(self._store, lambda: self._stopping)
        self.erase_index(lambda: self._stopping)

    @property
    def erases_quickly(self) -> bool:
        """Whether the library is so small that `erase` takes about a second."""
        files = [self._store.paths.database, self._store.paths.wal]
        files += [each.path for each in backups_of(self._store.paths.backups, self._store.uid)]
        return sum(each.stat().st_size for each in files if each.exists()) < _QUICK_BYTES

    def finish_command(self) -> None:
        """Do what a command that ends would leave to nobody, where no window is ever opened. Blocking.

        What an older version stored is repaired after an update. Once a day the trash is emptied, a backup made if
        something changed or is due in the trash, and forgotten text removed, of a small library always.
        """
        with suppress(KnownError):
            self._check_migrated(lambda: False)
        newest, position = newest_backup(self._store), self._store.read(read_state).position
        if newest is not None:
            age = self._clock.now() - newest.made_at
            is_due = age > _DAY and (position > newest.position or self._is_trash_due())
        else:  # until then the journal has everything
            is_due = position > _RECORDS_WITHOUT_BACKUP
        if is_due:
            self._store.fill_reserve().result()
            with suppress(KnownError):  # the log has it, the next command tries again
                self._empty_trash()
            try_backup(self._store)
            self._owe_superseded()
        if is_due or (deletions_owed(self._store) and self.erases_quickly):
            with suppress(KnownError):
                erase_bytes(self._store)
                self.erase_index(lambda: False)

    def run_due(self) -> float:
        """Run what is due; return in how many seconds something will be. The thread calls it."""
        for task in self._tasks:
            with self._condition:
                if self._stopping:
                    break
            if self._due_in_s(task) <= 0:
                self._do(task)
        return self._wait_s()

    def _run(self) -> None:
        while True:
            self.run_due()
            with self._condition:
                if self._stopping:
                    return
                self._condition.wait(min(self._wait_s(), _LOOK_EVERY_S))

    def _do(self, task: _Task) -> None:
        next_in_s = task.every_s
        task.due_at = _NEVER
        try:
            self._check_place()
            self._store.database.refuse_damaged()
            task.work()
        except Cancelled:
            next_in_s = RETRY_S
        except KnownError as error:
            _log.warning("put off: %s", error)
            next_in_s = RETRY_S if self._is_away else task.retry_s
        except Exception:  # noqa: BLE001 - the thread must live, the log gets it
            _log.exception("maintenance failed")
            next_in_s = task.retry_s
        with self._condition:
            task.due_at = min(task.due_at, self._clock.monotonic() + next_in_s)

    def _wait_s(self) -> float:
        return max(0.0, min(map(self._due_in_s, self._tasks)))

    def _due_in_s(self, task: _Task) -> float:
        quiet_at = self._written_at + max(QUIET_S, task.quiet_s)
        quiet_at = min(quiet_at, task.due_at + max(OVERDUE_S, task.overdue_s))
        return max(task.due_at, quiet_at) - self._clock.monotonic()

    def _on_changed(self, _changed: ChangeSet) -> None:
        with self._condition:
            self._written_at = self._clock.monotonic()
            if self._checkpoint.due_at == _NEVER:
                self._checkpoint.due_at = self._written_at
                self._condition.notify_all()

    def _check_place(self) -> None:
        """Raise StorageError, reported once, unless the data directory is the one that was opened."""
        root = self._store.paths.root
        was_away, self._is_away = self._is_away, _place_of(root) != self._place
        if self._is_away:
            error = directory_is_gone(root)
            if not was_away:
                self.notify(error)
            raise error

    # -- the tasks

    def _erase_due(self) -> None:
        self._owe_superseded()
        self.erase()

    def _owe_superseded(self) -> None:
        """Have removed what documents left behind: after a day if that takes a second."""
        kept_for = _DAY if self.erases_quickly else SUPERSEDED_KEPT_FOR
        owe_superseded(self._store, self._clock.now() - kept_for)

    def _write_checkpoint(self) -> None:
        if not self._store.checkpoint().result():
            raise StorageError("The checkpoint could not be made now")

    def _fill_reserve(self) -> None:
        if self._store.fill_reserve().result():
            self._is_short = False
        elif not self._is_short:
            self._is_short = True
            self.notify(disk_is_full())

    def _back_up(self) -> None:
        newest = newest_backup(self._store)
        is_changed = self._store.read(read_state).position > (newest.position if newest else 0)
        is_old = newest is not None and self._clock.now() - newest.made_at > _DAY
        if is_changed or (is_old and self._is_trash_due()):
            make_backup(self._store)

    def _is_trash_due(self) -> bool:
        return is_trash_due(self._store, self._clock.now() - TRASH_KEPT_FOR)

    def _empty_trash(self) -> None:
        """Forget what was in the trash for 30 days before the newest backup or since this start.

        A clock that was set ahead forgets nothing at the first start; after a long absence, the start after the
        next backup does, which is made for that if nothing else changes.
        """
        passed = timedelta(seconds=self._clock.monotonic() - self._started_at)
        at = min(self._clock.now(), self._last_known_time + passed)
        purge_trash(self._store, at - TRASH_KEPT_FOR)

    def _until_backup_s(self) -> float:
        """Return when the first backup is due, so that a short session leaves it to the next one."""
        if (newest := newest_backup(self._store)) is None:
            return QUIET_S
        age_s = (self._clock.now() - newest.made_at).total_seconds()
        return BACKUP_EVERY_S - age_s if 0 <= age_s < BACKUP_EVERY_S else QUIET_S

    def _check_migrated(self, is_cancelled: Callable[[], bool]) -> None:
        mark = self._store.paths.migrated
        if mark.exists():
            self.repair_migrated(is_cancelled)
            mark.unlink()

    def _read_all(self) -> None:
        stamp = self._store.paths.checked
        read_at = stamp.stat().st_mtime if stamp.exists() else 0.0
        if abs(self._clock.now().timestamp() - read_at) < _FULL_READ_EVERY_S:
            return
        self._store.read(read_all_tables)
        stamp.touch(0o600)


def _place_of(folder: Path) -> tuple[int, int] | None:
    """Return what distinguishes a folder from another one of its name, None for none."""
    with suppress(OSError):
        found = folder.stat()
        return found.st_dev, found.st_ino
    return None

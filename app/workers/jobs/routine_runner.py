"""The routine runner: routines are run when they are due, and due times that were missed are recorded."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import islice, takewhile
from typing import Protocol
from zlib import crc32

from app.domain.change_set import ChangeSet
from app.domain.changes import RoutinePut, RoutineRunPut
from app.domain.errors import Cancelled, InvalidInput, StorageError
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.workers import WorkerName
from app.language.schedules import SYSTEM_ZONE, due_times, is_due_on
from app.storage.engine.store import Store
from app.storage.tables.routines import RoutineRows
from app.storage.work.queue import Tally
from app.workers.job_interface import Clock, IsCancelled, Job, Pace, Saved
from app.workers.jobs import JobParts

MISSED = "Commonplace was not running then, or the computer slept"
ENDED = "The program ended while it ran"
_ON_TIME = timedelta(minutes=15)
_LATEST = timedelta(hours=24)
_SPACING_S = 30.0  # between two starts, and after launch or wake
_LOOK_EVERY_S = 20.0
_UNUSED_S = 3600.0
_ASLEEP_S = 60.0
_CLOCK_ERROR = timedelta(days=1)  # a time further ahead was written by a wrong clock
_RETRY_AFTER_S = (60.0, 120.0, 300.0, 600.0)
_MOST_DUE = 50_000
_NEVER = float("inf")
_log = logging.getLogger(__name__)


class RoutineRunner(Protocol):
    """Runs routines; see `app.chat.routine_runs`."""

    def is_running(self, uid: str) -> bool:
        """Return whether a run is under way."""

    def run(
        self,
        routine: Routine,
        due_at: datetime,
        is_cancelled: Callable[[], bool],
        *,
        may_retry: bool,
    ) -> RoutineRun:
        """Run a routine; return the record, which is stored."""


@dataclass(frozen=True, slots=True)
class DueRun:
    """A due time of a routine. With an outcome it is only to be recorded."""

    routine: Routine
    run: RoutineRun


class RoutineRunnerJob(Job[DueRun, DueRun]):
    """A `Job`: the latest due time of each routine, one run after the other.

    A run never fails as an item: its record has the outcome. A passing failure, such as a network that is
    not up yet after a wake, is tried again a few times before it counts.
    """

    name = WorkerName.ROUTINE_RUNNER
    wakes_on = frozenset(("routines", "providers"))
    pace = Pace(save_items=1)

    def __init__(
        self,
        store: Store,
        runner: Callable[[], RoutineRunner],
        clock: Clock | None = None,
        zone: tzinfo = SYSTEM_ZONE,
    ) -> None:
        self._store = store
        self._runner = runner
        self._clock = clock or Clock()
        self._zone = zone
        self._rows = RoutineRows(store)
        self._enabled: list[Routine] = []
        self._due: list[DueRun] = []
        self._next_due: datetime | None = None
        self._is_outdated = True
        self._lead: timedelta | None = None  # of the wall clock over the monotonic one
        self._not_before = 0.0  # monotonic
        self._retries: dict[tuple[str, datetime], tuple[int, float]] = {}

    def find(self, at: datetime) -> Sequence[DueRun]:
        """Return what is to be recorded, else the next run if it may start."""
        has_jumped = self._note_clock(at)
        if self._is_outdated or has_jumped or (self._next_due and at >= self._next_due):
            self._is_outdated = False
            self._look(at)
        recorded = [each for each in self._due if each.run.outcome is not None]
        if recorded:
            return recorded
        present = self._clock.monotonic()
        ready = [each for each in self._due if self._starts_at(each) <= present]
        return ready[:1]

    def item_id(self, item: DueRun) -> int:
        """Return a number for the table of attempts, which stays empty."""
        return crc32(f"{item.routine.uid} {item.run.due_at}".encode())

    def describe(self, item: DueRun) -> str:
        return item.routine.name

    def make(self, items: Sequence[DueRun], is_cancelled: IsCancelled) -> DueRun:
        """Run the only routine, unless its due time is only to be recorded."""
        (item,) = items
        if item.run.outcome is not None:
            return item
        key = (item.routine.uid, item.run.due_at)
        tries, _ = self._retries.get(key, (0, 0.0))
        self._not_before = self._clock.monotonic() + _SPACING_S
        run = item.run
        try:
            may_retry = tries < len(_RETRY_AFTER_S)
            run = self._runner().run(item.routine, run.due_at, is_cancelled, may_retry=may_retry)
        except InvalidInput:  # another reply is under way there
            tries = min(tries, len(_RETRY_AFTER_S) - 1)
        except (Cancelled, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not repeat a run without end
            _log.exception("a routine failed unexpectedly")
            at, why = self._clock.now(), f"Commonplace failed: {type(error).__name__}."
            run = replace(
                run,
                started_at=run.started_at or at,
                finished_at=at,
                outcome=RunOutcome.FAILED,
                why=why,
            )
        if is_cancelled() and run.outcome is None:
            raise Cancelled("The worker was stopped")
        self._retries.pop(key, None)
        if run.outcome is None:
            wait_s = _RETRY_AFTER_S[min(tries, len(_RETRY_AFTER_S) - 1)]
            self._retries[key] = (tries + 1, self._clock.monotonic() + wait_s)
        return DueRun(item.routine, run)

    def save(self, results: Sequence[DueRun]) -> Saved:
        self._is_outdated = True
        ended = [each.run for each in results if each.run.outcome is not None]
        if ended:
            self._store.save(*map(RoutineRunPut, ended))
        skipped = sum(each.outcome is RunOutcome.SKIPPED for each in ended)
        return Saved(len(ended) - skipped, skipped)

    def tally(self) -> Tally:
        """Return the routines that are on, and how many of them are due."""
        waits = [self._starts_at(each) - self._clock.monotonic() for each in self._due]
        later = [each for each in waits if each > 0]
        next_at = self._clock.now() + timedelta(seconds=min(later)) if later else None
        total = len(self._enabled)
        return Tally(max(0, total - len(waits)), total, len(later), next_attempt_at=next_at)

    def poll_interval_s(self) -> float:
        """Return the time until the next look; short, since a sleep of the computer is not noticed."""
        if not self._enabled:
            return _UNUSED_S
        due_s = _NEVER
        if self._next_due is not None:
            due_s = (self._next_due - self._clock.now()).total_seconds()
        return max(0.0, min(due_s, _LOOK_EVERY_S))

    def note(self, changed: ChangeSet) -> None:
        """Read the routines again after one, or the record of a run, has changed."""
        if changed.routines:
            self._is_outdated = True

    # -- what is due

    def _note_clock(self, at: datetime) -> bool:
        """Notice the launch, a wake and a change of the clock, after which starts wait."""
        present = self._clock.monotonic()
        lead = timedelta(seconds=at.timestamp() - present)
        before, self._lead = self._lead, lead
        if before is not None and abs((lead - before).total_seconds()) < _ASLEEP_S:
            return False
        self._not_before = present + _SPACING_S
        return True

    def _look(self, at: datetime) -> None:
        """Read what is due, the earliest first."""
        routines = self._rows.listed()
        self._enabled = [each for each in routines if each.enabled_at is not None]
        self._due = []
        self._next_due = None
        for routine in routines:
            if routine.enabled_at and routine.enabled_at > at + _CLOCK_ERROR:
                self._store.save(RoutinePut(replace(routine, enabled_at=at)))
                continue
            if not self._runner().is_running(routine.uid):
                self._due += [DueRun(routine, run) for run in self._records(routine, at)]
            coming = due_times(routine.cron, at, self._zone)
            following = next(coming, None) if routine.enabled_at else None
            if following is not None and (self._next_due is None or following < self._next_due):
                self._next_due = following
        self._due.sort(key=lambda each: each.run.due_at)

    def _records(self, routine: Routine, at: datetime) -> list[RoutineRun]:
        """Return the due times of a routine without a final record."""
        unfinished = self._rows.unfinished(routine.uid)
        if unfinished is not None:
            is_late = at - unfinished.due_at > _LATEST
            if not is_late and not unfinished.is_manual and routine.enabled_at is not None:
                return [unfinished]
            return [replace(unfinished, finished_at=at, outcome=RunOutcome.INTERRUPTED, why=ENDED)]
        if routine.enabled_at is None:
            return []
        since = max(filter(None, (routine.enabled_at, self._rows.last_due(routine.uid, at))))
        coming = takewhile(lambda due: due <= at, due_times(routine.cron, since, self._zone))
        times = list(islice(coming, _MOST_DUE))
        return _without_missed(routine, times, at, self._zone) if times else []

    def _starts_at(self, due: DueRun) -> float:
        """Return when a run may start, on the monotonic clock."""
        _, retry_at = self._retries.get((due.routine.uid, due.run.due_at), (0, 0.0))
        return max(self._not_before, retry_at)


def _without_missed(
    routine: Routine, times: Sequence[datetime], at: datetime, zone: tzinfo
) -> list[RoutineRun]:
    """Return a record of the due times that were missed, and the latest one if it is to run."""
    latest = times[-1]
    late = at - latest
    is_allowed_day = late <= _ON_TIME or is_due_on(routine.cron, at.astimezone(zone).date())
    runs = late <= _LATEST and is_allowed_day
    missed = times[:-1] if runs else times
    records = [RoutineRun(routine.uid, latest)] if runs else []
    if missed:
        skipped = RoutineRun(
            routine.uid, missed[-1], outcome=RunOutcome.SKIPPED, why=MISSED, missed=len(missed)
        )
        records.append(skipped)
    return records


def build(parts: JobParts) -> RoutineRunnerJob | None:
    if parts.routines is None:
        return None
    return RoutineRunnerJob(parts.store, parts.routines, parts.clock)

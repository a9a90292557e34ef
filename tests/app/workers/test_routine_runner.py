"""The routine runner with a clock of its own: what is due, missed, spaced, tried again and recorded."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.domain.change_set import ChangeSet
from app.domain.changes import RoutinePut, RoutineRemoved, RoutineRunPut
from app.domain.errors import Cancelled, InvalidInput
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.workers import WorkerState
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.routines import RoutineRows
from app.storage.tables.settings import Settings
from app.workers.board import WorkerBoard
from app.workers.job_interface import Clock
from app.workers.jobs import JobParts
from app.workers.jobs.routine_runner import MISSED, RoutineRunnerJob
from app.workers.loop import WorkerLoop
from tests.fakes.jobs import JumpingClock, hosted, until

BERLIN = ZoneInfo("Europe/Berlin")
FRIDAY = datetime(2026, 11, 27, 8, 59, 50, tzinfo=BERLIN)
NINE = datetime(2026, 11, 27, 9, tzinfo=BERLIN).astimezone(UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
WEEKDAYS = Routine("w", "Weekdays", "Report.", "0 9 * * 1-5", NINE, NINE - 7 * DAY)
DAILY = replace(WEEKDAYS, uid="d", name="Daily", cron="0 9 * * *")


@dataclass
class Wall(Clock):
    """A wall clock and a monotonic one that stands still in a sleep."""

    at: datetime
    passed_s: float = 1000.0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.passed_s

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        raise AssertionError

    def pass_by(self, span: timedelta) -> None:
        self.at += span
        self.passed_s += span.total_seconds()


@dataclass
class Runner:
    """Stores runs as if a model had answered; `answers` are what each comes to, else completed."""

    store: Store
    clock: Callable[[], datetime]
    answers: list[RunOutcome | BaseException | None] = field(default_factory=list)
    begun: list[tuple[str, datetime]] = field(default_factory=list)
    running: set[str] = field(default_factory=set)

    def is_running(self, uid: str) -> bool:
        return uid in self.running

    def run(
        self,
        routine: Routine,
        due_at: datetime,
        is_cancelled: Callable[[], bool],
        *,
        may_retry: bool,
    ) -> RoutineRun:
        answer = self.answers.pop(0) if self.answers else RunOutcome.COMPLETED
        self.begun.append((routine.uid, due_at))
        at = self.clock()
        run = RoutineRun(routine.uid, due_at, at)
        if not isinstance(answer, InvalidInput):
            self.store.save(RoutineRunPut(run))
        if isinstance(answer, BaseException):
            raise answer
        if answer is None and not may_retry:
            answer = RunOutcome.FAILED
        if answer is not None:
            run = replace(run, finished_at=at, outcome=answer)
            self.store.save(RoutineRunPut(run))
        return run


class World:
    """Routines in a store, a runner of them, and time."""

    def __init__(self, store: Store, *routines: Routine) -> None:
        self.store = store
        self.rows = RoutineRows(store)
        self.clock = Wall(FRIDAY.astimezone(UTC))
        self.runner = Runner(store, self.clock.now)
        for each in routines:
            store.save(RoutinePut(each))
        self.restart()
        store.subscribe(self._wake)

    def _wake(self, changed: ChangeSet) -> None:
        self.job.note(changed)

    def restart(self) -> None:
        """Begin again, as after a kill."""
        self.job = RoutineRunnerJob(self.store, lambda: self.runner, self.clock, BERLIN)

    def look(self) -> int:
        """Do what is to be done now; return how many items that was."""
        found = self.job.find(self.clock.at)
        for item in found:
            self.job.save([self.job.make([item], lambda: False)])
        return len(found)

    def step(self, span: timedelta = timedelta(0)) -> None:
        """Let time pass, then look until nothing is left for the next two minutes."""
        self.clock.pass_by(span)
        for _ in range(7):
            while self.look():
                pass
            self.clock.pass_by(timedelta(seconds=20))
            self.job.find(self.clock.at)

    def outcomes(self, uid: str) -> list[tuple[datetime, RunOutcome | None]]:
        """Return due times with their outcomes, oldest first."""
        return [(run.due_at, run.outcome) for run in reversed(self.rows.runs(uid))]


def seen(store: Store, *routines: Routine, last: datetime = NINE - DAY) -> World:
    """Return a world in which the routines ran last at a time."""
    world = World(store, *routines)
    for each in routines:
        store.save(RoutineRunPut(RoutineRun(each.uid, last, last, last, RunOutcome.COMPLETED)))
    return world


def test_a_routine_runs_when_it_is_due_and_once(store: Store) -> None:
    world = seen(store, WEEKDAYS)
    assert world.look() == 0
    world.step(timedelta(seconds=10))
    world.step(HOUR)
    assert world.runner.begun == [("w", NINE)]
    (run, _) = world.rows.runs("w")
    assert run.due_at == NINE
    assert run.started_at is not None
    assert run.started_at > NINE
    assert (run.outcome, run.finished_at is not None) == (RunOutcome.COMPLETED, True)


def test_a_routine_that_is_off_does_not_run_and_enabling_counts_from_now(store: Store) -> None:
    world = World(store, replace(WEEKDAYS, enabled_at=None))
    world.step(3 * DAY)
    assert (world.runner.begun, world.rows.runs("w")) == ([], ())
    world = World(store, replace(WEEKDAYS, enabled_at=FRIDAY - timedelta(minutes=1)))
    world.step()
    assert world.runner.begun == [("w", NINE)]
    later = World(store, replace(DAILY, enabled_at=world.clock.at))
    later.clock.at = world.clock.at
    later.step(HOUR)
    assert later.runner.begun == []


@pytest.mark.parametrize(
    ("routine", "away", "begun", "skipped"),
    [
        (WEEKDAYS, HOUR, [NINE], 0),
        (WEEKDAYS, timedelta(hours=14), [NINE], 0),
        (WEEKDAYS, timedelta(hours=20), [], 1),  # Saturday: within a day, but not an allowed one
        (DAILY, timedelta(hours=20), [NINE], 0),
        (WEEKDAYS, 3 * DAY - HOUR, [], 1),
        (WEEKDAYS, 3 * DAY + HOUR, [NINE + 3 * DAY], 1),
        (DAILY, 30 * DAY + HOUR, [NINE + 30 * DAY], 30),
        (WEEKDAYS, 30 * DAY - timedelta(hours=12), [], 21),
        (replace(DAILY, cron="* * * * *"), 30 * DAY, [NINE + 30 * DAY], None),
    ],
)
@pytest.mark.parametrize("is_asleep", [True, False])
def test_what_was_missed_runs_once_within_a_day_else_it_is_marked(
    store: Store,
    routine: Routine,
    away: timedelta,
    begun: list[datetime],
    skipped: int | None,
    is_asleep: bool,
) -> None:
    world = seen(store, routine)
    world.look()
    world.clock.at += away  # the monotonic clock stands still
    if not is_asleep:
        world.restart()
    while world.look():
        pass
    assert world.runner.begun == []  # it waits after launch and wake
    world.clock.pass_by(timedelta(seconds=30))
    while world.look():
        pass
    assert [due for _, due in world.runner.begun] == begun
    runs = [run for run in world.rows.runs(routine.uid) if run.outcome is RunOutcome.SKIPPED]
    if skipped is not None:
        assert [run.missed for run in runs] == ([skipped] if skipped else [])
        assert all((run.why, run.started_at) == (MISSED, None) for run in runs)
    else:
        assert sum(run.missed for run in runs) > 40_000
    world.step()


def test_starts_are_spaced(store: Store) -> None:
    others = [replace(DAILY, uid=str(number), name=f"R{number}") for number in range(3)]
    world = seen(store, *others)
    world.clock.at += HOUR
    starts: list[float] = []
    began = world.clock.passed_s
    while len(starts) < 3:
        count = len(world.runner.begun)
        world.look()
        starts += [world.clock.passed_s - began] * (len(world.runner.begun) - count)
        world.clock.pass_by(timedelta(seconds=1))
    assert starts == [30, 60, 90]


def test_a_clock_that_is_set_back_repeats_nothing(store: Store) -> None:
    world = seen(store, DAILY)
    world.step(timedelta(minutes=1))
    world.clock.at -= 2 * HOUR
    world.step(2 * HOUR + timedelta(minutes=1))
    world.clock.at -= DAY
    world.step(HOUR)
    assert [due for _, due in world.runner.begun] == [NINE]
    world.step(3 * DAY)
    assert [due for _, due in world.runner.begun][1:] == [NINE + 2 * DAY]


def test_a_clock_that_was_a_year_ahead_does_not_stop_a_routine(store: Store) -> None:
    world = World(store, replace(DAILY, enabled_at=NINE + 365 * DAY))
    world.step()
    world.step(DAY)
    assert [due for _, due in world.runner.begun] == [NINE, NINE + DAY]


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        # The clock goes forward on 29 March 2026 at 02:00, back on 25 October at 03:00.
        (datetime(2026, 3, 29, tzinfo=BERLIN), ["03:00", "02:30"]),
        (datetime(2026, 10, 25, tzinfo=BERLIN), ["02:30", "02:30"]),
    ],
)
def test_a_run_in_the_hour_of_a_change_of_the_clock_happens_once(
    store: Store, changed: datetime, due: list[str]
) -> None:
    begins = changed.astimezone(UTC)
    world = World(store, replace(DAILY, cron="30 2 * * *", enabled_at=begins))
    world.clock.at = begins
    for _ in range(100):
        world.step(timedelta(minutes=20))
    assert [f"{each.astimezone(BERLIN):%H:%M}" for _, each in world.runner.begun] == due


def test_a_run_that_was_killed_goes_on(store: Store) -> None:
    world = seen(store, DAILY)
    world.runner.answers = [SystemExit()]
    with pytest.raises(SystemExit):
        world.step(timedelta(minutes=1))
    assert world.outcomes("d")[-1] == (NINE, None)
    world.restart()
    world.step(HOUR)
    assert world.runner.begun == [("d", NINE), ("d", NINE)]
    assert world.outcomes("d")[-1] == (NINE, RunOutcome.COMPLETED)


def test_a_run_that_was_killed_a_day_ago_or_begun_by_hand_is_interrupted(store: Store) -> None:
    world = seen(store, DAILY)
    store.save(RoutineRunPut(RoutineRun("d", NINE - 2 * DAY, NINE)))
    world.step()
    store.save(RoutineRunPut(RoutineRun("d", world.clock.at, world.clock.at, is_manual=True)))
    world.step()
    assert [outcome for _, outcome in world.outcomes("d")].count(RunOutcome.INTERRUPTED) == 2
    assert world.runner.begun == [("d", NINE)]


def test_a_killed_start_without_a_record_is_found_again(store: Store) -> None:
    world = seen(store, DAILY)
    world.runner.answers = [InvalidInput("A reply is running")]
    world.step(timedelta(minutes=1))
    assert world.outcomes("d")[-1] == (NINE, RunOutcome.COMPLETED)
    assert len(world.runner.begun) == 2


def test_a_passing_failure_is_tried_again_and_then_counts(store: Store) -> None:
    world = seen(store, DAILY)
    world.runner.answers = [None] * 9
    for _ in range(40):
        world.step(timedelta(minutes=1))
    assert world.outcomes("d")[-1] == (NINE, RunOutcome.FAILED)
    assert len(world.runner.begun) == 5


def test_a_failure_neither_repeats_a_run_nor_switches_a_routine_off(store: Store) -> None:
    world = seen(store, DAILY)
    world.runner.answers = [RunOutcome.FAILED, ValueError("a bug"), RunOutcome.FAILED]
    for day in range(4):
        world.clock.at = NINE + day * DAY
        world.step()
    outcomes = [outcome for _, outcome in world.outcomes("d")][1:]
    assert outcomes == [*[RunOutcome.FAILED] * 3, RunOutcome.COMPLETED]
    assert world.rows.listed()[0].enabled_at is not None


def test_a_stopped_worker_leaves_its_run_to_the_next_start(store: Store) -> None:
    world = seen(store, DAILY)
    world.clock.pass_by(timedelta(minutes=1))
    world.job.find(world.clock.at)
    world.clock.pass_by(timedelta(minutes=1))
    (item,) = world.job.find(world.clock.at)
    world.runner.answers = [None]
    with pytest.raises(Cancelled):
        world.job.make([item], lambda: True)
    world.restart()
    world.step()
    assert world.outcomes("d")[-1] == (NINE, RunOutcome.COMPLETED)


def test_the_board_runs_what_is_due_and_drains(store: Store) -> None:
    clock = JumpingClock()
    at = clock.now()
    cron = f"{(at.minute - 1) % 5}-59/5 * * * *"  # the next one is minutes away
    routine = replace(DAILY, cron=cron, enabled_at=at - timedelta(minutes=10))
    store.save(RoutinePut(routine))
    runner = Runner(store, clock.now)
    job = RoutineRunnerJob(store, lambda: runner, clock)
    board = WorkerBoard(JobParts(store, Settings(store), clock=clock), [job])
    board.run_until_idle([job.name])
    assert len(runner.begun) == 1
    assert [run.outcome for run in RoutineRows(store).runs("d")] == [
        RunOutcome.COMPLETED, RunOutcome.SKIPPED,
    ]  # fmt: skip
    with hosted(board):
        until(lambda: len(runner.begun) > 3)
    assert board.statuses()[0].state is WorkerState.STOPPED


def test_its_loop_takes_no_attempts_one_that_runs_by_hand_waits_and_a_removed_one_leaves_no_records(
    store: Store,
) -> None:
    world = seen(store, DAILY)
    loop = WorkerLoop(world.job, Attempts(store, world.job.name), clock=JumpingClock())
    assert loop.refresh().total == 0
    world.runner.running = {"d"}
    world.step(timedelta(minutes=1))
    assert world.runner.begun == []
    store.save(RoutineRemoved("d"))
    store.save(RoutineRunPut(RoutineRun("d", NINE, NINE, NINE, RunOutcome.COMPLETED)))
    world.step(DAY)
    assert (world.rows.runs("d"), world.runner.begun) == ((), [])

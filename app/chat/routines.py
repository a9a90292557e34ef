"""Routines: list with state, save with consent, remove, switch and run.

Saving a routine whose model is on another computer is the consent to send it there: `RoutinePlan`
is shown before. The consent is to that model at that server; a routine that would go elsewhere does
not run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile

from app.chat.models import ModelDirectory
from app.chat.presets import Presets
from app.chat.routine_runs import RoutineRuns
from app.domain.changes import RoutinePut, RoutineRemoved
from app.domain.chat import UsageReported
from app.domain.errors import ConsentMissing, InvalidInput, NotFound
from app.domain.ids import new_uid
from app.domain.records.named import find_named, names_hint, one_line_name
from app.domain.records.routines import (
    FAILURES_NOTICED,
    Routine,
    RoutineRun,
    RunOutcome,
    failures_in_a_row,
    routine_problem,
)
from app.domain.text import clean, translate_lines
from app.domain.translation import format_moment, format_price, model_label, tr, tr_noop, trn
from app.language.schedules import due_times, read_schedule
from app.providers.pricing.usage import estimated_tokens
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.projects import stored_projects
from app.storage.tables.routines import RoutineRows
from app.workers.jobs.routine_runner import ENDED

_MONTH = timedelta(days=30)
_MOST_COUNTED = 10_000
_PROMPT_TOKENS, _ANSWER_TOKENS = 3_000, 1_000  # usual: instructions with tools, an answer
_RUNS_SEEN = 5
_RUNS_READ = 20
_TIMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RoutineState:
    """A routine with its state. Times are UTC.

    Attributes:
        next_at: When it is due next; None while it is off.
        last: The last run that ended and was not skipped.
        failures: How many of the last runs failed in a row.
        is_running: Whether a run is under way.
    """

    routine: Routine
    next_at: datetime | None
    last: RoutineRun | None
    failures: int
    is_running: bool

    @property
    def notice(self) -> str:
        """A sentence on failures in a row, "" for fewer than three."""
        if self.failures < FAILURES_NOTICED:
            return ""
        return tr("The routine “{name}” failed {count} times in a row; it stays on.").format(
            name=self.routine.name, count=self.failures
        )


@dataclass(frozen=True, slots=True)
class RoutinePlan:
    """What a routine would send and cost. Costs are estimates; None for an unknown price.

    `sent_to` is the base URL of the model, "" for one on this computer.
    """

    model: str
    sent_to: str
    runs_a_month: int
    run_usd: float | None

    @property
    def month_usd(self) -> float | None:
        return None if self.run_usd is None else self.run_usd * self.runs_a_month


class Routines:
    """Reads and changes routines. Blocking; thread-safe."""

    def __init__(
        self, store: Store, presets: Presets, models: ModelDirectory, runs: RoutineRuns
    ) -> None:
        self._store = store
        self._presets = presets
        self._models = models
        self._runs = runs
        self._rows = RoutineRows(store)
        self._exchanges = Exchanges(store)

    def listed(self) -> tuple[RoutineState, ...]:
        """Return all routines, by name."""
        return tuple(map(self._state, self._rows.listed()))

    def get(self, uid: str) -> Routine:
        """Return the routine with a uid; raise NotFound."""
        for routine in self._rows.listed():
            if routine.uid == uid:
                return routine
        raise NotFound("This routine does not exist any more", "Choose another one.")

    def named(self, name: str) -> Routine:
        """Return the routine with a name (any case) or uid; raise NotFound with similar names."""
        routines = self._rows.listed()
        if (found := find_named(name, routines)) is not None:
            return found
        hint = names_hint(name, routines, tr_noop("There are none yet."))
        raise NotFound(f"There is no routine '{name}'", hint)

    def history(self, uid: str, limit: int = 50) -> tuple[tuple[RoutineRun, int | None], ...]:
        """Return runs with the turn number of each, the latest due time first; one that was killed is interrupted."""
        runs = self._rows.runs(uid, limit)
        unfinished = [run for run in runs if run.outcome is None]
        killed = unfinished[1:] if self._runs.is_running(uid) else unfinished
        runs = tuple(
            replace(run, outcome=RunOutcome.INTERRUPTED, why=ENDED) if run in killed else run
            for run in runs
        )
        turns = self._rows.turns(runs)
        return tuple((run, turns.get(run.exchange_id or 0)) for run in runs)

    def checked(self, routine: Routine) -> Routine:
        """Return a routine as it would be stored; raise InvalidInput, NotFound.

        A phrase in place of the expression is read; a project that was removed is none.
        """
        model = (routine.model or "").strip() or None
        projects = [each.uid for each in stored_projects(self._store)]
        routine = replace(
            routine,
            uid=routine.uid or new_uid(),
            name=one_line_name(routine.name),
            prompt=clean(routine.prompt).strip(),
            cron=read_schedule(routine.cron),
            model=None if model is None else self._models.check_name(model),
            preset=None if routine.preset is None else self._presets.get(routine.preset).uid,
            project=routine.project if routine.project in projects else None,
        )
        if problem := routine_problem(routine):
            raise InvalidInput(
                f"The routine '{routine.name}' {problem}", "Correct it and try again."
            )
        if (other := find_named(routine.name, self._rows.listed(), routine.uid)) is not None:
            raise InvalidInput(f"There is already a routine '{other.name}'", "Choose another name.")
        return routine

    def plan(self, routine: Routine) -> RoutinePlan:
        """Return what a checked routine would send and cost; raise NotFound, InvalidInput."""
        ref = self._runs.model_of(routine)
        sent_to, _ = self._runs.sent_to(ref)
        at = now()
        month = takewhile(lambda due: due <= at + _MONTH, due_times(routine.cron, at))
        due = list(islice(month, _MOST_COUNTED))
        count = len(due)
        if count == _MOST_COUNTED:
            count = round(count * (_MONTH / (due[-1] - at)))
        tokens = _PROMPT_TOKENS + _RUNS_SEEN * _ANSWER_TOKENS
        projects = {each.uid: each.instructions for each in stored_projects(self._store)}
        own = (routine.prompt, projects.get(routine.project or "", ""))
        tokens += sum(estimated_tokens(each, ref.model) for each in own)
        run_usd, _ = self._models.price_of(ref, UsageReported(tokens, _ANSWER_TOKENS))
        runs = self._rows.runs(routine.uid, _RUNS_READ)
        done = [run.exchange_id for run in runs if run.outcome is RunOutcome.COMPLETED]
        known = self._exchanges.by_ids(each for each in done if each is not None)
        costs = [
            each.usage.cost_usd
            for each in known.values()
            if each.usage is not None and each.usage.cost_usd is not None and each.model == str(ref)
        ]
        if costs:
            run_usd = sum(costs) / len(costs)
        return RoutinePlan(str(ref), sent_to, count, run_usd)

    def save(self, routine: Routine, *, agreed: bool) -> Routine:
        """Add or change a routine and return it as stored; an empty uid adds one.

        `agreed` is the consent to what `plan` says. Due times count from now on when the schedule
        changed or it was switched on. Raises InvalidInput, NotFound, StorageError, and
        ConsentMissing for a model on another computer without consent.
        """
        before = next((each for each in self._rows.listed() if each.uid == routine.uid), None)
        routine = self.checked(routine)
        ref = self._runs.model_of(routine)
        server, needed = self._runs.sent_to(ref)
        if needed and not agreed and routine.agreed_to != needed:
            raise ConsentMissing(
                f"The routine would send its prompt to {server}",
                "Agree to that, or choose a local model.",
            )
        if routine.enabled_at is not None and (before is None or before.cron != routine.cron):
            routine = replace(routine, enabled_at=now())
        routine = replace(routine, agreed_to=needed)
        self._store.save(RoutinePut(routine))
        return routine

    def switch(self, uid: str, *, is_on: bool) -> Routine:
        """Switch a routine on, counting from now, or off. Raises NotFound, StorageError."""
        routine = replace(self.get(uid), enabled_at=now() if is_on else None)
        self._store.save(RoutinePut(routine))
        return routine

    def remove(self, uid: str) -> None:
        """Remove a routine with the list of its runs; its conversation stays. Raises NotFound."""
        self.get(uid)
        self._store.save(RoutineRemoved(uid))

    def run_now(
        self, uid: str, is_cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[RoutineRun, int | None]:
        """Run a routine at once; return the record and the turn number at its end.

        Raises NotFound, InvalidInput while it runs, StorageError.
        """
        run = self._runs.run(self.get(uid), now(), is_cancelled, is_manual=True)
        return run, self._rows.turns([run]).get(run.exchange_id or 0)

    def _state(self, routine: Routine) -> RoutineState:
        runs = self._rows.runs(routine.uid, _RUNS_READ)
        ended = (run for run in runs if run.outcome not in (None, RunOutcome.SKIPPED))
        is_on = routine.enabled_at is not None
        return RoutineState(
            routine,
            next(due_times(routine.cron, now()), None) if is_on else None,
            next(ended, None),
            failures_in_a_row(runs),
            any(run.outcome is None for run in runs) and self._runs.is_running(routine.uid),
        )


def outcome_word(run: RoutineRun) -> str:
    """Return what a run came to without the reason, in the language in force."""
    words = {
        RunOutcome.COMPLETED: tr("Completed"),
        RunOutcome.FAILED: tr("Failed"),
        RunOutcome.INTERRUPTED: tr("Interrupted"),
        RunOutcome.SKIPPED: trn("{count} time skipped", "{count} times skipped", run.missed),
    }
    return tr("Running\u2026") if run.outcome is None else words[run.outcome]


def outcome_text(run: RoutineRun) -> str:
    """Return what a run came to and why, in the language in force."""
    return ". ".join(filter(None, (outcome_word(run), translate_lines(run.why))))


def run_text(run: RoutineRun) -> str:
    """Return when a run ended and what it came to, in the language in force."""
    return f"{format_moment(run.ended_at)}: {outcome_text(run)}"


def next_times(cron: str) -> tuple[datetime, ...]:
    """Return the next three times at which an expression is due, UTC."""
    return tuple(islice(due_times(cron, now()), _TIMES_SHOWN))


def plan_text(plan: RoutinePlan) -> str:
    runs = trn("{count} time a month", "{count} times a month", plan.runs_a_month)
    if not plan.sent_to:
        text = tr("It runs about {runs} on this computer, with {model}.")
        return text.format(runs=runs, model=model_label(plan.model))
    return tr(
        "About {runs}, its prompt, the instructions of its preset and project, core memory, profile, last results and "
        "what its tools find in your history are sent to {model} at {sent_to}: {price} a month."
    ).format(runs=runs, model=plan.model, sent_to=plan.sent_to, price=format_price(plan.month_usd))

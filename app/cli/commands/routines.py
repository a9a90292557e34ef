"""`routine`: list, add, change, run and remove routines, and print their history."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.chat.models import ModelDirectory
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.chat.routines import RoutinePlan, Routines, RoutineState, next_times, plan_text, run_text
from app.cli.arguments import wrong_arguments
from app.cli.commands.providers import unlock_keys
from app.cli.terminal import Terminal, members
from app.domain.errors import InvalidInput
from app.domain.records.projects import NO_PROJECT
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.translation import format_moment
from app.language.schedules import schedule_text
from app.storage.engine.stamps import now

_OPTIONS = ("schedule", "prompt", "model", "preset", "project", "limit_usd", "private", "name")
_DONE = {"add": "added", "edit": "changed", "on": "switched_on", "off": "switched_off"}


def routine(
    routines: Routines,
    models: ModelDirectory,
    presets: Presets,
    projects: Projects,
    given: Namespace,
    terminal: Terminal,
) -> int:
    if given.action == "list":
        return _list(routines, terminal)
    (name,) = given.words
    changes = [each for each in _OPTIONS if getattr(given, each) is not None]
    if changes and given.action not in ("add", "edit"):
        raise wrong_arguments(given, "NAME alone")
    if given.action == "add" and (given.schedule is None or given.prompt is None):
        raise wrong_arguments(given, "NAME with --schedule and --prompt")
    if given.action == "add":
        new = Routine("", name, "", "", now(), enabled_at=now())
        return _save(routines, _changed(new, presets, projects, given, terminal), given, terminal)
    known = routines.named(name)
    match given.action:
        case "edit":
            return _save(
                routines, _changed(known, presets, projects, given, terminal), given, terminal
            )
        case "on" | "off":
            return _saved(routines.switch(known.uid, is_on=given.action == "on"), given, terminal)
        case "run":
            return _run(routines, models, known, terminal)
        case "history":
            return _history(routines, known, terminal)
    routines.remove(known.uid)
    terminal.show(
        {"removed": known.name}, f"The routine '{known.name}' is removed; its conversation stays."
    )
    return 0


def _list(routines: Routines, terminal: Terminal) -> int:
    states = routines.listed()
    rows = [
        {
            "routine_id": each.routine.uid,
            **members(
                each.routine, "name", "prompt", "cron", "model", "preset", "project", "is_private"
            ),
            "schedule": schedule_text(each.routine.cron),
            "limit_usd": each.routine.cap_usd,
            "on": each.routine.enabled_at is not None,
            "next_at": each.next_at,
            "last": None if each.last is None else _row(each.last, None),
            "failures_in_a_row": each.failures,
        }
        for each in states
    ]
    terminal.show({"routines": rows}, *map(_line, states))
    if not states and not terminal.as_json:
        terminal.line(
            "There are no routines. Make one: commonplace routine add NAME --schedule TEXT --prompt TEXT"
        )
    for each in states:
        if each.notice:
            terminal.err(each.notice)
    return 0


def _line(state: RoutineState) -> str:
    when = "off" if state.next_at is None else f"next {format_moment(state.next_at)}"
    last = "never ran" if state.last is None else f"last {run_text(state.last)}"
    return f"{state.routine.name}: {schedule_text(state.routine.cron)}; {when}; {last}"


def _changed(
    routine: Routine, presets: Presets, projects: Projects, given: Namespace, terminal: Terminal
) -> Routine:
    values: dict[str, Any] = {}
    if given.schedule is not None:
        values["cron"] = given.schedule
    if given.prompt is not None:
        values["prompt"] = terminal.read_input() if given.prompt == "-" else given.prompt
    if given.model is not None:
        values["model"] = None if given.model.casefold() == "default" else given.model
    if given.preset is not None:
        is_default = given.preset.casefold() == "default"
        values["preset"] = None if is_default else presets.named(given.preset).uid
    if given.project is not None:
        is_none = given.project.casefold() == NO_PROJECT
        values["project"] = None if is_none else projects.named(given.project).uid
    if given.limit_usd is not None:
        values["cap_usd"] = _usd(given.limit_usd)
    if given.private is not None:
        values["is_private"] = given.private == "on"
    if given.name is not None:
        values["name"] = given.name
    return replace(routine, **values)


def _usd(text: str) -> float | None:
    if text.casefold() == "none":
        return None
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(f"'{text}' is not an amount in USD", "Use a number, or none.") from error


def _save(routines: Routines, routine: Routine, given: Namespace, terminal: Terminal) -> int:
    """Store a routine after its model's plan was shown; one elsewhere needs a consent."""
    routine = routines.checked(routine)
    plan = routines.plan(routine)
    terminal.err(plan_text(plan))
    if plan.sent_to:
        terminal.require_confirmation(
            given.yes, f"The routine is not saved: sending to {plan.sent_to} needs your consent"
        )
    return _saved(routines.save(routine, agreed=True), given, terminal, plan)


def _saved(
    routine: Routine, given: Namespace, terminal: Terminal, plan: RoutinePlan | None = None
) -> int:
    """Print a routine as it is stored, with its next times."""
    times = next_times(routine.cron) if routine.enabled_at is not None else ()
    document: dict[str, Any] = {
        _DONE[given.action]: routine.name,
        "routine_id": routine.uid,
        "cron": routine.cron,
        "schedule": schedule_text(routine.cron),
        "next": times,
    }
    if plan is not None:
        document |= members(plan, "model", "sent_to", "runs_a_month", "run_usd", "month_usd")
    lines = [f"{routine.name}: {schedule_text(routine.cron)}"]
    lines += [f"  {format_moment(each)}" for each in times] or ["  It is off."]
    terminal.show(document, *lines)
    return 0


def _run(routines: Routines, models: ModelDirectory, routine: Routine, terminal: Terminal) -> int:
    unlock_keys(models, routines.plan(routine).model, terminal)
    run, turn_number = routines.run_now(routine.uid, terminal.cancelled)
    lines = [f"{routine.name}: {run_text(run)}"]
    if turn_number is not None:
        lines.append(f"commonplace show {run.conversation_id}:{turn_number}")
    terminal.show({"runs": [_row(run, turn_number)]}, *lines)
    return 0 if run.outcome is RunOutcome.COMPLETED else 1


def _history(routines: Routines, routine: Routine, terminal: Terminal) -> int:
    runs = routines.history(routine.uid)
    lines = []
    for run, turn in runs:
        place = "" if turn is None else f"  {run.conversation_id}:{turn}"
        lines.append(f"due {format_moment(run.due_at)}; {run_text(run)}{place}")
    terminal.show({"runs": [_row(run, turn) for run, turn in runs]}, *lines)
    if not runs and not terminal.as_json:
        terminal.line(f"The routine '{routine.name}' has not run yet.")
    return 0


def _row(run: RoutineRun, turn_number: int | None) -> Mapping[str, Any]:
    return {
        **members(run, "due_at", "started_at", "finished_at", "why", "conversation_id"),
        "outcome": run.outcome or "running",
        "missed": run.missed if run.outcome is RunOutcome.SKIPPED else 0,
        "turn_number": turn_number,
        "manual": run.is_manual,
    }

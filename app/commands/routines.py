"""`/routine`: list routines with their next and last runs, add, switch and run them."""

from app.chat.routines import Routines, RoutineState, outcome_text
from app.commands.command import (
    Command,
    CommandCall,
    Form,
    NewRoutine,
    Outcome,
    RunRoutine,
    wrong_form,
)
from app.domain.formatting import format_moment
from app.domain.links import link_to
from app.domain.routines import RoutineRun
from app.domain.text import escape_markdown
from app.domain.translation import tr
from app.language.schedules import schedule_text

_FORMS = (
    Form("/routine", help="List the routines"),
    Form("/routine add", help="Add a routine: a prompt that runs on a schedule"),
    Form("/routine run", "NAME", "Run a routine now"),
    Form("/routine on", "NAME", "Switch a routine on, counting from now"),
    Form("/routine off", "NAME", "Switch a routine off"),
    Form("/routine history", "NAME", "List the runs of a routine, with links to their answers"),
)
_RUNS_SHOWN = 10


def routine_command(routines: Routines) -> Command:
    """Return `/routine`."""

    def run(call: CommandCall) -> Outcome:
        if not call.rest:
            lines = "\n".join(map(_line, routines.listed()))
            return Outcome(lines or tr("There are no routines. `/routine add` adds one."))
        word, name = call.words[0], call.after(1)
        if word == "add" and not name:
            return Outcome(action=NewRoutine())
        if not name or word not in ("run", "on", "off", "history"):
            raise wrong_form(call, _FORMS)
        routine = routines.named(name)
        if word == "run":
            text = tr("The routine “{name}” is running.")
            return Outcome(text.format(name=escape_markdown(routine.name)), RunRoutine(routine.uid))
        if word == "history":
            runs = routines.history(routine.uid, _RUNS_SHOWN)
            lines = "\n".join(_run_line(*each) for each in runs)
            return Outcome(lines or tr("It has not run yet."))
        routines.switch(routine.uid, is_on=word == "on")
        states = routines.listed()
        return Outcome(next(_line(each) for each in states if each.routine.uid == routine.uid))

    return Command("routine", tr("Prompts that run on a schedule"), _FORMS, run)


def _line(state: RoutineState) -> str:
    when = tr("off")
    if state.next_at is not None:
        when = tr("next {time}").format(time=format_moment(state.next_at))
    last = tr("never ran") if state.last is None else escape_markdown(outcome_text(state.last))
    name = escape_markdown(state.routine.name)
    schedule = escape_markdown(schedule_text(state.routine.cron))
    return f"- **{name}**: {schedule}; {when}; {last}"


def _run_line(run: RoutineRun, turn: int | None) -> str:
    text = f"{format_moment(run.due_at)}: {outcome_text(run)}"
    if turn is None or run.conversation_id is None:
        return f"- {escape_markdown(text)}"
    return f"- [{escape_markdown(text)}]({link_to(run.conversation_id, turn, run.exchange_id)})"

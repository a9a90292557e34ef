"""Commands about background work: workers, what they have done, and routines."""

from collections.abc import Collection, Sequence
from functools import partial

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
from app.domain.links import link_to
from app.domain.passages import PassageKind
from app.domain.records.routines import RoutineRun
from app.domain.text import escape_markdown
from app.domain.translation import format_moment, format_percent, tr
from app.domain.workers import WorkerName, WorkerStatus
from app.language.schedules import schedule_text
from app.memory.search.coverage import OverviewService
from app.memory.search.embedders import EmbedderDirectory
from app.workers.board import WorkerBoard
from app.workers.regeneration import EmbeddingRegeneration, ModelRegeneration, SummaryRegeneration
from app.workers.status_text import worker_text

_SUMMARIZERS = {
    "conversation": WorkerName.CONVERSATION_SUMMARIZER,
    "exchange": WorkerName.EXCHANGE_SUMMARIZER,
}
_PIPELINE = WorkerName.EMBEDDING_PIPELINE
_SWITCH = {"on": True, "off": False}
_KINDS = {
    "conversations": PassageKind.CONVERSATION_SUMMARY,
    "exchanges": PassageKind.EXCHANGE_SUMMARY,
    "turns": PassageKind.TURN,
}
_SUMMARIZER_FORMS = (
    Form("/summarizer", help="Show the summarizers"),
    Form("/summarizer on", help="Start both, and search by meaning"),
    Form("/summarizer off", help="Stop both"),
    Form("/summarizer rebuild", help="Regenerate summaries by other models, after confirmation"),
    Form("/summarizer conversation", "[on|off]", "Only the conversation summarizer"),
    Form("/summarizer exchange", "[on|off]", "Only the summaries of turns"),
)
_EMBEDDINGS_FORMS = (
    Form("/embeddings", help="Show the state of search by meaning"),
    Form("/embeddings on", help="Start it"),
    Form("/embeddings off", help="Stop it; existing vectors are still searched"),
    Form("/embeddings rebuild", "[conversations|exchanges|turns]",
         "Delete vectors and embed again, after confirmation"),
)  # fmt: skip
_EMBEDDINGS_KINDS = (
    Form("/embeddings rebuild conversations", help="Vectors of conversation summaries"),
    Form("/embeddings rebuild exchanges", help="Vectors of turn summaries"),
    Form("/embeddings rebuild turns", help="Vectors of turns"),
)
_MAN_FORMS = (
    Form("/index-man", help="Show the man-page indexer"),
    Form("/index-man on", help="Index the system's manual pages, until the program ends"),
    Form("/index-man off", help="Stop it"),
)
_ROUTINE_FORMS = (
    Form("/routine", help="List the routines"),
    Form("/routine add", help="Add a routine: a prompt that runs on a schedule"),
    Form("/routine run", "NAME", "Run a routine now"),
    Form("/routine on", "NAME", "Switch a routine on, counting from now"),
    Form("/routine off", "NAME", "Switch a routine off"),
    Form("/routine history", "NAME", "List the runs of a routine, with links to their answers"),
)
_RUNS_SHOWN = 10


def worker_commands(
    workers: WorkerBoard,
    embedders: EmbedderDirectory,
    overview: OverviewService,
    redo: SummaryRegeneration,
    vectors: EmbeddingRegeneration,
) -> tuple[Command, ...]:
    def summarizer(call: CommandCall) -> Outcome:
        if call.words == ("rebuild",):
            return confirm_regeneration(redo, workers)
        names, on = _choice(call)
        if on is not None:
            also = (_PIPELINE,) if on and len(names) > 1 else ()
            for name in (*names, *also):
                workers.set_enabled(name, on)
            names = (*names, *also)
        return Outcome(status_text(workers, names))

    def embeddings(call: CommandCall) -> Outcome:
        match call.words:
            case ():
                embedded = overview.read().embedded
                found = tr("Search by meaning is not available now.")
                if embedded is not None:
                    found = tr("{share} of the passages can be found by meaning.").format(
                        share=format_percent(embedded.share)
                    )
                text = tr("Embedder: {embedder}. {found}").format(
                    embedder=escape_markdown(embedders.describe()), found=found
                )
                return Outcome(f"{status_text(workers, [_PIPELINE])}\n\n{text}")
            case ("on" | "off" as word,):
                workers.set_enabled(_PIPELINE, _SWITCH[word])
                return Outcome(status_text(workers, [_PIPELINE]))
            case ("rebuild",):
                return _ask_to_reembed(vectors, workers, ())
            case ("rebuild", kind) if kind in _KINDS:
                return _ask_to_reembed(vectors, workers, (_KINDS[kind],))
        raise wrong_form(call, _EMBEDDINGS_FORMS)

    return (
        Command("summarizer", tr("Summaries: status, on, off, rebuild"), _SUMMARIZER_FORMS, summarizer,
                _on_and_off("/summarizer conversation", "/summarizer exchange")),
        Command("embeddings", tr("Search by meaning: status, on, off, rebuild"), _EMBEDDINGS_FORMS,
                embeddings, _EMBEDDINGS_KINDS),
        Command("index-man", tr("Manual pages: status, on, off"), _MAN_FORMS, partial(_index_man, workers)),
    )  # fmt: skip


def _index_man(workers: WorkerBoard, call: CommandCall) -> Outcome:
    if len(call.words) > 1 or (call.words and call.words[0] not in _SWITCH):
        raise wrong_form(call, _MAN_FORMS)
    if call.words:
        workers.set_enabled(WorkerName.MAN_INDEXER, _SWITCH[call.words[0]])
    return Outcome(status_text(workers, [WorkerName.MAN_INDEXER]))


def status_text(workers: WorkerBoard, names: Collection[WorkerName]) -> str:
    """Return the status of workers as Markdown, with warnings. Blocking."""
    statuses = {status.name: status for status in workers.refresh()}
    parts = [_card_text(statuses[name]) for name in names if name in statuses]
    warnings = [f"> {escape_markdown(each)}" for each in workers.warnings(names)]
    return "\n\n".join((*parts, *warnings))


def _card_text(status: WorkerStatus) -> str:
    text = worker_text(status)
    head = f"**{text.title}** \N{MIDDLE DOT} {text.state}"
    return "  \n".join((head, *map(escape_markdown, text.lines)))


def _choice(call: CommandCall) -> tuple[Sequence[WorkerName], bool | None]:
    """Return the summarizers named, and whether to switch them on or off; None for neither."""
    words = list(call.words)
    names = tuple(_SUMMARIZERS.values())
    if words and words[0] in _SUMMARIZERS:
        names = (_SUMMARIZERS[words.pop(0)],)
    on = _SWITCH[words.pop(0)] if words and words[0] in _SWITCH else None
    if words:
        raise wrong_form(call, _SUMMARIZER_FORMS)
    return names, on


def _on_and_off(*starts: str) -> tuple[Form, ...]:
    return tuple(Form(f"{start} {word}", help="") for start in starts for word in _SWITCH)


def confirm_regeneration(regeneration: ModelRegeneration, workers: WorkerBoard) -> Outcome:
    """Describe a regeneration, which begins once the user confirms it."""

    def begin() -> Outcome:
        regeneration.begin()
        return Outcome(status_text(workers, regeneration.workers))

    plan = regeneration.plan()
    return Outcome(escape_markdown(plan.text), on_confirmed=begin if plan.count else None)


def _ask_to_reembed(
    vectors: EmbeddingRegeneration, workers: WorkerBoard, kinds: tuple[PassageKind, ...]
) -> Outcome:
    def begin() -> Outcome:
        vectors.begin(kinds)
        return Outcome(status_text(workers, [_PIPELINE]))

    return Outcome(escape_markdown(vectors.plan(kinds).text), on_confirmed=begin)


def routine_command(routines: Routines) -> Command:
    def run(call: CommandCall) -> Outcome:
        if not call.rest:
            lines = "\n".join(map(_line, routines.listed()))
            return Outcome(lines or tr("There are no routines. `/routine add` adds one."))
        word, name = call.words[0], call.after(1)
        if word == "add" and not name:
            return Outcome(action=NewRoutine())
        if not name or word not in ("run", "on", "off", "history"):
            raise wrong_form(call, _ROUTINE_FORMS)
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

    return Command("routine", tr("Prompts that run on a schedule"), _ROUTINE_FORMS, run)


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

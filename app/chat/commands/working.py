"""`/summarizer`, `/embeddings` and `/index-man`: what workers do, on and off, vectors made anew."""

from collections.abc import Callable, Collection, Sequence

from app.chat.commands.values import Command, CommandOutput, Form, Given, wrong_form
from app.domain.errors import NotFound
from app.domain.passages import PassageKind
from app.domain.text import as_markdown
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.embedders import EmbedderDirectory
from app.workers.board import WorkerBoard
from app.workers.redoing import SUMMARISERS, SummaryRedo
from app.workers.wording import estimate_words, redo_words, worker_words

_SUMMARISERS = {
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
    Form("/summarizer", help="What the summarisers do"),
    Form("/summarizer on", help="Start both, and the embedding pipeline"),
    Form("/summarizer off", help="Stop both"),
    Form("/summarizer rebuild", help="Make what others summarised again, once you have agreed"),
    Form("/summarizer conversation", "[on|off]", "That of conversations alone"),
    Form("/summarizer exchange", "[on|off]", "That of exchanges alone"),
)
_EMBEDDINGS_FORMS = (
    Form("/embeddings", help="What the embedding pipeline does"),
    Form("/embeddings on", help="Start it"),
    Form("/embeddings off", help="Stop it; what has vectors is still found by meaning"),
    Form(
        "/embeddings rebuild", "[conversations|exchanges|turns]",
        "Delete vectors and make them again, once you have agreed",
    ),
)  # fmt: skip
_EMBEDDINGS_KEYS = (
    Form("/embeddings rebuild conversations", help="Those of conversations' summaries"),
    Form("/embeddings rebuild exchanges", help="Those of exchanges' summaries"),
    Form("/embeddings rebuild turns", help="Those of what was said"),
)
_MAN_FORMS = (
    Form("/index-man", help="What the man-page indexer does"),
    Form("/index-man on", help="Make the system's manual searchable, until the program ends"),
    Form("/index-man off", help="Stop it"),
)


def worker_commands(
    workers: WorkerBoard,
    embedders: EmbedderDirectory,
    found_by_meaning: Callable[[], str],
    redo: SummaryRedo,
) -> tuple[Command, ...]:
    """Return the commands. `found_by_meaning` says in a sentence what is found that way."""
    rebuilding = _Rebuilding(workers, embedders)

    def summarizer(given: Given) -> CommandOutput:
        if given.words == ("rebuild",):
            return _ask_to_redo(redo, workers)
        names, on = _chosen(given)
        if on is not None:
            also = (_PIPELINE,) if on and len(names) > 1 else ()
            for name in (*names, *also):
                workers.set_enabled(name, on)
            names = (*names, *also)
        return CommandOutput(status_words(workers, names))

    def embeddings(given: Given) -> CommandOutput:
        match given.words:
            case ():
                words = f"Embedder: {as_markdown(embedders.describe())}. {found_by_meaning()}"
                return CommandOutput(f"{status_words(workers, [_PIPELINE])}\n\n{words}".rstrip())
            case ("on" | "off" as word,):
                workers.set_enabled(_PIPELINE, _SWITCH[word])
                return CommandOutput(status_words(workers, [_PIPELINE]))
            case ("rebuild",):
                return rebuilding.ask(())
            case ("rebuild", kind) if kind in _KINDS:
                return rebuilding.ask((_KINDS[kind],))
        raise wrong_form(given, _EMBEDDINGS_FORMS)

    def index_man(given: Given) -> CommandOutput:
        if len(given.words) > 1 or (given.words and given.words[0] not in _SWITCH):
            raise wrong_form(given, _MAN_FORMS)
        if given.words:
            workers.set_enabled(WorkerName.MAN_INDEXER, _SWITCH[given.words[0]])
        return CommandOutput(status_words(workers, [WorkerName.MAN_INDEXER]))

    return (
        Command("summarizer", "Summaries: how far, on, off", _SUMMARIZER_FORMS, summarizer,
                _on_and_off("/summarizer conversation", "/summarizer exchange")),
        Command("embeddings", "Search by meaning: how far, on, off, rebuild", _EMBEDDINGS_FORMS,
                embeddings, _EMBEDDINGS_KEYS),
        Command("index-man", "The system's manual: how far, on, off", _MAN_FORMS, index_man),
    )  # fmt: skip


def status_words(workers: WorkerBoard, names: Collection[WorkerName]) -> str:
    """Return what the cards of workers show, and what the user should know of them. Blocking."""
    statuses = {status.name: status for status in workers.refresh()}
    parts = [_status_words(statuses[name]) for name in names if name in statuses]
    warnings = [f"> {as_markdown(each)}" for each in workers.warnings(names)]
    return "\n\n".join((*parts, *warnings))


def _status_words(status: WorkerStatus) -> str:
    words = worker_words(status)
    head = f"**{words.title}** \N{MIDDLE DOT} {words.state}"
    return "  \n".join((head, *map(as_markdown, words.lines)))


def _chosen(given: Given) -> tuple[Sequence[WorkerName], bool | None]:
    """Return which summarisers are meant, and whether to switch them on, off or not at all."""
    words = list(given.words)
    names = tuple(_SUMMARISERS.values())
    if words and words[0] in _SUMMARISERS:
        names = (_SUMMARISERS[words.pop(0)],)
    on = _SWITCH[words.pop(0)] if words and words[0] in _SWITCH else None
    if words:
        raise wrong_form(given, _SUMMARIZER_FORMS)
    return names, on


def _on_and_off(*starts: str) -> tuple[Form, ...]:
    return tuple(Form(f"{start} {word}", help="") for start in starts for word in _SWITCH)


def _ask_to_redo(redo: SummaryRedo, workers: WorkerBoard) -> CommandOutput:
    def after_yes() -> CommandOutput:
        redo.begin()
        return CommandOutput(status_words(workers, SUMMARISERS))

    plan = redo.plan()
    return CommandOutput(as_markdown(plan.words), after_yes=after_yes if plan.count else None)


class _Rebuilding:
    """Says what making vectors anew takes, and does it after a yes."""

    def __init__(self, workers: WorkerBoard, embedders: EmbedderDirectory) -> None:
        self._workers = workers
        self._embedders = embedders

    def ask(self, kinds: tuple[PassageKind, ...]) -> CommandOutput:
        if (pipeline := self._workers.embedding) is None:
            raise NotFound("There is no embedder", "Choose one in the settings.")
        redo = pipeline.redo(kinds)
        estimate = self._embedders.estimate(redo.passages, redo.tokens)
        takes = estimate_words(estimate.minutes, estimate.cost_usd)
        words = redo_words(redo.space, redo.vectors, redo.passages, redo.tokens, takes)
        if estimate.sent_to:
            words += f" The texts are sent to {estimate.sent_to}."
        if not self._is_on():
            words += (
                " The embedding pipeline is off: nothing will be embedded, and search goes by words "
                "alone, until /embeddings on starts it."
            )
        return CommandOutput(as_markdown(words), after_yes=lambda: self._rebuild(kinds))

    def _is_on(self) -> bool:
        statuses = self._workers.statuses()
        return any(each.enabled for each in statuses if each.name is _PIPELINE)

    def _rebuild(self, kinds: tuple[PassageKind, ...]) -> CommandOutput:
        assert self._workers.embedding is not None
        self._workers.embedding.start_over(kinds)
        self._workers.wake([_PIPELINE])
        return CommandOutput(status_words(self._workers, [_PIPELINE]))

"""All slash commands put together for one window; a new module of commands gets its line here."""

from app.chat.commands.book import CommandBook
from app.chat.commands.finding import Finding
from app.chat.commands.moving import transfer_commands
from app.chat.commands.recalling import rag_command
from app.chat.commands.remembering import facts_command
from app.chat.commands.starting import new_command
from app.chat.commands.tagging import tag_command
from app.chat.commands.working import worker_commands
from app.chat.inspecting import Inspector
from app.chat.last_recall import LastRecall
from app.chat.library import Library
from app.chat.previewing import RecallPreviews
from app.chat.slates import CleanSlates
from app.memory.embedders import EmbedderDirectory
from app.memory.facts import FactBook
from app.memory.index_sync import IndexSync
from app.memory.overview import OverviewService
from app.memory.search import SearchService
from app.storage.conversations import Conversations
from app.storage.facts import Facts
from app.storage.settings import Settings
from app.storage.store import Store
from app.workers.board import WorkerBoard
from app.workers.redoing import FactRedo, SummaryRedo
from app.workers.wording import percent_words


def command_book(
    *,
    store: Store,
    settings: Settings,
    slates: CleanSlates,
    library: Library,
    search: SearchService,
    sync: IndexSync,
    workers: WorkerBoard,
    embedders: EmbedderDirectory,
    overview: OverviewService,
    previews: RecallPreviews,
    redo: SummaryRedo,
    fact_redo: FactRedo,
) -> CommandBook:
    """Return the commands, in the order of the help."""

    def found_by_meaning() -> str:
        embedded = overview.read().embedded
        if embedded is None:
            return "Nothing is found by meaning now."
        return f"{percent_words(embedded.share)} of what should be is found by meaning."

    return CommandBook(
        (
            new_command(slates),
            *Finding(search, sync, library).commands(),
            *worker_commands(workers, embedders, found_by_meaning, redo),
            rag_command(settings, overview.read, previews, Inspector(store), LastRecall(store)),
            facts_command(Facts(store), FactBook(store, search), fact_redo, workers),
            tag_command(library, Conversations(store)),
            *transfer_commands(store),
        )
    )

"""build(): the one place where the parts of the program meet.

Everything below the window is made here, a module for each part, in order, and taken down in
reverse by `Services.close`:

storage    the data directory held, the database open
memory     indexes, search, recall
providers  who can be asked, and what that costs
workers    the background tasks and the model that they ask
chat       the exchange loop, its tools and commands
services   what `build` returns
"""

from contextlib import ExitStack
from enum import Enum, auto

from app.bootstrap.chat import ChatPart, wire_chat
from app.bootstrap.memory import MemoryPart, wire_memory
from app.bootstrap.providers import ProvidersPart, wire_providers
from app.bootstrap.services import Services
from app.bootstrap.storage import StoragePart, locked, open_storage
from app.bootstrap.workers import WorkersPart, wire_workers
from app.chat.inspecting import Inspector
from app.memory.coverage import Coverage
from app.memory.facts import FactBook
from app.memory.probes import ProbeQuestions
from app.memory.spaces import Spaces
from app.memory.summaries import SummaryBook
from app.storage.caretaker import Caretaker
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.facts import Facts
from app.storage.man_pages import ManPages
from app.storage.passages import Passages
from app.storage.prompts import Prompts
from app.storage.spending import Spending
from app.storage.summaries import Summaries
from app.system.keys import KeyStore
from app.system.paths import DataPaths

__all__ = ["Role", "Services", "build", "locked"]


class Role(Enum):
    """Who builds: the window runs everything in the background, a command only what it needs."""

    WINDOW = auto()
    COMMAND_LINE = auto()


def build(paths: DataPaths, role: Role) -> Services:
    """Return the program, opened on a data directory. Blocking; not for the GUI thread.

    Raises AlreadyOpen, DatabaseTooNew, ReadOnlyStorage, DiskFull, StorageError.
    """
    with ExitStack() as undo:
        keys = KeyStore()
        storage = open_storage(paths, undo)
        memory = wire_memory(paths, storage, keys, undo)
        providers = wire_providers(storage.settings, keys, memory)
        workers = wire_workers(storage, memory, providers, undo)
        chat = wire_chat(storage, memory, providers.models.for_exchanges(), workers, undo)
        services = _services(paths, storage, memory, providers, workers, chat)
        undo.callback(services.caretaker.stop)
        if role is Role.WINDOW:
            services.index_sync.start()
            services.meaning.start(services.recall.warm_up)
            services.caretaker.start()
        undo.pop_all()
    return services


def _services(
    paths: DataPaths,
    storage: StoragePart,
    memory: MemoryPart,
    providers: ProvidersPart,
    workers: WorkersPart,
    chat: ChatPart,
) -> Services:
    store, settings, board = storage.store, storage.settings, workers.board
    meaning, embedders = memory.meaning, memory.embedders
    return Services(
        paths=paths,
        store=store,
        settings=settings,
        conversations=Conversations(store),
        exchanges=Exchanges(store),
        passages=Passages(store),
        summaries=Summaries(store),
        summary_book=SummaryBook(store),
        facts=Facts(store),
        fact_book=FactBook(store, memory.search),
        man_pages=ManPages(store),
        library=chat.library,
        index_sync=memory.index_sync,
        search=memory.search,
        recall=memory.recall,
        explainer=memory.explainer,
        probes=ProbeQuestions(store, settings, memory.explainer),
        meaning=meaning,
        embedders=embedders,
        spaces=Spaces(settings, embedders, memory.vectors, meaning, board.statuses),
        coverage=Coverage(
            store, settings, memory.index, lambda: meaning.answering_space, board.statuses
        ),
        overview=memory.overview,
        models=providers.models,
        core_memory=memory.core_memory,
        memories=memory.memories,
        prompts=Prompts(store),
        inspector=Inspector(store),
        look_ups=chat.look_ups,
        previews=chat.previews,
        rolling=chat.rolling,
        chat=chat.loop,
        slates=chat.slates,
        commands=chat.commands,
        workers=board,
        background_model=workers.background_model,
        background=workers.background,
        redo=workers.redo,
        fact_redo=workers.fact_redo,
        own_prices=providers.own_prices,
        spending=Spending(store),
        caretaker=Caretaker(store),
        lock=storage.lock,
    )

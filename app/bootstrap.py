"""build(): the one place where the parts of the program meet.

Everything below the window is made here, in order, and taken down in reverse by `Services.close`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from app.chat.commands.book import CommandBook
from app.chat.commands.everything import command_book
from app.chat.exchanges import ExchangeLoop
from app.chat.inspecting import Inspector
from app.chat.library import Library
from app.chat.looking_up import LookUps
from app.chat.models import ModelDirectory
from app.chat.preparing import ContextPrepare
from app.chat.previewing import PREVIEW_LIMIT_S, RecallPreviews
from app.chat.rolling import RollingSummaries
from app.chat.slates import CleanSlates
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.manual import ManualTools
from app.chat.tools.memory import MemoryTools
from app.chat.tools.toolbox import Toolbox
from app.domain.ids import ConversationId
from app.index.text_index import TantivyTextIndex
from app.memory.core_memory import CoreMemoryService
from app.memory.coverage import Coverage
from app.memory.embedders import EmbedderDirectory, provider_registry
from app.memory.explain import Explainer
from app.memory.facts import FactBook
from app.memory.finding import Finder
from app.memory.index_sync import IndexSync
from app.memory.meaning import Meaning
from app.memory.memories import MemoryService
from app.memory.overview import OverviewService
from app.memory.probes import ProbeQuestions
from app.memory.recall import RecallService
from app.memory.search import SearchService
from app.memory.spaces import Spaces
from app.memory.summaries import SummaryBook
from app.memory.vector_sync import VectorSync
from app.providers.own_prices import OwnPrices
from app.providers.prices import PriceBook
from app.providers.retry import RetryPolicy
from app.storage.attempts import Attempts
from app.storage.backup import Backup, make_backup
from app.storage.caretaker import Caretaker
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.facts import Facts
from app.storage.faults import of_system
from app.storage.forget import forget
from app.storage.man_pages import ManPages
from app.storage.part_notes import PartNotes
from app.storage.passages import Passages
from app.storage.prompts import Prompts
from app.storage.recovery import open_store
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.storage.vectors import Vectors
from app.system.keys import KeyStore
from app.system.lock import InstanceLock
from app.system.logs import start_log
from app.system.paths import DataPaths
from app.workers.background_choice import ASKING, BackgroundChoice
from app.workers.background_load import BackgroundLoad
from app.workers.background_model import BackgroundModel
from app.workers.board import WorkerBoard
from app.workers.model_summariser import ModelSummariser
from app.workers.redoing import FactRedo, SummaryRedo
from app.workers.spend_guard import SpendGuard
from app.workers.summariser import ChosenSummariser

if TYPE_CHECKING:
    from app.check import CheckReport

_log = logging.getLogger(__name__)


class Role(Enum):
    """Who builds: the window runs everything in the background, a command only what it needs."""

    WINDOW = auto()
    COMMAND_LINE = auto()


@dataclass(frozen=True, slots=True)
class Services:
    """The program below its front ends; every part is thread-safe unless it says otherwise."""

    paths: DataPaths
    store: Store
    settings: Settings
    conversations: Conversations
    exchanges: Exchanges
    passages: Passages
    summaries: Summaries
    summary_book: SummaryBook
    facts: Facts
    fact_book: FactBook
    man_pages: ManPages
    library: Library
    index_sync: IndexSync
    search: SearchService
    recall: RecallService
    explainer: Explainer
    probes: ProbeQuestions
    meaning: Meaning
    embedders: EmbedderDirectory
    spaces: Spaces
    coverage: Coverage
    overview: OverviewService
    models: ModelDirectory
    core_memory: CoreMemoryService
    memories: MemoryService
    prompts: Prompts
    inspector: Inspector
    look_ups: LookUps
    previews: RecallPreviews
    rolling: RollingSummaries
    chat: ExchangeLoop
    slates: CleanSlates
    commands: CommandBook
    workers: WorkerBoard
    background_model: BackgroundModel
    background: BackgroundChoice
    redo: SummaryRedo
    fact_redo: FactRedo
    own_prices: OwnPrices
    spending: Spending
    caretaker: Caretaker
    lock: InstanceLock

    def back_up(self) -> Backup:
        """Make a verified backup now. Blocking; raises StorageError."""
        return make_backup(self.store)

    def check(self, *, repair: bool = False) -> "CheckReport":
        """Verify everything that is kept; `repair` mends what can be made again. Blocking."""
        from app.check import check

        return check(self.store, repair=repair)

    def forget(self, conversation_ids: Sequence[ConversationId]) -> tuple[str, ...]:
        """Erase conversations everywhere; return what remains elsewhere, in words. Blocking."""
        left = forget(self.store, conversation_ids)
        self.index_sync.catch_up_soon()
        return left

    def close(self) -> None:
        """Stop what runs, drain the writer, checkpoint, let go; at most a few seconds. Blocking.

        Every step is taken even when one fails.
        """
        steps: Sequence[Callable[[], object]] = (
            self.chat.close,
            self.look_ups.close,
            self.previews.close,
            self.rolling.stop,
            self.background_model.close,
            self.embedders.close,  # ends requests that workers and questions wait for
            self.workers.stop,
            self.caretaker.stop,
            self.index_sync.stop,
            self.meaning.stop,
            self.store.close,
            self.lock.release,
        )
        for step in steps:
            try:
                step()
            except Exception:  # noqa: BLE001 - the rest must be closed all the same
                _log.exception("closing failed at %r", step)


def build(paths: DataPaths, role: Role) -> Services:
    """Return the program, opened on a data directory. Blocking; not for the GUI thread.

    Raises AlreadyOpen, DatabaseTooNew, ReadOnlyStorage, DiskFull, StorageError.
    """
    with ExitStack() as undo:
        lock = locked(paths)
        undo.callback(lock.release)
        start_log(paths)
        store = open_store(paths)
        undo.callback(store.close)
        settings = Settings(store)
        index = TantivyTextIndex(paths.index / "text", store.generation)
        index_sync = IndexSync(store, index)
        undo.callback(index_sync.stop)
        keys = KeyStore()
        embedders = EmbedderDirectory(settings, provider_registry(settings, keys))
        undo.callback(embedders.close)
        vectors = Vectors(store)
        meaning = Meaning(store, settings, embedders, vectors, VectorSync(store, vectors))
        undo.callback(meaning.stop)
        search = SearchService(store, settings, index, index_sync, meaning)
        explainer = Explainer(store, settings, index, search)
        finder = Finder(search, index, index_sync, meaning)
        recall = RecallService(store, settings, search, finder)
        models = ModelDirectory(settings, keys, recall.quotable)
        own_prices = OwnPrices(settings)
        # A worker waits and tries again by itself, where the user can see it.
        registry = provider_registry(settings, keys, RetryPolicy(tries=1))
        prices = PriceBook(registry.find_config, own_prices.all)
        guard = SpendGuard(store, settings)
        background_model = BackgroundModel(store, settings, registry, prices, guard=guard)
        undo.callback(background_model.close)
        workers = WorkerBoard(
            store, settings, embedder=embedders.active, model=background_model, guard=guard
        )
        core_memory, memories = CoreMemoryService(store, settings), MemoryService(store)
        toolbox = Toolbox(
            (
                *ConversationTools(store, search).tools(),
                *MemoryTools(store, search, memories, core_memory).tools(),
                *ManualTools(search, workers.refresh).tools(),
            )
        )
        look_ups = LookUps(store, core_memory, recall.retrieve)
        undo.callback(look_ups.close)
        for_exchanges = models.for_exchanges()
        by_model = ModelSummariser(background_model, PartNotes(store))
        rolling = RollingSummaries(
            store, settings, ChosenSummariser(lambda: bool(background_model.model), by_model)
        )
        undo.callback(rolling.stop)
        rolling.start()
        prepare = ContextPrepare(
            settings, for_exchanges.context_tokens, look_ups, rolling.await_end
        )
        patient = LookUps(store, core_memory, recall.retrieve, PREVIEW_LIMIT_S)
        previews = RecallPreviews(store, settings, for_exchanges.context_tokens, toolbox, patient)
        undo.callback(previews.close)
        chat = ExchangeLoop(store, settings, for_exchanges, prepare, toolbox)
        undo.callback(chat.close)
        library, slates = Library(store), CleanSlates(settings)
        overview = OverviewService(store, index_sync, meaning.embedded)
        load = BackgroundLoad(store, settings)
        background = BackgroundChoice(
            settings,
            registry,
            prices,
            load.all(),
            [Attempts(store, name) for name in ASKING],
        )
        redo = SummaryRedo(settings, load, background, workers)
        fact_redo = FactRedo(store, settings, load, background, workers)
        services = Services(
            paths=paths,
            store=store,
            settings=settings,
            conversations=Conversations(store),
            exchanges=Exchanges(store),
            passages=Passages(store),
            summaries=Summaries(store),
            summary_book=SummaryBook(store),
            facts=Facts(store),
            fact_book=FactBook(store, search),
            man_pages=ManPages(store),
            library=library,
            index_sync=index_sync,
            search=search,
            recall=recall,
            explainer=explainer,
            probes=ProbeQuestions(store, settings, explainer),
            meaning=meaning,
            embedders=embedders,
            spaces=Spaces(settings, embedders, vectors, meaning, workers.statuses),
            coverage=Coverage(
                store, settings, index, lambda: meaning.answering_space, workers.statuses
            ),
            overview=overview,
            models=models,
            core_memory=core_memory,
            memories=memories,
            prompts=Prompts(store),
            inspector=Inspector(store),
            look_ups=look_ups,
            previews=previews,
            rolling=rolling,
            chat=chat,
            slates=slates,
            commands=command_book(
                store=store,
                settings=settings,
                slates=slates,
                library=library,
                search=search,
                sync=index_sync,
                workers=workers,
                embedders=embedders,
                overview=overview,
                previews=previews,
                redo=redo,
                fact_redo=fact_redo,
            ),
            workers=workers,
            background_model=background_model,
            background=background,
            redo=redo,
            fact_redo=fact_redo,
            own_prices=own_prices,
            spending=Spending(store),
            caretaker=Caretaker(store),
            lock=lock,
        )
        undo.callback(services.caretaker.stop)
        if role is Role.WINDOW:
            index_sync.start()
            meaning.start(recall.warm_up)
            services.caretaker.start()
        undo.pop_all()
    return services


def locked(paths: DataPaths) -> InstanceLock:
    """Return the hold on a data directory, made if there is none; no database is opened.

    Raises AlreadyOpen, ReadOnlyStorage, StorageError.
    """
    paths.make()
    try:
        return InstanceLock(paths)
    except OSError as error:
        raise of_system(error, f"The data directory '{paths.root}'") from error

"""The program below its front ends: every part is made here, once, and closed in reverse order."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from app.chat.compactor import Compactor
from app.chat.context_fetcher import ContextFetcher, RecallLimits
from app.chat.exchange_loop import ExchangeLoop
from app.chat.history import HistoryReader
from app.chat.inspector import InspectionService
from app.chat.library import Library
from app.chat.message_cost import MessageCosts
from app.chat.models import ModelDirectory
from app.chat.presets import Presets
from app.chat.projects import ProjectProposals, Projects
from app.chat.recall_preview import PREVIEW_LIMIT_S, RecallPreviews
from app.chat.request_builder import AttachedImages, RequestBuilder
from app.chat.routine_runs import RoutineRuns
from app.chat.routines import Routines
from app.chat.sent_turns import SegmentBreaks
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.manual import manual_tools
from app.chat.tools.memory import MemoryTools
from app.chat.tools.toolbox import Tool, Toolbox
from app.chat.typed_recall import RetrievalCache, TypedRecall
from app.commands.conversation import conversation_commands
from app.commands.library import facts_command, secrets_command, topics_command
from app.commands.projects import preset_command, project_command
from app.commands.recall import rag_command
from app.commands.search import search_commands
from app.commands.table import CommandTable
from app.commands.workers import routine_command, worker_commands
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind
from app.domain.workers import WORKERS, WorkerName
from app.index.text_index import TantivyTextIndex
from app.index.text_sync import TextIndexSync
from app.index.token_sync import TokenIndexSync
from app.index.vector_sync import VectorIndexSync
from app.mcp.access import McpAccess
from app.mcp.memory_tools import McpTools
from app.mcp.server import HttpServer, serve
from app.mcp.tool_connections import ToolConnections
from app.mcp.tool_servers import ToolServers
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.memory.facts import FactService
from app.memory.memory_writes import MemoryWriteService
from app.memory.profile import ProfileService
from app.memory.recall.answers import AnswerFinder
from app.memory.recall.brief import Briefs
from app.memory.recall.mentions import Mentions
from app.memory.recall.service import RecallService
from app.memory.search.coverage import OverviewService, TurnCoverage
from app.memory.search.embedders import (
    EmbedderDirectory,
    EmbedderSuggestions,
    choose_first_embedder,
)
from app.memory.search.explain import Explainer
from app.memory.search.probes import ProbeQuestions
from app.memory.search.service import SearchService
from app.memory.search.spaces import SpaceService
from app.memory.search.vector_search import VectorSearch
from app.memory.secrets import ValueService
from app.memory.summaries import SummaryService
from app.memory.topics.service import TopicService
from app.privacy import PrivacyService
from app.providers.http.endpoint import check_ca_bundle, check_proxy_url
from app.providers.pricing.prices import OwnPrices, PriceList
from app.providers.registry import network_of, provider_registry
from app.providers.wire.streaming import RetryPolicy
from app.storage.deletion.forget import forget, forget_messages, forget_turn, forget_value
from app.storage.engine.errors import from_os_error
from app.storage.safety.attachments import AttachmentFiles
from app.storage.safety.backup import complete_backup
from app.storage.safety.maintenance import Maintenance
from app.storage.safety.recovery import open_store
from app.storage.tables.conversations import Conversations
from app.storage.tables.documents import Documents, DocumentTexts
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.facts import Facts
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.vectors import Vectors
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import Settings
from app.storage.tables.spending import Spending
from app.storage.tables.summaries import Summaries
from app.system.key_file import KeyFile
from app.system.keys import KeyStore
from app.system.lock import InstanceLock
from app.system.logs import configure_logging
from app.system.paths import DataPaths
from app.workers.background_model import BackgroundModel
from app.workers.board import WorkerBoard
from app.workers.followed import AddedDocuments, FollowedSources
from app.workers.jobs import JobParts
from app.workers.model_choice import BackgroundModelChoice
from app.workers.regeneration import EmbeddingRegeneration, FactRegeneration, SummaryRegeneration
from app.workers.spend_limits import SpendLimits

if TYPE_CHECKING:
    from app.check import CheckReport

_log = logging.getLogger(__name__)


class Services:
    """The program on one data directory; every part is thread-safe unless it says otherwise.

    Constructing it opens the database; nothing runs before `start`. Blocking. Raises AlreadyOpen,
    DatabaseTooNew, ReadOnlyStorage, DiskFull, StorageError.
    """

    def __init__(self, paths: DataPaths) -> None:
        self.paths = paths
        self._closers: list[Callable[[], object]] = []
        try:
            self._open_storage()
            keys = KeyStore(file=KeyFile(paths.keys))
            self._wire_memory(keys)
            self._wire_workers(keys)
            self._wire_chat(keys)
            self._wire_mcp(keys)
            self._wire_commands()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start the background threads of a window; a command does without."""
        self.index_sync.start()
        self.vector_search.start(self.recall.warm_up)
        self.maintenance.start()
        self.mcp_http.start()
        self.compactor.start()

    def check(
        self,
        *,
        repair: bool = False,
        is_cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], object] = lambda _done, _total: None,
    ) -> "CheckReport":
        """Verify everything that is stored; `repair` restores what can be derived. Blocking; see `app.check`."""
        from app.check import CheckControl, check

        return check(self.store, repair=repair, control=CheckControl(is_cancelled, progress))

    def _repair_migrated(self, is_cancelled: Callable[[], bool]) -> None:
        from app.check import repair_after_update

        repair_after_update(self.store, self.maintenance.inform, is_cancelled)

    def forget(self, conversation_ids: Sequence[ConversationId]) -> tuple[str, ...]:
        """Erase conversations everywhere; return what remains elsewhere, as text. Blocking."""
        return self._then_index(forget(self.store, conversation_ids))

    def forget_turn(self, exchange_id: int) -> tuple[str, ...]:
        """Erase the content of a turn everywhere; see `app.storage.deletion.forget`. Blocking."""
        return self._then_index(forget_turn(self.store, exchange_id))

    def forget_messages(self, message_ids: Sequence[int]) -> tuple[str, ...]:
        """Erase the content of messages everywhere; see `app.storage.deletion.forget`. Blocking."""
        return self._then_index(forget_messages(self.store, message_ids))

    def _then_index(self, left: tuple[str, ...]) -> tuple[str, ...]:
        return (*left, *self.index_sync.catch_up_soon())

    def close(self) -> None:
        """Stop all threads, drain the writer, checkpoint, unlock; a few seconds at most. Blocking.

        Every step is taken even when one fails.
        """
        while self._closers:
            step = self._closers.pop()
            try:
                step()
            except Exception:  # noqa: BLE001 - the rest must be closed all the same
                _log.exception("closing failed at %r", step)

    # -- wiring; the last closer is called first

    def _open_storage(self) -> None:
        self.lock = locked(self.paths)
        self._closers.append(self.lock.release)
        configure_logging(self.paths)
        self.store = store = open_store(self.paths)
        self._closers.append(store.close)
        self.settings = Settings(store)
        if store.journal.last_position == 0:  # a new library
            choose_first_embedder(self.settings)
        self.conversations = Conversations(store)
        self.exchanges = Exchanges(store)
        self.passages = Passages(store)
        self.summaries = Summaries(store)
        self.facts = Facts(store)
        self.values = ValueService(
            store, lambda value: self._then_index(forget_value(store, value))
        )
        self.man_pages = Documents(store, PassageKind.MAN_PAGE)
        self.document_texts = DocumentTexts(store)
        self.prompts = Prompts(store)
        self.spending = Spending(store)
        self.attachments = AttachmentFiles(self.paths)
        self.back_up = partial(complete_backup, store)
        self.maintenance = Maintenance(store)
        self.maintenance.repair_migrated = self._repair_migrated

    def _wire_memory(self, keys: KeyStore) -> None:
        store, settings = self.store, self.settings
        self._index = index = TantivyTextIndex(self.paths.index / "text", store.generation)
        self.index_sync = TextIndexSync(store, index)
        self.maintenance.erase_index = self.index_sync.erase
        self.embedders = EmbedderDirectory(settings, provider_registry(settings, keys))
        self._vectors = vectors = Vectors(store)
        sync = VectorIndexSync(store, vectors)
        self.token_sync = TokenIndexSync(store, vectors, self.paths.index / "tokens")
        self.vector_search = VectorSearch(
            store, settings, self.embedders, vectors, sync, self.token_sync
        )
        self._closers += [self.vector_search.stop, self.index_sync.stop, self.maintenance.stop]
        self.search = SearchService(store, settings, index, self.index_sync, self.vector_search)
        self.recall = RecallService(store, settings, self.search)
        self.explainer = Explainer(store, settings, index, self.search)
        self.core_memory = CoreMemoryService(store, settings)
        self.profile = ProfileService(store, settings)
        self.memories = ArchivalMemoryService(store)
        self.answers = AnswerFinder(store, self.search)
        self.memory_writes = MemoryWriteService(store, self.core_memory, self.memories)
        self.summary_service = SummaryService(store)
        self.topics = TopicService(store, self.search.boundaries)
        self.fact_service = FactService(store, self.search)
        self.probes = ProbeQuestions(store, settings, self.explainer)
        self.overview = OverviewService(store, self.index_sync, self.vector_search.embedded)

    def _wire_workers(self, keys: KeyStore) -> None:
        store, settings = self.store, self.settings
        self.models = ModelDirectory(settings, keys, self.recall.answers)
        settings.check_with(
            default_model=self.models.check_name,
            proxy_url=check_proxy_url,
            ca_bundle=check_ca_bundle,
        )
        self.own_prices = OwnPrices(settings)
        # Workers retry by themselves, where the user can see it.
        registry = provider_registry(settings, keys, RetryPolicy(tries=1))
        prices = PriceList(registry.find_config, self.own_prices.all)
        self._limits = limits = SpendLimits(store, settings)
        self.background_model = model = BackgroundModel(
            store, settings, registry, prices, self.models.windows, limits=limits
        )
        parts = JobParts(
            store, settings, self.embedders.active, model, limits, self.fact_service.nearest,
            self.token_sync, lambda: self._routine_runs,
        )  # fmt: skip
        self.workers = board = WorkerBoard(parts)
        # Closing the embedders ends requests that workers and questions wait for.
        self._closers += [board.stop, self.embedders.close, model.close]
        store.throttle = self.index_sync.throttle = board.ui_priority.yield_if_late
        self.spaces = SpaceService(
            settings, self.embedders, self._vectors, self.vector_search, board.statuses
        )
        self.embedder_suggestions = EmbedderSuggestions(settings, self.embedders, self.passages)
        self.coverage = TurnCoverage(
            store, settings, self._index, lambda: self.vector_search.answering_space, board.statuses
        )
        self.background = choice = BackgroundModelChoice(store, settings, registry, prices)
        self.documents = AddedDocuments(store, settings)
        self.sources = FollowedSources(self.paths, settings, choice)
        self.summary_regeneration = SummaryRegeneration(store, settings, choice, board)
        self.embedding_regeneration = EmbeddingRegeneration(settings, board, self.embedders)
        self.fact_regeneration = FactRegeneration(store, settings, choice, board)

    def _wire_chat(self, keys: KeyStore) -> None:
        store, settings, core_memory = self.store, self.settings, self.core_memory
        connections = ToolConnections(partial(network_of, settings))
        self._closers.append(connections.close)
        self.tool_servers = ToolServers(settings, keys, connections)
        self.privacy = PrivacyService(settings, self.models, self.tool_servers)
        toolbox = Toolbox(self._own_tools(), self.tool_servers.tools)
        self.presets, self.mentions = Presets(store, settings), Mentions(store)
        self.projects = Projects(store)
        self.project_proposals = ProjectProposals(store, settings, self.projects, self.topics)
        self.tools = toolbox.descriptions
        retrieve = RetrievalCache(store, self.recall.retrieve)
        model = self.background_model
        self.compactor = Compactor(store, settings, model.for_reader, model.origin_of)
        self._closers.append(self.compactor.stop)
        history = HistoryReader(store)
        images = AttachedImages(self.attachments, self.models.sees_images)
        self.context_fetcher = ContextFetcher(
            store, core_memory, retrieve, wait_for_meaning=self.recall.wait_for_meaning
        )
        builder, typing = (
            RequestBuilder(
                settings,
                context_tokens,
                history,
                self.context_fetcher,
                toolbox,
                self.presets,
                self.projects,
                self.compactor.expect,
                images,
                self.profile.lines_in,
            )
            for context_tokens in (self.models.context_tokens, self.models.known_context_tokens)
        )
        patient = RecallLimits(*(PREVIEW_LIMIT_S,) * 3)
        preview_fetcher = ContextFetcher(store, core_memory, self.recall.retrieve, patient)
        self.typed_recall = TypedRecall(store, settings, typing, retrieve, self.mentions)
        self.previews = RecallPreviews(store, settings, builder, preview_fetcher)
        self.message_costs = MessageCosts(
            store, settings, typing, preview_fetcher, self.presets, self.models.price_of
        )
        self._closers += [preview_fetcher.close, self.context_fetcher.close]
        self.chat = ExchangeLoop(store, settings, self.models, builder, toolbox)
        self._closers.append(self.chat.close)
        self._routine_runs = RoutineRuns(
            store, settings, self.chat, self.models, provider_registry(settings, keys),
            self._limits, self._get_ready_to_search,
        )  # fmt: skip
        self.routines = Routines(store, self.presets, self.models, self._routine_runs)

    def _own_tools(self) -> tuple[Tool, ...]:
        return (
            *ConversationTools(self.store, self.search).tools(),
            *MemoryTools(
                self.answers,
                self.core_memory,
                self.memory_writes,
                lambda each: self.search.boundaries.of(each.project).is_bounded,
            ).tools(),
            *manual_tools(self.search, self.workers.refresh, self._is_manual_on),
        )

    def _wire_mcp(self, keys: KeyStore) -> None:
        store, settings = self.store, self.settings
        self.mcp_access = McpAccess(self.paths, settings)
        self.mcp_tools = McpTools(
            store, settings, self.search, self.answers, self.memories, self.mcp_access
        )
        self.serve_mcp = partial(serve, tools=self.mcp_tools)
        self.mcp_http = HttpServer(store, settings, keys, self.mcp_tools)
        self._closers.append(self.mcp_http.stop)

    def _get_ready_to_search(self, text: str, is_cancelled: Callable[[], bool]) -> None:
        """Catch the index up and load the embedder, which recall would not wait for."""
        self.index_sync.catch_up_a_little(is_cancelled)
        self.vector_search.query_vector(text)

    def _is_manual_on(self) -> bool:
        key = WORKERS[WorkerName.MAN_INDEXER].enabled_key
        return self.settings.flag(key) or self.man_pages.is_any_read()

    def _wire_commands(self) -> None:
        store, settings, board = self.store, self.settings, self.workers
        self.briefs = Briefs(store, self.answers)
        self.library = Library(store)
        self.inspector = InspectionService(store)
        self.segments = SegmentBreaks(settings)
        new, tag, *transfer = conversation_commands(store, self.library, self.segments)
        self.commands = CommandTable(
            (
                new,
                *search_commands(self.search, self.index_sync, self.library, self.briefs),
                *worker_commands(
                    board, self.embedders, self.overview, self.summary_regeneration,
                    self.embedding_regeneration,
                ),
                preset_command(self.presets, self.library),
                project_command(self.projects, self.library),
                topics_command(self.topics),
                routine_command(self.routines),
                rag_command(settings, self.overview, self.previews, self.inspector),
                facts_command(self.facts, self.fact_service, self.fact_regeneration, board),
                secrets_command(store, self.values),
                tag,
                *transfer,
            )
        )  # fmt: skip


def locked(paths: DataPaths) -> InstanceLock:
    """Lock a data directory, made if missing; raises AlreadyOpen, ReadOnlyStorage, StorageError."""
    paths.make()
    try:
        return InstanceLock(paths)
    except OSError as error:
        raise from_os_error(error, f"The data directory '{paths.root}'") from error

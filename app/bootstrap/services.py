"""What a front end works with: every part of the program, and how it is taken down."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.chat.commands.book import CommandBook
from app.chat.exchanges import ExchangeLoop
from app.chat.inspecting import Inspector
from app.chat.library import Library
from app.chat.looking_up import LookUps
from app.chat.models import ModelDirectory
from app.chat.previewing import RecallPreviews
from app.chat.rolling import RollingSummaries
from app.chat.slates import CleanSlates
from app.domain.ids import ConversationId
from app.memory.core_memory import CoreMemoryService
from app.memory.coverage import Coverage
from app.memory.embedders import EmbedderDirectory
from app.memory.explain import Explainer
from app.memory.facts import FactBook
from app.memory.index_sync import IndexSync
from app.memory.meaning import Meaning
from app.memory.memories import MemoryService
from app.memory.overview import OverviewService
from app.memory.probes import ProbeQuestions
from app.memory.recall import RecallService
from app.memory.search import SearchService
from app.memory.spaces import Spaces
from app.memory.summaries import SummaryBook
from app.providers.own_prices import OwnPrices
from app.storage.backup import Backup, make_backup
from app.storage.caretaker import Caretaker
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.facts import Facts
from app.storage.forget import forget
from app.storage.man_pages import ManPages
from app.storage.passages import Passages
from app.storage.prompts import Prompts
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.system.lock import InstanceLock
from app.system.paths import DataPaths
from app.workers.background_choice import BackgroundChoice
from app.workers.background_model import BackgroundModel
from app.workers.board import WorkerBoard
from app.workers.redoing import FactRedo, SummaryRedo

if TYPE_CHECKING:
    from app.check import CheckReport

_log = logging.getLogger(__name__)


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

"""The workers part: the background tasks, the model that they ask, doing work again."""

from contextlib import ExitStack
from dataclasses import dataclass

from app.bootstrap.memory import MemoryPart
from app.bootstrap.providers import ProvidersPart
from app.bootstrap.storage import StoragePart
from app.storage.attempts import Attempts
from app.workers.background_choice import ASKING, BackgroundChoice
from app.workers.background_load import BackgroundLoad
from app.workers.background_model import BackgroundModel
from app.workers.board import WorkerBoard
from app.workers.redoing import FactRedo, SummaryRedo
from app.workers.spend_guard import SpendGuard


@dataclass(frozen=True, slots=True)
class WorkersPart:
    """What keeps memory up to date; the board's host starts its workers."""

    board: WorkerBoard
    background_model: BackgroundModel
    background: BackgroundChoice
    redo: SummaryRedo
    fact_redo: FactRedo


def wire_workers(
    storage: StoragePart, memory: MemoryPart, providers: ProvidersPart, undo: ExitStack
) -> WorkersPart:
    """Return the part, no worker running."""
    store, settings = storage.store, storage.settings
    registry, prices = providers.registry, providers.prices
    guard = SpendGuard(store, settings)
    model = BackgroundModel(store, settings, registry, prices, guard=guard)
    undo.callback(model.close)
    board = WorkerBoard(store, settings, embedder=memory.embedders.active, model=model, guard=guard)
    store.give_way = memory.index_sync.give_way = board.courtesy.step_aside
    load = BackgroundLoad(store, settings)
    attempts = [Attempts(store, name) for name in ASKING]
    background = BackgroundChoice(settings, registry, prices, load.all(), attempts)
    return WorkersPart(
        board=board,
        background_model=model,
        background=background,
        redo=SummaryRedo(settings, load, background, board),
        fact_redo=FactRedo(store, settings, load, background, board),
    )

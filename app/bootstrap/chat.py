"""The chat part: the exchange loop, its tools and commands, what is looked up for a question."""

from contextlib import ExitStack
from dataclasses import dataclass

from app.bootstrap.memory import MemoryPart
from app.bootstrap.storage import StoragePart
from app.bootstrap.workers import WorkersPart
from app.chat.commands.book import CommandBook
from app.chat.commands.everything import command_book
from app.chat.exchanges import ExchangeLoop, Models
from app.chat.library import Library
from app.chat.looking_up import LookUps
from app.chat.preparing import ContextPrepare
from app.chat.previewing import PREVIEW_LIMIT_S, RecallPreviews
from app.chat.rolling import RollingSummaries
from app.chat.slates import CleanSlates
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.manual import ManualTools
from app.chat.tools.memory import MemoryTools
from app.chat.tools.toolbox import Toolbox
from app.storage.part_notes import PartNotes
from app.storage.store import Store
from app.workers.background_model import BackgroundModel
from app.workers.model_summariser import ModelSummariser
from app.workers.summariser import ChosenSummariser


@dataclass(frozen=True, slots=True)
class ChatPart:
    """What answers the user."""

    look_ups: LookUps
    previews: RecallPreviews
    rolling: RollingSummaries
    loop: ExchangeLoop
    slates: CleanSlates
    library: Library
    commands: CommandBook


def wire_chat(
    storage: StoragePart,
    memory: MemoryPart,
    models: Models,
    workers: WorkersPart,
    undo: ExitStack,
) -> ChatPart:
    """Return the part, ready for the first question."""
    store, settings = storage.store, storage.settings
    toolbox = _toolbox(store, memory, workers)
    look_ups = LookUps(store, memory.core_memory, memory.recall.retrieve)
    undo.callback(look_ups.close)
    rolling = _rolling(storage, workers.background_model)
    undo.callback(rolling.stop)
    rolling.start()
    patient = LookUps(store, memory.core_memory, memory.recall.retrieve, PREVIEW_LIMIT_S)
    previews = RecallPreviews(store, settings, models.context_tokens, toolbox, patient)
    undo.callback(previews.close)
    prepare = ContextPrepare(settings, models.context_tokens, look_ups, rolling.await_end)
    loop = ExchangeLoop(store, settings, models, prepare, toolbox)
    undo.callback(loop.close)
    library, slates = Library(store), CleanSlates(settings)
    commands = command_book(
        store=store,
        settings=settings,
        slates=slates,
        library=library,
        search=memory.search,
        sync=memory.index_sync,
        workers=workers.board,
        embedders=memory.embedders,
        overview=memory.overview,
        previews=previews,
        redo=workers.redo,
        fact_redo=workers.fact_redo,
    )
    return ChatPart(look_ups, previews, rolling, loop, slates, library, commands)


def _toolbox(store: Store, memory: MemoryPart, workers: WorkersPart) -> Toolbox:
    search = memory.search
    return Toolbox(
        (
            *ConversationTools(store, search).tools(),
            *MemoryTools(store, search, memory.memories, memory.core_memory).tools(),
            *ManualTools(search, workers.board.refresh).tools(),
        )
    )


def _rolling(storage: StoragePart, model: BackgroundModel) -> RollingSummaries:
    by_model = ModelSummariser(model, PartNotes(storage.store))
    chosen = ChosenSummariser(lambda: bool(model.model), by_model)
    return RollingSummaries(storage.store, storage.settings, chosen)

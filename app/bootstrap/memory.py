"""The memory part: the indexes, search by words and by meaning, recall."""

from contextlib import ExitStack
from dataclasses import dataclass

from app.bootstrap.storage import StoragePart
from app.index.text_index import TantivyTextIndex
from app.memory.core_memory import CoreMemoryService
from app.memory.embedders import EmbedderDirectory, provider_registry
from app.memory.explain import Explainer
from app.memory.finding import Finder
from app.memory.index_sync import IndexSync
from app.memory.meaning import Meaning
from app.memory.memories import MemoryService
from app.memory.overview import OverviewService
from app.memory.recall import RecallService
from app.memory.search import SearchService
from app.memory.vector_sync import VectorSync
from app.storage.vectors import Vectors
from app.system.keys import KeyStore
from app.system.paths import DataPaths


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """What finds again what is stored."""

    index: TantivyTextIndex
    index_sync: IndexSync
    embedders: EmbedderDirectory
    vectors: Vectors
    meaning: Meaning
    search: SearchService
    explainer: Explainer
    recall: RecallService
    core_memory: CoreMemoryService
    memories: MemoryService
    overview: OverviewService


def wire_memory(
    paths: DataPaths, storage: StoragePart, keys: KeyStore, undo: ExitStack
) -> MemoryPart:
    """Return the part, its threads not started yet."""
    store, settings = storage.store, storage.settings
    index = TantivyTextIndex(paths.index / "text", store.generation)
    index_sync = IndexSync(store, index)
    undo.callback(index_sync.stop)
    embedders = EmbedderDirectory(settings, provider_registry(settings, keys))
    undo.callback(embedders.close)
    vectors = Vectors(store)
    meaning = Meaning(store, settings, embedders, vectors, VectorSync(store, vectors))
    undo.callback(meaning.stop)
    search = SearchService(store, settings, index, index_sync, meaning)
    finder = Finder(search, index, index_sync, meaning)
    return MemoryPart(
        index=index,
        index_sync=index_sync,
        embedders=embedders,
        vectors=vectors,
        meaning=meaning,
        search=search,
        explainer=Explainer(store, settings, index, search),
        recall=RecallService(store, settings, search, finder),
        core_memory=CoreMemoryService(store, settings),
        memories=MemoryService(store),
        overview=OverviewService(store, index_sync, meaning.embedded),
    )

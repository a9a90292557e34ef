"""A board of the embedding pipeline alone, and faults of its embedder."""

from collections.abc import Callable, Sequence

import numpy as np

from app.domain.ports import Embedder
from app.domain.workers import WorkerName, WorkerStatus
from app.index.token_sync import TokenIndexSync
from app.storage.engine.store import Store
from app.storage.tables.passages.vectors import Vectors
from app.storage.tables.settings import Settings
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.jobs.embedding_pipeline import EmbeddingPipeline
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import JumpingClock

NAME = WorkerName.EMBEDDING_PIPELINE
LONG = "a question about {} with words enough that the turn is embedded"


def long(about: object) -> str:
    return LONG.format(about)


class PipelineBench:
    """A board of the pipeline alone, with a fake embedder; `refusal` is raised instead of it."""

    def __init__(self, store: Store, tokens: TokenIndexSync | None = None) -> None:
        self.store = store
        self.settings = Settings(store)
        self.embedder: Embedder = BagOfWords()
        self.refusal: Exception | None = None
        self.clock = JumpingClock()
        self.vectors = Vectors(store)
        parts = JobParts(store, self.settings, self._active, tokens=tokens, clock=self.clock)
        self.board = WorkerBoard(parts, ())

    def _active(self) -> Embedder:
        if self.refusal is not None:
            raise self.refusal
        return self.embedder

    @property
    def bag(self) -> BagOfWords:
        assert isinstance(self.embedder, BagOfWords)
        return self.embedder

    @property
    def pipeline(self) -> EmbeddingPipeline:
        assert self.board.embedding is not None
        return self.board.embedding

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([NAME])
        return status

    def parts(self, name: str = "bag_of_words") -> list[int]:
        """Return the parts that have vectors, in order, once for each chunk."""
        (space,) = [kept.space for kept in self.vectors.spaces() if kept.space.name == name]
        return [int(part) for rows in self.vectors.load(space) for part in rows.part_ids]

    def passages(self) -> set[int]:
        return {part // 4096 for part in self.parts()}


def poisoned_by(word: str, error: Exception | None = None) -> Callable[[Sequence[str]], None]:
    def refuse(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise error or ValueError("a text that cannot be embedded")

    return refuse


def spoiled(how: str, word: str = "poison") -> Callable[[np.ndarray, Sequence[str]], object]:
    """Return a function that makes the vectors of texts with a word invalid."""

    def spoil(vectors: np.ndarray, texts: Sequence[str]) -> object:
        bad = [row for row, text in enumerate(texts) if word in text]
        if not bad:
            return vectors
        match how:
            case "nan":
                vectors[bad] = np.nan
            case "zeros":
                vectors[bad] = 0
            case "fewer":
                return np.delete(vectors, bad, axis=0)
            case "dimension":
                return vectors[:, :-1]
            case _:
                return "nonsense"
        return vectors

    return spoil

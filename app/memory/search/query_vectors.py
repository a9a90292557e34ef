"""Vectors of questions, with what search by meaning needs of the space they are in."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.domain.passages import Space
from app.domain.ports import Embedder, TokenVectors, token_embedder
from app.index.relevance import Background
from app.index.text_snapshot import CandidateTable
from app.index.token_index import TokenIndex
from app.index.vector_index import ExactVectorIndex
from app.storage.tables.passages.vector_rows import validated_vectors

if TYPE_CHECKING:
    import numpy.typing as npt

    _Embedded = tuple[npt.NDArray[np.float32], TokenVectors | None]

_KEPT = 64


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """A question's tokens, with the index of the tokens they match.

    `spans` is int32 (q, 2), (start, end) in the question; `vectors` float32 (q, 32), rows of unit
    length. `unrelated` is their mean cosine with the nearest tokens of an unrelated message.
    """

    spans: "npt.NDArray[np.int32]"
    vectors: "npt.NDArray[np.float32]"
    index: TokenIndex
    unrelated: float

    def matches(
        self, weights: "npt.NDArray[np.float64]", table: CandidateTable
    ) -> "npt.NDArray[np.float64] | None":
        """Return how well the best window of each candidate or a fact from it matches, (n,); None without spans.

        0 as unrelated text, 1 as equal tokens, NaN where there are no tokens; `weights` are (q,).
        """
        if not len(self.spans):
            return None
        parts = np.concatenate([table.parts, table.facts[:, 1]])
        scores = self.index.window_scores(self.vectors, weights, parts)
        own, of_facts = np.split(
            (scores - self.unrelated) / (1 - self.unrelated), [len(table.parts)]
        )
        return table.best(own, of_facts)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A question's vector in the answering space, with index and background.

    `preference` is the space's direction of preferences, `request` how likely (0-1) the question asks
    for something new rather than about the past. `tokens` is None for embedders without
    token vectors and while there is no index of them.
    """

    vector: "npt.NDArray[np.float32]"
    index: ExactVectorIndex
    background: Background
    preference: "npt.NDArray[np.float32]"
    request: float
    tokens: QueryTokens | None = None


class QuestionEmbedder:
    """Embeds questions, each of the last ones only once. Thread-safe."""

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        self._is_cancelled = is_cancelled
        self._known: OrderedDict[tuple[Space, str], _Embedded] = OrderedDict()
        self._lock = threading.Lock()

    def embedded(self, embedder: Embedder, question: str) -> "_Embedded":
        """Return a question's vector, and its tokens if the embedder has any; raises KnownError."""
        key = (embedder.space, question)
        with self._lock:
            if (known := self._known.get(key)) is not None:
                self._known.move_to_end(key)
                return known
        tokens = None
        if (with_tokens := token_embedder(embedder)) is not None:
            given, (tokens,) = with_tokens.embed_with_tokens(
                [question], self._is_cancelled, as_queries=True
            )
        else:
            given = embedder.embed([question], self._is_cancelled, as_queries=True)
        made = (validated_vectors(given, 1, embedder.space)[0], tokens)
        with self._lock:
            self._known[key] = made
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return made

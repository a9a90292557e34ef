"""Embedders without a model: near in words is near in place, and some that go wrong."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from app.domain.errors import Cancelled
from app.domain.passages import Space
from app.domain.ports import TokenVectors
from app.domain.workers import UsageTotals

_WORD = re.compile(r"\w+")
Vectors = npt.NDArray[np.float32]


class BagOfWords:
    """An `Embedder`: each word adds a direction of its own, the same on every machine.

    A token is a word.

    Attributes:
        read: Every text embedded, in order.
        queries: Those of them that were questions.
        batches: How many texts each call had.
        poison: Called with the texts before they are embedded; may raise.
        spoil: Makes something else of the vectors before they are returned.
        usage: What the next `take_usage` gives.
    """

    def __init__(self, name: str = "bag_of_words", dimension: int = 48, max_tokens: int = 64):
        self.space = Space(name, dimension, max_tokens)
        self.read: list[str] = []
        self.queries: list[str] = []
        self.batches: list[int] = []
        self.poison: Callable[[Sequence[str]], None] = lambda _: None
        self.spoil: Callable[[Vectors, Sequence[str]], object] = lambda vectors, _: vectors
        self.usage: UsageTotals | None = None

    def embed(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None = None,
        *,
        as_queries: bool = False,
    ) -> Vectors:
        """Return float32, (n, dim), rows of unit length."""
        if cancelled is not None and cancelled():
            raise Cancelled("Embedding was stopped")
        self.batches.append(len(texts))
        self.poison(texts)
        self.read += texts
        self.queries += texts if as_queries else ()
        rows = [self._vector(text) for text in texts]
        vectors = np.array(rows, np.float32).reshape(len(texts), self.space.dimension)
        return self.spoil(vectors, texts)  # type: ignore[return-value]

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[tuple[int, int]]:
        """Return the offsets of runs of words, each sharing some with the one before."""
        if max_tokens > self.space.max_tokens:
            max_tokens = self.space.max_tokens
            overlap_tokens = min(overlap_tokens, max_tokens // 10)
        words = [match.span() for match in _WORD.finditer(text)]
        pieces = []
        for first in range(0, len(words), max_tokens - overlap_tokens):
            run = words[first : first + max_tokens]
            pieces.append((run[0][0], run[-1][1]))
            if first + max_tokens >= len(words):
                break
        return pieces

    def take_usage(self) -> UsageTotals | None:
        """Return what was used since the last call."""
        usage, self.usage = self.usage, None
        return usage

    def max_usage(self, _texts: Sequence[str]) -> tuple[int, float | None]:
        """Return that requests cost nothing."""
        return 0, 0.0

    def _vector(self, text: str) -> Vectors:
        vector = np.full(self.space.dimension, 1e-3, np.float64)
        for word in _WORD.findall(text.casefold()):
            vector += _direction(self.space.name, word, self.space.dimension)
        unit: Vectors = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit


class BagOfTokens(BagOfWords):
    """A `BagOfWords` that has token vectors: each word is a token with a direction of its own."""

    token_model = "words"
    unrelated_tokens = 0.0

    def embed_with_tokens(
        self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None
    ) -> tuple[Vectors, list[TokenVectors]]:
        return self.embed(texts, cancelled), [words_of(text) for text in texts]


def words_of(text: str) -> TokenVectors:
    words = list(_WORD.finditer(text.casefold()))
    rows = [_direction("tokens", word.group(), 32) for word in words]
    rows = [row / np.linalg.norm(row) for row in rows]
    spans = np.array([word.span() for word in words], np.int32).reshape(-1, 2)
    return TokenVectors(spans, np.array(rows, np.float32).reshape(-1, 32))


@cache
def _direction(space: str, word: str, dimension: int) -> npt.NDArray[np.float64]:
    seed = hashlib.sha256(f"{space} {word}".encode()).digest()
    return np.random.default_rng(list(seed[:8])).standard_normal(dimension)

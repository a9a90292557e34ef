"""Other ways to choose sentences, for comparison: central ones without repeats, by words or vectors.

Maximal marginal relevance (Carbonell and Goldstein 1998), lambda 0.7: a sentence's relevance is its
cosine to the sum of all, times its manner; its likeness to those chosen already is taken off.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from app.language.extractive.centrality import Sentence
from app.language.extractive.summaries import central_sentences, style_weight
from app.providers.embedders.local import LocalEmbedder
from tests.bench.shared.measuring import MODEL, Vectors

Choose = Callable[[Sequence[Sentence], int], list[int]]
_RELEVANCE_SHARE = 0.7
_FULL_TERMS = 8


class Methods:
    """Ways to choose, by name; a session's vectors are made once."""

    def __init__(self) -> None:
        self._embedder = LocalEmbedder(MODEL, threads=1)
        self._vectors: dict[int, Vectors] = {}

    def all(self) -> dict[str, Choose]:
        """Return the ways: ours first."""
        return {
            "coverage of terms (ours)": central_sentences,
            "terms, MMR": lambda s, most: self._mmr(s, most, by_vectors=0.0),
            "embeddings, MMR": lambda s, most: self._mmr(s, most, by_vectors=1.0),
            "both, MMR": lambda s, most: self._mmr(s, most, by_vectors=0.5),
        }

    def embedded(self, sentences: Sequence[Sentence]) -> Vectors:
        if id(sentences) not in self._vectors:
            self._vectors[id(sentences)] = self._embedder.embed([each.text for each in sentences])
        return self._vectors[id(sentences)]

    def _mmr(self, sentences: Sequence[Sentence], most: int, *, by_vectors: float) -> list[int]:
        spaces = [(1 - by_vectors, terms_of(sentences))] if by_vectors < 1 else []
        if by_vectors:
            spaces.append((by_vectors, self.embedded(sentences)))
        central = sum(share * np.clip(space @ _unit(space.sum(0)), 0, 1) for share, space in spaces)
        alike = sum(share * np.clip(space @ space.T, 0, 1) for share, space in spaces)
        length = [min(1.0, len(each.terms) / _FULL_TERMS) for each in sentences]
        weight = central * np.array(length) * np.array([style_weight(s) for s in sentences])
        return _chosen(weight, np.asarray(alike), np.array([s.asks for s in sentences]), most)


def terms_of(sentences: Sequence[Sentence]) -> Vectors:
    places = {term: place for place, term in enumerate({t for s in sentences for t in s.terms})}
    counts = np.zeros((len(sentences), max(1, len(places))), np.float32)
    for row, sentence in enumerate(sentences):
        for term in sentence.terms:
            counts[row, places[term]] += 1
    rarity = np.log(1 + len(sentences) / np.maximum(1, (counts > 0).sum(0)))
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * rarity
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.maximum(lengths, 1e-9), np.float32)


def _unit(vector: Vectors) -> Vectors:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def _chosen(weight: Vectors, alike: Vectors, asks: npt.NDArray[np.bool_], most: int) -> list[int]:
    likeness = np.zeros(len(weight))
    left = np.ones(len(weight), bool)
    pool = asks & (weight > 0) if (asks & (weight > 0)).any() else left
    chosen: list[int] = []
    while left.any() and len(chosen) < most:
        marginal = _RELEVANCE_SHARE * weight - (1 - _RELEVANCE_SHARE) * likeness
        best = int(np.where(pool & left, marginal, -np.inf).argmax())
        chosen.append(best)
        left[best] = False
        pool = left
        likeness = np.maximum(likeness, alike[:, best])
    return chosen

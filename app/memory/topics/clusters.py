"""Clusters of unit vectors: spherical k-means, average linkage of centroids, and stable numbers.

Spherical k-means: Dhillon and Modha, "Concept decompositions for large sparse text data using
clustering" (2001). Seeding: Arthur and Vassilvitskii, "k-means++" (2007). Only numpy is needed.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_ITERATIONS = 25
_STARTS = 2
_SEED = 17
_BETTER = 1.02  # a fresh start replaces the earlier clusters only if it fits this much better
_SAME = 0.6  # the least cosine of the centroids of one topic at two times
_SAME_CHOSEN = 0.35  # and of a topic that the user named
_MIN_FOR_GROUPS = 8  # clusters


@dataclass(frozen=True, slots=True)
class Clusters:
    """Vectors in clusters.

    `labels` is (n,), the cluster of each vector; `centroids` float32 (k, dim), unit rows; `cosines`
    (n,), of each vector to its centroid.
    """

    labels: Ints
    centroids: Float
    cosines: Float

    @property
    def fit(self) -> float:
        """The mean cosine of a vector to its centroid."""
        return float(self.cosines.mean()) if len(self.cosines) else 0.0


def unit_rows(vectors: Float) -> Float:
    """Return the rows at unit length; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: Float = vectors / np.maximum(lengths, 1e-12)
    return rows


def centered(vectors: Float) -> Float:
    """Return unit rows without their common component, which would hide the differences."""
    return unit_rows(vectors - vectors.mean(axis=0))


def cluster_count(vectors: int) -> int:
    """Return the number of clusters for a number of vectors: about the square root of the half."""
    return max(1, min(vectors, round(math.sqrt(vectors / 2))))


def cluster(vectors: Float, earlier: Float | None = None) -> Clusters:
    """Return unit rows (n, dim) in `cluster_count(n)` clusters, the same for the same rows.

    `earlier` are centroids (k, dim) of the last time: clusters continue from them unless a fresh
    start fits clearly better. Raises ValueError without rows.
    """
    count = cluster_count(len(vectors))
    random = np.random.default_rng(_SEED)
    fresh = max(
        (_fitted(vectors, _seeds(vectors, count, None, random)) for _ in range(_STARTS)),
        key=lambda each: each.fit,
    )
    if earlier is None or not len(earlier):
        return fresh
    continued = _fitted(vectors, _seeds(vectors, count, earlier, random))
    return continued if fresh.fit < _BETTER * continued.fit else fresh


def assign(vectors: Float, centroids: Float) -> Clusters:
    """Return unit rows in the clusters of given centroids."""
    cosines = vectors @ centroids.T
    labels = cosines.argmax(axis=1)
    return Clusters(labels, centroids, cosines[np.arange(len(vectors)), labels])


def means(vectors: Float, labels: Ints, count: int) -> Float:
    """Return the centroids of labels 0 to `count` - 1: float32, unit rows, zero if empty."""
    sums = np.zeros((count, vectors.shape[1]), np.float32)
    order = np.argsort(labels, kind="stable")
    present, starts = np.unique(labels[order], return_index=True)
    if len(present):
        sums[present] = np.add.reduceat(vectors[order], starts, axis=0)
    return unit_rows(sums)


def match(centroids: Float, earlier: Float, chosen: Collection[int] = ()) -> Mapping[int, int]:
    """Return the earlier cluster that each cluster continues, by row; new ones are absent.

    The most similar pairs are matched first, those of `chosen` earlier clusters before others.
    """
    cosines = centroids @ earlier.T
    rows, columns = np.unravel_index(np.argsort(-cosines, axis=None), cosines.shape)
    pairs = [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]
    found: dict[int, int] = {}
    for picked, least in ((True, _SAME_CHOSEN), (False, _SAME)):
        for row, column in pairs:
            is_free = row not in found and column not in found.values()
            if is_free and (column in chosen) is picked and cosines[row, column] >= least:
                found[row] = column
    return found


def linked(centroids: Float) -> Ints:
    """Return the group of each centroid, (k,), by average linkage; -1 for one that stays alone.

    Groups are joined while their mean cosine is above that of nearly all pairs, and never to more
    than a third of all. There is no second level below eight centroids.
    """
    count = len(centroids)
    groups = np.full(count, -1, np.int64)
    if count < _MIN_FOR_GROUPS:
        return groups
    similar = (centroids @ centroids.T).astype(np.float64)
    pairs = similar[np.triu_indices(count, 1)]
    least = float(pairs.mean() + pairs.std())
    np.fill_diagonal(similar, -2.0)
    sizes = np.ones(count, np.int64)
    members = {each: [each] for each in range(count)}
    while similar.max() >= least:
        first, second = map(int, np.unravel_index(similar.argmax(), similar.shape))
        if sizes[first] + sizes[second] > max(2, count // 3):
            similar[first, second] = similar[second, first] = -2.0
            continue
        weights = sizes[first], sizes[second]
        joined = (weights[0] * similar[first] + weights[1] * similar[second]) / sum(weights)
        joined[(similar[first] < -1) | (similar[second] < -1)] = -2.0
        similar[first], similar[:, first] = joined, joined
        similar[second], similar[:, second] = -2.0, -2.0
        similar[first, first] = -2.0
        sizes[first] += sizes[second]
        members[first] += members.pop(second)
    for number, each in enumerate(each for each in members.values() if len(each) > 1):
        groups[each] = number
    return groups


# -- inside


def _seeds(vectors: Float, count: int, earlier: Float | None, random: np.random.Generator) -> Float:
    """Return `count` centroids to start from: earlier ones, and vectors far from those before."""
    seeds = [] if earlier is None else list(earlier[:count])
    if not seeds:
        seeds.append(vectors[random.integers(len(vectors))])
    nearest = (vectors @ np.stack(seeds).T).max(axis=1)
    while len(seeds) < count:
        weights = np.maximum(1.0 - nearest, 0.0).astype(np.float64)
        total = weights.sum()
        pick = random.choice(len(vectors), p=weights / total) if total > 0 else len(seeds)
        seeds.append(vectors[pick])
        nearest = np.maximum(nearest, vectors @ vectors[pick])
    return np.stack(seeds)


def _fitted(vectors: Float, seeds: Float) -> Clusters:
    """Return the clusters that k-means finds from seeds; empty ones are dropped."""
    found = assign(vectors, seeds)
    for _ in range(_ITERATIONS):
        centroids = means(vectors, found.labels, len(found.centroids))
        empty = np.flatnonzero(~centroids.any(axis=1))
        if len(empty):  # they begin again at the vectors that fit worst
            centroids[empty] = vectors[np.argsort(found.cosines)[: len(empty)]]
        again = assign(vectors, centroids)
        if (again.labels == found.labels).all():
            break
        found = again
    present, labels = np.unique(again.labels, return_inverse=True)
    return Clusters(labels, again.centroids[present], again.cosines)

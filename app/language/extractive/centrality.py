"""The centrality of sentences: how similar each is to all of them together, by TF-IDF."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its terms.

    Attributes:
        asks: Whether the user wrote it.
        is_item: Whether it is an item of a list.
        depth: Its position in the text, from 0 at the start to 1 at the end.
        turn: The number of its turn among those read, from 0.
    """

    text: str
    terms: tuple[str, ...]
    asks: bool
    is_item: bool
    depth: float
    turn: int = 0


class TfIdfSpace:
    """Sentences as TF-IDF vectors; linear in the length of the text."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        seen_in = Counter(term for each in sentences for term in set(each.terms))
        rarity = {term: math.log(1 + len(sentences) / count) for term, count in seen_in.items()}
        self._vectors = [_unit(_weights(each.terms, rarity)) for each in sentences]

    def centrality(self) -> Sequence[float]:
        """Return the cosine of each sentence to the sum of all."""
        total: dict[str, float] = {}
        for vector in self._vectors:
            for term, weight in vector.items():
                total[term] = total.get(term, 0.0) + weight
        center = _unit(total)
        return [
            sum([weight * center[term] for term, weight in vector.items()])
            for vector in self._vectors
        ]


def _weights(terms: Sequence[str], rarity: Mapping[str, float]) -> dict[str, float]:
    counts = Counter(terms)
    if len(counts) == len(terms):
        return {term: rarity[term] for term in counts}
    return {term: (1 + math.log(count)) * rarity[term] for term, count in counts.items()}


def _unit(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum([weight * weight for weight in vector.values()]))
    return {term: weight / length for term, weight in vector.items()} if length else vector

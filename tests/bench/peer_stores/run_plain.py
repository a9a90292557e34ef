"""The plain things: BM25 by bm25s or rank_bm25, and the vectors' cosine alone.

The first argument says which. BM25 gets stems and English stop words, and an index for each talk.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.peer_stores.peer import LIMIT, Asked, Row, Vector, run


class Bm25s:
    def __init__(self, _folder: Path) -> None:
        import bm25s  # type: ignore[import-not-found]
        import Stemmer

        self._bm25s, self._stemmer = bm25s, Stemmer.Stemmer("english")
        self._indexes: dict[str | None, tuple[Any, list[int]]] = {}

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        for talk, own in by_talk(rows).items():
            index = self._bm25s.BM25()
            index.index(self._words([row.text for row in own]), show_progress=False)
            self._indexes[talk] = index, [row.number for row in own]

    def search(self, asked: Asked) -> Sequence[int]:
        index, numbers = self._indexes[asked.talk]
        places, scores = index.retrieve(
            self._words([asked.text]), k=min(LIMIT, len(numbers)), show_progress=False
        )
        ranked = zip(places[0], scores[0], strict=True)
        return [numbers[place] for place, score in ranked if score > 0]

    def _words(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, show_progress=False
        )


class RankBm25:
    def __init__(self, _folder: Path) -> None:
        import Stemmer
        from bm25s.tokenization import STOPWORDS_EN  # type: ignore[import-not-found]

        self._stemmer, self._stop_words = Stemmer.Stemmer("english"), frozenset(STOPWORDS_EN)
        self._indexes: dict[str | None, tuple[Any, list[int]]] = {}

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        from rank_bm25 import BM25Okapi  # type: ignore[import-not-found]

        for talk, own in by_talk(rows).items():
            index = BM25Okapi([self._words(row.text) for row in own])
            self._indexes[talk] = index, [row.number for row in own]

    def search(self, asked: Asked) -> Sequence[int]:
        index, numbers = self._indexes[asked.talk]
        scores = index.get_scores(self._words(asked.text))
        return [numbers[place] for place in np.argsort(-scores)[:LIMIT] if scores[place] > 0]

    def _words(self, text: str) -> list[str]:
        words = "".join(each if each.isalnum() else " " for each in text.lower()).split()
        stems: list[str] = self._stemmer.stemWords(
            [word for word in words if word not in self._stop_words]
        )
        return stems


class Cosine:
    def __init__(self, _folder: Path) -> None:
        self._rows: dict[str | None, tuple[Vector, list[int]]] = {}

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        for talk, own in by_talk(rows).items():
            numbers = [row.number for row in own]
            self._rows[talk] = vectors[np.array(numbers) - 1], numbers

    def search(self, asked: Asked) -> Sequence[int]:
        vectors, numbers = self._rows[asked.talk]
        return [numbers[place] for place in np.argsort(-(vectors @ asked.vector))[:LIMIT]]


def by_talk(rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    """Return the rows of each talk, and all of them under None."""
    talks: dict[str | None, list[Row]] = {None: list(rows)}
    for row in rows:
        talks.setdefault(row.talk, []).append(row)
    return talks


if __name__ == "__main__":
    kinds: dict[str, tuple[Callable[[Path], Any], str]] = {
        "bm25s": (Bm25s, "words alone; stems, stop words out"),
        "rank_bm25": (RankBm25, "words alone; stems, stop words out"),
        "cosine": (Cosine, "vectors alone, by numpy"),
    }
    run(*kinds[sys.argv.pop(1)])

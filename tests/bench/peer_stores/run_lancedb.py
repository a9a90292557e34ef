"""LanceDB's hybrid search with its own merging by reciprocal ranks."""

from collections.abc import Sequence
from pathlib import Path

import lancedb  # type: ignore[import-not-found]
from lancedb.rerankers import RRFReranker  # type: ignore[import-not-found]

from tests.bench.peer_stores.peer import LIMIT, POOL, Asked, Row, Vector, run


class LanceDb:
    def __init__(self, folder: Path) -> None:
        self._base = lancedb.connect(str(folder))
        self._merging = RRFReranker()

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        self._turns = self._base.create_table(
            "turns",
            [
                {"number": row.number, "talk": row.talk, "text": row.text, "vector": vector}
                for row, vector in zip(rows, vectors, strict=True)
            ],
        )
        self._turns.create_fts_index("text")
        self._turns.create_scalar_index("talk", index_type="BITMAP")

    def search(self, asked: Asked) -> Sequence[int]:
        query = self._turns.search(query_type="hybrid").vector(asked.vector).text(asked.text)
        query = query.distance_type("cosine").rerank(self._merging).limit(POOL)
        if asked.talk:
            query = query.where(f"talk = '{asked.talk}'")
        found = query.select(["number"]).to_arrow()["number"].to_pylist()
        return [int(number) for number in found[:LIMIT]]


if __name__ == "__main__":
    run(LanceDb, "exact vectors, its own full-text index with stems and stop words, RRF")

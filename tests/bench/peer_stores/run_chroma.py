"""Chroma, local: vectors alone, since its hybrid search exists in its cloud only."""

from collections.abc import Sequence
from pathlib import Path

import chromadb  # type: ignore[import-not-found]

from tests.bench.peer_stores.peer import LIMIT, Asked, Row, Vector, run

_BATCH = 2000


class Chroma:
    def __init__(self, folder: Path) -> None:
        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(folder), settings)
        self._turns = self._client.create_collection(
            "turns", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        for at in range(0, len(rows), _BATCH):
            some = rows[at : at + _BATCH]
            self._turns.add(
                ids=[str(row.number) for row in some],
                embeddings=vectors[at : at + _BATCH],
                documents=[row.text for row in some],
                metadatas=[{"talk": row.talk} for row in some],
            )

    def search(self, asked: Asked) -> Sequence[int]:
        found = self._turns.query(
            query_embeddings=[asked.vector], n_results=LIMIT,
            where={"talk": asked.talk} if asked.talk else None, include=["documents"],
        )  # fmt: skip
        return [int(each) for each in found["ids"][0]]


if __name__ == "__main__":
    run(Chroma, "HNSW by cosine; the local store has no search by words and vectors together")

"""MemPalace over Chroma: a wing for each talk, a drawer for each row, its hybrid ranking.

Candidates come from vectors and words both (`union`), which its documentation says finds most.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.bench.peer_stores.peer import LIMIT, Asked, Row, Vector, run

_BATCH = 1000


class MemPalace:
    def __init__(self, folder: Path) -> None:
        os.environ.update(HOME=str(folder), MEMPALACE_LANG="en", ANONYMIZED_TELEMETRY="False")
        from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # type: ignore[import-not-found]
        from mempalace.palace import get_collection  # type: ignore[import-not-found]

        self._palace = str(folder / "palace")
        self._vectors: dict[str, Any] = {}
        vectors = self._vectors

        def looked_up(self: object, input: Sequence[str]) -> list[Any]:  # noqa: A002, Chroma's names
            return [vectors[text] for text in input]

        patch.object(ONNXMiniLM_L6_V2, "__call__", looked_up).start()
        self._drawers = get_collection(self._palace)

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        self._vectors.update(zip((row.text for row in rows), vectors, strict=True))
        for at in range(0, len(rows), _BATCH):
            some = rows[at : at + _BATCH]
            self._drawers.upsert(
                ids=[str(row.number) for row in some],
                documents=[row.text for row in some],
                metadatas=[
                    {
                        "wing": row.talk, "room": "talk", "source_file": str(row.number),
                        "chunk_index": 0,
                    }
                    for row in some
                ],
            )  # fmt: skip

    def search(self, asked: Asked) -> Sequence[int]:
        from mempalace.searcher import search_memories  # type: ignore[import-not-found]

        self._vectors[asked.text] = asked.vector
        found = search_memories(
            asked.text, self._palace, wing=asked.talk, n_results=LIMIT, candidate_strategy="union"
        )
        return [int(each["drawer_id"]) for each in found["results"]]


if __name__ == "__main__":
    run(MemPalace, "drawers in Chroma, its 60:40 blend of cosine and BM25, candidates by both")

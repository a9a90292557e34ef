"""mem0 as a library, without a language model (`infer=False`), over Qdrant in its local mode.

Its BM25 encoder loads nothing but a list of stop words from a network, and takes one of ours
instead. Its lemmas and entities need a spaCy model that is no package; without it, it stems.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.language.languages import STOP_WORDS
from tests.bench.peer_stores.peer import LIMIT, Asked, Row, Vector, run


class _Lookup:
    """Stands where mem0 would call an embedder."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed(self, text: str, *_purpose: str) -> list[float]:
        return self.vectors[text]


class Mem0:
    def __init__(self, folder: Path) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder), OPENAI_API_KEY="unused")
        from fastembed import SparseTextEmbedding  # type: ignore[import-not-found]
        from mem0 import Memory  # type: ignore[import-not-found]

        config = {
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "collection_name": "turns", "path": str(folder / "qdrant"),
                    "embedding_model_dims": 384, "on_disk": True,
                },
            },
            "history_db_path": str(folder / "history.db"),
        }  # fmt: skip
        self._memory: Any = Memory.from_config(config)
        self._lookup = _Lookup()
        vars(self._memory).update(embedding_model=self._lookup)
        empty = folder / "no_model"
        empty.mkdir()
        encoder = SparseTextEmbedding(
            "Qdrant/bm25", specific_model_path=str(empty), stopwords=set(STOP_WORDS["english"])
        )
        vars(self._memory.vector_store).update(_bm25_encoder=encoder)
        self._numbers: dict[str, int] = {}

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        for row, vector in zip(rows, vectors, strict=True):
            self._lookup.vectors[row.text] = vector.tolist()
            added = self._memory.add(
                [{"role": "user", "content": row.text}], user_id=row.talk, agent_id="everyone",
                infer=False,
            )  # fmt: skip
            self._numbers[added["results"][0]["id"]] = row.number

    def search(self, asked: Asked) -> Sequence[int]:
        self._lookup.vectors[asked.text] = asked.vector.tolist()
        filters = {"user_id": asked.talk} if asked.talk else {"agent_id": "everyone"}
        found = self._memory.search(asked.text, filters=filters, top_k=LIMIT, threshold=0.0)
        return [self._numbers[each["id"]] for each in found["results"]]


if __name__ == "__main__":
    run(Mem0, "infer=False, Qdrant's local mode, its BM25 added to the cosine; no spaCy model")

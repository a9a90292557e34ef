"""The peers of `tests.bench.peers`: each store in its best documented setting, timed in its own environment.

Runs where numpy and the peer are installed, but nothing of ours: each class imports its own packages. Called with
a peer's name and three paths: the folder with `rows.json`, `vectors.npy`, `questions.json` and
`question_vectors.npy`; a folder for the peer's files; the file for the answers.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]

LIMIT = 50  # rows asked for; a turn of several rows takes the rank of its best
POOL = 100  # rows of each list where a peer leaves the merging to its user
_WARM_UP = 20
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """A turn or a chunk of one; `number` counts from 1, `turn` is the turn's id, `talk` its talk's."""

    number: int
    turn: int
    talk: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its text and vector, and the talk to stay within; None searches everything."""

    text: str
    vector: Vector
    talk: str | None


class Peer(Protocol):
    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        """Store all rows with their vectors, which are (n, dim), of unit length."""
        ...

    def search(self, asked: Asked) -> Sequence[int]:
        """Return the numbers of the best rows, best first, at most LIMIT."""
        ...


_SQLITE_NEAREST = (
    "SELECT rowid FROM vectors WHERE embedding MATCH ? AND k = ? {where} ORDER BY distance"
)
# Rank is BM25
_SQLITE_WORDS = "SELECT rowid FROM words WHERE words MATCH ? {where} ORDER BY rank LIMIT ?"


class SqliteVec:
    """sqlite-vec with FTS5, merged by reciprocal ranks, as its author describes hybrid search; by APSW, which can load extensions."""

    def __init__(self, folder: Path) -> None:
        import apsw  # type: ignore[import-not-found]
        import sqlite_vec  # type: ignore[import-not-found]

        self._base = apsw.Connection(str(folder / "turns.db"))
        self._base.enable_load_extension(True)
        self._base.load_extension(sqlite_vec.loadable_path())

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        self._base.execute(
            "CREATE VIRTUAL TABLE vectors USING vec0(talk TEXT PARTITION KEY, "
            f"embedding FLOAT[{vectors.shape[1]}] DISTANCE_METRIC=cosine);"
            "CREATE VIRTUAL TABLE words USING fts5(text, talk UNINDEXED, "
            "tokenize='porter unicode61');"
        )
        with self._base:
            self._base.executemany(
                "INSERT INTO vectors(rowid, talk, embedding) VALUES (?, ?, ?)",
                [
                    (row.number, row.talk, vector.tobytes())
                    for row, vector in zip(rows, vectors, strict=True)
                ],
            )
            self._base.executemany(
                "INSERT INTO words(rowid, text, talk) VALUES (?, ?, ?)",
                [(row.number, row.text, row.talk) for row in rows],
            )

    def search(self, asked: Asked) -> Sequence[int]:
        where, values = ("AND talk = ?", [asked.talk]) if asked.talk else ("", [])
        near = self._base.execute(
            _SQLITE_NEAREST.format(where=where), [asked.vector.tobytes(), POOL, *values]
        )
        nearest = [number for (number,) in near]
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.text))
        if not words:
            return nearest
        worded = self._base.execute(_SQLITE_WORDS.format(where=where), [words, *values, POOL])
        return fused([nearest, [number for (number,) in worded]])


_DUCKDB_NEAREST = (
    "SELECT number FROM turns {where} "
    "ORDER BY array_cosine_distance(embedding, ?::FLOAT[{dimension}]) LIMIT ?"
)
_DUCKDB_WORDS = (
    "SELECT number FROM (SELECT number, talk, fts_main_turns.match_bm25(number, ?) AS score "
    "FROM turns) {where} {joined} score IS NOT NULL ORDER BY score DESC LIMIT ?"
)


class DuckDb:
    """DuckDB with its extensions vss and fts, from packages of the newest release that has some, merged by reciprocal ranks."""

    def __init__(self, folder: Path) -> None:
        import duckdb
        import duckdb_ext  # type: ignore[import-not-found]

        self._base = duckdb_ext.init(duckdb.connect(str(folder / "turns.duckdb")))
        for name in ("vss", "fts"):
            self._base.execute(f"LOAD {name}")
        self._base.execute("SET hnsw_enable_experimental_persistence = true")
        self._lines = folder / "turns.jsonl"  # a list as a parameter takes minutes
        self._dimension = 0

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        self._dimension = vectors.shape[1]
        self._base.execute(
            "CREATE TABLE turns (number BIGINT PRIMARY KEY, talk VARCHAR, text VARCHAR, "
            f"embedding FLOAT[{self._dimension}])"
        )
        self._lines.write_text(
            "".join(
                json.dumps([row.number, row.talk, row.text, vector.tolist()]) + "\n"
                for row, vector in zip(rows, vectors, strict=True)
            )
        )
        self._base.execute(
            "INSERT INTO turns SELECT json[0]::BIGINT, json->>1, json->>2, "
            f"(json->3)::FLOAT[{self._dimension}] "
            "FROM read_json(?, format = 'newline_delimited', records = false, columns = {json: 'JSON'})",
            [str(self._lines)],
        )
        self._base.execute(
            "CREATE INDEX nearest ON turns USING HNSW (embedding) WITH (metric = 'cosine')"
        )
        self._base.execute("PRAGMA create_fts_index('turns', 'number', 'text')")

    def search(self, asked: Asked) -> Sequence[int]:
        where, values = ("WHERE talk = ?", [asked.talk]) if asked.talk else ("", [])
        nearest = self._base.execute(
            _DUCKDB_NEAREST.format(where=where, dimension=self._dimension),
            [*values, asked.vector.tolist(), POOL],
        ).fetchall()
        joined = "AND" if where else "WHERE"
        worded = self._base.execute(
            _DUCKDB_WORDS.format(where=where, joined=joined), [asked.text, *values, POOL]
        ).fetchall()
        return fused([[number for (number,) in found] for found in (nearest, worded)])


class Chroma:
    """Vectors alone: hybrid search exists in its cloud only."""

    def __init__(self, folder: Path) -> None:
        import chromadb  # type: ignore[import-not-found]

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


class LanceDb:
    def __init__(self, folder: Path) -> None:
        import lancedb  # type: ignore[import-not-found]
        from lancedb.rerankers import RRFReranker  # type: ignore[import-not-found]

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
        self._turns.create_fts_index("text", with_position=True)  # a quotation asks for a phrase
        self._turns.create_scalar_index("talk", index_type="BITMAP")

    def search(self, asked: Asked) -> Sequence[int]:
        query = self._turns.search(query_type="hybrid").vector(asked.vector).text(asked.text)
        query = query.distance_type("cosine").rerank(self._merging).limit(POOL)
        if asked.talk:
            query = query.where(f"talk = '{asked.talk}'")
        found = query.select(["number"]).to_arrow()["number"].to_pylist()
        return [int(number) for number in found[:LIMIT]]


class _Lookup:
    """Stands where mem0 would call an embedder."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed(self, text: str, *_purpose: str) -> list[float]:
        return self.vectors[text]


class Mem0:
    """mem0 without a language model, over Qdrant in its local mode.

    Its BM25 loads a list of stop words from a network, and takes ours instead. Its lemmas and entities need a spaCy
    model that is no package; without it, it stems.
    """

    def __init__(self, folder: Path) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder), OPENAI_API_KEY="unused")
        from fastembed import SparseTextEmbedding  # type: ignore[import-not-found]
        from mem0 import Memory  # type: ignore[import-not-found]

        from app.language.languages import STOP_WORDS

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


class MemPalace:
    """A wing for each talk, a drawer for each row; candidates by vectors and words (`union`), as documented."""

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


class Bm25s:
    """BM25 with stems, without English stop words, an index for each talk."""

    def __init__(self, _folder: Path) -> None:
        import bm25s  # type: ignore[import-not-found]
        import Stemmer

        self._bm25s, self._stemmer = bm25s, Stemmer.Stemmer("english")
        self._indexes: dict[str | None, tuple[Any, list[int]]] = {}

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        for talk, own in _by_talk(rows).items():
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


class Cosine:
    def __init__(self, _folder: Path) -> None:
        self._rows: dict[str | None, tuple[Vector, list[int]]] = {}

    def build(self, rows: Sequence[Row], vectors: Vector) -> None:
        for talk, own in _by_talk(rows).items():
            numbers = [row.number for row in own]
            self._rows[talk] = vectors[np.array(numbers) - 1], numbers

    def search(self, asked: Asked) -> Sequence[int]:
        vectors, numbers = self._rows[asked.talk]
        return [numbers[place] for place in np.argsort(-(vectors @ asked.vector))[:LIMIT]]


def _by_talk(rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    talks: dict[str | None, list[Row]] = {None: list(rows)}
    for row in rows:
        talks.setdefault(row.talk, []).append(row)
    return talks


PEERS: dict[str, tuple[Callable[[Path], Peer], str]] = {
    "sqlite": (SqliteVec, "exact vectors, FTS5 with Porter stems, all words joined by OR, RRF with k = 60"),
    "duckdb": (DuckDb, "HNSW by cosine, fts with Porter stems and stop words, RRF with k = 60"),
    "chroma": (Chroma, "HNSW by cosine; the local store has no search by words and vectors together"),
    "lancedb": (LanceDb, "exact vectors, its own full-text index with stems and stop words, RRF"),
    "mem0": (Mem0, "infer=False, Qdrant's local mode, its BM25 added to the cosine; no spaCy model"),
    "mempalace": (MemPalace, "drawers in Chroma, its 60:40 blend of cosine and BM25, candidates by both"),
    "bm25s": (Bm25s, "words alone; stems, stop words out"), "cosine": (Cosine, "vectors alone, by numpy"),
}  # fmt: skip


def main() -> None:
    """Build a peer's store in its folder, ask every question both ways, write what came back."""
    make, note = PEERS[sys.argv[1]]
    given, folder, target = map(Path, sys.argv[2:5])
    rows = [Row(at, *each) for at, each in enumerate(_read(given / "rows.json"), start=1)]
    questions = _read(given / "questions.json")
    vectors = np.load(given / "question_vectors.npy")
    turn_of = {row.number: row.turn for row in rows}
    folder.mkdir(parents=True, exist_ok=True)
    peer = make(folder)
    started = time.perf_counter()
    peer.build(rows, np.load(given / "vectors.npy"))
    answers: dict[str, object] = {"note": note, "build_s": round(time.perf_counter() - started, 1)}
    for scope in ("own", "pooled"):
        asked = [
            Asked(text, vector, talk if scope == "own" else None)
            for (talk, text), vector in zip(questions, vectors, strict=True)
        ]
        for each in asked[:_WARM_UP]:
            peer.search(each)
        answers[scope] = [_answer(peer, each, turn_of) for each in asked]
    target.write_text(json.dumps(answers), encoding="utf-8")


def fused(rankings: Sequence[Sequence[int]], k: int = 60) -> list[int]:
    """Return one ranking of several by reciprocal ranks (Cormack, Clarke and Buettcher 2009)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, number in enumerate(ranking, start=1):
            scores[number] = scores.get(number, 0.0) + 1 / (k + place)
    return sorted(scores, key=lambda number: -scores[number])[:LIMIT]


def _answer(peer: Peer, asked: Asked, turn_of: dict[int, int]) -> tuple[list[int], float]:
    started = time.perf_counter()
    found = peer.search(asked)
    taken_ms = (time.perf_counter() - started) * 1000
    return list(dict.fromkeys(turn_of[number] for number in found)), taken_ms


def _read(path: Path) -> list[list[Any]]:
    found: list[list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()

"""DuckDB with its vss and fts extensions, merged by reciprocal ranks.

The extensions come from packages, at the newest release of DuckDB that has such packages.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import duckdb_ext  # type: ignore[import-not-found]

from tests.bench.peer_stores.peer import POOL, Asked, Row, Vector, fused, run

_NEAREST = (
    "SELECT number FROM turns {where} "
    "ORDER BY array_cosine_distance(embedding, ?::FLOAT[{dimension}]) LIMIT ?"
)
_WORDS = (
    "SELECT number FROM (SELECT number, talk, fts_main_turns.match_bm25(number, ?) AS score "
    "FROM turns) {where} {joined} score IS NOT NULL ORDER BY score DESC LIMIT ?"
)


class DuckDb:
    def __init__(self, folder: Path) -> None:
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
            _NEAREST.format(where=where, dimension=self._dimension),
            [*values, asked.vector.tolist(), POOL],
        ).fetchall()
        joined = "AND" if where else "WHERE"
        worded = self._base.execute(
            _WORDS.format(where=where, joined=joined), [asked.text, *values, POOL]
        ).fetchall()
        return fused([[number for (number,) in found] for found in (nearest, worded)])


if __name__ == "__main__":
    run(DuckDb, "HNSW by cosine, fts with Porter stems and stop words, RRF with k = 60")

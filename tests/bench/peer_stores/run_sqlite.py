"""sqlite-vec with FTS5, merged by reciprocal ranks, as sqlite-vec's author describes hybrid search.

Through APSW, because not every Python's own sqlite3 can load extensions.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import apsw  # type: ignore[import-not-found]
import sqlite_vec  # type: ignore[import-not-found]

from tests.bench.peer_stores.peer import POOL, Asked, Row, Vector, fused, run

_NEAREST = "SELECT rowid FROM vectors WHERE embedding MATCH ? AND k = ? {where} ORDER BY distance"
_WORDS = "SELECT rowid FROM words WHERE words MATCH ? {where} ORDER BY rank LIMIT ?"  # rank is BM25


class SqliteVec:
    def __init__(self, folder: Path) -> None:
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
            _NEAREST.format(where=where), [asked.vector.tobytes(), POOL, *values]
        )
        nearest = [number for (number,) in near]
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.text))
        if not words:
            return nearest
        worded = self._base.execute(_WORDS.format(where=where), [words, *values, POOL])
        return fused([nearest, [number for (number,) in worded]])


if __name__ == "__main__":
    run(SqliteVec, "exact vectors, FTS5 with Porter stems, all words joined by OR, RRF with k = 60")

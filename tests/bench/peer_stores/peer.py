"""Parts that every peer's run shares: reading the turns, timing the searches, writing the answers.

Runs in the peer's own environment, which has numpy but nothing of ours. Called with three paths:
the folder with `rows.json`, `vectors.npy`, `questions.json` and `question_vectors.npy`; a folder
for the peer's files; the file for the answers.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]

LIMIT = 50  # rows asked for; a turn of several rows takes the rank of its best
POOL = 100  # rows of each list where a peer leaves the merging to its user
_WARM_UP = 20


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


def run(make: Callable[[Path], Peer], note: str) -> None:
    """Build a peer's store in its folder, ask every question both ways, write what came back."""
    given, folder, target = map(Path, sys.argv[1:4])
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

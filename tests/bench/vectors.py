"""How fast, how large and how right the vector index is; prints JSON.

    python -m tests.bench.vectors [--sizes N ...] [--searches N] [--load N] [--data FILE ...]

Vectors are random and of unit length, 384 numbers each, one chunk to a passage. For each size it
says how long searches for 100 hits take (alone, with a filter, beside writes), what numpy's plain
fp32 product takes on the same vectors in the same run, alternately, and the share of its first 100
that the index finds. `--load` measures filling from a database. `--data` compares on the vectors
that the built-in embedder gives the messages and questions of such a file, in chunks of 128 tokens.
"""

import json
import tempfile
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_PER_PASSAGE, part_id, passage_id_of
from app.domain.passages import Space
from app.index.id_set import IdSet
from app.index.vector_index import ExactVectorIndex
from app.index.vector_sync import VectorIndexSync
from app.providers.embedders.local import LocalEmbedder
from app.storage.engine.database import Connection
from app.storage.tables.spaces import table_of
from app.storage.tables.vector_rows import to_blobs
from app.storage.tables.vectors import Vectors
from tests.bench.shared.measuring import (
    MODEL,
    Figures,
    options,
    print_json,
    side_by_side,
    timed,
    unit_vectors,
)
from tests.bench.shared.measuring import Vectors as Float
from tests.fakes.stored import opened

DIMENSION = 384
LIMIT, SPARE = 100, 10
BATCH = 5_000


def main() -> None:
    given = options(__doc__, sizes=[100_000, 1_000_000], searches=100, load=100_000, data=[Path])
    figures: Figures = {str(size): of_size(size, given.searches) for size in sorted(given.sizes)}
    if given.load:
        figures["load"] = loading(given.load)
    for path in given.data:
        figures[path.stem] = of_data(path)
    print_json(figures)


def of_size(size: int, searches: int) -> Figures:
    source = np.random.default_rng(7)
    exact = np.empty((size, DIMENSION), np.float32)
    for start in range(0, size, BATCH):
        exact[start : start + BATCH] = unit_vectors(source, min(BATCH, size - start), DIMENSION)
    questions = unit_vectors(source, searches, DIMENSION)
    before = resident_bytes()
    index, fill_s = filled(exact)
    grown = resident_bytes() - before
    half, few = (IdSet(np.arange(0, size, step)) for step in (2, 1000))
    one_thread = ExactVectorIndex(DIMENSION, threads=1)
    one_thread._snapshot = index._snapshot
    latencies = side_by_side(
        {
            "search": lambda q: index.search(q, LIMIT),
            "one_thread": lambda q: one_thread.search(q, LIMIT),
            "half_allowed": lambda q: index.search(q, LIMIT, half),
            "one_in_1000_allowed": lambda q: index.search(q, LIMIT, few),
            "cosines_of_300": lambda q: index.cosines(q, [part_id(n, 0) for n in range(300)]),
            "numpy_fp32": lambda q: nearest(exact, q),
        },
        questions,
    )
    return {
        "fill_s": round(fill_s, 2),
        "resident_mb": round(grown / 1e6, 1),
        "ms": latencies,
        "beside_writes_ms": beside_writes(index, exact, questions),
        "times_numpy_fp32": round(latencies["search"]["p50"] / latencies["numpy_fp32"]["p50"], 2),
        **agreement(index, exact, questions),
    }


def of_data(path: Path) -> Figures:
    embedder = LocalEmbedder(MODEL, threads=2)
    conversations = json.loads(path.read_text(encoding="utf-8"))["conversations"]
    chunks = [
        turn["text"][start:end]
        for conversation in conversations
        for session in conversation["sessions"]
        for turn in session["turns"]
        for start, end in embedder.chunks(turn["text"], 128, 16)
    ]
    questions = [each["question"] for one in conversations for each in one["questions"]]
    exact = embedder.embed(chunks)
    index, _ = filled(exact)
    return {"chunks": len(chunks), **agreement(index, exact, embedder.embed(questions))}


def loading(size: int) -> Figures:
    space, source = Space("bench", DIMENSION, 256), np.random.default_rng(3)
    with (
        tempfile.TemporaryDirectory(prefix="commonplace-vectors-") as folder,
        opened(Path(folder) / "data") as store,
    ):
        Vectors(store).ensure(space, "random")
        sync = VectorIndexSync(store, Vectors(store))

        def insert(first: int, count: int, connection: Connection) -> None:
            connection.execute(
                f"INSERT INTO {table_of(space.name)} SELECT i, 0, i * $2, 0, 9, v, "
                "now()::TIMESTAMP FROM (SELECT unnest($1) AS i, unnest($3) AS v)",
                [
                    list(range(first, first + count)), PARTS_PER_PASSAGE,
                    to_blobs(unit_vectors(source, count, DIMENSION)),
                ],
            )  # fmt: skip

        try:
            for first in range(1, size + 1, BATCH):
                store.write_derived(partial(insert, first, min(BATCH, size + 1 - first))).result()
            sync.use([space])
            load = timed(sync.catch_up)
            store.write_derived(partial(insert, size + 1, 100)).result()
            follow = timed(sync.catch_up)
            index = sync.index_for(space)
            held = index.passage_count if index is not None else 0
        finally:
            sync.stop()
    return {"passages": held, "load_s": round(load.wall_s, 2), "follow_100_ms": round(follow.ms)}


def beside_writes(index: ExactVectorIndex, exact: Float, questions: Float) -> dict[str, float]:
    """Return how long searches take while another thread replaces a hundred passages at a time."""
    stop, source = threading.Event(), np.random.default_rng(11)

    def write() -> None:
        while not stop.is_set():
            chosen = np.sort(source.choice(len(exact), 100, replace=False))
            put(index, chosen, exact[chosen])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return side_by_side({"": lambda q: index.search(q, LIMIT)}, questions)[""]
    finally:
        stop.set()
        writer.join()


def agreement(index: ExactVectorIndex, exact: Float, questions: Float) -> dict[str, float]:
    """Return how far the index's first 100 are numpy's, and how far its cosines are off at most."""
    shares, spared, worst = [], [], 0.0
    for question in questions:
        cosines = exact @ question
        hits = index.search(question, LIMIT + SPARE)
        found = [passage_id_of(hit.part_id) for hit in hits]
        wanted = set(nearest(exact, question).tolist())
        shares.append(len(wanted.intersection(found[:LIMIT])) / LIMIT)
        spared.append(len(wanted.intersection(found)) / LIMIT)
        worst = max(worst, float(np.abs(cosines[found] - [hit.cosine for hit in hits]).max()))
    return {
        "recall_at_100": round(float(np.mean(shares)), 4),
        "recall_of_100_at_110": round(float(np.mean(spared)), 4),
        "worst_error": round(worst, 5),
    }


def nearest(exact: Float, question: Float) -> npt.NDArray[np.int64]:
    cosines = exact @ question
    best = np.argpartition(-cosines, LIMIT)[:LIMIT]
    ordered: npt.NDArray[np.int64] = best[np.argsort(-cosines[best])]
    return ordered


def filled(exact: Float) -> tuple[ExactVectorIndex, float]:
    index, took_s = ExactVectorIndex(exact.shape[1]), 0.0
    for start in range(0, len(exact), BATCH):
        rows = np.arange(start, min(start + BATCH, len(exact)))
        took_s += timed(partial(put, index, rows, exact[rows])).wall_s
    return index, took_s


def put(index: ExactVectorIndex, passages: Sequence[int] | npt.NDArray[np.int64], v: Float) -> None:
    ids = np.asarray(passages, np.int64) * PARTS_PER_PASSAGE
    index.put(ids, v)


def resident_bytes() -> int:
    """Return what the process holds in memory; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


if __name__ == "__main__":
    main()

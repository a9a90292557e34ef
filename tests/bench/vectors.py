"""Benchmark of the vector index: speed, size and correctness; prints JSON.

    python -m tests.bench.vectors [--sizes N ...] [--searches N] [--load N] [--data FILE ...]

Vectors are random and of unit length, 384 numbers each, one chunk to a passage. For each size it
says how long searches for 100 hits take (alone, with a filter, beside writes), what numpy's plain
fp32 product takes on the same vectors in the same run, alternately, and the share of its first 100
that the index finds. `--load` measures filling from a database. `--data` compares on the vectors
that the built-in embedder gives the messages and questions of such a file, in chunks of 128 tokens.
"""

import tempfile
import threading
from collections.abc import Callable
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
from app.storage.tables.passages.vectors import Vectors
from tests.bench.evaluation import read_evaluation
from tests.bench.shared.made_up import Vectors as Float
from tests.bench.shared.made_up import insert_vectors, one_chunk_each, unit_vectors
from tests.bench.shared.measuring import (
    MODEL,
    Figures,
    latency,
    options,
    print_json,
    resident_mb,
    timed,
)
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
    before_mb = resident_mb()["all"]
    fill = timed(lambda: filled(exact))
    index = fill.result
    grown_mb = resident_mb()["all"] - before_mb
    half, few = (IdSet(np.arange(0, size, step)) for step in (2, 1000))
    one_thread = ExactVectorIndex(DIMENSION, threads=1)
    one_thread._snapshot = index._snapshot
    some = [part_id(number, 0) for number in range(300)]
    ways: dict[str, Callable[[Float], object]] = {
        "search": lambda q: index.search(q, LIMIT),
        "one_thread": lambda q: one_thread.search(q, LIMIT),
        "half_allowed": lambda q: index.search(q, LIMIT, half),
        "one_in_1000_allowed": lambda q: index.search(q, LIMIT, few),
        "cosines_of_300": lambda q: index.cosines(q, some),
        "numpy_fp32": lambda q: nearest(exact, q),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for question in questions:  # in all ways in turn
        for name, ask in ways.items():
            taken[name].append(timed(partial(ask, question)).ms)
    latencies = {name: latency(each) for name, each in taken.items()}
    return {
        "fill_s": round(fill.wall_s, 2),
        "resident_mb": grown_mb,
        "ms": latencies,
        "beside_writes_ms": beside_writes(index, exact, questions),
        "times_numpy_fp32": round(latencies["search"]["p50"] / latencies["numpy_fp32"]["p50"], 2),
        **agreement(index, exact, questions),
    }


def of_data(path: Path) -> Figures:
    embedder, evaluation = LocalEmbedder(MODEL, threads=2), read_evaluation(path)
    chunks = [
        turn.text[start:end]
        for talk in evaluation.talks
        for session in talk.sessions
        for turn in session.turns
        for start, end in embedder.chunks(turn.text, 128, 16)
    ]
    exact = embedder.embed(chunks)
    questions = embedder.embed([question.text for _, question in evaluation.asked])
    return {"chunks": len(chunks), **agreement(filled(exact), exact, questions)}


def loading(size: int) -> Figures:
    space = Space("bench", DIMENSION, 256)
    with (
        tempfile.TemporaryDirectory(prefix="commonplace-vectors-") as folder,
        opened(Path(folder) / "data") as store,
    ):
        Vectors(store).ensure(space, "random")
        sync = VectorIndexSync(store, Vectors(store))
        try:
            write = timed(lambda: insert_vectors(store, space, one_chunk_each(1, size)))
            sync.use([space])
            load = timed(sync.catch_up)
            insert_vectors(store, space, one_chunk_each(size + 1, 100))
            follow = timed(sync.catch_up)
            index = sync.index_for(space)
        finally:
            sync.stop()
        return {
            "passages": index.passage_count if index else 0, "write_s": round(write.wall_s, 2),
            "load_s": round(load.wall_s, 2), "follow_100_ms": round(follow.ms),
            "database_bytes": store.paths.database.stat().st_size,
        }  # fmt: skip


def beside_writes(index: ExactVectorIndex, exact: Float, questions: Float) -> dict[str, float]:
    """Return how long searches take while another thread replaces a hundred passages at a time."""
    stop, source = threading.Event(), np.random.default_rng(11)

    def write() -> None:
        while not stop.is_set():
            put(index, np.sort(source.choice(len(exact), 100, replace=False)), exact)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return latency([timed(partial(index.search, each, LIMIT)).ms for each in questions])
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


def filled(exact: Float) -> ExactVectorIndex:
    index = ExactVectorIndex(exact.shape[1])
    for start in range(0, len(exact), BATCH):
        put(index, np.arange(start, min(start + BATCH, len(exact))), exact)
    return index


def put(index: ExactVectorIndex, passages: npt.NDArray[np.int64], exact: Float) -> None:
    index.put(passages * PARTS_PER_PASSAGE, exact[passages])


if __name__ == "__main__":
    main()

"""How fast, how large and how right the vector index is; prints JSON.

    python -m tests.bench.vectors [--sizes N ...] [--searches N] [--load N] [--data FILE ...]

Vectors are random and of unit length, 384 numbers each, one chunk to a passage. For each size it
says how long searches for 100 hits take (alone, with a filter, beside writes), what numpy's plain
fp32 product takes on the same vectors in the same run, alternately, and the share of its first 100
that the index finds. `--load` measures filling from a database. `--data` compares on the vectors
that the built-in embedder gives the messages and questions of such a file, in chunks of 128 tokens.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_OF_A_PASSAGE, PassageId, part_id, passage_of
from app.domain.passages import Space
from app.index.vector_index import ExactVectorIndex
from app.memory.vector_sync import VectorSync
from app.providers.local_embedder import LocalEmbedder
from app.storage.database import Connection
from app.storage.recovery import open_store
from app.storage.spaces import table_of
from app.storage.vector_rows import to_blobs
from app.storage.vectors import Vectors
from app.system.paths import DataPaths

Float = npt.NDArray[np.float32]
DIMENSION = 384
LIMIT, SPARE = 100, 10
BATCH = 5_000
MODEL = Path(__file__).resolve().parents[2] / "resources" / "models" / "all-MiniLM-L6-v2"


def main() -> int:
    """Run and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000])
    arguments.add_argument("--searches", type=int, default=100)
    arguments.add_argument("--load", type=int, default=100_000)
    arguments.add_argument("--data", type=Path, action="append", default=[])
    given = arguments.parse_args()
    figures: dict[str, Any] = {
        str(size): of_size(size, given.searches) for size in sorted(given.sizes)
    }
    if given.load:
        figures["load"] = loading(given.load)
    for path in given.data:
        figures[path.stem] = of_data(path)
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return 0


def of_size(size: int, searches: int) -> dict[str, Any]:
    """Return the figures of an index of so many chunks."""
    source = np.random.default_rng(7)
    exact = np.empty((size, DIMENSION), np.float32)
    for start in range(0, size, BATCH):
        exact[start : start + BATCH] = drawn(source, min(BATCH, size - start))
    questions = drawn(source, searches)
    before = resident_bytes()
    index, fill_s = filled(exact)
    grown = resident_bytes() - before
    half = frozenset(PassageId(each) for each in range(0, size, 2))
    few = frozenset(PassageId(each) for each in range(0, size, 1000))
    one_thread = ExactVectorIndex(DIMENSION, threads=1)
    one_thread._snapshot = index._snapshot
    timed = alternately(
        questions,
        {
            "search": lambda q: index.search(q, LIMIT),
            "one_thread": lambda q: one_thread.search(q, LIMIT),
            "half_allowed": lambda q: index.search(q, LIMIT, half),
            "half_allowed_set_unknown": lambda q: index.search(q, LIMIT, set(half)),
            "one_in_1000_allowed": lambda q: index.search(q, LIMIT, few),
            "cosines_of_300": lambda q: index.cosines(q, [part_id(n, 0) for n in range(300)]),
            "numpy_fp32": lambda q: nearest(exact, q),
        },
    )
    return {
        "fill_s": round(fill_s, 2),
        "memory_mb": round(index.memory_bytes / 1e6, 1),
        "resident_mb": round(grown / 1e6, 1),
        "ms": timed,
        "beside_writes_ms": beside_writes(index, exact, questions),
        "times_numpy_fp32": round(timed["search"]["p50"] / timed["numpy_fp32"]["p50"], 2),
        **agreement(index, exact, questions),
    }


def of_data(path: Path) -> dict[str, Any]:
    """Return how well the index agrees with exact vectors on an evaluation file."""
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


def loading(size: int) -> dict[str, float]:
    """Return how long it takes to load an index from a database, and to follow 100 more."""
    space, source = Space("bench", DIMENSION, 256), np.random.default_rng(3)
    with tempfile.TemporaryDirectory(prefix="commonplace-vectors-") as folder:
        paths = DataPaths(Path(folder) / "data")
        paths.make()
        store = open_store(paths)
        sync = VectorSync(store, Vectors(store))
        try:
            Vectors(store).ensure(space, "random")

            def insert(first: int, count: int) -> None:
                ids = list(range(first, first + count))
                blobs = to_blobs(drawn(source, count))

                def write(connection: Connection) -> None:
                    connection.execute(
                        f"INSERT INTO {table_of(space.name)} SELECT i, 0, i * $2, 0, 9, v, "
                        "now()::TIMESTAMP FROM (SELECT unnest($1) AS i, unnest($3) AS v)",
                        [ids, PARTS_OF_A_PASSAGE, blobs],
                    )

                store.write_derived(write).result()

            for first in range(1, size + 1, BATCH):
                insert(first, min(BATCH, size + 1 - first))
            sync.use([space])
            load_s = took_s(sync.catch_up)
            insert(size + 1, 100)
            follow_s = took_s(sync.catch_up)
            index = sync.index_for(space)
            held = index.passage_count if index is not None else 0
        finally:
            sync.stop()
            store.close()
    return {"passages": held, "load_s": round(load_s, 2), "follow_100_ms": round(follow_s * 1000)}


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
        return alternately(questions, {"": lambda q: index.search(q, LIMIT)})[""]
    finally:
        stop.set()
        writer.join()


def agreement(index: ExactVectorIndex, exact: Float, questions: Float) -> dict[str, float]:
    """Return how far the index's first 100 are numpy's, and how far its cosines are off at most."""
    shares, spared, worst = [], [], 0.0
    for question in questions:
        cosines = exact @ question
        hits = index.search(question, LIMIT + SPARE)
        found = [passage_of(hit.part_id) for hit in hits]
        wanted = set(nearest(exact, question).tolist())
        shares.append(len(wanted.intersection(found[:LIMIT])) / LIMIT)
        spared.append(len(wanted.intersection(found)) / LIMIT)
        worst = max(worst, float(np.abs(cosines[found] - [hit.cosine for hit in hits]).max()))
    return {
        "recall_at_100": round(float(np.mean(shares)), 4),
        "recall_of_100_at_110": round(float(np.mean(spared)), 4),
        "worst_error": round(worst, 5),
    }


def alternately(
    questions: Float, ways: dict[str, Callable[[Float], object]]
) -> dict[str, dict[str, float]]:
    """Return the milliseconds (p50, p95) of each way, all asked one question after the other."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for question in questions:
        for name, ask in ways.items():
            took[name].append(took_s(lambda: ask(question)) * 1000)  # noqa: B023 - called at once
    return {
        name: {f"p{rank}": round(float(np.percentile(each, rank)), 2) for rank in (50, 95)}
        for name, each in took.items()
    }


def nearest(exact: Float, question: Float) -> npt.NDArray[np.int64]:
    """Return the rows of the LIMIT largest products, best first."""
    cosines = exact @ question
    best = np.argpartition(-cosines, LIMIT)[:LIMIT]
    ordered: npt.NDArray[np.int64] = best[np.argsort(-cosines[best])]
    return ordered


def filled(exact: Float) -> tuple[ExactVectorIndex, float]:
    """Return an index of these vectors, a passage each, and the seconds it took."""
    index, took = ExactVectorIndex(exact.shape[1]), 0.0
    for start in range(0, len(exact), BATCH):
        rows = np.arange(start, min(start + BATCH, len(exact)))
        began = time.perf_counter()
        put(index, rows, exact[rows])
        took += time.perf_counter() - began
    return index, took


def put(index: ExactVectorIndex, passages: Sequence[int] | npt.NDArray[np.int64], v: Float) -> None:
    """Put a chunk for each passage."""
    ids = np.asarray(passages, np.int64) * PARTS_OF_A_PASSAGE
    index.put(ids, np.zeros((len(ids), 2), np.int32), v)


def drawn(source: np.random.Generator, count: int) -> Float:
    """Return random unit vectors."""
    vectors = source.standard_normal((count, DIMENSION), dtype=np.float32)
    unit: Float = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def took_s(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def resident_bytes() -> int:
    """Return what the process holds in memory; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


if __name__ == "__main__":
    raise SystemExit(main())

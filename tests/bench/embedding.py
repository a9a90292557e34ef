"""What it costs to keep vectors: the pipeline beside the bare model, writing and loading; JSON.

    python tests/bench/embedding.py [--vectors N] [--texts N] [--rounds N]

`pipeline` embeds made-up turns of two messages from a real store (`without_model`: all but that); `embedder` the same chunks by the
built-in embedder alone, `bare` by onnxruntime alone, in the batches the embedder would make of all
of them at once. Rounds alternate, the best of each counts. `vectors` are written 100 at a time into
a new store and loaded as the index in memory takes them.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.domain.changes import Change, PassagesPut  # noqa: E402
from app.domain.ids import PassageId, part_id  # noqa: E402
from app.domain.passages import Passage, PassageKind, Space  # noqa: E402
from app.domain.workers import WorkerName  # noqa: E402
from app.providers.local_embedder import LocalEmbedder  # noqa: E402
from app.storage.settings import Settings  # noqa: E402
from app.storage.store import Store  # noqa: E402
from app.storage.vector_writing import EmbeddedPassage  # noqa: E402
from app.storage.vectors import Vectors  # noqa: E402
from app.workers.board import WorkerBoard  # noqa: E402
from tests.bench.embedder import MODEL, bare_session, best, made_up_texts, timed  # noqa: E402
from tests.fakes.embedders import BagOfWords  # noqa: E402
from tests.fakes.stored import AT, opened, tell  # noqa: E402

SPACE = Space("bench", 384, 256)
BATCH = 100


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--vectors", type=int, default=100_000)
    arguments.add_argument("--texts", type=int, default=400)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "pipeline": pipeline(Path(folder), given.texts, given.rounds),
            "vectors": vectors(Path(folder), given.vectors),
        }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


def pipeline(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Return texts a second of the pipeline, of the embedder and of the bare session."""
    embedder = LocalEmbedder(MODEL)
    embedder.load()
    took: dict[str, list[tuple[float, float]]] = {}
    chunks: list[str] = []
    for number in range(rounds):
        with opened(folder / f"store{number}") as store:
            tell_all(store, made_up_texts(count))
            recorder = Recorder()
            works: dict[str, Callable[[], object]] = {
                "without_model": partial(work, store, recorder),
                "pipeline": partial(work, store, embedder),
                "embedder": lambda: embedder.embed(recorder.read),  # noqa: B023
                "bare": lambda: [bare(feed) for feed in feeds],  # noqa: B023
            }
            for name, each in works.items():
                if name == "bare":
                    chunks = recorder.read
                    feeds, bare = bare_session(chunks, 1)
                took.setdefault(name, []).append(timed(each))
    seconds = {name: best(rounds_of_it) for name, rounds_of_it in took.items()}
    bare_s, bare_cpu_s = seconds["bare"]
    return {
        "turns": count,
        "chunks": len(chunks),
        **{f"{name}_chunks_per_s": round(len(chunks) / s, 1) for name, (s, _) in seconds.items()},
        "ratio_to_bare": round(bare_s / seconds["pipeline"][0], 3),
        "cpu_ratio_to_bare": round(bare_cpu_s / seconds["pipeline"][1], 3),
        "embedder_cpu_ratio_to_bare": round(bare_cpu_s / seconds["embedder"][1], 3),
    }


class Recorder(BagOfWords):
    """Reads the built-in embedder's chunks and answers with constants, at once."""

    def __init__(self) -> None:
        super().__init__("recorder", 384, 256)
        self._cutter = LocalEmbedder(MODEL)
        self._vectors = np.ones((BATCH, 384), np.float32)

    def embed(self, texts: Sequence[str], cancelled: object = None) -> Any:
        """Return constants."""
        self.read += texts
        return self._vectors[: len(texts)].copy()

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[tuple[int, int]]:
        """Return what the built-in embedder would be given."""
        return self._cutter.chunks(text, max_tokens, overlap_tokens)


def work(store: Store, embedder: Any) -> None:
    """Run the pipeline until nothing is left."""
    board = WorkerBoard(store, Settings(store), (), embedder=lambda: embedder)
    (status,) = board.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
    if status.done != status.total:
        raise SystemExit(f"not all was embedded: {status.last_error}")


def tell_all(store: Store, texts: list[str]) -> None:
    """Write texts as turns of two messages, twenty turns a conversation."""
    Settings(store).set("min_message_tokens", 0)
    for first in range(0, len(texts), 20):
        store.save(*tell(store, *texts[first : first + 20]).changes)


def vectors(folder: Path, count: int) -> dict[str, Any]:
    """Return how long `count` vectors take to be written and to be loaded."""
    with opened(folder / "vectors") as store:
        kept = Vectors(store)
        kept.ensure(SPACE, "bench")
        for first in range(1, count + 1, 10_000):
            store.save(*(_passages(first, min(first + 10_000, count + 1))))
        chance = np.random.default_rng(0)
        batches = []
        for first in range(1, count + 1, BATCH):
            ids = range(first, min(first + BATCH, count + 1))
            unit = chance.standard_normal((BATCH, SPACE.dimension)).astype(np.float32)
            unit /= np.linalg.norm(unit, axis=1, keepdims=True)
            put = [
                EmbeddedPassage(
                    PassageId(each), "h", [part_id(each, 0)], [(0, 100)], unit[at : at + 1]
                )
                for at, each in enumerate(ids)
            ]
            batches.append(timed(partial(kept.put, SPACE, put))[0])
        store.checkpoint().result()
        loads = [timed(lambda: [None for _ in kept.load(SPACE)])[0] for _ in range(3)]
        return {
            "count": count,
            "write_s": round(sum(batches), 2),
            "write_batch_ms_p50": round(float(np.median(batches)) * 1000, 2),
            "write_batch_ms_p95": round(float(np.quantile(batches, 0.95)) * 1000, 2),
            "load_first_s": round(loads[0], 3),
            "load_best_s": round(min(loads), 3),
            "database_bytes": store.paths.database.stat().st_size,
        }


def _passages(first: int, end: int) -> list[Change]:
    """Return the writing of passages that belong to no conversation, as manual pages do not."""
    return [
        PassagesPut(
            tuple(
                Passage(PassageId(each), PassageKind.MAN_PAGE, each, None, None, "h", AT, 30)
                for each in range(first, end)
            )
        )
    ]


if __name__ == "__main__":
    main()

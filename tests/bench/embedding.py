"""What it costs to keep vectors: the pipeline beside the bare model, writing and loading; JSON.

    python -m tests.bench.embedding [--vectors N] [--texts N] [--rounds N]

`pipeline` embeds made-up turns of two messages from a real store (`without_model`: all but that);
`embedder` the same chunks by the built-in embedder alone, `bare` by onnxruntime alone, in the
batches the embedder would make of all of them at once. Rounds alternate, the best of each counts.
`vectors` are written 100 at a time into a new store and loaded as the index in memory takes them.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.domain.changes import PassagesPut
from app.domain.ids import PassageId, part_id
from app.domain.passages import Passage, PassageKind, Space
from app.domain.workers import WorkerName
from app.providers.embedders.local import LocalEmbedder
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.tables.vector_rows import EmbeddedPassage
from app.storage.tables.vectors import Vectors
from app.workers.board import WorkerBoard
from tests.bench.embedder import bare_session, made_up_texts
from tests.bench.shared.measuring import (
    MODEL,
    Figures,
    Timed,
    best,
    options,
    percentile,
    print_json,
    timed,
    unit_vectors,
)
from tests.fakes.embedders import BagOfWords
from tests.fakes.stored import AT, new_conversation, opened

_SPACE = Space("bench", 384, 256)
_BATCH = 100


def main() -> None:
    given = options(__doc__, vectors=100_000, texts=400, rounds=3)
    with tempfile.TemporaryDirectory() as folder:
        pipeline = _pipeline(Path(folder), given.texts, given.rounds)
        print_json({"pipeline": pipeline, "vectors": _vectors(Path(folder), given.vectors)})


def _pipeline(folder: Path, count: int, rounds: int) -> Figures:
    embedder = LocalEmbedder(MODEL)
    embedder.load()
    took: dict[str, list[Timed[object]]] = {}
    chunks: list[str] = []
    for number in range(rounds):
        with opened(folder / f"store{number}") as store:
            _fill(store, made_up_texts(count))
            recorder = Recorder()
            ways: dict[str, Callable[[], Callable[[], object]]] = {
                "without_model": lambda: partial(_embed_all, store, recorder),  # noqa: B023
                "pipeline": lambda: partial(_embed_all, store, embedder),
                "embedder": lambda: partial(embedder.embed, recorder.read),  # noqa: B023
                "bare": lambda: bare_session(recorder.read, 1),  # noqa: B023
            }
            for name, prepare in ways.items():
                took.setdefault(name, []).append(timed(prepare()))
            chunks = recorder.read
    seconds = {name: best(each) for name, each in took.items()}
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
        self._vectors = np.ones((_BATCH, 384), np.float32)

    def embed(self, texts: Sequence[str], cancelled: object = None) -> Any:
        self.read += texts
        return self._vectors[: len(texts)].copy()

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[tuple[int, int]]:
        return self._cutter.chunks(text, max_tokens, overlap_tokens)


def _embed_all(store: Store, embedder: Any) -> None:
    board = WorkerBoard(store, Settings(store), (), embedder=lambda: embedder)
    (status,) = board.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
    if status.done != status.total:
        raise SystemExit(f"not all was embedded: {status.last_error}")


def _fill(store: Store, texts: list[str]) -> None:
    Settings(store).set("min_message_tokens", 0)
    for first in range(0, len(texts), 20):
        store.save(*new_conversation(store, *texts[first : first + 20]).changes)


def _vectors(folder: Path, count: int) -> Figures:
    with opened(folder / "vectors") as store:
        kept = Vectors(store)
        kept.ensure(_SPACE, "bench")
        # Manual pages belong to no conversation, so passages alone will do.
        kind, everyone = PassageKind.MAN_PAGE, range(1, count + 1)
        for first in range(0, count, 10_000):
            store.save(
                PassagesPut(
                    tuple(
                        Passage(PassageId(each), kind, each, None, None, "h", AT, 30)
                        for each in everyone[first : first + 10_000]
                    )
                )
            )
        source, batches = np.random.default_rng(0), []
        for first in range(0, count, _BATCH):
            ids = everyone[first : first + _BATCH]
            unit = unit_vectors(source, len(ids), _SPACE.dimension)
            put = [
                EmbeddedPassage(
                    PassageId(each), "h", [part_id(each, 0)], [(0, 100)], unit[at : at + 1]
                )
                for at, each in enumerate(ids)
            ]
            batches.append(timed(partial(kept.put, _SPACE, put)).wall_s)
        store.checkpoint().result()
        loads = [timed(lambda: [None for _ in kept.load(_SPACE)]).wall_s for _ in range(3)]
        return {
            "count": count,
            "write_s": round(sum(batches), 2),
            "write_batch_ms_p50": round(percentile(batches, 0.5) * 1000, 2),
            "write_batch_ms_p95": round(percentile(batches, 0.95) * 1000, 2),
            "load_first_s": round(loads[0], 3),
            "load_best_s": round(min(loads), 3),
            "database_bytes": store.paths.database.stat().st_size,
        }


if __name__ == "__main__":
    main()

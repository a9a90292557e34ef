"""Benchmark of the embedder and its worker, beside bare onnxruntime on the same texts; prints JSON.

    python -m tests.bench.embedder [--texts N] [--threads N] [--rounds N] [--models NAME ...]

Each built-in model is measured in a process of its own; `resident_mb` is before and after loading it.

`bare` is a session that gets ready-made arrays in the batches the embedder would make, so the ratio
of `embedder` to it is what tokenising, sorting, padding and checking cost. `pipeline` embeds turns
of two such messages from a real store, on one thread. Rounds alternate, and the best of each counts.
Ratios of processor time are those to compare: other programs on the machine disturb them less.
"""

import random
import tempfile
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from app.domain.workers import WorkerName
from app.providers.embedders.chunks import token_spans
from app.providers.embedders.local import LocalEmbedder, in_batches
from app.storage.tables.settings import Settings
from app.system.process import limit_malloc_retention
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from tests.bench.shared.measuring import (
    MODEL,
    ROOT,
    Figures,
    Timed,
    in_process,
    latency,
    options,
    print_json,
    resident_mb,
    timed,
)
from tests.fakes.stored import new_conversation, opened

_WORDS_OF_TEXTS = (6, 20, 20, 40, 80, 180)  # like turns: many short ones, some that fill a vector


def main() -> None:
    names = sorted(each.name for each in MODEL.parent.iterdir())
    given = options(__doc__, texts=400, threads=1, rounds=3, models=names)
    print_json({name: in_process(figures_of, MODEL.parent / name, given) for name in given.models})


def figures_of(model: Path, given: Namespace) -> Figures:
    limit_malloc_retention()
    texts = made_up_texts(given.texts)
    embedder = LocalEmbedder(model, threads=given.threads)
    before_mb = resident_mb()
    load_ms = timed(embedder.load).ms
    memory_mb = {"before": before_mb, "loaded": resident_mb()}
    bare = bare_session(model, texts, given.threads)
    return {
        "texts": len(texts),
        "tokens": sum(len(token_spans(embedder._model().tokenizer, text)) for text in texts),
        "threads": given.threads, "load_ms": round(load_ms, 1), "resident_mb": memory_mb,
        "query_ms": latency([timed(partial(embedder.embed, [text])).ms for text in texts[:200:2]]),
        "embedder": _beside(bare, lambda: embedder.embed(texts), given.rounds),
        "pipeline": _pipeline(model, texts, given.rounds),
    }  # fmt: skip


def _beside(bare: Callable[[], Any], ours: Callable[[], Any], rounds: int) -> Figures:
    """Return the least seconds of both, by the clock and of the processor, and their ratios."""
    took: list[list[Timed[Any]]] = [[timed(work) for work in (bare, ours)] for _ in range(rounds)]
    figures: Figures = {}
    for name in ("wall_s", "cpu_s"):
        bare_s, ours_s = (min(getattr(each[at], name) for each in took) for at in (0, 1))
        figures |= {f"bare_{name}": round(bare_s, 3), name: round(ours_s, 3)}
        figures[f"{name}_ratio_to_bare"] = round(bare_s / ours_s, 3)
    return figures


def _pipeline(model: Path, texts: list[str], rounds: int) -> Figures:
    embedder = LocalEmbedder(model)
    embedder.load()
    with tempfile.TemporaryDirectory() as folder:
        made = (Path(folder, str(number)) for number in range(rounds))

        def embed_all() -> None:
            with opened(next(made)) as store:
                settings = Settings(store)
                settings.set("min_message_tokens", 0)
                pairs = list(zip(texts[::2], texts[1::2], strict=False))
                store.save(*new_conversation(store, *pairs).changes)
                board = WorkerBoard(JobParts(store, settings, embedder=lambda: embedder), ())
                (status,) = board.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
            if status.done != status.total:
                raise SystemExit(f"not all was embedded: {status.last_error}")

        return _beside(bare_session(model, texts, 1), embed_all, rounds)


def made_up_texts(count: int) -> list[str]:
    sources = sorted((ROOT / "app").rglob("*.py"))
    words = [word for path in sources for word in path.read_text().split()]
    chance = random.Random(7)
    texts = []
    for _ in range(count):
        length = chance.choice(_WORDS_OF_TEXTS)
        start = chance.randrange(max(1, len(words) - length))
        texts.append(" ".join(words[start : start + length]))
    return texts


def bare_session(model: Path, texts: list[str], threads: int) -> Callable[[], object]:
    """Return what embeds ready inputs by onnxruntime alone."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        str(model / "model.onnx"), settings, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    ids = [one.ids for one in tokenizer.encode_batch(texts)]
    feeds = []
    for rows in in_batches([len(one) for one in ids]):
        padded = np.zeros((len(rows), max(len(ids[row]) for row in rows)), np.int64)
        mask = np.zeros_like(padded)
        for at, row in enumerate(rows):
            padded[at, : len(ids[row])] = ids[row]
            mask[at, : len(ids[row])] = 1
        feeds.append({"input_ids": padded, "attention_mask": mask})
    return lambda: [session.run(["sentence_embedding"], feed) for feed in feeds]


if __name__ == "__main__":
    main()

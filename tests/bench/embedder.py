"""How near the embedder comes to bare onnxruntime on the same texts; prints JSON.

    python tests/bench/embedder.py [--texts N] [--threads N] [--rounds N]

The bare session gets ready-made arrays in the batches the embedder would make, so the ratio is
what tokenising, sorting, padding and checking cost. Rounds alternate, and the best of each counts.
`cpu_ratio_to_bare` compares processor time, which other programs on the machine disturb less.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "resources" / "models" / "all-MiniLM-L6-v2"
WORDS_OF_TEXTS = (6, 20, 20, 40, 80, 180)  # like turns: many short ones, some that fill a vector
Feeds = list[dict[str, npt.NDArray[np.int64]]]


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--texts", type=int, default=400)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    sys.path.insert(0, str(ROOT))
    from app.providers.local_embedder import LocalEmbedder

    embedder = LocalEmbedder(MODEL, threads=given.threads)
    load_ms = timed(embedder.load)[0] * 1000
    texts = made_up_texts(given.texts)
    feeds, bare = bare_session(texts, given.threads)
    ours, alone = [], []
    for _ in range(given.rounds):
        alone.append(timed(lambda: [bare(feed) for feed in feeds]))
        ours.append(timed(lambda: embedder.embed(texts)))
    (ours_s, ours_cpu_s), (bare_s, bare_cpu_s) = best(ours), best(alone)
    query_ms = [1000 * timed(partial(embedder.embed, [text]))[0] for text in texts[:200:2]]
    report = {
        "texts": len(texts),
        "tokens": sum(embedder.count_tokens(texts)),
        "threads": given.threads,
        "load_ms": round(load_ms, 1),
        "texts_per_s": round(len(texts) / ours_s, 1),
        "bare_texts_per_s": round(len(texts) / bare_s, 1),
        "ratio_to_bare": round(bare_s / ours_s, 3),
        "cpu_ratio_to_bare": round(bare_cpu_s / ours_cpu_s, 3),
        "query_ms_p50": round(statistics.median(query_ms), 2),
        "query_ms_p95": round(statistics.quantiles(query_ms, n=20)[-1], 2),
    }
    print(json.dumps(report, indent=2))  # noqa: T201


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that `work` takes, by the clock and by the processor."""
    started, cpu_started = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu_started


def best(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the least of each kind of seconds."""
    return min(clock for clock, _ in rounds), min(cpu for _, cpu in rounds)


def made_up_texts(count: int) -> list[str]:
    """Return texts of words from this project's own files, of the lengths that turns have."""
    words = [
        word for path in sorted((ROOT / "app").rglob("*.py")) for word in path.read_text().split()
    ]
    chance = random.Random(7)
    texts = []
    for _ in range(count):
        length = chance.choice(WORDS_OF_TEXTS)
        start = chance.randrange(max(1, len(words) - length))
        texts.append(" ".join(words[start : start + length]))
    return texts


def bare_session(
    texts: list[str], threads: int
) -> tuple[Feeds, Callable[[dict[str, npt.NDArray[np.int64]]], object]]:
    """Return ready inputs, and what runs one of them, by onnxruntime alone."""
    import onnxruntime
    from tokenizers import Tokenizer

    from app.providers.local_embedder import in_batches

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        str(MODEL / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
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
    return feeds, lambda feed: session.run(["sentence_embedding"], feed)


if __name__ == "__main__":
    main()

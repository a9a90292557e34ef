"""How near the embedder comes to bare onnxruntime on the same texts; prints JSON.

    python -m tests.bench.embedder [--texts N] [--threads N] [--rounds N]

The bare session gets ready-made arrays in the batches the embedder would make, so the ratio is
what tokenising, sorting, padding and checking cost. Rounds alternate, and the best of each counts.
`cpu_ratio_to_bare` compares processor time, which other programs on the machine disturb less.
"""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

from app.providers.embedders.chunks import token_spans
from app.providers.embedders.local import LocalEmbedder, in_batches
from tests.bench.shared.measuring import MODEL, ROOT, best, latency, options, print_json, timed

_WORDS_OF_TEXTS = (6, 20, 20, 40, 80, 180)  # like turns: many short ones, some that fill a vector
Feed = dict[str, npt.NDArray[np.int64]]


def main() -> None:
    given = options(__doc__, texts=400, threads=1, rounds=3)
    embedder = LocalEmbedder(MODEL, threads=given.threads)
    load_ms = timed(embedder.load).ms
    texts = made_up_texts(given.texts)
    bare = bare_session(texts, given.threads)
    ours, alone = [], []
    for _ in range(given.rounds):
        alone.append(timed(bare))
        ours.append(timed(lambda: embedder.embed(texts)))
    (ours_s, ours_cpu_s), (bare_s, bare_cpu_s) = best(ours), best(alone)
    query_ms = latency([timed(partial(embedder.embed, [text])).ms for text in texts[:200:2]])
    print_json(
        {
            "texts": len(texts),
            "tokens": sum(len(token_spans(embedder._model().tokenizer, text)) for text in texts),
            "threads": given.threads,
            "load_ms": round(load_ms, 1),
            "texts_per_s": round(len(texts) / ours_s, 1),
            "bare_texts_per_s": round(len(texts) / bare_s, 1),
            "ratio_to_bare": round(bare_s / ours_s, 3),
            "cpu_ratio_to_bare": round(bare_cpu_s / ours_cpu_s, 3),
            **{f"query_ms_{name}": value for name, value in query_ms.items()},
        }
    )


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


def bare_session(texts: list[str], threads: int) -> Callable[[], object]:
    """Return what embeds ready inputs by onnxruntime alone."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        str(MODEL / "model.onnx"), settings, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    ids = [one.ids for one in tokenizer.encode_batch(texts)]
    feeds: list[Feed] = []
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

"""Benchmark of the token index: speed, size, and what tokens cost when texts are embedded; prints JSON.

    python -m tests.bench.tokens [--parts N ...] [--tokens N] [--questions N] [--texts N] [--rounds N]

Parts have random token vectors, `--tokens` on average, one part to a passage. A question of 16 tokens
asks for the similarities of 400 parts spread over all; before `cold` the file is dropped from the page
cache (Linux). Embedding with and without tokens alternates; the best round of each counts.
"""

import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from app.domain.ids import PARTS_PER_PASSAGE, PassageId, part_id
from app.index.token_index import TokenIndex, TokenizedPassage
from app.providers.embedders.local import LocalEmbedder
from tests.bench.embedder import made_up_texts
from tests.bench.shared.made_up import unit_vectors
from tests.bench.shared.measuring import (
    MODEL,
    Figures,
    latency,
    options,
    print_json,
    resident_mb,
    timed,
)

WANTED, QUESTION_TOKENS = 400, 16
BATCH = 20_000


def main() -> None:
    given = options(
        __doc__, parts=[100_000, 1_000_000], tokens=60, questions=200, texts=400, rounds=3
    )
    figures: Figures = {
        str(count): of_size(count, given.tokens, given.questions) for count in sorted(given.parts)
    }
    if given.texts:
        figures["embedding"] = embedding(made_up_texts(given.texts), given.rounds)
    print_json(figures)


def of_size(count: int, tokens: int, questions: int) -> Figures:
    source = np.random.default_rng(7)
    pool = unit_vectors(source, 100_000, 32)
    with tempfile.TemporaryDirectory(prefix="commonplace-tokens-") as root:
        folder = Path(root) / "index"
        index = TokenIndex(folder, "bench")

        def put(first: int, last: int) -> None:
            lengths = source.integers(1, 2 * tokens, last - first)
            starts = source.integers(0, len(pool) - 2 * tokens, last - first)
            index.put([
                TokenizedPassage(
                    PassageId(number), "h", {part_id(number, 0): pool[start : start + length]}
                )
                for number, start, length in zip(range(first, last), starts, lengths, strict=True)
            ])  # fmt: skip

        def put_all() -> None:
            for at in range(0, count, BATCH):
                put(at, min(at + BATCH, count))

        fill = timed(put_all)
        more = [timed(partial(put, count + at, count + at + 100)) for at in range(0, 1_000, 100)]
        file_bytes = sum(path.stat().st_size for path in folder.iterdir())
        index.close()
        before_mb = resident_mb()["all"]
        opening = timed(lambda: TokenIndex(folder, "bench").close())
        index = TokenIndex(folder, "bench")
        grown_mb = resident_mb()["all"] - before_mb
        asked, weights = unit_vectors(source, QUESTION_TOKENS, 32), np.ones(QUESTION_TOKENS)
        wanted = [source.integers(0, count, WANTED) * PARTS_PER_PASSAGE for _ in range(questions)]
        first = [timed(partial(index.window_scores, asked, weights, each)).ms for each in wanted]
        again = [timed(partial(index.window_scores, asked, weights, each)).ms for each in wanted]
        cold = []
        for each in wanted[:20]:
            index.close()
            del index  # the pages of a mapped file are not dropped
            drop_cache(folder)
            index = TokenIndex(folder, "bench")
            cold.append(timed(partial(index.window_scores, asked, weights, each)).ms)
        remove = timed(lambda: index.remove(range(1_000)))
        index.close()
    return {
        "tokens": tokens * count, "fill_s": round(fill.wall_s, 2),
        "put_100_ms": latency([each.ms for each in more]), "open_ms": round(opening.ms),
        "resident_mb": grown_mb, "file_mb": round(file_bytes / 1e6),
        "bytes_per_part": round(file_bytes / (count + 1_000)), "scores_of_400_ms": latency(first),
        "again_ms": latency(again), "cold_ms": latency(cold), "remove_1000_ms": round(remove.ms),
    }  # fmt: skip


def drop_cache(folder: Path) -> None:
    """Make the next reads come from the disk, except for pages that are mapped."""
    for path in folder.glob("tokens-*"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def embedding(texts: list[str], rounds: int) -> Figures:
    embedder = LocalEmbedder(MODEL)
    embedder.load()
    plain_s, tokens_s = [], []
    for _ in range(rounds):
        plain_s.append(timed(lambda: embedder.embed(texts)).cpu_s)
        tokens_s.append(timed(lambda: embedder.embed_with_tokens(texts)).cpu_s)
    _, made = embedder.embed_with_tokens(texts)
    stored = sum(min(512, len(each.vectors)) for each in made) * 32 + len(texts) * 32
    return {
        "texts": len(texts),
        "cpu_s": round(min(plain_s), 3),
        "with_tokens_cpu_s": round(min(tokens_s), 3),
        "ratio": round(min(tokens_s) / min(plain_s), 3),
        "bytes_per_1000_turns": round(2_000 * stored / len(texts)),
    }


if __name__ == "__main__":
    main()

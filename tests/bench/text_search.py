"""How fast the text index is built and answers, and how large it is; prints JSON.

    python tests/bench/text_search.py [--passages N] [--queries N] [--folder DIR]

Passages are made up, the same each time: words by Zipf's law (exponent 1.05, 60,000 different ones,
the commonest being English small words), a question of about 20 words, an answer of 4 to 1,500
(median 90); each is a message of its own in the index. Queries have 1 to 10 words of what was said,
one in five a phrase besides. "candidates" and "survey" are what a search of the window takes; the
others ask for 20 hits with coverage. Processor time counts tantivy's threads too; on a
machine with other work to do it tells more than the clock.
"""

import argparse
import json
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if TYPE_CHECKING:
    from app.domain.passages import PassageText, SearchQuery
    from app.index.text_index import TantivyTextIndex

VOCABULARY = 60_000
EXPONENT = 1.05
LIMIT = 20
SYLLABLES = [a + b for a in "bdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "al", "en", "ir")]
ENDINGS = ("", "s", "ing", "ed", "er", "ly", "ness")
STARTED = datetime(2022, 1, 1, tzinfo=UTC)


class MadeUp:
    """Passages and queries from one random source."""

    def __init__(self, seed: int = 7) -> None:
        from app.index.stop_words import STOP_WORDS

        self._source = np.random.default_rng(seed)
        small = sorted(STOP_WORDS["english"])
        coined = [
            "".join(self._source.choice(SYLLABLES, 2 + number % 2)) + ENDINGS[number % len(ENDINGS)]
            for number in range(VOCABULARY - len(small))
        ]
        self._words = np.array(small + coined, dtype=object)
        self._first_coined = len(small)
        weights = 1 / np.arange(1, VOCABULARY + 1) ** EXPONENT
        self._cumulated = np.cumsum(weights / weights.sum())

    def text(self, words: int) -> str:
        """Return so many words with a stop after every dozen."""
        places = np.searchsorted(self._cumulated, self._source.random(words))
        drawn = self._words[np.minimum(places, VOCABULARY - 1)].tolist()
        return ". ".join(" ".join(drawn[at : at + 12]) for at in range(0, words, 12))

    def passages(self, count: int, answer_words: float = 90) -> Iterator["PassageText"]:
        """Yield passages with ids from 1."""
        from app.domain.conversations import Role
        from app.domain.ids import ConversationId, PassageId, part_id
        from app.domain.passages import Part, PassageKind, PassageText

        for number in range(1, count + 1):
            answer = int(np.clip(self._source.lognormal(np.log(answer_words), 1.0), 4, 1500))
            question = self.text(int(self._source.integers(5, 40)))
            parts = (
                Part(part_id(number, 0), Role.USER, question),
                Part(part_id(number, 1), Role.ASSISTANT, self.text(answer)),
            )
            yield PassageText(
                PassageId(number), PassageKind.TURN, ConversationId(1 + number // 20), "", parts,
                STARTED + timedelta(minutes=20 * number),
            )  # fmt: skip

    def query(self, said: "PassageText") -> str:
        """Return 1 to 10 words of a passage that are not small words, maybe with a phrase."""
        words = said.parts[-1].text.replace(".", "").split()
        at = int(self._source.integers(0, max(1, len(words) - 3)))
        small = set(self._words[: self._first_coined])
        told = [word for word in dict.fromkeys(words) if word not in small] or words
        count = int(self._source.integers(1, 11))
        picked = self._source.choice(np.array(told, dtype=object), min(count, len(told)), False)
        phrase = f' "{" ".join(words[at : at + 3])}"' if self._source.random() < 0.2 else ""
        return " ".join(picked.tolist()) + phrase


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--passages", type=int, default=100_000)
    arguments.add_argument("--queries", type=int, default=200)
    arguments.add_argument("--folder", type=Path)
    given = arguments.parse_args()
    sys.path.insert(0, str(ROOT))
    folder = given.folder or Path(tempfile.mkdtemp(prefix="text-search-"))
    try:
        report = measured(folder / "text", given.passages, given.queries)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


def measured(folder: Path, passages: int, queries: int) -> dict[str, Any]:
    """Return all numbers for an index of so many passages."""
    from app.index.query import parse_query
    from app.index.text_index import TantivyTextIndex

    made_up = MadeUp()
    memory = rss_mb()
    index = TantivyTextIndex(folder, "bench")
    index.start_over()
    build, sample = built(index, made_up, passages)
    build["memory_mb"] = round(rss_mb() - memory, 1)
    index.close()
    opening_ms, index = timed(lambda: TantivyTextIndex(folder, "bench"))
    asked = [parse_query(made_up.query(sample[at % len(sample)])) for at in range(queries)]
    report = {
        "passages": passages,
        **build,
        "open_and_verify_ms": round(opening_ms, 1),
        "index_mb": round(sum(each.stat().st_size for each in folder.rglob("*.*")) / 1e6, 1),
        **searched(index, asked, sample),
        "small_commit_ms_p50": small_commits(index, passages),
    }
    index.close()
    return report


def built(
    index: "TantivyTextIndex", made_up: MadeUp, passages: int
) -> tuple[dict[str, Any], list["PassageText"]]:
    """Put passages in batches as a sync would, commit once a second; making them up is not counted."""
    spent_s, spent_cpu_s, sample, words, committed = 0.0, 0.0, [], 0, time.perf_counter()
    batch: list[PassageText] = []
    for passage in made_up.passages(passages):
        batch.append(passage)
        words += sum(part.text.count(" ") + 1 for part in passage.parts)
        if len(batch) == 500 or passage.id == passages:
            sample += batch[::50]
            cpu_s = time.process_time()
            spent_s += timed(partial(index.put, batch))[0] / 1000
            batch = []
            if time.perf_counter() - committed > 1 or passage.id == passages:
                spent_s += timed(partial(index.commit, passage.id))[0] / 1000
                committed = time.perf_counter()
            spent_cpu_s += time.process_time() - cpu_s
    return {
        "words_per_passage": round(words / passages, 1),
        "build_s": round(spent_s, 1),
        "passages_per_s": round(passages / spent_s),
        "passages_per_cpu_s": round(passages / spent_cpu_s),
        "short_passages_per_s": short_rate(made_up),
    }, sample


def short_rate(made_up: MadeUp) -> int:
    """Return how many passages of about 30 words go in per second."""
    from app.index.text_index import TantivyTextIndex

    short = list(made_up.passages(20_000, answer_words=8))
    folder = Path(tempfile.mkdtemp(prefix="text-short-"))
    index = TantivyTextIndex(folder, "bench")
    index.start_over()
    spent_ms = timed(partial(index.put, short))[0] + timed(partial(index.commit, 1))[0]
    index.close()
    shutil.rmtree(folder)
    return round(len(short) / spent_ms * 1000)


def searched(
    index: "TantivyTextIndex", queries: list["SearchQuery"], sample: list["PassageText"]
) -> dict[str, Any]:
    """Return latencies: plain, restricted in several ways, and of snippets."""
    from app.domain.ids import PassageId
    from app.index.snippets import snippet

    everything = sorted(index.passage_ids())
    most = frozenset(everything[: len(everything) * 19 // 20])
    some = frozenset(everything[:: max(1, len(everything) // 3000)])
    few = frozenset(everything[:100])
    hidden = frozenset(everything[::50])
    candidates = {query: index.candidates(query, 200) for query in queries}
    ways: dict[str, Callable[[SearchQuery], object]] = {
        "search": lambda query: index.search(query, LIMIT),
        "search_200": lambda query: index.search(query, 200),
        "most_allowed": lambda query: index.search(query, LIMIT, most),
        "3000_allowed": lambda query: index.search(query, LIMIT, some),
        "100_allowed": lambda query: index.search(query, LIMIT, few),
        "2_percent_excluded": lambda query: index.search(query, LIMIT, None, hidden),
        "candidates": lambda query: index.candidates(query, 200),
        "survey": lambda query: index.survey(query, candidates[query]),
        "20_snippets": lambda query: [snippet(each, query) for each in said_with(query, sample)],
    }
    for query in queries[:20]:
        index.search(query, LIMIT)
    report: dict[str, Any] = {}
    for name, ask in ways.items():
        taken = [timed(partial(ask, query))[0] for query in queries]
        report[f"{name}_ms"] = {
            "p50": round(statistics.median(taken), 2),
            "p95": round(statistics.quantiles(taken, n=20)[-1], 2),
            "max": round(max(taken), 2),
        }
    found = [bool(index.search(query, LIMIT)) for query in queries]
    report["queries_answered_share"] = round(sum(found) / len(found), 3)
    assert PassageId(1) in index.passage_ids()
    return report


def said_with(query: "SearchQuery", sample: list["PassageText"]) -> list[str]:
    """Return 20 answers, as many as there are with the query's first word."""
    word = query.words.split()[0]
    answers = [each.parts[-1].text for each in sample[:400]]
    return sorted(answers, key=lambda each: word not in each)[:LIMIT]


def small_commits(index: "TantivyTextIndex", passages: int) -> float:
    """Return the milliseconds from a finished turn to its being found, without the caller's wait."""
    taken = []
    for number, passage in enumerate(MadeUp(seed=8).passages(10), start=1):
        taken.append(timed(partial(index.put, [passage]))[0])
        taken[-1] += timed(partial(index.commit, passages + number))[0]
    return round(statistics.median(taken), 1)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the milliseconds `work` took, and what it gave."""
    started = time.perf_counter()
    made = work()
    return (time.perf_counter() - started) * 1000, made


def rss_mb() -> float:
    """Return the largest resident size so far, in MB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

"""How fast the text index is built and answers, and how large it is; prints JSON.

    python -m tests.bench.text_search [--passages N] [--queries N] [--folder DIR]

Passages are made up, the same each time: words by Zipf's law (exponent 1.05, 60,000 different ones,
the commonest being English small words), a question of about 20 words, an answer of 4 to 1,500
(median 90); each is a message of its own in the index. Queries have 1 to 10 words of what was said,
one in five a phrase besides. "candidates" and "survey" are what a search of the window takes; the
others ask for 20 hits with coverage. Processor time counts tantivy's threads too; on a
machine with other work to do it tells more than the clock.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from app.domain.conversations import Role
from app.domain.ids import ConversationId, PassageId, part_id, passage_id_of
from app.domain.passages import PassageKind, PassagePart, PassageText, SearchQuery
from app.index.query import parse_query
from app.index.snippets import snippet
from app.index.text_index import TantivyTextIndex
from app.language.word_lists import STOP_WORDS
from tests.bench.shared.measuring import (
    Figures,
    Timed,
    latency,
    options,
    peak_mb,
    print_json,
    timed,
)

_VOCABULARY = 60_000
_EXPONENT = 1.05
_LIMIT = 20
_SYLLABLES = [
    a + b for a in "bdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "al", "en", "ir")
]
_ENDINGS = ("", "s", "ing", "ed", "er", "ly", "ness")
_STARTED = datetime(2022, 1, 1, tzinfo=UTC)


class MadeUp:
    """Passages and queries from one random source."""

    def __init__(self, seed: int = 7) -> None:
        self._source = np.random.default_rng(seed)
        small = sorted(STOP_WORDS["english"])
        coined = [
            "".join(self._source.choice(_SYLLABLES, 2 + number % 2))
            + _ENDINGS[number % len(_ENDINGS)]
            for number in range(_VOCABULARY - len(small))
        ]
        self._words = np.array(small + coined, dtype=object)
        weights = 1 / np.arange(1, _VOCABULARY + 1) ** _EXPONENT
        self._cumulated = np.cumsum(weights / weights.sum())

    def text(self, words: int) -> str:
        places = np.searchsorted(self._cumulated, self._source.random(words))
        drawn = self._words[np.minimum(places, _VOCABULARY - 1)].tolist()
        return ". ".join(" ".join(drawn[at : at + 12]) for at in range(0, words, 12))

    def passages(self, count: int, answer_words: float = 90) -> Iterator[PassageText]:
        for number in range(1, count + 1):
            answer = int(np.clip(self._source.lognormal(np.log(answer_words), 1.0), 4, 1500))
            question = self.text(int(self._source.integers(5, 40)))
            parts = (
                PassagePart(part_id(number, 0), Role.USER, question),
                PassagePart(part_id(number, 1), Role.ASSISTANT, self.text(answer)),
            )
            yield PassageText(
                PassageId(number), PassageKind.TURN, ConversationId(1 + number // 20), "", parts,
                _STARTED + timedelta(minutes=20 * number),
            )  # fmt: skip

    def query(self, said: PassageText) -> str:
        """Return 1 to 10 words of a passage that are not small words, maybe with a phrase."""
        words = said.parts[-1].text.replace(".", "").split()
        at = int(self._source.integers(0, max(1, len(words) - 3)))
        rare = [word for word in dict.fromkeys(words) if word not in STOP_WORDS["english"]] or words
        count = int(self._source.integers(1, 11))
        picked = self._source.choice(np.array(rare, dtype=object), min(count, len(rare)), False)
        phrase = f' "{" ".join(words[at : at + 3])}"' if self._source.random() < 0.2 else ""
        return " ".join(picked.tolist()) + phrase


def main() -> None:
    given = options(__doc__, passages=100_000, queries=200, folder=Path)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="text-search-"))
    try:
        print_json(_measured(folder / "text", given.passages, given.queries))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(folder: Path, passages: int, queries: int) -> Figures:
    made_up, memory_mb = MadeUp(), peak_mb()
    index = TantivyTextIndex(folder, "bench")
    index.start_over()
    build, sample = _built(index, made_up, passages)
    build["memory_mb"] = round(peak_mb() - memory_mb, 1)
    index.close()
    opening = timed(lambda: TantivyTextIndex(folder, "bench"))
    index = opening.result
    asked = [parse_query(made_up.query(sample[at % len(sample)])) for at in range(queries)]
    commits = [
        _put_and_commit(index, [each], passages + each.id)[0] * 1000
        for each in MadeUp(seed=8).passages(10)
    ]
    figures = {
        "passages": passages,
        **build,
        "open_and_verify_ms": round(opening.ms, 1),
        "index_mb": round(sum(each.stat().st_size for each in folder.rglob("*.*")) / 1e6, 1),
        **_searched(index, asked, sample),
        "small_commit_ms_p50": round(statistics.median(commits), 1),
    }
    index.close()
    return figures


def _put_and_commit(
    index: TantivyTextIndex, passages: Sequence[PassageText], position: int | None
) -> tuple[float, float]:
    """Return seconds by the clock and of the processor; None commits nothing."""
    took: list[Timed[None]] = [timed(lambda: index.put(passages))]
    if position is not None:
        took.append(timed(lambda: index.commit(position)))
    return sum(each.wall_s for each in took), sum(each.cpu_s for each in took)


def _built(
    index: TantivyTextIndex, made_up: MadeUp, passages: int
) -> tuple[Figures, list[PassageText]]:
    """Put passages in batches as a sync would, commit once a second; making them up is not counted."""
    spent_s, spent_cpu_s, sample, words, committed = 0.0, 0.0, [], 0, time.perf_counter()
    batch: list[PassageText] = []
    for passage in made_up.passages(passages):
        batch.append(passage)
        words += sum(part.text.count(" ") + 1 for part in passage.parts)
        is_last = passage.id == passages
        if len(batch) < 500 and not is_last:
            continue
        is_due = is_last or time.perf_counter() - committed > 1
        wall_s, cpu_s = _put_and_commit(index, batch, passage.id if is_due else None)
        committed = time.perf_counter() if is_due else committed
        spent_s, spent_cpu_s = spent_s + wall_s, spent_cpu_s + cpu_s
        sample += batch[::50]
        batch = []
    return {
        "words_per_passage": round(words / passages, 1),
        "build_s": round(spent_s, 1),
        "passages_per_s": round(passages / spent_s),
        "passages_per_cpu_s": round(passages / spent_cpu_s),
        "short_passages_per_s": _short_rate(made_up),
    }, sample


def _short_rate(made_up: MadeUp) -> int:
    short = list(made_up.passages(20_000, answer_words=8))
    with tempfile.TemporaryDirectory(prefix="text-short-") as folder:
        index = TantivyTextIndex(Path(folder), "bench")
        index.start_over()
        spent_s, _ = _put_and_commit(index, short, 1)
        index.close()
    return round(len(short) / spent_s)


def _searched(
    index: TantivyTextIndex, queries: Sequence[SearchQuery], sample: Sequence[PassageText]
) -> Figures:
    """Return latencies: plain, restricted in several ways, and of snippets."""
    everything = sorted(
        {passage_id_of(hit) for query in queries for hit in index.candidates(query, 10_000)}
    )
    most = frozenset(everything[: len(everything) * 19 // 20])
    some = frozenset(everything[:: max(1, len(everything) // 3000)])
    few = frozenset(everything[:100])
    hidden = frozenset(everything[::50])
    candidates = {query: index.candidates(query, 200) for query in queries}
    answers = [each.parts[-1].text for each in sample[:400]]

    def snippets(query: SearchQuery) -> object:
        word = query.words.split()[0]  # answers that have it come first
        found = sorted(answers, key=lambda each: word not in each)[:_LIMIT]
        return [snippet(each, query) for each in found]

    ways: dict[str, Callable[[SearchQuery], object]] = {
        "candidates_20": lambda query: index.candidates(query, _LIMIT),
        "most_allowed": lambda query: index.candidates(query, _LIMIT, most),
        "3000_allowed": lambda query: index.candidates(query, _LIMIT, some),
        "100_allowed": lambda query: index.candidates(query, _LIMIT, few),
        "2_percent_excluded": lambda query: index.candidates(query, _LIMIT, None, hidden),
        "candidates": lambda query: index.candidates(query, 200),
        "survey": lambda query: index.candidate_table(query, candidates[query]),
        "20_snippets": snippets,
    }
    for query in queries[:20]:
        index.candidates(query, _LIMIT)
    figures = Figures()
    for name, ask in ways.items():
        taken = [timed(partial(ask, query)).ms for query in queries]
        figures[f"{name}_ms"] = {**latency(taken), "max": round(max(taken), 2)}
    found = [bool(index.candidates(query, _LIMIT)) for query in queries]
    return {**figures, "queries_answered_share": round(sum(found) / len(found), 3)}


if __name__ == "__main__":
    main()

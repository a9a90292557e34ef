"""How near extractive summaries come to summaries written by a language model; prints JSON.

    python -m tests.bench.summaries --data FILE [--data FILE] [--seeds N] [--methods]

Each session of a file that carries a summary is summarised as a conversation, once in three
sentences, as the program does, and once at the length of the given summary. Beside it stand the
first sentences and random ones, at the same number of words. ROUGE-1, -2 and -L are F1 on words,
without stemming (Lin 2004). With `--methods`, other ways to choose (`summary_methods`) stand beside
ours: figures of the conversations that constants were tuned on, and of the others.
"""

import json
import random
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.language.extractive.centrality import Sentence
from app.language.extractive.summaries import (
    TurnMarkdown,
    central_sentences,
    conversation_sentences,
)
from tests.bench.shared.measuring import Figures, options, print_json, timed
from tests.bench.summary_methods import Choose, Methods

WORD = re.compile(r"[^\W_]+")
SLACK = 1.15  # a sentence that would pass the budget by more is left out
Session = tuple[Sequence[Sentence], list[str]]
METRICS = ("rouge_1", "rouge_2", "rouge_l")


def main() -> None:
    given = options(__doc__, required=["data"], data=[Path], seeds=10, methods=False)
    figures = {path.stem: measured(path, given.seeds) for path in given.data}
    if given.methods:
        figures |= {f"{path.stem} by method": by_method(path) for path in given.data}
    print_json(figures)


def measured(path: Path, seeds: int) -> Figures:
    sessions = [session for _, session in sessions_of(path)]
    took = timed(lambda: [central_sentences(sentences, 3) for sentences, _ in sessions])
    return {
        "sessions": len(sessions),
        "ms_per_session": round(took.ms / max(1, len(sessions)), 2),
        "three_sentences": compared(sessions, seeds, sentence_count=3),
        "reference_length": compared(sessions, seeds, sentence_count=None),
    }


def sessions_of(path: Path) -> list[tuple[int, Session]]:
    """Return each session's sentences and the given summary's words, with its conversation's place."""
    conversations = json.loads(path.read_text(encoding="utf-8"))["conversations"]
    return [
        (place, (conversation_sentences(turns_of(session)), words(session["summary"])))
        for place, conversation in enumerate(conversations)
        for session in conversation["sessions"]
        if session.get("summary")
    ]


def by_method(path: Path) -> Figures:
    halves: dict[str, list[Session]] = {"tuned on": [], "reported": []}
    for place, session in sessions_of(path):
        halves["reported" if place % 2 else "tuned on"].append(session)
    figures = Figures()
    for name in Methods().all():
        choose = Methods().all()[name]  # of its own, so that each pays for its vectors
        took = timed(lambda: {half: scores_of(own, choose) for half, own in halves.items()})  # noqa: B023
        cpu_ms = took.cpu_s * 1000 / sum(map(len, halves.values()))
        figures[name] = {**took.result, "cpu_ms_per_session": round(cpu_ms, 1)}
    return figures


def scores_of(sessions: Sequence[Session], choose: Choose) -> dict[str, list[float]]:
    """Return ROUGE-1, -2 and -L in three sentences and at the length of the given summary."""
    three, whole = [], []
    for sentences, reference in sessions:
        three.append(rouge(words(joined(sentences, choose(sentences, 3))), reference))
        chosen = within(sentences, choose(sentences, 20), len(reference))
        whole.append(rouge(words(joined(sentences, chosen)), reference))
    return {
        name: [round(statistics.mean(each), 4) for each in zip(*rows, strict=True)]
        for name, rows in (("three_sentences", three), ("reference_length", whole))
    }


def compared(sessions: Sequence[Session], seeds: int, sentence_count: int | None) -> Figures:
    """Return the scores of ours, of the first sentences and of random ones, and their ratios."""
    scores: dict[str, list[tuple[float, ...]]] = {"ours": [], "first": [], "random": []}
    lengths: list[int] = []
    for sentences, reference in sessions:
        ours = central_sentences(sentences, sentence_count or 20)
        if sentence_count is None:
            ours = within(sentences, ours, len(reference))
        budget = len(words(joined(sentences, ours)))
        lengths.append(budget)
        scores["ours"].append(rouge(words(joined(sentences, ours)), reference))
        first = within(sentences, range(len(sentences)), budget)
        scores["first"].append(rouge(words(joined(sentences, first)), reference))
        for seed in range(seeds):
            drawn = random.Random(seed).sample(range(len(sentences)), len(sentences))
            chosen = within(sentences, drawn, budget)
            scores["random"].append(rouge(words(joined(sentences, chosen)), reference))
    means = {
        name: [statistics.mean(each) for each in zip(*rows, strict=True)]
        for name, rows in scores.items()
    }
    named = {
        name: dict(zip(METRICS, [round(each, 4) for each in row], strict=True))
        for name, row in means.items()
    }
    ratios = {
        metric: round(ours / first, 3)
        for metric, ours, first in zip(METRICS, means["ours"], means["first"], strict=True)
    }
    return {**named, "ours_to_first": ratios, "mean_words": round(statistics.mean(lengths), 1)}


def turns_of(session: dict[str, Any]) -> list[TurnMarkdown]:
    turns: list[TurnMarkdown] = []
    for message in session["turns"]:
        if message["role"] == "user" or not turns:
            turns.append(TurnMarkdown(message["text"], ""))
        else:
            before = turns.pop()
            turns.append(TurnMarkdown(before.asked, f"{before.answered}\n{message['text']}"))
    return turns


def within(sentences: Sequence[Sentence], order: Sequence[int], budget: int) -> list[int]:
    """Return the first of `order` that fit into `budget` words."""
    chosen: list[int] = []
    used = 0
    for place in order:
        size = len(words(sentences[place].text))
        if used + size <= budget * SLACK:
            chosen.append(place)
            used += size
        if used >= budget:
            break
    return chosen


def joined(sentences: Sequence[Sentence], places: Sequence[int]) -> str:
    return " ".join(sentences[place].text for place in sorted(places))


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def rouge(candidate: list[str], reference: list[str]) -> tuple[float, float, float]:
    by_size = [overlap(candidate, reference, size) for size in (1, 2)]
    longest = common_length(candidate, reference)
    return by_size[0], by_size[1], f1(longest, len(candidate), len(reference))


def overlap(candidate: list[str], reference: list[str], size: int) -> float:
    """Return F1 of the runs of `size` words that both have."""
    ours, theirs = (
        Counter(zip(*(tokens[start:] for start in range(size)), strict=False))
        for tokens in (candidate, reference)
    )
    return f1((ours & theirs).total(), ours.total(), theirs.total())


def common_length(first: list[str], second: list[str]) -> int:
    before = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if word == other else max(before[place + 1], row[-1]))
        before = row
    return before[-1]


def f1(matches: int, ours: int, theirs: int) -> float:
    return 2 * matches / (ours + theirs) if matches else 0.0


if __name__ == "__main__":
    main()

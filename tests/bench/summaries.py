"""Benchmark of extractive summaries: whether they say how a conversation ended; prints JSON.

    python -m tests.bench.summaries [--data FILE] [--data FILE] [--seeds N]

`outcomes` are the shares of the conversations of tests/data/outcomes.toml whose summary has the words
of their outcome. With `--data`, also how near summaries come to those written by a language model.
Each session of an evaluation file that carries a summary is summarised as a conversation, once in
three sentences, as the program does, and once at the length of the given summary. Beside it stand
the first sentences and random ones, at the same number of words. ROUGE-1, -2 and -L are F1 on words,
without stemming (Lin 2004).
"""

import random
import re
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.domain.conversations import Role
from app.domain.turns import TurnMarkdown
from app.language.extractive import (
    Sentence,
    central_sentences,
    conversation_sentences,
    summarize_conversation,
)
from tests.bench.evaluation import Session, read_evaluation
from tests.bench.shared.measuring import ROOT, Figures, options, print_json, timed

OUTCOMES = ROOT / "tests/data/outcomes.toml"
WORD = re.compile(r"[^\W_]+")
SLACK = 1.15  # a sentence that would pass the budget by more is left out
METRICS = ("rouge_1", "rouge_2", "rouge_l")


def main() -> None:
    given = options(__doc__, data=[Path], seeds=10)
    figures: Figures = {"outcomes": outcomes()}
    print_json(figures | {path.stem: measured(path, given.seeds) for path in given.data})


def outcomes() -> Figures:
    """Return the shares of summaries with their outcome, of the conversations open and held out."""
    talks = tomllib.loads(OUTCOMES.read_text(encoding="utf-8"))["talk"]
    halves = {
        "develop": [talk for talk in talks if not talk.get("held_out")],
        "held_out": [talk for talk in talks if talk.get("held_out")],
    }
    return {half: statistics.mean(map(says_outcome, own)) for half, own in halves.items()}


def says_outcome(talk: Mapping[str, Any]) -> bool:
    """Return whether the summary of a conversation has one wording of each part of its outcome."""
    summary = summarize_conversation([TurnMarkdown(*turn) for turn in talk["turns"]])
    return all(any(each in summary for each in wordings) for wordings in talk["outcome"])


def measured(path: Path, seeds: int) -> Figures:
    sessions = [
        (conversation_sentences(turns_of(session)), words(session.summary))
        for talk in read_evaluation(path).talks
        for session in talk.sessions
        if session.summary
    ]
    took = timed(lambda: [central_sentences(sentences, 3) for sentences, _ in sessions])
    figures: Figures = {
        "sessions": len(sessions),
        "ms_per_session": round(took.ms / max(1, len(sessions)), 2),
    }
    for name, count in (("three_sentences", 3), ("reference_length", None)):
        rows = [compared(*session, seeds, count) for session in sessions]
        means = {
            way: [statistics.mean(row[way][at] for row in rows) for at in range(3)]
            for way in rows[0]
        }
        figures[name] = {
            way: {metric: round(value, 4) for metric, value in zip(METRICS, each, strict=True)}
            for way, each in means.items()
        }
        ratios = zip(METRICS, means["ours"], means["first"], strict=True)
        figures[name]["ours_to_first"] = {each: round(a / b, 3) for each, a, b in ratios}
    return figures


def compared(
    sentences: Sequence[Sentence], reference: list[str], seeds: int, count: int | None
) -> dict[str, list[float]]:
    """Return the scores of ours, of the first sentences and of random ones (their mean)."""
    ours = central_sentences(sentences, count or 20)
    if count is None:
        ours = within(sentences, ours, len(reference))
    places = range(len(sentences))
    budget = len(words(joined(sentences, ours)))
    orders = [random.Random(seed).sample(places, len(places)) for seed in range(seeds)]

    def score(chosen: Iterable[int]) -> tuple[float, ...]:
        return rouge(words(joined(sentences, chosen)), reference)

    drawn = [score(within(sentences, order, budget)) for order in orders]
    return {
        "ours": [*score(ours)],
        "first": [*score(within(sentences, places, budget))],
        "random": [statistics.mean(each) for each in zip(*drawn, strict=True)],
    }


def turns_of(session: Session) -> list[TurnMarkdown]:
    turns: list[TurnMarkdown] = []
    for message in session.turns:
        if message.role is Role.USER or not turns:
            turns.append(TurnMarkdown(message.text, ""))
        else:
            before = turns.pop()
            turns.append(TurnMarkdown(before.asked, f"{before.answered}\n{message.text}"))
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


def joined(sentences: Sequence[Sentence], places: Iterable[int]) -> str:
    return " ".join(sentences[place].text for place in sorted(places))


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def rouge(candidate: list[str], reference: list[str]) -> tuple[float, float, float]:
    total = max(1, len(candidate) + len(reference))
    runs = [[Counter(_runs(each, size)) for each in (candidate, reference)] for size in (1, 2)]
    by_size = [2 * (a & b).total() / max(1, a.total() + b.total()) for a, b in runs]
    return by_size[0], by_size[1], 2 * common_length(candidate, reference) / total


def _runs(tokens: list[str], size: int) -> Iterable[tuple[str, ...]]:
    return zip(*(tokens[start:] for start in range(size)), strict=False)


def common_length(first: list[str], second: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    before = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if word == other else max(before[place + 1], row[-1]))
        before = row
    return before[-1]


if __name__ == "__main__":
    main()

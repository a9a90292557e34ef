"""Relevance: the calibrated likelihood (0-1) that what was found answers the question.

A ranking always has a best hit, so the relevance of the best hit is judged from signals of the
whole ranking: how far the nearest messages stand out from the others of the library, and the best
turn from the next ones; how well the tokens of the best hits match; which share of the question's
words the best contexts contain, and how much these words tell; and how long the messages are: long
ones contain many words by chance. In a small library less is near by chance. Each other hit gets
less, by the distance of its score from the best; more so in a small library, where the candidates
are all there is. Of keywords it counts which share each message contains itself.

A cosine alone says nothing: unrelated texts have .06 in one space and .75 in another. It is
therefore compared with the background of its space (`app.index.space_traits`). The weights of the
signals are fitted by `packaging/models/fit_relevance.py` and stored in `resources/relevance.json`;
choices and figures: packaging/decisions/0032-recall-threshold.md.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.ids import PassageId, passage_id_of
from app.index.message_traits import Traits
from app.index.question import ParsedQuestion
from app.index.ranking import Nearness, Numbers, Ranked, rank
from app.index.text_snapshot import CandidateTable

_SIGNALS = ("always", "share", "weight", "lead", "length", "small")
_OF_KEYWORDS = ("always", "share", "lead", "holds")
# The signals with token matches, by meaning without them, and by words alone, in the order of the
# fit.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "question_tokens": (*_SIGNALS, "nearest", "tokens"),
    "question_meaning": (*_SIGNALS, "nearest"),
    "question_words": _SIGNALS,
    "keywords_meaning": _OF_KEYWORDS,
    "keywords_words": _OF_KEYWORDS,
}

MIN_DEVIATION = 1e-3  # for an embedder that gives every text the same vector
_FITTED_FILE = Path(__file__).resolve().parents[2] / "resources" / "relevance.json"
_NEAREST = 10  # messages whose mean nearness counts
_BEST = 5  # hits whose word share counts, and turns that the best one is compared with
_PASSAGES_PER_HIT = 25  # at most 1 in so many passages is used for either: most are off topic
_MIN_SHARE = 0.05
_SAME_COSINE = 1e-6
_FEW_PASSAGES = 10
_SMALL = 600  # passages; in a smaller library less is near by chance
_MOST_SMALL = 2.0  # of the signal; there are 70 passages then
_LEAST_LENGTH = math.log(21)  # of 20 words, the shortest messages of the fit
_MEASURED_CHUNKS = 50  # that the measured mean counts as, beside those of the library
MAX_LOG_ODDS = 2.5  # above it every hit near the best would pass
# Where no text index is available.
_TYPICAL = {"share": math.log(0.35), "weight": 3.2, "lead": 1.5, "length": math.log(60)}


@dataclass(frozen=True, slots=True)
class Background:
    """Mean and deviation of the cosines between questions and messages of unrelated chats."""

    mean: float
    deviation: float

    def of_question(self, cosines: "npt.NDArray[np.floating]") -> "Background":
        """Return a question's background; `cosines` are with a sample of the library's chunks.

        A name that occurs in every message makes all of them near.
        """
        total = float(cosines.sum()) + _MEASURED_CHUNKS * self.mean
        return replace(self, mean=total / (len(cosines) + _MEASURED_CHUNKS))

    def with_sample(self, cosines: "npt.NDArray[np.floating]") -> tuple[float, float]:
        """Return mean and deviation of a question's cosines, those measured and those of a sample."""
        mean = self.of_question(cosines).mean
        squares = float(((cosines - mean) ** 2).sum())
        squares += _MEASURED_CHUNKS * (self.deviation**2 + (self.mean - mean) ** 2)
        deviation = math.sqrt(squares / (len(cosines) + _MEASURED_CHUNKS))
        return mean, max(deviation, MIN_DEVIATION)


@dataclass(frozen=True, slots=True)
class RankingInput:
    """The input of the ranking; `nearness` and `background` are None when only words rank.

    `passages` is about the number of passages searched.
    """

    question: ParsedQuestion
    table: CandidateTable
    nearness: Nearness | None
    background: Background | None
    passages: int


def ranked_with_relevance(found: RankingInput, prior: float = 0.0) -> list[Ranked]:
    """Return the parts best first, with relevance; `prior` is added to its log odds."""
    ranked = rank(found.question, found.table, found.nearness)
    return with_relevance(
        ranked, found.table, found.background, found.passages, prior,
        is_keywords=found.question.is_keywords,
    )  # fmt: skip


def with_relevance(
    ranked: Sequence[Ranked],
    table: CandidateTable,
    background: Background | None,
    passages: int,
    prior: float = 0.0,
    *,
    is_keywords: bool = False,
) -> list[Ranked]:
    """Return a ranking (best first) with relevances, in the same order.

    `passages` is the number of passages searched; `prior` is added to the log odds. Without
    `background` only words count. Keywords have weights of their own: what contains them all is
    nearly always wanted, and each hit loses what it lacks of them.
    """
    if not ranked:
        return []
    asked = "keywords" if is_keywords else "question"
    found = signals(ranked, table, background, passages)
    own = _fitted()["profiles"][profile_of(found, asked)]
    top, best, fall, loss = (
        min(_log_odds(found, own) + prior, MAX_LOG_ODDS),
        ranked[0],
        _fitted()["fall"][asked] * fall_factor(found, asked),
        own.get("holds", 0.0),
    )
    return [
        each.with_relevance(
            sigmoid(top - fall * (best.score - each.score) - loss * lacks(best, each))
        )
        for each in ranked
    ]


def signals(
    ranked: Sequence[Ranked], table: CandidateTable, background: Background | None, passages: int
) -> dict[str, float]:
    """Return the known signals of a ranking that is not empty: those of one of PROFILES."""
    row = {int(part): at for at, part in enumerate(table.parts)}
    best = [row[each.part_id] for each in ranked[: _few(_BEST, passages)]]
    words = Traits.table(table.traits).words[best]
    found = {
        "always": 1.0,
        "share": _word_share(table, best),
        "weight": math.log1p(table.weight),
        "lead": _lead(ranked, table, passages),
        "length": max(_LEAST_LENGTH, float(np.log1p(words).mean())),
        "small": _small(passages),
        "holds": _holds(ranked[0]),
    }
    own = [each.cosine for each in ranked if each.cosine is not None]
    if background is None or not own:
        return found
    matches = [each.tokens for each in ranked[: _few(_BEST, passages)] if each.tokens is not None]
    return (
        found | _nearest(own, background, passages) | ({"tokens": max(matches)} if matches else {})
    )


def answer_log_odds(cosines: Sequence[float], background: Background, passages: int) -> float:
    """Return the log odds of an answer by meaning alone; `cosines` are unordered."""
    found = {"always": 1.0, "small": _small(passages)} | _TYPICAL
    found |= _nearest(cosines or [background.mean], background, passages)
    return _log_odds(found, _fitted()["profiles"]["question_meaning"])


def fall_factor(found: Mapping[str, float], asked: str) -> float:
    """Return how many times faster relevance falls below the best hit with these signals.

    In a small library the candidates of a question are all there is; what lacks no keyword is
    wanted there too.
    """
    return 1.0 if asked == "keywords" else 1 + min(found["small"], _MOST_SMALL)


def lacks(best: Ranked, other: Ranked) -> float:
    """Return how much lower a hit's share of the words is than the best's, in logs; at least 0."""
    return max(0.0, _holds(best) - _holds(other))


def _holds(hit: Ranked) -> float:
    return math.log(_MIN_SHARE + hit.coverage)


def sigmoid(log_odds: float) -> float:
    """Return the probability (0-1) for log odds."""
    small = math.exp(-abs(log_odds))  # never overflows
    return (1.0 if log_odds > 0 else small) / (1 + small)


HIGHEST_RELEVANCE = sigmoid(MAX_LOG_ODDS)


def profile_of(found: Mapping[str, float], asked: str) -> str:
    """Return the first of PROFILES whose signals are known; `asked` is "question" or "keywords"."""
    of_kind = (each for each in PROFILES if each.startswith(asked))
    return next(name for name in of_kind if set(PROFILES[name]) <= found.keys())


def _log_odds(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * found[signal] for signal, weight in weights.items())


def _small(passages: int) -> float:
    return math.log(max(1.0, _SMALL / (_FEW_PASSAGES + passages)))


def _nearest(cosines: Sequence[float], background: Background, passages: int) -> dict[str, float]:
    """Return how far the nearest messages stand out, in deviations of the background."""
    nearest = np.sort(np.asarray(cosines))[::-1][: _few(_NEAREST, passages)]
    above = float(nearest.mean()) - background.mean
    return {"nearest": above / max(background.deviation, MIN_DEVIATION)}


def _lead(ranked: Sequence[Ranked], table: CandidateTable, passages: int) -> float:
    """Return the lead of the best turn's score over the mean of the next ones; 0 for the only one.

    An answer stands out. Where a question is on a common subject and has no answer, many turns are
    as good. Copies of the best message, as of a conversation that was imported twice, are no such
    turns.
    """
    copies = _copies_of_best(ranked, table)
    best: dict[PassageId, float] = {passage_id_of(ranked[0].part_id): ranked[0].score}
    skipped = {passage_id_of(part) for part in copies} - best.keys()
    for each in ranked[1:]:
        if (passage := passage_id_of(each.part_id)) not in skipped:
            best.setdefault(passage, each.score)
        if len(best) > _few(_BEST, passages):
            break
    first, *others = best.values()
    return first - sum(others) / len(others) if others else 0.0


def _copies_of_best(ranked: Sequence[Ranked], table: CandidateTable) -> list[int]:
    """Return the parts with the best hit's text, itself included, judged by words and vectors."""
    first = ranked[0]
    row = int(np.flatnonzero(table.parts == first.part_id)[0])
    alike = (table.traits == table.traits[row]) & (table.coverage == table.coverage[row])
    alike &= np.isclose(table.words, table.words[row], rtol=1e-4)
    parts = {int(part) for part in table.parts[alike]}
    return [
        each.part_id
        for each in ranked
        if each.part_id in parts and _is_same_text(first, each, words=float(table.words[row]))
    ]


def _is_same_text(one: Ranked, other: Ranked, words: float) -> bool:
    """Return whether hits with equal words have equal text; equal texts have equal cosines."""
    if one.cosine is None or other.cosine is None:
        return words > 0
    return abs(one.cosine - other.cosine) < _SAME_COSINE


def _word_share(table: CandidateTable, rows: list[int]) -> float:
    """Return the log of the mean share of the question's words in the contexts of some candidates.

    At least the share in the messages themselves: words that occur in every context have no weight
    there.
    """
    if not table.weight:
        return math.log(_MIN_SHARE)
    found: Numbers = np.maximum(table.context[rows], table.coverage[rows] * table.weight)
    return math.log(_MIN_SHARE + float(found.mean()) / table.reach)


def _few(most: int, passages: int) -> int:
    return max(1, min(most, passages // _PASSAGES_PER_HIT))


@cache
def _fitted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_FITTED_FILE.read_text(encoding="utf-8"))
    return found

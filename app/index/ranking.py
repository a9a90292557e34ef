"""Ranking: a weighted sum of features over the candidates of one query.

A passage gets the score of its best part. Index scores are standardized over the candidates, so the scale
of an index or a space does not matter; the other features enter as they are. How features and weights were
chosen, with figures: `packaging/decisions/0030-ranking.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_PER_PASSAGE, PartId
from app.index.message_traits import Traits
from app.index.question import ParsedQuestion
from app.index.text_schema import speaker_number
from app.index.text_snapshot import CandidateTable, Ids

FEATURES = (
    "words", "context_words", "coverage", "cosine", "context_cosine", "answers_words",
    "answers_cosine", "speaker_named", "time_told", "dated", "asking", "length", "own_side",
    "instruction", "preference",
)  # fmt: skip
WEIGHTS = np.array([0.15, 0.7, 0.35, 0.6, 0.15, 0.1, 0.5, 0.9, 2.4, 2.0, -0.5, 0.8, 0.8, 5.0, 0.8])

_SHORT_WORDS = 60  # words; a shorter message is "short" in proportion
_LENGTH_WORDS = 40
_ANSWERS_SHARE = 0.3  # of the words of the previous message are in questions
_TURN_BONUS = 0.25  # of the best score of the turn's other messages, above the lowest score
_LONG_TURN_BONUS = 0.45  # in long turns, additionally, of the same score minus a good one
_GOOD_QUANTILE = 0.9  # quantile of the scores
_LONG_TURN = (100, 400)  # words: share 0 at the first, 1 at the second
_LEAST_SPREAD = 0.14  # of the query's weight: the usual deviation of BM25 scores
_ROUNDING = 1e-6  # of the largest score: rounding errors between equal scores
_INSTRUCTION_NEAR = 1.5  # deviations above the mean cosine at which an instruction counts in full

Numbers = npt.NDArray[np.float64]
Cosines = Mapping[PartId, float]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One row of a ranking; `cosine` is None without a vector.

    `relevance` is 0-1; 0 until `app.index.relevance` has computed it.
    """

    part_id: PartId
    score: float
    relevance: float
    cosine: float | None
    coverage: float

    def with_relevance(self, relevance: float) -> "Ranked":
        """Return a copy with another relevance; ten times as fast as `replace`."""
        return Ranked(self.part_id, self.score, relevance, self.cosine, self.coverage)


def context_parts(table: CandidateTable) -> frozenset[PartId]:
    """Return the candidates and the parts in their contexts: those whose cosines `rank` needs."""
    ids = np.concatenate([table.parts, table.before.ravel(), table.after.ravel()])
    return frozenset(PartId(int(each)) for each in np.unique(ids) if each)


def rank(
    question: ParsedQuestion, table: CandidateTable, cosines: Cosines | None = None
) -> list[Ranked]:
    """Return the candidates, best first, the newer of equals first.

    Without `cosines` (those of `context_parts`) only words count.
    """
    if not len(table.parts):
        return []
    scores = _with_turn_bonus(table, features(question, table, cosines) @ WEIGHTS)
    order = np.lexsort((-table.parts, -scores))
    return [
        Ranked(
            part_id=(part := PartId(int(table.parts[row]))),
            score=float(scores[row]),
            relevance=0.0,
            cosine=cosines.get(part) if cosines is not None else None,
            coverage=float(table.coverage[row]),
        )
        for row in order
    ]


def _with_turn_bonus(table: CandidateTable, scores: Numbers) -> Numbers:
    """Return the scores plus a share of the best score among the turn's other candidates.

    A turn of which both sides match ranks before one of which one side matches. The share is higher in long
    turns: much of a long message is unrelated to the query.
    """
    least, good = scores.min(), np.quantile(scores, _GOOD_QUANTILE)
    other = _best_others(table.parts // PARTS_PER_PASSAGE, scores, least)
    bonus: Numbers = _TURN_BONUS * (other - least) + _LONG_TURN_BONUS * _turn_lengths(table) * (
        other - good
    )
    return scores + bonus


def _best_others(passages: Ids, scores: Numbers, least: float) -> Numbers:
    """Return for each candidate the best score of the others in its passage, `least` when there are none."""
    order = np.lexsort((-scores, passages))
    ranked, starts = passages[order], np.flatnonzero(np.diff(passages[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    best, second = scores[order[starts]], np.full(len(starts), least)
    second[sizes > 1] = scores[order[starts[sizes > 1] + 1]]
    group = np.searchsorted(ranked[starts], passages)
    is_best = np.zeros(len(passages), bool)
    is_best[order[starts]] = True
    others: Numbers = np.where(is_best, second[group], best[group])
    return others


def _turn_lengths(table: CandidateTable) -> Numbers:
    """Return how long (0-1) each candidate's turn is, counting its candidates' words.

    0 for a passage that is not a turn: a single first part that is not the user's.
    """
    traits, passages = Traits.table(table.traits), table.parts // PARTS_PER_PASSAGE
    _, group, sizes = np.unique(passages, return_inverse=True, return_counts=True)
    words = np.bincount(group, traits.words)[group]
    from_words, to_words = _LONG_TURN
    lengths: Numbers = np.clip((words - from_words) / (to_words - from_words), 0, 1)
    is_first = table.parts == passages * PARTS_PER_PASSAGE
    lengths[(sizes[group] == 1) & is_first & (traits.own_side == 0)] = 0
    return lengths


def features(question: ParsedQuestion, table: CandidateTable, cosines: Cosines | None) -> Numbers:
    """Return the features of the candidates, (n, 15), columns as in FEATURES."""
    traits, before = Traits.table(table.traits), Traits.table(table.asked_traits)
    short = np.clip(1 - traits.words / _SHORT_WORDS, 0, 1)
    answers = before.asking > _ANSWERS_SHARE
    own, around, asked = _cosine_features(table, cosines or {})
    # A minimum spread: if few candidates contain any word, their scores would stand out too far.
    spread = _LEAST_SPREAD * table.weight
    near_in_meaning = _standardized(own)
    columns = [
        _standardized(table.words, spread),
        _standardized(table.context, spread),
        table.coverage,
        near_in_meaning,
        _standardized(around),
        answers * _standardized(table.asked_words, spread, like=table.words),
        answers * _standardized(asked, like=own),
        _speaker_named(question, table),
        short * question.wants_time * traits.tells_time,
        table.dated,
        short * traits.asking,
        np.log1p(np.minimum(traits.words, _LENGTH_WORDS)),
        traits.own_side,
        traits.instructs
        * (not question.looks_back)
        * np.clip(near_in_meaning / _INSTRUCTION_NEAR, 0, 1),
        traits.prefers * (1 + question.wants_advice),
    ]
    return np.stack(columns, axis=1)


def _cosine_features(table: CandidateTable, cosines: Cosines) -> tuple[Numbers, Numbers, Numbers]:
    """Return the cosine of each message, the mean cosine of its context, and that of the previous message.

    NaN for those without a vector; without a context the own cosine stands for it.
    """
    own, before, after = (
        np.array([cosines.get(PartId(each), np.nan) for each in parts.ravel().tolist()]).reshape(
            parts.shape
        )
        for parts in (table.parts, table.before, table.after)
    )
    near = np.concatenate([before, after], axis=1)
    is_known = ~np.isnan(near)
    count = is_known.sum(axis=1)
    mean = np.where(is_known, near, 0.0).sum(axis=1) / np.maximum(1, count)
    is_alone = ~(table.before.any(axis=1) | table.after.any(axis=1))
    around = np.where(is_alone, own, np.where(count > 0, mean, np.nan))
    return own, around, before[:, 0]


def _standardized(values: Numbers, least: float = 0.0, like: Numbers | None = None) -> Numbers:
    """Return values standardized to mean 0 and deviation 1 by the known ones of `like` (None: of themselves).

    The deviation is at least `least`. Unknown values (NaN) become 0, which is neutral.
    """
    scale = values if like is None else like
    known = scale[~np.isnan(scale)]
    deviation = float(known.std()) if len(known) else 0.0
    if deviation <= _ROUNDING * float(np.abs(known).max(initial=0.0)):
        return np.zeros(len(values))
    standardized: Numbers = np.nan_to_num((values - known.mean()) / max(deviation, least))
    return standardized


def _speaker_named(question: ParsedQuestion, table: CandidateTable) -> Numbers:
    """Return 1 for candidates whose speaker the question names, unless it names all speakers."""
    speaking = {int(each) for each in table.speakers if each}
    named = speaking & {speaker_number(name) for name in question.names}
    if not named or named == speaking:
        return np.zeros(len(table.parts))
    return np.isin(table.speakers, list(named)).astype(float)

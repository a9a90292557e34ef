"""Ranking: a weighted sum of features over the candidates of one query.

A passage gets the score of its best part. Index scores are standardized over the candidates, so the
scale of an index or a space does not matter; the other features enter as they are. The weights are
fitted by `packaging/models/fit_ranking.py` and stored in `resources/ranking.json`; figures and
choices: `packaging/decisions/0030-ranking.md`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_PER_PASSAGE, PartId
from app.index.document_writer import label_number
from app.index.message_traits import Traits
from app.index.question import ParsedQuestion
from app.index.text_snapshot import CandidateTable, Ids

FEATURES = (
    "words", "context_words", "coverage", "cosine", "context_cosine", "tokens", "answers_words",
    "answers_cosine", "turn_words", "speaker_named", "time_told", "dated", "asking",
    "own_side", "preference",
)  # fmt: skip

_WEIGHTS_FILE = Path(__file__).resolve().parents[2] / "resources" / "ranking.json"
_SHORT_WORDS = 60  # words; a shorter message is "short" in proportion
_ANSWERS_SHARE = 0.3  # of the words of the previous message are in questions
_LEAST_SPREAD = 0.14  # of the query's weight: the usual deviation of BM25 scores
_RECURRING = 3  # candidates with a label, which is a name then
_ROUNDING = 1e-6  # of the largest score: rounding errors between equal scores

Numbers = npt.NDArray[np.float64]
Cosines = Mapping[PartId, float]


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near messages are to a question in meaning.

    `cosines` are those of the parts of `context_parts` that have a vector. `tokens`, (n,), is how
    well each candidate's best window of tokens matches: 0 as unrelated text, 1 for the same tokens;
    NaN where that is unknown, None where no embedder gives it. `preferences` are the cosines of the
    candidates and the facts from them with the direction of statements of preferences, `request` is how
    likely (0-1) the question asks for something new (`app.index.space_traits`).
    """

    cosines: Cosines
    tokens: Numbers | None = None
    preferences: Cosines = field(default_factory=dict)
    request: float = 1.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """One row of a ranking; `cosine` is None without a vector, `tokens` without token vectors.

    `tokens` is that of `Nearness`. `relevance` is 0-1; 0 until `app.index.relevance` has computed
    it.
    """

    part_id: PartId
    score: float
    relevance: float
    cosine: float | None
    coverage: float
    tokens: float | None = None

    def with_relevance(self, relevance: float) -> "Ranked":
        """Return a copy with another relevance; ten times as fast as `replace`."""
        return Ranked(self.part_id, self.score, relevance, self.cosine, self.coverage, self.tokens)


def context_parts(table: CandidateTable) -> frozenset[PartId]:
    """Return the candidates, the parts in their contexts and the facts from them: those whose cosines `rank` needs."""
    ids = np.concatenate(
        [table.parts, table.before.ravel(), table.after.ravel(), table.facts[:, 1]]
    )
    return frozenset(PartId(int(each)) for each in np.unique(ids) if each)


def rank(
    question: ParsedQuestion, table: CandidateTable, nearness: Nearness | None = None
) -> list[Ranked]:
    """Return the candidates, best first, newer ones before equals; by words without `nearness`."""
    if not len(table.parts):
        return []
    own = weights(question, table, by_meaning=nearness is not None)
    scores = features(question, table, nearness) @ own
    order = np.lexsort((-table.parts, -scores))
    cosines = nearness.cosines if nearness is not None else {}
    tokens = nearness.tokens if nearness is not None else None
    known = np.isfinite(tokens) if tokens is not None else np.zeros(len(order), bool)
    return [
        Ranked(
            part_id=(part := PartId(int(table.parts[row]))),
            score=float(scores[row]),
            relevance=0.0,
            cosine=cosines.get(part),
            coverage=float(table.coverage[row]),
            tokens=float(tokens[row]) if tokens is not None and known[row] else None,
        )
        for row in order
    ]


def weights(question: ParsedQuestion, table: CandidateTable, *, by_meaning: bool) -> Numbers:
    """Return the weights of the features for a question and its candidates.

    There are profiles for questions about talk between people, for those about chats with an
    assistant, for statements and for keywords. The share of candidates with a named speaker mixes
    the first two.
    """
    profiles, kind = _profiles(), "meaning" if by_meaning else "words"
    if question.states or question.is_keywords:
        return profiles[f"{'statement' if question.states else 'keywords'}_{kind}"]
    share = talk_share(table)
    mixed: Numbers = share * profiles[f"talk_{kind}"] + (1 - share) * profiles[f"chat_{kind}"]
    return mixed


def talk_share(table: CandidateTable) -> float:
    """Return the share (0-1) of candidates with a speaker."""
    return float((speakers(table) != 0).mean()) if len(table.parts) else 0.0


def speakers(table: CandidateTable) -> Ids:
    """Return each candidate's speaker as a number, 0 for none: a label that several have."""
    _, group, counts = np.unique(table.labels, return_inverse=True, return_counts=True)
    return np.where(counts[group] >= _RECURRING, table.labels, 0)


@cache
def _profiles() -> Mapping[str, Numbers]:
    fitted = json.loads(_WEIGHTS_FILE.read_text(encoding="utf-8"))["profiles"]
    return {name: np.array([own[feature] for feature in FEATURES]) for name, own in fitted.items()}


def _best_others(passages: Ids, scores: Numbers) -> Numbers:
    """Return for each candidate the best score of the others in its passage, 0 without any."""
    order = np.lexsort((-scores, passages))
    ranked, starts = passages[order], np.flatnonzero(np.diff(passages[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    best, second = scores[order[starts]], np.zeros(len(starts))
    second[sizes > 1] = scores[order[starts[sizes > 1] + 1]]
    group = np.searchsorted(ranked[starts], passages)
    is_best = np.zeros(len(passages), bool)
    is_best[order[starts]] = True
    others: Numbers = np.where(is_best, second[group], best[group])
    return others


def features(question: ParsedQuestion, table: CandidateTable, nearness: Nearness | None) -> Numbers:
    """Return the features of the candidates, (n, 15), columns as in FEATURES."""
    traits, before = Traits.table(table.traits), Traits.table(table.asked_traits)
    short = np.clip(1 - traits.words / _SHORT_WORDS, 0, 1)
    answers = before.asking > _ANSWERS_SHARE
    own, around, asked = _cosine_features(table, nearness.cosines if nearness else {})
    tokens = nearness.tokens if nearness else None
    tokens = np.full(len(table.parts), np.nan) if tokens is None else tokens
    # A minimum spread: if few candidates contain any word, their scores would stand out too far.
    spread = _LEAST_SPREAD * table.weight
    words, cosine = _standardized(table.words, spread), _standardized(own)
    passages, speaking = table.parts // PARTS_PER_PASSAGE, speakers(table)
    in_chat = speaking == 0
    columns = [
        words,
        _standardized(table.context, spread),
        table.coverage,
        cosine,
        _standardized(around),
        _standardized(tokens),
        answers * _standardized(table.asked_words, spread, like=table.words),
        answers * _standardized(asked, like=own),
        in_chat * _best_others(passages, words),
        _speaker_named(question, speaking),
        short * question.wants_time * traits.tells_time,
        table.dated,
        short * traits.asking,
        in_chat * traits.own_side,
        _preference(table, cosine, nearness, in_chat * traits.own_side),
    ]
    return np.stack(columns, axis=1)


def _cosine_features(table: CandidateTable, cosines: Cosines) -> tuple[Numbers, Numbers, Numbers]:
    """Return three cosines of each message: its own, the mean of its context, its predecessor's.

    The own one is that of the nearest fact from it, if that is nearer. NaN for those without a vector; without a context the own cosine stands for it.
    """
    own, before, after, of_facts = (
        np.array([cosines.get(PartId(each), np.nan) for each in parts.ravel().tolist()]).reshape(
            parts.shape
        )
        for parts in (table.parts, table.before, table.after, table.facts[:, 1])
    )
    near = np.concatenate([before, after], axis=1)
    is_known = ~np.isnan(near)
    count = is_known.sum(axis=1)
    mean = np.where(is_known, near, 0.0).sum(axis=1) / np.maximum(1, count)
    is_alone = ~(table.before.any(axis=1) | table.after.any(axis=1))
    around = np.where(is_alone, own, np.where(count > 0, mean, np.nan))
    return table.best(own, of_facts), around, before[:, 0]


def _preference(
    table: CandidateTable, cosine: Numbers, nearness: Nearness | None, own_side: Numbers
) -> Numbers:
    """Return how clearly candidates state preferences, weighted by closeness to the question.

    A preference holds for requests that share no word with it, not for questions about the past.
    Only the user of a chat states them.
    """
    if nearness is None:
        return np.zeros(len(cosine))
    own, of_facts = (
        np.array([nearness.preferences.get(PartId(each), np.nan) for each in parts.tolist()])
        for parts in (table.parts, table.facts[:, 1])
    )
    stated = np.maximum(_standardized(table.best(own, of_facts)), 0)
    found: Numbers = nearness.request * own_side * stated / (1 + np.exp(-cosine))
    return found


def _standardized(values: Numbers, least: float = 0.0, like: Numbers | None = None) -> Numbers:
    """Return values standardized by the known ones of `like` (None: their own).

    The deviation is at least `least`. Unknown values (NaN) become 0, which is neutral.
    """
    scale = values if like is None else like
    known = scale[~np.isnan(scale)]
    deviation = float(known.std()) if len(known) else 0.0
    if deviation <= _ROUNDING * float(np.abs(known).max(initial=0.0)):
        return np.zeros(len(values))
    standardized: Numbers = np.nan_to_num((values - known.mean()) / max(deviation, least))
    return standardized


def _speaker_named(question: ParsedQuestion, speaking: Ids) -> Numbers:
    """Return 1 for candidates whose speaker the question names, unless it names all speakers."""
    known = {int(each) for each in speaking if each}
    named = known & {label_number(name) for name in question.names}
    if not named or named == known:
        return np.zeros(len(speaking))
    return np.isin(speaking, list(named)).astype(float)

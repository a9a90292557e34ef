"""The ranking: words and meaning of a message and its context, and what kind of message it is.

A weighted sum of features over the candidates of one query; a passage takes the score of its best
part. Index scores are standardised over the candidates, so that no scale of an index or a space
matters; the others enter as they are. Why these features and weights, with the figures:
`packaging/decisions/0030-ranking.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_OF_A_PASSAGE, PartId
from app.index.question import Question
from app.index.text_ranking import Ids, Survey
from app.index.text_schema import speaker_number
from app.index.traits import Traits

FEATURES = (
    "words", "context_words", "coverage", "cosine", "context_cosine", "answers_words",
    "answers_cosine", "speaker_named", "time_told", "dated", "asking", "length", "own_side",
    "instruction", "preference",
)  # fmt: skip
WEIGHTS = np.array([0.15, 0.7, 0.35, 0.6, 0.15, 0.1, 0.5, 0.9, 2.4, 2.0, -0.5, 0.8, 0.8, 5.0, 0.8])

_SHORT_WORDS = 60  # a message is short to the degree that it has fewer
_LENGTH_WORDS = 40
_ANSWERS_SHARE = 0.3  # of the words before it stand in questions
_COMPANY = 0.25  # of the score of the best other message in the turn, above the least of all
_LONG_COMPANY = 0.45  # of the same in long turns besides, above or below a good score
_GOOD = 0.9  # of the candidates score less
_LONG_TURN = (100, 400)  # words: from none of it to all
_LEAST_SPREAD = 0.14  # of the query's weight: BM25 scores of candidates seldom deviate by less
_ROUNDING = 1e-6  # of the largest score: equal scores may deviate from their mean by so little
_NEAR = 1.5  # deviations above the mean cosine: a standing order counts when it is about the matter

Numbers = npt.NDArray[np.float64]
Cosines = Mapping[PartId, float]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One line of a ranking; `cosine` is None where no vector took part.

    `relevance` is 0-1: 0 as ranked, until `app.index.evidence` judges the whole ranking.
    """

    part_id: PartId
    score: float
    relevance: float
    cosine: float | None
    coverage: float

    def judged(self, relevance: float) -> "Ranked":
        """Return it with another relevance; `replace` takes ten times as long."""
        return Ranked(self.part_id, self.score, relevance, self.cosine, self.coverage)


def neighbourhood(survey: Survey) -> frozenset[PartId]:
    """Return the candidates and all that stand in their contexts: whose cosines `rank` needs."""
    ids = np.concatenate([survey.parts, survey.before.ravel(), survey.after.ravel()])
    return frozenset(PartId(int(each)) for each in np.unique(ids) if each)


def rank(question: Question, survey: Survey, cosines: Cosines | None = None) -> list[Ranked]:
    """Return the candidates, best first; of equals the newer.

    Without `cosines` (of `neighbourhood`) words alone rank.
    """
    if not len(survey.parts):
        return []
    scores = _with_company(survey, features(question, survey, cosines) @ WEIGHTS)
    order = np.lexsort((-survey.parts, -scores))
    return [
        Ranked(
            part_id=(part := PartId(int(survey.parts[row]))),
            score=float(scores[row]),
            relevance=0.0,
            cosine=cosines.get(part) if cosines is not None else None,
            coverage=float(survey.coverage[row]),
        )
        for row in order
    ]


def _with_company(survey: Survey, scores: Numbers) -> Numbers:
    """Return scores with a share of the best other candidate's of the same passage.

    So a turn both of whose sides fit comes before one that fits by one side alone. In a long turn that
    tells more: much of a long message has nothing to do with what it is found for.
    """
    least, good = scores.min(), np.quantile(scores, _GOOD)
    other = _best_others(survey.parts // PARTS_OF_A_PASSAGE, scores, least)
    company: Numbers = _COMPANY * (other - least) + _LONG_COMPANY * _long(survey) * (other - good)
    return scores + company


def _best_others(passages: Ids, scores: Numbers, least: float) -> Numbers:
    """Return for each candidate the best score of others of its passage, `least` without any."""
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


def _long(survey: Survey) -> Numbers:
    """Return how long (0-1) the turns are by those of their messages that are candidates.

    0 where what is no turn stands alone: a lone first message that is not the user's.
    """
    traits, passages = Traits.table(survey.traits), survey.parts // PARTS_OF_A_PASSAGE
    _, group, sizes = np.unique(passages, return_inverse=True, return_counts=True)
    words = np.bincount(group, traits.words)[group]
    from_words, to_words = _LONG_TURN
    long: Numbers = np.clip((words - from_words) / (to_words - from_words), 0, 1)
    is_first = survey.parts == passages * PARTS_OF_A_PASSAGE
    long[(sizes[group] == 1) & is_first & (traits.own_side == 0)] = 0
    return long


def features(question: Question, survey: Survey, cosines: Cosines | None) -> Numbers:
    """Return the features of the candidates, (n, 15), columns as in FEATURES."""
    traits, before = Traits.table(survey.traits), Traits.table(survey.asked_traits)
    short = np.clip(1 - traits.words / _SHORT_WORDS, 0, 1)
    answers = before.asking > _ANSWERS_SHARE
    own, around, asked = _meanings(survey, cosines)
    # Where hardly a candidate holds any of the words, one that does would stand out beyond measure.
    spread = _LEAST_SPREAD * survey.weight
    near_in_meaning = _standardised(own)
    columns = [
        _standardised(survey.words, spread),
        _standardised(survey.context, spread),
        survey.coverage,
        near_in_meaning,
        _standardised(around),
        answers * _standardised(survey.asked_words, spread, like=survey.words),
        answers * _standardised(asked, like=own),
        _speaker_named(question, survey),
        short * question.wants_time * traits.tells_time,
        survey.dated,
        short * traits.asking,
        np.log1p(np.minimum(traits.words, _LENGTH_WORDS)),
        traits.own_side,
        traits.instructs * (not question.looks_back) * np.clip(near_in_meaning / _NEAR, 0, 1),
        traits.prefers * (1 + question.wants_advice),
    ]
    return np.stack(columns, axis=1)


def _meanings(survey: Survey, cosines: Cosines | None) -> tuple[Numbers, Numbers, Numbers]:
    """Return the cosines of each message, the mean of its neighbours' and that of the one before.

    A message without a vector counts as the least of those that have one.
    """
    if not cosines:
        nothing = np.zeros(len(survey.parts))
        return nothing, nothing, nothing
    least = min(cosines.values())
    near = np.concatenate([survey.before, survey.after], axis=1)
    own = _looked_up(cosines, survey.parts, least)
    stands = near != 0
    total = np.where(stands, _looked_up(cosines, near, least), 0.0).sum(axis=1)
    around = np.where(stands.any(axis=1), total / np.maximum(1, stands.sum(axis=1)), own)
    return own, around, _looked_up(cosines, survey.before[:, 0], least)


def _looked_up(cosines: Cosines, parts: Ids, otherwise: float) -> Numbers:
    """Return the cosines of parts in their shape; `otherwise` for those that have none."""
    found = [cosines.get(PartId(each), otherwise) for each in parts.ravel().tolist()]
    return np.array(found).reshape(parts.shape)


def _standardised(values: Numbers, least: float = 0.0, like: Numbers | None = None) -> Numbers:
    """Return values on the scale of `like` (None: their own): mean 0, deviation 1.

    A deviation smaller than `least` counts as that.
    """
    scale = values if like is None else like
    deviation = float(scale.std())
    is_flat = deviation <= _ROUNDING * float(np.abs(scale).max())
    return np.zeros(len(values)) if is_flat else (values - scale.mean()) / max(deviation, least)


def _speaker_named(question: Question, survey: Survey) -> Numbers:
    """Mark whose speaker is among those the question names, unless it names all there are."""
    speaking = {int(each) for each in survey.speakers if each}
    named = speaking & {speaker_number(name) for name in question.names}
    if not named or named == speaking:
        return np.zeros(len(survey.parts))
    return np.isin(survey.speakers, list(named)).astype(float)

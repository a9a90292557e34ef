"""Whether what was found answers the question at all: a relevance that recall can be decided by.

A ranking always has a best hit. What tells an answer from the best of nothing is how far the nearest
messages stand out from the background of their space, how much of the question their contexts hold,
and among how many passages that had to be found: in a large library something is always near. The
best hit gets the likelihood that there is an answer, each other less by what its score falls short.
How it was fitted, and how well it does: packaging/decisions/0032-recall-threshold.md.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from app.index.calibration import LEAST_DEVIATION, Background, sigmoid
from app.index.text_ranking import Survey

if TYPE_CHECKING:
    from app.index.ranking import Cosines, Numbers, Ranked

_NEAREST = 10  # messages, whose mean nearness counts beside that of the nearest alone
_NEAREST_SHARE = 0.55
_BEST = 5  # hits whose share of the question's words counts
_ONE_IN = 25  # passages is taken for either, at most: of few, most are about other things
_LEAST_SHARE = 0.05
_FEW_PASSAGES = 10
_MANY_PASSAGES = 20_000  # fitted from 5 to 2,900: what a hundred thousand do is not known

_BIAS, _NEARNESS, _SHARE, _PASSAGES = -0.42, 1.77, 3.67, -1.0
_WORDS_BIAS, _WORDS_SHARE, _WORDS_PASSAGES = 5.4, 6.4, -0.5
_SUREST = 3.0  # log odds: beyond them, all would pass that is anywhere near the best
_FALL = 0.6  # of the log odds, for each unit that a score is below the best

_TYPICAL_SHARE = 0.3  # of the words, where there is no index to ask


def judged(
    ranked: Sequence["Ranked"],
    survey: Survey,
    cosines: "Cosines | None",
    background: Background | None,
    passages: int,
    prior: float = 0.0,
) -> list["Ranked"]:
    """Return a ranking (best first) with relevances, 0-1, in its own order.

    `passages` is how many could have been found, `prior` log odds to be added. Without `cosines`
    words alone judge.
    """
    if not ranked:
        return []
    share = _share_of_best(ranked, survey, passages)
    if cosines and background is not None:
        own = [found for each in ranked if (found := cosines.get(each.part_id)) is not None]
        odds = log_odds(own, share, background, passages)
    else:
        odds = _WORDS_BIAS + _WORDS_SHARE * share + _WORDS_PASSAGES * _size(passages)
    sure, best = min(odds + prior, _SUREST), ranked[0].score
    return [each.judged(sigmoid(sure - _FALL * (best - each.score))) for each in ranked]


def log_odds(
    cosines: Sequence[float], share: float, background: Background, passages: int
) -> float:
    """Return the log odds that there is an answer; `cosines` are the messages', in any order.

    `share` is the log of the question's share, as `_share_of_best` gives it.
    """
    return (
        _BIAS
        + _NEARNESS * _nearness(cosines, background, passages)
        + _SHARE * share
        + _PASSAGES * _size(passages)
    )


def typical_share() -> float:
    """Return what stands for the share of the words where no index can be asked."""
    return math.log(_LEAST_SHARE + _TYPICAL_SHARE)


def _nearness(cosines: Sequence[float], background: Background, passages: int) -> float:
    """Return how far the nearest stand out, in deviations of the background."""
    if not cosines:
        return 0.0
    deviation = max(background.deviation, LEAST_DEVIATION)
    nearest = np.sort(np.asarray(cosines))[::-1][: _few(_NEAREST, passages)]
    mixed = _NEAREST_SHARE * nearest.mean() + (1 - _NEAREST_SHARE) * nearest[0]
    return float((mixed - background.mean) / deviation)


def _share_of_best(ranked: Sequence["Ranked"], survey: Survey, passages: int) -> float:
    """Return the log of the mean share of the question's words in the best hits' contexts.

    At least that in the hits themselves: what stands in every context has no weight there.
    """
    if not survey.weight:
        return math.log(_LEAST_SHARE)
    row = {int(part): at for at, part in enumerate(survey.parts)}
    best = [row[each.part_id] for each in ranked[: _few(_BEST, passages)]]
    shares: Numbers = np.maximum(survey.context[best] / survey.weight, survey.coverage[best])
    return math.log(_LEAST_SHARE + float(shares.mean()))


def _few(most: int, passages: int) -> int:
    return max(1, min(most, passages // _ONE_IN))


def _size(passages: int) -> float:
    return math.log(_FEW_PASSAGES + min(passages, _MANY_PASSAGES))

"""Relevance for recall: sure where something stands out, unsure of the best of nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import PartId
from app.index.calibration import Background
from app.index.evidence import judged
from app.index.ranking import Ranked
from app.index.text_ranking import Survey

BACKGROUND = Background(0.06, 0.08)
COUNT = 30


def survey(shares: list[float]) -> Survey:
    """Return a survey in which the parts' contexts hold these shares of the question."""
    count = len(shares)
    nothing, none = np.zeros(count), np.zeros((count, 3), np.int64)
    return Survey(
        parts=np.arange(1, count + 1), words=nothing, context=np.array(shares) * 10, coverage=nothing,
        traits=np.zeros(count, np.int64), speakers=np.zeros(count, np.int64), before=none, after=none,
        asked_words=nothing, asked_traits=np.zeros(count, np.int64), dated=nothing, weight=10.0,
    )  # fmt: skip


def relevances(
    cosine: float, share: float, passages: int = 500, *, by_meaning: bool = True, scale: float = 1.0
) -> list[float]:
    """Return relevances where some hits are near by so much and the rest is background."""
    near = [cosine] * 3 + [0.1] * (COUNT - 3)
    cosines = {PartId(n + 1): scale * each for n, each in enumerate(near)}
    ranked = [
        Ranked(PartId(n + 1), 5 - n / 5, 0.0, cosines[PartId(n + 1)], 0.0) for n in range(COUNT)
    ]
    background = Background(scale * BACKGROUND.mean, scale * BACKGROUND.deviation)
    found = judged(
        ranked, survey([share] * 5 + [0.05] * (COUNT - 5)), cosines if by_meaning else None,
        background if by_meaning else None, passages,
    )  # fmt: skip
    assert [replace(each, relevance=0.0) for each in found] == ranked
    return [each.relevance for each in found]


def test_what_stands_out_is_relevant_and_the_best_of_nothing_is_not() -> None:
    assert relevances(0.7, 0.7)[0] > 0.75
    assert relevances(0.25, 0.15)[0] < 0.2
    assert relevances(0.0, 0.8, by_meaning=False)[0] > 0.7
    assert relevances(0.0, 0.2, by_meaning=False)[0] < 0.2


@pytest.mark.parametrize("by_meaning", [True, False])
def test_in_a_large_library_more_is_asked_of_a_hit(by_meaning: bool) -> None:
    found = [relevances(0.5, 0.5, size, by_meaning=by_meaning)[0] for size in (50, 500, 5000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_of_very_few_passages_one_may_answer_alone() -> None:
    cosines = {PartId(1): 0.6, PartId(2): 0.0, PartId(3): 0.0}
    ranked = [Ranked(PartId(n), 4.0 - n, 0.0, cosines[PartId(n)], 0.0) for n in (1, 2, 3)]
    best, *others = judged(ranked, survey([0.6, 0.0, 0.0]), cosines, BACKGROUND, 3)
    assert best.relevance > 0.7
    assert all(each.relevance < best.relevance for each in others)


@pytest.mark.parametrize("passages", [10, 30, 75])
def test_in_a_small_library_on_many_matters_one_turn_is_enough(passages: int) -> None:
    cosines = {PartId(n): 0.55 if n < 3 else 0.05 for n in range(1, 11)}
    ranked = [Ranked(PartId(n), 4.0 - n, 0.0, cosines[PartId(n)], 0.0) for n in range(1, 11)]
    asked = survey([0.6, 0.6] + [0.0] * 8)
    best, *others = judged(ranked, asked, cosines, BACKGROUND, passages)
    assert best.relevance > 0.7
    assert others[-1].relevance < 0.1


@given(
    cosine=st.floats(-1, 1), share=st.floats(0, 3), passages=st.integers(1, 10**7),
    by_meaning=st.booleans(),
)  # fmt: skip
def test_relevance_keeps_the_order_and_is_never_certain(
    cosine: float, share: float, passages: int, by_meaning: bool
) -> None:
    found = relevances(cosine, share, passages, by_meaning=by_meaning)
    assert found == sorted(found, reverse=True)
    assert all(0 <= each < 0.96 for each in found)


@given(scale=st.floats(0.2, 4))
def test_relevance_means_the_same_in_every_space(scale: float) -> None:
    assert relevances(0.4, 0.4, scale=scale) == pytest.approx(relevances(0.4, 0.4))


def test_nothing_found_is_nothing_judged() -> None:
    assert judged([], survey([]), {}, BACKGROUND, 100) == []

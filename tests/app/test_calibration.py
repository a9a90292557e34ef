"""Relevance means the same for every embedder: measured backgrounds, and the curve over them."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled
from app.domain.passages import Space
from app.index import calibration
from app.index.calibration import Background, measured, relevance, relevance_by_words
from app.providers.local_embedder import LocalEmbedder

BUILT_IN_FOLDER = Path(__file__).parents[2] / "resources" / "models" / "all-MiniLM-L6-v2"
BUILT_IN = Background(0.062, 0.086)
COSINES = st.floats(-1, 1)
SHARES = st.floats(0, 1)


class Drawn:
    """An embedder that gives each text a place by chance, all of them `alike` to some degree."""

    space = Space("drawn", 64, 256)

    def __init__(self, alike: float) -> None:
        self._alike = alike

    def embed(
        self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None
    ) -> npt.NDArray[np.float32]:
        if cancelled is not None and cancelled():
            raise Cancelled("Embedding was stopped")
        drawn = np.random.default_rng(1).standard_normal((len(texts), 64)).astype(np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        drawn = drawn * (1 - self._alike) + np.eye(1, 64, dtype=np.float32) * self._alike
        unit: npt.NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return unit

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> Sequence[tuple[int, int]]:
        return [(0, len(text))]


def test_the_built_in_space_has_the_background_that_relevance_was_fitted_to() -> None:
    found = measured(LocalEmbedder(BUILT_IN_FOLDER))
    assert found.mean == pytest.approx(BUILT_IN.mean, abs=0.004)
    assert found.deviation == pytest.approx(BUILT_IN.deviation, abs=0.004)


def test_a_space_where_all_is_near_gives_the_same_relevance_to_what_stands_out_as_far() -> None:
    wide, narrow = measured(Drawn(0.0)), measured(Drawn(0.5))
    assert narrow.mean > 0.3 > 0.1 > abs(wide.mean)
    far_out = [each.mean + 6 * each.deviation for each in (wide, narrow)]
    assert relevance(far_out[0], 0.2, wide) == pytest.approx(relevance(far_out[1], 0.2, narrow))


def test_an_embedder_that_finds_everything_alike_breaks_nothing() -> None:
    flat = measured(Drawn(1.0))
    assert 0 <= relevance(1.0, 0.5, flat) <= 1


def test_measuring_can_be_stopped() -> None:
    with pytest.raises(Cancelled):
        measured(Drawn(0.0), cancelled=lambda: True)


def test_every_topic_has_questions_and_messages_and_no_text_comes_twice() -> None:
    questions, messages = calibration._read_talk()
    assert (len(questions), len(messages)) == (60, 120)
    assert set(Counter(topic for topic, _ in questions).values()) == {2}
    assert set(Counter(topic for topic, _ in messages).values()) == {4}
    assert len({text for _, text in questions + messages}) == 180


def test_relevance_at_the_fitted_points() -> None:
    assert relevance(0.062, 0.0, BUILT_IN) == pytest.approx(0.0299, abs=1e-4)
    assert relevance(0.062 + 0.086 * 5, 0.6, BUILT_IN) == pytest.approx(0.4850, abs=1e-3)
    assert relevance_by_words(0.0) == pytest.approx(0.1279, abs=1e-4)
    assert relevance_by_words(1.0) == pytest.approx(0.7875, abs=1e-3)


@given(COSINES, COSINES, SHARES, SHARES)
def test_more_of_either_never_means_less(
    cosine: float, other: float, share: float, other_share: float
) -> None:
    low, high = sorted((cosine, other))
    few, many = sorted((share, other_share))
    assert 0 <= relevance(low, few, BUILT_IN) <= relevance(high, many, BUILT_IN) <= 1
    assert 0 <= relevance_by_words(few) <= relevance_by_words(many) <= 1


@given(COSINES, SHARES, st.floats(-1, 1), st.floats(0, 1))
def test_no_background_makes_it_fail(
    cosine: float, share: float, mean: float, deviation: float
) -> None:
    assert 0 <= relevance(cosine, share, Background(mean, deviation)) <= 1

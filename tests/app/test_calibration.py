"""Relevance means the same for every embedder: their backgrounds are measured."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.domain.errors import Cancelled
from app.domain.passages import Space
from app.index import calibration
from app.index.calibration import Background, measured
from app.index.evidence import log_odds, typical_share
from app.providers.local_embedder import LocalEmbedder

BUILT_IN_FOLDER = Path(__file__).parents[2] / "resources" / "models" / "all-MiniLM-L6-v2"
BUILT_IN = Background(0.062, 0.086)
PASSAGES = 500


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
    odds = [
        log_odds([cosine], typical_share(), background, PASSAGES)
        for cosine, background in zip(far_out, (wide, narrow), strict=True)
    ]
    assert odds[0] == pytest.approx(odds[1])


def test_an_embedder_that_finds_everything_alike_breaks_nothing() -> None:
    flat = measured(Drawn(1.0))
    assert np.isfinite(log_odds([1.0], typical_share(), flat, PASSAGES))


def test_measuring_can_be_stopped() -> None:
    with pytest.raises(Cancelled):
        measured(Drawn(0.0), cancelled=lambda: True)


def test_every_topic_has_questions_and_messages_and_no_text_comes_twice() -> None:
    questions, messages = calibration._read_talk()
    assert (len(questions), len(messages)) == (60, 120)
    assert set(Counter(topic for topic, _ in questions).values()) == {2}
    assert set(Counter(topic for topic, _ in messages).values()) == {4}
    assert len({text for _, text in questions + messages}) == 180

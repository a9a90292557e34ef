"""Relevance: the background of a space, and the likelihood of an answer."""

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Cancelled
from app.domain.ids import PartId, part_id
from app.index.message_traits import Traits
from app.index.ranking import Ranked
from app.index.relevance import Background, answer_log_odds, with_relevance
from app.index.space_traits import SpaceTraits, measure_space, read_lines, read_samples
from app.index.text_snapshot import CandidateTable
from app.providers.embedders.local import LocalEmbedder
from tests.fakes.embedders import BagOfWords

BACKGROUND = Background(0.06, 0.08)
COUNT = 30
WORDS = 25


def candidate_table(shares: list[float]) -> CandidateTable:
    """Return a table in which the parts' contexts hold these shares of the question."""
    count = len(shares)
    nothing, none = np.zeros(count), np.zeros((count, 3), np.int64)
    return CandidateTable(
        parts=np.arange(1, count + 1), words=nothing, context=np.array(shares) * 10, coverage=nothing,
        traits=np.full(count, Traits(WORDS).packed()), labels=np.zeros(count, np.int64), before=none, after=none,
        asked_words=nothing, asked_traits=np.zeros(count, np.int64), dated=nothing, weight=10.0, reach=10.0,
    )  # fmt: skip


def relevances(
    cosine: float, share: float, passages: int = 500, *, by_meaning: bool = True, scale: float = 1.0
) -> list[float]:
    """Return relevances where some hits are near by so much and the rest is background."""
    near = [cosine] * 6 + [0.1] * (COUNT - 6)
    cosines = {PartId(n + 1): scale * (each - n / 1e5) for n, each in enumerate(near)}
    ranked = [
        Ranked(PartId(n + 1), 5 - n / 5, 0.0, cosines[PartId(n + 1)], 0.0) for n in range(COUNT)
    ]
    background = Background(scale * BACKGROUND.mean, scale * BACKGROUND.deviation)
    found = with_relevance(
        ranked, candidate_table([share] * 5 + [0.05] * (COUNT - 5)),
        background if by_meaning else None, passages,
    )  # fmt: skip
    assert [replace(each, relevance=0.0) for each in found] == ranked
    return [each.relevance for each in found]


def test_a_near_best_hit_is_relevant_and_a_far_one_is_not() -> None:
    assert relevances(0.7, 0.7)[0] > 0.75
    assert relevances(0.25, 0.15)[0] < 0.2
    assert relevances(0.0, 0.9, 50, by_meaning=False)[0] > 0.7
    assert relevances(0.0, 0.2, by_meaning=False)[0] < 0.2
    assert with_relevance([], candidate_table([]), BACKGROUND, 100) == []


def test_matching_tokens_make_a_hit_more_relevant_and_missing_ones_do_not_count() -> None:
    def best_of(*tokens: float | None) -> float:
        ranked = [Ranked(PartId(n + 1), 5 - n, 0.0, 0.4, 0.0, own) for n, own in enumerate(tokens)]
        table = candidate_table([0.4] * len(ranked))
        return with_relevance(ranked, table, BACKGROUND, 500)[0].relevance

    assert best_of(0.1, None) < best_of(None, 0.4) < best_of(0.7, 0.4)
    assert 0 < best_of(None, None) < 1


def test_of_keywords_every_message_with_all_of_them_is_relevant_and_no_other() -> None:
    holds = [1.0, 1.0, 1.0, 0.5] + [0.0] * (COUNT - 4)
    ranked = [Ranked(PartId(at + 1), 5 - at / 20, 0.0, 0.1, held) for at, held in enumerate(holds)]
    table = candidate_table([1.0] * 5 + [0.0] * (COUNT - 5))
    found = with_relevance(ranked, table, BACKGROUND, 500, is_keywords=True)
    assert [each.relevance > 0.65 for each in found] == [True] * 3 + [False] * (COUNT - 3)
    bare = [replace(each, coverage=0.0) for each in ranked]
    assert with_relevance(bare, table, BACKGROUND, 500, is_keywords=True)[0].relevance < 0.2


def test_a_question_that_is_near_everything_has_a_higher_background() -> None:
    common = BACKGROUND.of_question(np.full(500, 0.3))
    assert 0.25 < common.mean < 0.3
    assert common.deviation == BACKGROUND.deviation
    few = BACKGROUND.of_question(np.full(5, 0.3))
    assert few.mean == pytest.approx(BACKGROUND.mean, abs=0.03), "a few messages tell little"
    assert BACKGROUND.of_question(np.empty(0)) == BACKGROUND


@pytest.mark.parametrize("passages", [10, 30, 75])
def test_one_turn_is_enough_in_a_small_library(passages: int) -> None:
    cosines = {PartId(n): 0.55 if n < 3 else 0.05 for n in range(1, 11)}
    ranked = [
        Ranked(PartId(n), 4.0 - n, 0.0, cosines[PartId(n)], 0.0, cosines[PartId(n)])
        for n in range(1, 11)
    ]
    asked = candidate_table([0.6, 0.6] + [0.0] * 8)
    best, *others = with_relevance(ranked, asked, BACKGROUND, passages)
    assert best.relevance > 0.7
    assert others[-1].relevance < 0.1


@pytest.mark.parametrize("by_meaning", [True, False])
def test_copies_of_the_best_turn_do_not_lower_its_relevance(by_meaning: bool) -> None:
    def best_of(copies: int) -> float:
        count = copies + 10
        parts = [part_id(n + 1, 0) for n in range(count)]
        rest = np.maximum(np.arange(count) - copies + 1, 0)  # 0 for the copies
        ranked = [
            Ranked(part, 4.0 - 3 * (n > 0) - n / 10, 0.0, 0.3 - n / 1e4, 0.4)
            for part, n in zip(parts, rest.tolist(), strict=True)
        ]
        table = replace(
            candidate_table([0.4] * count), parts=np.array(parts), words=3 - rest / 100.0
        )
        return with_relevance(ranked, table, BACKGROUND if by_meaning else None, 2000)[0].relevance

    assert best_of(4) == pytest.approx(best_of(1), abs=0.01)


@given(
    cosine=st.floats(-1, 1), share=st.floats(0, 3), passages=st.integers(1, 10**7),
    by_meaning=st.booleans(),
)  # fmt: skip
def test_relevance_keeps_the_order_and_stays_below_1(
    cosine: float, share: float, passages: int, by_meaning: bool
) -> None:
    found = relevances(cosine, share, passages, by_meaning=by_meaning)
    assert found == sorted(found, reverse=True)
    assert all(0 <= each < 0.96 for each in found)


@given(scale=st.floats(0.2, 4))
def test_relevance_does_not_depend_on_the_scale_of_a_space(scale: float) -> None:
    assert relevances(0.4, 0.4, scale=scale) == pytest.approx(relevances(0.4, 0.4))


MODELS = Path(__file__).parents[3] / "resources" / "models"
BUILT_IN_FOLDER = MODELS / "all-MiniLM-L6-v2"
BUILT_IN = Background(0.062, 0.086)
PASSAGES = 500


class Drawn(BagOfWords):
    """An embedder with random vectors that are `alike` (0-1) to some degree."""

    def __init__(self, alike: float) -> None:
        super().__init__("drawn", 64, 256)
        self.spoil = lambda vectors, _: _random_units(len(vectors), alike)


def _random_units(count: int, alike: float) -> npt.NDArray[np.float32]:
    drawn = np.random.default_rng(1).standard_normal((count, 64)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn = drawn * (1 - alike) + np.eye(1, 64, dtype=np.float32) * alike
    unit: npt.NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


@cache
def measured(model: str) -> tuple[LocalEmbedder, SpaceTraits]:
    """Return a built-in model and the traits of its space, which take a second."""
    embedder = LocalEmbedder(MODELS / model)
    return embedder, measure_space(embedder)


def test_the_built_in_space_has_the_background_of_the_fit() -> None:
    found = measured(BUILT_IN_FOLDER.name)[1].background
    assert found.mean == pytest.approx(BUILT_IN.mean, abs=0.004)
    assert found.deviation == pytest.approx(BUILT_IN.deviation, abs=0.004)


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "multilingual-e5-small"])
def test_an_answer_stands_out_as_far_in_each_built_in_space(model: str) -> None:
    embedder, traits = measured(model)
    background = traits.background
    questions, messages = read_samples()
    cosines = embedder.embed([text for _, text in questions], as_queries=True) @ (
        embedder.embed([text for _, text in messages]).T
    )
    nearest = [
        max(row[at] for at, (topic, _) in enumerate(messages) if topic == asked)
        for row, (asked, _) in zip(cosines, questions, strict=True)
    ]
    out = (np.mean(nearest) - background.mean) / background.deviation
    assert out == pytest.approx(3.3, abs=0.3)


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "multilingual-e5-small"])
def test_tokens_of_unrelated_messages_match_as_the_models_say(model: str) -> None:
    embedder = measured(model)[0]
    questions, messages = (each[::6] for each in read_samples())
    _, asked = embedder.embed_with_tokens([text for _, text in questions], as_queries=True)
    _, said = embedder.embed_with_tokens([text for _, text in messages])
    matches = [
        (one.vectors @ other.vectors.T).max(axis=1).mean()
        for (topic, _), one in zip(questions, asked, strict=True)
        for (of_other, _), other in zip(messages, said, strict=True)
        if topic != of_other
    ]
    assert np.mean(matches) == pytest.approx(embedder.unrelated_tokens, abs=0.02)


@pytest.mark.parametrize(
    ("model", "stated", "others"),
    [
        (
            "all-MiniLM-L6-v2",
            ["Please answer in French from now on.", "I'd rather sit by the window than outside."],
            ["The train was late and I missed the ferry.", "What does the third error mean?"],
        ),
        (
            "multilingual-e5-small",
            ["Bitte antworte ab jetzt immer kurz.", "我更喜欢坐靠窗的位置。"],
            ["Der Zug kam zu spät.", "昨天我们在公园里看到一只刺猬。"],
        ),
    ],
)
def test_the_direction_of_preferences_finds_those_of_other_topics_and_languages(
    model: str, stated: list[str], others: list[str]
) -> None:
    embedder, traits = measured(model)
    near = embedder.embed([*stated, *others]) @ np.array(traits.preference)
    assert near[:2].min() > near[2:].max()


@pytest.mark.parametrize(
    ("model", "new", "past"),
    [
        (
            "all-MiniLM-L6-v2",
            ["Suggest a soup for tonight", "How do I sharpen a knife?"],
            ["Which soup did I like so much?", "When did we buy the knife?"],
        ),
        (
            "multilingual-e5-small",
            ["Schreib mir bitte ein Gedicht über Katzen", "推荐几本适合旅行时看的小说"],
            ["Wann war ich zuletzt beim Zahnarzt?", "我上次和妈妈说了什么?"],
        ),
    ],
)
def test_requests_are_told_from_questions_about_the_past(
    model: str, new: list[str], past: list[str]
) -> None:
    embedder, traits = measured(model)
    likely = [
        traits.request_likelihood(vector)
        for vector in embedder.embed([*new, *past], as_queries=True)
    ]
    assert min(likely[:2]) > max(likely[2:])


def test_a_dense_space_gives_the_same_odds_at_the_same_deviation() -> None:
    wide, narrow = (measure_space(Drawn(alike)).background for alike in (0.0, 0.5))
    assert narrow.mean > 0.3 > 0.1 > abs(wide.mean)
    far_out = [each.mean + 6 * each.deviation for each in (wide, narrow)]
    odds = [
        answer_log_odds([cosine], background, PASSAGES)
        for cosine, background in zip(far_out, (wide, narrow), strict=True)
    ]
    assert odds[0] == pytest.approx(odds[1])


def test_the_background_is_that_of_questions_and_messages() -> None:
    embedder = Drawn(0.0)
    measure_space(embedder)
    questions, _ = read_samples()
    assert embedder.queries == [*(text for _, text in questions), *read_lines("requests")]


def test_equal_vectors_give_finite_odds_and_measuring_can_be_cancelled() -> None:
    flat = measure_space(Drawn(1.0)).background
    assert np.isfinite(answer_log_odds([1.0], flat, PASSAGES))
    assert np.isfinite(answer_log_odds([], flat, PASSAGES))
    with pytest.raises(Cancelled):
        measure_space(Drawn(0.0), cancelled=lambda: True)


def test_every_topic_has_questions_and_messages_and_each_text_is_unique() -> None:
    questions, messages = read_samples()
    assert (len(questions), len(messages)) == (60, 120)
    assert set(Counter(topic for topic, _ in questions).values()) == {2}
    assert set(Counter(topic for topic, _ in messages).values()) == {4}
    assert len({text for _, text in questions + messages}) == 180

"""The ranking: each feature moves a message the way its name says, and nothing unsettles it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import PartId, part_id
from app.index.question import Question, read_question
from app.index.ranking import FEATURES, WEIGHTS, Ranked, features, neighbourhood, rank
from app.index.text_ranking import Survey
from app.index.text_schema import speaker_number
from app.index.traits import NEAR, Traits

PLAIN = Traits(20)
ASKS = Traits(8, asking=1.0)
QUESTION = read_question("where is the rake")

OLD, NEW, OTHER = (part_id(number, 0) for number in (1, 2, 3))


def surveyed(*rows: Mapping[str, Any]) -> Survey:
    """Return a survey of rows that say in what they differ from a plain message."""

    def column(name: str, otherwise: Any) -> list[Any]:
        return [row.get(name, otherwise) for row in rows]

    def near(name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        ids = [list(row.get(name, ())) for row in rows]
        padded = [each + [0] * (NEAR - len(each)) for each in ids]
        return np.array(padded, np.int64).reshape(len(rows), NEAR)

    return Survey(
        parts=np.array(column("part", 0), np.int64),
        words=np.array(column("words", 1.0), float),
        context=np.array(column("context", 1.0), float),
        coverage=np.array(column("coverage", 0.5), float),
        traits=np.array([each.packed() for each in column("traits", PLAIN)], np.int64),
        speakers=np.array([speaker_number(each) for each in column("speaker", "")], np.int64),
        before=near("before"),
        after=near("after"),
        asked_words=np.array(column("asked_words", 0.0), float),
        asked_traits=np.array([each.packed() for each in column("asked", Traits(0))], np.int64),
        dated=np.array(column("dated", 0.0), float),
        weight=4.0,
    )


def order(
    survey: Survey, question: Question = QUESTION, cosines: Mapping[PartId, float] | None = None
) -> list[int]:
    return [each.part_id for each in rank(question, survey, cosines)]


def test_each_weight_has_its_feature() -> None:
    survey = surveyed({"part": OLD}, {"part": NEW})
    assert features(QUESTION, survey, None).shape == (2, len(FEATURES)) == (2, len(WEIGHTS))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"words": 2.0}, {}),
        ({"context": 2.0}, {}),
        ({"coverage": 1.0}, {}),
        ({"asked": ASKS, "asked_words": 3.0}, {"asked_words": 3.0}),
        ({"traits": Traits(20)}, {"traits": Traits(20, asking=1.0)}),
        ({"traits": Traits(39)}, {"traits": Traits(3)}),
        ({"traits": Traits(20, own_side=True)}, {}),
        ({"traits": Traits(20, prefers=True)}, {}),
        ({"dated": 1.0}, {"dated": 0.3}),
    ],
    ids=[
        "words",
        "context",
        "coverage",
        "answers",
        "asking",
        "length",
        "own side",
        "preference",
        "date",
    ],
)
def test_what_speaks_for_a_message_lifts_it(
    better: Mapping[str, Any], worse: Mapping[str, Any]
) -> None:
    """The better one is the older, so that a tie would lose."""
    rest = {"part": OTHER, "words": 0.5, "context": 0.5, "coverage": 0.0}
    survey = surveyed({"part": OLD, **better}, {"part": NEW, **worse}, rest)
    ranked = order(survey)
    assert ranked.index(OLD) < ranked.index(NEW)


@pytest.mark.parametrize(
    ("cosines", "asked"),
    [
        ({OLD: 0.8, NEW: 0.2, OTHER: 0.1}, {}),
        ({OLD: 0.2, NEW: 0.2, OTHER: 0.1, part_id(7, 0): 0.9, part_id(8, 0): 0.0}, {}),
        ({OLD: 0.2, NEW: 0.2, OTHER: 0.1, part_id(7, 0): 0.9, part_id(8, 0): 0.0}, {"asked": ASKS}),
    ],
    ids=["cosine", "context cosine", "answers cosine"],
)
def test_nearness_in_meaning_lifts_a_message(
    cosines: Mapping[PartId, float], asked: Mapping[str, Any]
) -> None:
    survey = surveyed(
        {"part": OLD, "before": (part_id(7, 0),), **asked},
        {"part": NEW, "before": (part_id(8, 0),), **asked},
        {"part": OTHER},
    )
    ranked = order(survey, QUESTION, cosines)
    assert ranked.index(OLD) < ranked.index(NEW)


def column(name: str, survey: Survey, question: Question, cosines: Any = None) -> list[float]:
    values: list[float] = features(question, survey, cosines)[:, FEATURES.index(name)].tolist()
    return values


def test_a_time_counts_only_where_the_question_asks_for_one() -> None:
    survey = surveyed(
        {"part": OLD, "traits": Traits(6, tells_time=True)},
        {"part": NEW, "traits": Traits(6)},
        {"part": OTHER, "traits": Traits(600, tells_time=True)},
    )
    asks, does_not = read_question("when did it rain"), read_question("where did it rain")
    assert column("time_told", survey, asks) == pytest.approx([0.9, 0.0, 0.0]), "long ones may"
    assert column("time_told", survey, does_not) == [0.0, 0.0, 0.0]
    assert order(survey, asks).index(OLD) < order(survey, asks).index(NEW)
    assert order(survey, does_not).index(NEW) < order(survey, does_not).index(OLD)


def test_the_speaker_counts_who_is_named_unless_all_are() -> None:
    survey = surveyed({"part": OLD, "speaker": "ana"}, {"part": NEW, "speaker": "ben"}, {})
    named = read_question("what did Ana buy")
    assert column("speaker_named", survey, named) == [1.0, 0.0, 0.0]
    assert order(survey, named)[0] == OLD
    assert column("speaker_named", survey, read_question("did Ana meet Ben")) == [0.0] * 3
    assert column("speaker_named", survey, read_question("what did Carl buy")) == [0.0] * 3
    silent = surveyed({"part": OLD}, {"part": NEW})
    assert column("speaker_named", silent, named) == [0.0, 0.0]


def test_a_standing_order_counts_when_it_is_about_the_matter() -> None:
    instructs = Traits(20, instructs=True)
    survey = surveyed(
        {"part": OLD, "traits": instructs},
        {"part": NEW, "traits": instructs},
        {"part": OTHER},
    )
    near, far, _ = column("instruction", survey, QUESTION, {OLD: 0.9, NEW: 0.1, OTHER: 0.1})
    assert near > 0.9
    assert far == 0.0
    assert column("instruction", survey, QUESTION) == [0.0] * 3, "without vectors nobody can tell"


def test_standing_orders_are_for_new_work_and_not_for_looking_back() -> None:
    survey = surveyed({"part": OLD, "traits": Traits(20, instructs=True)}, {"part": NEW})
    cosines = {OLD: 0.9, NEW: 0.1}
    back = read_question("a summary of the shed plans")
    assert column("instruction", survey, QUESTION, cosines)[0] > 0.6
    assert column("instruction", survey, back, cosines) == [0.0, 0.0]


def test_what_the_user_likes_counts_twice_where_advice_is_asked_for() -> None:
    survey = surveyed({"part": OLD, "traits": Traits(20, prefers=True)}, {"part": NEW})
    assert column("preference", survey, QUESTION) == [1.0, 0.0]
    advice = read_question("which rake would you recommend")
    assert column("preference", survey, advice) == [2.0, 0.0]


def test_one_that_holds_a_word_by_chance_stays_behind_what_is_meant() -> None:
    # "why is the database slow": one message of 120 has a "slow day", another a slow query.
    ids = [part_id(number, 0) for number in range(1, 121)]
    rows = [{"part": each, "words": 0.0, "context": 0.0, "coverage": 0.0} for each in ids]
    rows[0] |= {"words": 1.2, "context": 1.4, "coverage": 0.35}
    cosines = {each: 0.05 + 0.001 * (place % 60) for place, each in enumerate(ids)}
    cosines[ids[1]] = 0.42
    assert order(surveyed(*rows), cosines=cosines)[0] == ids[1]


def test_of_equals_the_newer_comes_first() -> None:
    ids = [part_id(passage, number) for passage, number in ((1, 0), (5, 1), (3, 0), (5, 0))]
    assert order(surveyed(*({"part": each} for each in ids))) == sorted(ids, reverse=True)


@pytest.mark.parametrize("score", [0.1, 1.1, 3.3, 17.7])
def test_equal_scores_that_differ_by_rounding_are_equal(score: float) -> None:
    """The mean of equal numbers may differ from them in the last bit."""
    rows = [{"part": at + 1, "words": score, "context": score, "asked": ASKS} for at in range(6)]
    cosines = {PartId(at + 1): score / 20 for at in range(6)}
    table = features(QUESTION, surveyed(*rows), cosines)
    assert np.abs(table).max() < 10


def test_nothing_ranks_nothing() -> None:
    assert rank(QUESTION, surveyed()) == []


def test_one_candidate_is_ranked_and_not_yet_judged() -> None:
    survey = surveyed({"part": OLD, "coverage": 1.0})
    (found,) = rank(QUESTION, survey)
    assert found == Ranked(OLD, found.score, 0.0, None, 1.0)
    assert found.score == pytest.approx((features(QUESTION, survey, None) @ WEIGHTS).item())


def test_a_turn_both_of_whose_sides_fit_comes_before_one_that_fits_by_one() -> None:
    question, answer = part_id(1, 0), part_id(1, 1)
    alone = {"part": part_id(2, 0), "coverage": 1.0}
    nothing = {"coverage": 0.0, "words": 0.0, "context": 0.0}
    fits = {"part": question, "coverage": 1.0}
    both = surveyed(fits, {"part": answer, "coverage": 0.9}, alone, {"part": OTHER, **nothing})
    assert order(both)[0] == question
    one = surveyed(fits, {"part": answer, **nothing}, alone, {"part": OTHER, **nothing})
    assert order(one)[0] == alone["part"], "the newer of equals"


def test_in_long_turns_the_other_side_tells_more() -> None:
    def lead(words: int) -> float:
        """By how much a turn of which both sides fit is ahead of one that fits better by one."""
        side = {"traits": Traits(words, own_side=True), "coverage": 0.8}
        other = {"traits": Traits(words), "coverage": 0.7}
        survey = surveyed(
            {"part": part_id(1, 0), **side},
            {"part": part_id(1, 1), **other},
            {"part": part_id(2, 0), **side, "coverage": 1.0},
            {"part": part_id(2, 1), **other, "coverage": 0.0},
        )
        scores = {each.part_id: each.score for each in rank(QUESTION, survey)}
        return scores[part_id(1, 0)] - scores[part_id(2, 0)]

    assert lead(300) > lead(120) > lead(45) == pytest.approx(lead(41))


def test_what_has_one_side_only_does_not_pay_for_it() -> None:
    def behind(words: int) -> float:
        """By how much a summary is behind a short message that fits as well."""
        survey = surveyed(
            {"part": OLD, "traits": Traits(words)},
            {"part": NEW, "traits": Traits(40)},
            {"part": OTHER, "coverage": 0.0},
        )
        scores = {each.part_id: each.score for each in rank(QUESTION, survey)}
        return scores[NEW] - scores[OLD]

    assert behind(500) == pytest.approx(behind(50)) == pytest.approx(0.0)


def test_a_cosine_is_the_messages_own_and_none_without_vectors() -> None:
    beside = part_id(7, 0)
    survey = surveyed({"part": OLD, "after": (beside,)}, {"part": NEW})
    found = {each.part_id: each for each in rank(QUESTION, survey, {OLD: 0.2, beside: 0.7})}
    assert (found[OLD].cosine, found[NEW].cosine) == (0.2, None)
    assert {each.cosine for each in rank(QUESTION, survey)} == {None}


def test_the_neighbourhood_is_all_whose_cosines_count() -> None:
    survey = surveyed(
        {"part": OLD, "before": (7, 8), "after": (9,)}, {"part": NEW, "before": (OLD,)}
    )
    assert neighbourhood(survey) == {OLD, NEW, 7, 8, 9}
    assert neighbourhood(surveyed()) == frozenset()


SCORES = st.floats(0, 60) | st.just(0.0)
ROWS = st.fixed_dictionaries(
    {
        "words": SCORES,
        "context": SCORES,
        "coverage": st.floats(0, 1),
        "asked_words": SCORES,
        "speaker": st.sampled_from(["", "ana", "ben"]),
        "traits": st.builds(Traits, st.integers(0, 4095), st.floats(0, 1), *[st.booleans()] * 4),
        "asked": st.builds(Traits, st.integers(0, 4095), st.floats(0, 1)),
        "before": st.lists(st.integers(1, 9), max_size=NEAR),
        "after": st.lists(st.integers(1, 9), max_size=NEAR),
    }
)


@given(
    st.lists(ROWS, min_size=1, max_size=9),
    st.none() | st.dictionaries(st.integers(1, 9).map(PartId), st.floats(-1, 1)),
    st.sampled_from(["when did Ana call", "rake", "did Ana meet Ben", ""]),
)
def test_any_candidates_are_ranked_each_once_by_real_numbers(
    rows: list[dict[str, Any]], cosines: dict[PartId, float] | None, text: str
) -> None:
    numbered = [{**row, "part": at + 1} for at, row in enumerate(rows)]
    survey, question = surveyed(*numbered), read_question(text)
    assert np.isfinite(features(question, survey, cosines)).all()
    ranked = rank(question, survey, cosines)
    assert sorted(each.part_id for each in ranked) == list(range(1, len(rows) + 1))
    assert [each.score for each in ranked] == sorted((x.score for x in ranked), reverse=True)

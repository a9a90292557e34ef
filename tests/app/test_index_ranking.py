"""Ranking: the effect of each feature."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import PartId, part_id
from app.index.message_traits import NEAR, Traits
from app.index.question import ParsedQuestion, parse_question
from app.index.ranking import FEATURES, WEIGHTS, Ranked, context_parts, features, rank
from app.index.text_schema import speaker_number
from app.index.text_snapshot import CandidateTable

PLAIN = Traits(20)
ASKS = Traits(8, asking=1.0)
QUESTION = parse_question("where is the rake")

OLD, NEW, OTHER = (part_id(number, 0) for number in (1, 2, 3))


def made_table(*rows: Mapping[str, Any]) -> CandidateTable:
    """Return a table of rows that say in what they differ from a plain message."""

    def column(name: str, otherwise: Any) -> list[Any]:
        return [row.get(name, otherwise) for row in rows]

    def near(name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        ids = [list(row.get(name, ())) for row in rows]
        padded = [each + [0] * (NEAR - len(each)) for each in ids]
        return np.array(padded, np.int64).reshape(len(rows), NEAR)

    return CandidateTable(
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
    table: CandidateTable,
    question: ParsedQuestion = QUESTION,
    cosines: Mapping[PartId, float] | None = None,
) -> list[int]:
    return [each.part_id for each in rank(question, table, cosines)]


FAR = {OLD: 0.2, NEW: 0.2, OTHER: 0.1, part_id(7, 0): 0.9, part_id(8, 0): 0.0}
BESIDE_NEAR, BESIDE_FAR = {"before": (part_id(7, 0),)}, {"before": (part_id(8, 0),)}


@pytest.mark.parametrize(
    ("better", "worse", "cosines"),
    [
        ({"words": 2.0}, {}, None),
        ({"context": 2.0}, {}, None),
        ({"coverage": 1.0}, {}, None),
        ({"asked": ASKS, "asked_words": 3.0}, {"asked_words": 3.0}, None),
        ({"traits": Traits(20)}, {"traits": Traits(20, asking=1.0)}, None),
        ({"traits": Traits(39)}, {"traits": Traits(3)}, None),
        ({"traits": Traits(20, own_side=True)}, {}, None),
        ({"traits": Traits(20, prefers=True)}, {}, None),
        ({"dated": 1.0}, {"dated": 0.3}, None),
        ({}, {}, {OLD: 0.8, NEW: 0.2, OTHER: 0.1}),
        (BESIDE_NEAR, BESIDE_FAR, FAR),
        (BESIDE_NEAR | {"asked": ASKS}, BESIDE_FAR | {"asked": ASKS}, FAR),
    ],
    ids=["words", "context", "coverage", "answers", "asking", "length", "own side", "preference",
         "date", "cosine", "context cosine", "answers cosine"],
)  # fmt: skip
def test_each_feature_raises_a_message(
    better: Mapping[str, Any], worse: Mapping[str, Any], cosines: Mapping[PartId, float] | None
) -> None:
    """The better one is the older, so that a tie would lose."""
    rest = {"part": OTHER, "words": 0.5, "context": 0.5, "coverage": 0.0}
    table = made_table({"part": OLD, **better}, {"part": NEW, **worse}, rest)
    ranked = order(table, QUESTION, cosines)
    assert ranked.index(OLD) < ranked.index(NEW)


def column(
    name: str, table: CandidateTable, question: ParsedQuestion, cosines: Any = None
) -> list[float]:
    values: list[float] = features(question, table, cosines)[:, FEATURES.index(name)].tolist()
    return values


def test_a_missing_vector_is_neutral() -> None:
    known, unknown = part_id(7, 0), part_id(8, 0)
    table = made_table(
        {"part": OLD, "before": (unknown, known), "asked": ASKS},
        {"part": NEW, "before": (known, unknown), "asked": ASKS},
        {"part": OTHER, "before": (unknown,), "asked": ASKS},
    )
    cosines = {OLD: 0.1, NEW: 0.9, known: 0.9}
    assert column("cosine", table, QUESTION, cosines) == pytest.approx([-1.0, 1.0, 0.0])
    assert column("context_cosine", table, QUESTION, cosines) == pytest.approx([0.0, 0.0, 0.0])
    assert column("answers_cosine", table, QUESTION, cosines) == pytest.approx([0.0, 1.0, 0.0])
    assert order(table, QUESTION, {OTHER: 0.1, NEW: 0.9}) == [NEW, OLD, OTHER]


def test_a_time_counts_only_where_the_question_asks_for_one() -> None:
    table = made_table(
        {"part": OLD, "traits": Traits(6, tells_time=True)},
        {"part": NEW, "traits": Traits(6)},
        {"part": OTHER, "traits": Traits(600, tells_time=True)},
    )
    asks, does_not = parse_question("when did it rain"), parse_question("where did it rain")
    assert column("time_told", table, asks) == pytest.approx([0.9, 0.0, 0.0]), "long ones may"
    assert column("time_told", table, does_not) == [0.0, 0.0, 0.0]
    assert order(table, asks).index(OLD) < order(table, asks).index(NEW)
    assert order(table, does_not).index(NEW) < order(table, does_not).index(OLD)


def test_a_named_speaker_counts_unless_all_are_named() -> None:
    table = made_table({"part": OLD, "speaker": "ana"}, {"part": NEW, "speaker": "ben"}, {})
    named = parse_question("what did Ana buy")
    assert column("speaker_named", table, named) == [1.0, 0.0, 0.0]
    assert order(table, named)[0] == OLD
    assert column("speaker_named", table, parse_question("did Ana meet Ben")) == [0.0] * 3
    assert column("speaker_named", table, parse_question("what did Carl buy")) == [0.0] * 3
    silent = made_table({"part": OLD}, {"part": NEW})
    assert column("speaker_named", silent, named) == [0.0, 0.0]


def test_an_instruction_counts_when_it_is_near_and_not_when_looking_back() -> None:
    instructs = Traits(20, instructs=True)
    table = made_table(
        {"part": OLD, "traits": instructs},
        {"part": NEW, "traits": instructs},
        {"part": OTHER},
    )
    near, far, _ = column("instruction", table, QUESTION, {OLD: 0.9, NEW: 0.1, OTHER: 0.1})
    assert near > 0.9
    assert far == 0.0
    assert column("instruction", table, QUESTION) == [0.0] * 3, "unknown without vectors"
    back = parse_question("a summary of the shed plans")
    assert column("instruction", table, back, {OLD: 0.9, NEW: 0.1}) == [0.0] * 3


def test_a_preference_counts_twice_for_advice() -> None:
    table = made_table({"part": OLD, "traits": Traits(20, prefers=True)}, {"part": NEW})
    assert column("preference", table, QUESTION) == [1.0, 0.0]
    advice = parse_question("which rake would you recommend")
    assert column("preference", table, advice) == [2.0, 0.0]


def test_a_chance_word_ranks_behind_a_near_message() -> None:
    # "why is the database slow": one message of 120 has a "slow day", another a slow query.
    ids = [part_id(number, 0) for number in range(1, 121)]
    rows = [{"part": each, "words": 0.0, "context": 0.0, "coverage": 0.0} for each in ids]
    rows[0] |= {"words": 1.2, "context": 1.4, "coverage": 0.35}
    cosines = {each: 0.05 + 0.001 * (place % 60) for place, each in enumerate(ids)}
    cosines[ids[1]] = 0.42
    assert order(made_table(*rows), cosines=cosines)[0] == ids[1]


@pytest.mark.parametrize("score", [0.1, 1.1, 3.3, 17.7])
def test_equal_scores_that_differ_by_rounding_are_equal(score: float) -> None:
    """The mean of equal numbers may differ from them in the last bit."""
    rows = [{"part": at + 1, "words": score, "context": score, "asked": ASKS} for at in range(6)]
    cosines = {PartId(at + 1): score / 20 for at in range(6)}
    table = features(QUESTION, made_table(*rows), cosines)
    assert np.abs(table).max() < 10


def test_a_row_has_its_own_cosine_and_no_relevance_yet() -> None:
    alone = made_table({"part": OLD, "coverage": 1.0})
    assert features(QUESTION, alone, None).shape == (1, len(FEATURES)) == (1, len(WEIGHTS))
    (found,) = rank(QUESTION, alone)
    assert found == Ranked(OLD, found.score, 0.0, None, 1.0)
    assert found.score == pytest.approx((features(QUESTION, alone, None) @ WEIGHTS).item())
    beside = part_id(7, 0)
    table = made_table({"part": OLD, "after": (beside,)}, {"part": NEW})
    rows = {each.part_id: each.cosine for each in rank(QUESTION, table, {OLD: 0.2, beside: 0.7})}
    assert rows == {OLD: 0.2, NEW: None}


def test_a_turn_with_two_matching_sides_ranks_before_one_with_one() -> None:
    question, answer = part_id(1, 0), part_id(1, 1)
    alone = {"part": part_id(2, 0), "coverage": 1.0}
    nothing = {"coverage": 0.0, "words": 0.0, "context": 0.0}
    fits = {"part": question, "coverage": 1.0}
    both = made_table(fits, {"part": answer, "coverage": 0.9}, alone, {"part": OTHER, **nothing})
    assert order(both)[0] == question
    one = made_table(fits, {"part": answer, **nothing}, alone, {"part": OTHER, **nothing})
    assert order(one)[0] == alone["part"], "the newer of equals"


def test_the_other_side_counts_more_in_long_turns() -> None:
    def lead(words: int) -> float:
        """By how much a turn of which both sides fit is ahead of one that fits better by one."""
        side = {"traits": Traits(words, own_side=True), "coverage": 0.8}
        other = {"traits": Traits(words), "coverage": 0.7}
        table = made_table(
            {"part": part_id(1, 0), **side},
            {"part": part_id(1, 1), **other},
            {"part": part_id(2, 0), **side, "coverage": 1.0},
            {"part": part_id(2, 1), **other, "coverage": 0.0},
        )
        scores = {each.part_id: each.score for each in rank(QUESTION, table)}
        return scores[part_id(1, 0)] - scores[part_id(2, 0)]

    assert lead(300) > lead(120) > lead(45) == pytest.approx(lead(41))


def test_a_passage_with_one_side_is_not_penalized() -> None:
    def behind(words: int) -> float:
        """By how much a summary is behind a short message that fits as well."""
        table = made_table(
            {"part": OLD, "traits": Traits(words)},
            {"part": NEW, "traits": Traits(40)},
            {"part": OTHER, "coverage": 0.0},
        )
        scores = {each.part_id: each.score for each in rank(QUESTION, table)}
        return scores[NEW] - scores[OLD]

    assert behind(500) == pytest.approx(behind(50)) == pytest.approx(0.0)


def test_context_parts_are_candidates_and_their_neighbors() -> None:
    table = made_table(
        {"part": OLD, "before": (7, 8), "after": (9,)}, {"part": NEW, "before": (OLD,)}
    )
    assert context_parts(table) == {OLD, NEW, 7, 8, 9}
    assert context_parts(made_table()) == frozenset()


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
def test_any_candidates_are_ranked_once_with_finite_scores(
    rows: list[dict[str, Any]], cosines: dict[PartId, float] | None, text: str
) -> None:
    numbered = [{**row, "part": at + 1} for at, row in enumerate(rows)]
    table, question = made_table(*numbered), parse_question(text)
    assert np.isfinite(features(question, table, cosines)).all()
    ranked = rank(question, table, cosines)
    assert sorted(each.part_id for each in ranked) == list(range(1, len(rows) + 1))
    assert [each.score for each in ranked] == sorted((x.score for x in ranked), reverse=True)

"""Ranking: the effect of each feature."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import PartId, part_id
from app.index.document_writer import label_number
from app.index.message_traits import NEAR, Traits
from app.index.question import ParsedQuestion, parse_question
from app.index.ranking import FEATURES, Nearness, Ranked, context_parts, features, rank, weights
from app.index.text_snapshot import CandidateTable

PLAIN = Traits(20)
OWN = {"traits": Traits(20, own_side=True)}
ASKS = Traits(8, asking=1.0)
QUESTION = parse_question("where is the rake")
KEYWORDS = parse_question("bulk rise")
STATED = "It is too dark in here to read a book."

OLD, NEW, OTHER = (part_id(number, 0) for number in (1, 2, 3))


def made_table(*rows: Mapping[str, Any]) -> CandidateTable:
    """Return a table of rows that say in what they differ from a plain message."""

    def column(name: str, otherwise: Any) -> list[Any]:
        return [row.get(name, otherwise) for row in rows]

    def beside(name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        ids = [list(row.get(name, ())) for row in rows]
        padded = [each + [0] * (NEAR - len(each)) for each in ids]
        return np.array(padded, np.int64).reshape(len(rows), NEAR)

    return CandidateTable(
        parts=np.array(column("part", 0), np.int64), words=np.array(column("words", 1.0), float),
        context=np.array(column("context", 1.0), float),
        coverage=np.array(column("coverage", 0.5), float),
        traits=np.array([each.packed() for each in column("traits", PLAIN)], np.int64),
        labels=np.array([label_number(each) for each in column("label", "")], np.int64),
        before=beside("before"), after=beside("after"),
        asked_words=np.array(column("asked_words", 0.0), float),
        asked_traits=np.array([each.packed() for each in column("asked", Traits(0))], np.int64),
        dated=np.array(column("dated", 0.0), float), weight=4.0, reach=4.0,
    )  # fmt: skip


def preferences(table: CandidateTable, nearness: Nearness) -> list[float]:
    found: list[float] = features(QUESTION, table, nearness)[
        :, FEATURES.index("preference")
    ].tolist()
    return found


def order(
    table: CandidateTable,
    question: ParsedQuestion = QUESTION,
    cosines: Mapping[PartId, float] | None = None,
) -> list[int]:
    return [each.part_id for each in rank(question, table, near(cosines))]


def near(cosines: Mapping[PartId, float] | None) -> Nearness | None:
    return None if cosines is None else Nearness(cosines)


FAR = {OLD: 0.2, NEW: 0.2, OTHER: 0.1, part_id(7, 0): 0.9, part_id(8, 0): 0.0}
BESIDE_NEAR, BESIDE_FAR = {"before": (part_id(7, 0),)}, {"before": (part_id(8, 0),)}


def column(
    name: str, table: CandidateTable, question: ParsedQuestion, cosines: Any = None
) -> list[float]:
    values: list[float] = features(question, table, near(cosines))[:, FEATURES.index(name)].tolist()
    return values


@pytest.mark.parametrize(
    ("feature", "better", "worse", "cosines"),
    [("words", {"words": 2.0}, {}, None), ("context_words", {"context": 2.0}, {}, None),
     ("coverage", {"coverage": 1.0}, {}, None),
     ("answers_words", {"asked": ASKS, "asked_words": 3.0}, {"asked_words": 3.0}, None),
     ("asking", {"traits": Traits(20, asking=1.0)}, {"traits": Traits(20)}, None),
     ("own_side", {"traits": Traits(20, own_side=True)}, {}, None),
     ("dated", {"dated": 1.0}, {"dated": 0.3}, None),
     ("cosine", {}, {}, {OLD: 0.8, NEW: 0.2, OTHER: 0.1}),
     ("context_cosine", BESIDE_NEAR, BESIDE_FAR, FAR),
     ("answers_cosine", BESIDE_NEAR | {"asked": ASKS}, BESIDE_FAR | {"asked": ASKS}, FAR)],
)  # fmt: skip
def test_each_feature_tells_two_messages_apart(
    feature: str,
    better: Mapping[str, Any],
    worse: Mapping[str, Any],
    cosines: Mapping[PartId, float] | None,
) -> None:
    rest = {"part": OTHER, "words": 0.5, "context": 0.5, "coverage": 0.0}
    table = made_table({"part": OLD, **better}, {"part": NEW, **worse}, rest)
    high, low, _ = column(feature, table, QUESTION, cosines)
    assert high > low


@pytest.mark.parametrize("by_meaning", [True, False])
@pytest.mark.parametrize(
    ("label", "question"),
    [("ana", QUESTION), ("", QUESTION), ("", parse_question(STATED)), ("", KEYWORDS)],
    ids=["talk", "chat", "statement", "keywords"],
)
def test_better_matches_weigh_more(label: str, question: ParsedQuestion, by_meaning: bool) -> None:
    found = weights(question, said_by(*[label] * 3), by_meaning=by_meaning)
    own = dict(zip(FEATURES, found, strict=True))
    assert own.pop("asking") <= 0
    assert min(own.values()) >= 0 < own["context_words"]
    assert own["cosine"] > 0 or not by_meaning


def test_a_nearer_fact_counts_for_its_message_and_not_as_context() -> None:
    fact = part_id(7, 0)
    rows = {"part": OLD}, {"part": NEW, "before": (OLD,)}, {"part": OTHER, "before": (NEW,)}
    table = made_table(*rows)
    with_fact = replace(table, facts=np.array([[0, fact]]))
    assert fact in context_parts(with_fact)
    cosines = {OLD: 0.2, NEW: 0.4, OTHER: 0.3, fact: 0.9}
    assert column("cosine", table, QUESTION, cosines)[0] < -1
    assert column("cosine", with_fact, QUESTION, cosines)[0] > 1
    for each in ("context_cosine", "answers_cosine"):
        assert column(each, with_fact, QUESTION, cosines) == column(each, table, QUESTION, cosines)


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


def said_by(*labels: str) -> CandidateTable:
    return made_table(
        *({"part": part_id(at, 0), "label": each} for at, each in enumerate(labels, 1))
    )


def test_a_speaker_named_in_a_recurring_label_counts_unless_all_are() -> None:
    table = said_by("ana", "ben", "ana", "ben", "ana", "ben", "")
    named = parse_question("what did Ana buy")
    assert column("speaker_named", table, named) == [1.0, 0.0] * 3 + [0.0]
    assert order(table, named)[0] == part_id(5, 0), "the newest of Ana's"
    assert column("speaker_named", table, parse_question("did Ana meet Ben")) == [0.0] * 7
    assert column("speaker_named", table, parse_question("what did Carl buy")) == [0.0] * 7
    table = said_by("note", "note", "", "")
    assert column("speaker_named", table, parse_question("which note was it")) == [0.0] * 4
    table = said_by("雷明轩", "李娜", "雷明轩", "李娜", "雷明轩", "李娜")
    assert column("speaker_named", table, parse_question("雷明轩买了什么？")) == [1.0, 0.0] * 3


def test_the_users_side_counts_only_in_chats() -> None:
    named = OWN | {"label": "ana"}
    table = made_table(*(named | {"part": part_id(at, 0)} for at in (1, 2, 3)), OWN)
    assert column("own_side", table, QUESTION) == [0.0, 0.0, 0.0, 1.0]


def test_keywords_rank_the_message_that_contains_them_before_its_context() -> None:
    """People who type two words want the message with both, whoever wrote it."""
    inside = {"part": OLD, "words": 1.0, "context": 1.0, "coverage": 1.0}
    beside = {"part": NEW, "words": 0.0, "context": 1.0, "coverage": 0.0}
    table = made_table(inside, beside | OWN, beside | {"part": OTHER})
    assert order(table, KEYWORDS, FAR | {OLD: 0.1, NEW: 0.2, OTHER: 0.2})[0] == OLD
    assert order(table, KEYWORDS)[0] == OLD


def test_matching_tokens_count_and_unknown_ones_are_neutral() -> None:
    table = made_table({"part": OLD}, {"part": NEW}, {"part": OTHER})
    nearness = Nearness({}, np.array([0.9, 0.1, np.nan]))
    found = features(QUESTION, table, nearness)[:, FEATURES.index("tokens")].tolist()
    assert found == pytest.approx([1.0, -1.0, 0.0])
    assert [each.part_id for each in rank(QUESTION, table, nearness)] == [OLD, OTHER, NEW]


def test_a_preference_stands_out_and_more_so_on_the_same_topic() -> None:
    ids = [part_id(number, 0) for number in range(1, 7)]
    cosines = {each: 0.5 if each == ids[0] else 0.1 for each in ids}
    stated = {each: 0.3 if each in ids[:2] else 0.0 for each in ids}
    table = made_table(*(OWN | {"part": each} for each in ids))
    near_one, other, *rest = preferences(table, Nearness(cosines, preferences=stated))
    assert near_one > other > 0 == max(rest)


def test_a_preference_counts_as_far_as_something_new_is_asked_for() -> None:
    table = made_table(OWN | {"part": OLD}, OWN | {"part": NEW})
    new, unclear, past = (
        preferences(table, Nearness({}, preferences={OLD: 0.3, NEW: 0.0}, request=likely))[0]
        for likely in (1.0, 0.5, 0.0)
    )
    assert new == 2 * unclear > 0 == past


def test_a_fact_states_a_preference_for_its_message_and_a_reply_states_none() -> None:
    table = made_table({"part": OLD}, OWN | {"part": NEW}, OWN | {"part": OTHER})
    table = replace(table, facts=np.array([[1, 99]]))
    stated = {OLD: 0.3, NEW: 0.0, OTHER: 0.1, PartId(99): 0.4}
    reply, with_fact, without = preferences(table, Nearness({}, preferences=stated))
    assert with_fact > 0 == reply == without


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
    assert np.abs(features(QUESTION, made_table(*rows), near(cosines))).max() < 10


def test_a_row_has_its_own_cosine_and_no_relevance_yet() -> None:
    alone = made_table({"part": OLD, "coverage": 1.0})
    assert features(QUESTION, alone, None).shape == (1, len(FEATURES))
    (found,) = rank(QUESTION, alone)
    assert found == Ranked(OLD, found.score, 0.0, None, 1.0)
    assert found.score == pytest.approx(
        (features(QUESTION, alone, None) @ weights(QUESTION, alone, by_meaning=False)).item()
    )
    beside = part_id(7, 0)
    table = made_table({"part": OLD, "after": (beside,)}, {"part": NEW})
    rows = {
        each.part_id: each.cosine
        for each in rank(QUESTION, table, Nearness({OLD: 0.2, beside: 0.7}))
    }
    assert rows == {OLD: 0.2, NEW: None}


def test_the_other_side_of_a_turn_counts_in_chats() -> None:
    sides = {"part": part_id(1, 0)}, {"part": part_id(1, 1), "words": 3.0}
    table = made_table(*sides, {"part": NEW, "words": 0.0})
    own, other, alone = column("turn_words", table, QUESTION)
    assert own > 0
    assert other < own
    assert alone == 0.0
    named = made_table(*({"label": "ana", **each} for each in sides), {"label": "ana"})
    assert column("turn_words", named, QUESTION) == [0.0] * 3


def test_context_parts_are_candidates_and_their_neighbors() -> None:
    table = made_table(
        {"part": OLD, "before": (7, 8), "after": (9,)}, {"part": NEW, "before": (OLD,)}
    )
    assert context_parts(table) == {OLD, NEW, 7, 8, 9}
    assert context_parts(made_table()) == frozenset()


SCORES = st.floats(0, 60) | st.just(0.0)
ROWS = st.fixed_dictionaries(
    {
        "words": SCORES, "context": SCORES, "coverage": st.floats(0, 1), "asked_words": SCORES,
        "label": st.sampled_from(["", "ana", "ben"]),
        "traits": st.builds(Traits, st.integers(0, 4095), st.floats(0, 1), *[st.booleans()] * 2),
        "asked": st.builds(Traits, st.integers(0, 4095), st.floats(0, 1)),
        "before": st.lists(st.integers(1, 9), max_size=NEAR),
        "after": st.lists(st.integers(1, 9), max_size=NEAR),
    }
)  # fmt: skip


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
    assert np.isfinite(features(question, table, near(cosines))).all()
    ranked = rank(question, table, near(cosines))
    assert sorted(each.part_id for each in ranked) == list(range(1, len(rows) + 1))
    assert [each.score for each in ranked] == sorted((x.score for x in ranked), reverse=True)

"""What the text index tells the ranking of its candidates, and who it says stands around them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.domain.changes import ExchangePut
from app.domain.ids import part_id
from app.index.query import parse_query
from app.index.text_index import TantivyTextIndex
from app.index.text_ranking import Survey
from app.index.text_schema import speaker_number
from app.index.traits import Traits, traits_of
from app.memory.index_sync import IndexSync
from app.storage.store import Store
from tests.fakes.passages import said, talk, turn
from tests.fakes.stored import opened, told

LONG = "word " * 149


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TantivyTextIndex]:
    made = TantivyTextIndex(tmp_path / "text", "one")
    made.start_over()
    yield made
    made.close()


def row(survey: Survey, part: int) -> int:
    return int(np.flatnonzero(survey.parts == part)[0])


def around(survey: Survey, part: int) -> tuple[list[int], list[int]]:
    """The parts before and after, nearest first."""
    at = row(survey, part)
    return (
        [each for each in survey.before[at].tolist() if each],
        [each for each in survey.after[at].tolist() if each],
    )


def test_a_survey_holds_each_part_once_with_its_own_numbers(index: TantivyTextIndex) -> None:
    passage = talk(1, "Where is the rake?", "In the shed.", "Always lock the shed.")
    index.put([passage])
    index.commit(1)
    ids = [part.id for part in passage.parts]
    survey = index.survey(parse_query("rake"), [*ids, part_id(9, 0)])
    assert sorted(survey.parts.tolist()) == ids, "what the index does not hold is left out"
    for part in passage.parts:
        at = row(survey, part.id)
        assert Traits.unpacked(int(survey.traits[at])) == replace(traits_of(part), speaker="")
        assert bool(survey.words[at]) is ("rake" in part.text)
        assert survey.coverage[at] == pytest.approx(float("rake" in part.text))
        assert survey.context[at] > 0, "all stand in one context"
    assert around(survey, ids[1]) == ([ids[0]], [ids[2]])
    assert around(survey, ids[2]) == ([ids[1], ids[0]], [])
    at = row(survey, ids[1])
    assert survey.asked_words[at] == pytest.approx(survey.words[row(survey, ids[0])])
    assert Traits.unpacked(int(survey.asked_traits[at])).asking == 1.0
    first = row(survey, ids[0])
    assert (survey.asked_words[first], survey.asked_traits[first]) == (0, 0)


def test_words_are_scored_as_in_a_search(index: TantivyTextIndex) -> None:
    index.put(turn(number, "apple pear"[: 5 + number % 6]) for number in range(1, 1200))
    index.commit(1)
    hits = {hit.part_id: hit for hit in index.search("apple pear", 2000)}
    survey = index.survey(parse_query("apple pear"), hits)
    assert len(survey.parts) == 1199
    for part, words, share in zip(survey.parts, survey.words, survey.coverage, strict=True):
        assert words == pytest.approx(hits[part].score)
        assert share == pytest.approx(hits[part].coverage)


def test_a_long_message_stands_alone(index: TantivyTextIndex) -> None:
    passage = talk(1, "Which rake?", LONG + LONG, "The red one.")
    index.put([passage])
    index.commit(1)
    ids = [part.id for part in passage.parts]
    survey = index.survey(parse_query("rake"), ids)
    assert [around(survey, each) for each in ids] == [([], []), ([], []), ([], [])]
    assert survey.context[row(survey, ids[2])] == 0
    assert survey.asked_traits[row(survey, ids[1])] == 0, "what it answers is not in its context"


def test_neighbours_come_from_the_turns_beside(index: TantivyTextIndex) -> None:
    before, after = said(7, 1, "The rake is red."), said(8, 0, "Thanks.")
    index.put([turn(5, "Is it?", before=(before,), after=(after,))])
    index.commit(1)
    survey = index.survey(parse_query("rake"), [part_id(5, 0)])
    assert around(survey, part_id(5, 0)) == ([part_id(7, 1)], [part_id(8, 0)])
    assert survey.context[0] > 0
    assert survey.words[0] == 0


def test_how_near_a_date_is_that_the_question_names_is_known(index: TantivyTextIndex) -> None:
    index.put([turn(month, "rake", month=month) for month in (4, 5, 6, 8)])
    index.commit(1)
    ids = [part_id(month, 0) for month in (4, 5, 6, 8)]

    def dated(text: str) -> list[float]:
        survey = index.survey(parse_query(text), ids)
        near = [survey.dated[row(survey, each)] for each in ids]
        return pytest.approx(near)  # type: ignore[return-value]

    assert dated("rake in May 2024") == [0.0, 1.0, 0.3, 0.0]
    assert dated("rake in May") == [0.0, 1.0, 0.3, 0.0]
    assert dated("rake on 2 May 2024") == [0.0, 0.7, 0.3, 0.0]
    assert dated("rake on 30 May 2024") == [0.0, 0.4, 0.475, 0.0]
    assert dated("rake in May 2023") == [0.0] * 4
    assert dated("rake") == [0.0] * 4


def test_speakers_are_told_apart_by_number(index: TantivyTextIndex) -> None:
    index.put([talk(1, "Ana: the rake", "Ben: the rake", "the rake")])
    index.commit(1)
    survey = index.survey(parse_query("rake"), [part_id(1, at) for at in range(3)])
    speakers = [int(survey.speakers[row(survey, part_id(1, at))]) for at in range(3)]
    assert speakers == [speaker_number("ana"), speaker_number("ben"), 0]


def test_what_holds_an_excluded_word_is_left_out_with_its_whole_turn(
    index: TantivyTextIndex,
) -> None:
    index.put([talk(1, "A rake.", "It is rusty."), talk(2, "A rake.", "It is new.")])
    index.commit(1)
    everything = [part_id(number, at) for number in (1, 2) for at in (0, 1)]
    survey = index.survey(parse_query("rake -rusty"), everything)
    assert sorted(survey.parts.tolist()) == [part_id(2, 0), part_id(2, 1)]
    assert len(index.survey(parse_query("rake -nobody"), everything).parts) == 4


def test_what_lacks_a_phrase_is_left_out(index: TantivyTextIndex) -> None:
    index.put([talk(1, "A red rake.", "A rake, red."), talk(2, "Neither.")])
    index.commit(1)
    everything = [part_id(1, 0), part_id(1, 1), part_id(2, 0)]
    survey = index.survey(parse_query('"red rake"'), everything)
    assert survey.parts.tolist() == [part_id(1, 0)]
    assert survey.coverage.tolist() == pytest.approx([1.0])


def test_nothing_is_surveyed_of_nothing(index: TantivyTextIndex) -> None:
    index.put([turn(1, "rake")])
    index.commit(1)
    survey = index.survey(parse_query("rake"), [])
    assert len(survey.parts) == len(survey.words) == len(survey.before) == 0


# -- with the database


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


def synchronised(store: Store) -> tuple[IndexSync, TantivyTextIndex]:
    index = TantivyTextIndex(store.paths.index / "text", store.generation)
    sync = IndexSync(store, index)
    sync.catch_up()
    return sync, index


def test_a_context_reaches_over_the_borders_of_turns(store: Store) -> None:
    told(store, "one", "two", "three")
    sync, index = synchronised(store)
    survey = index.survey(parse_query("two"), [part_id(1, 0), part_id(2, 0)])
    sync.stop()
    assert around(survey, part_id(1, 0)) == ([], [part_id(1, 1), part_id(2, 0), part_id(2, 1)])
    assert around(survey, part_id(2, 0)) == (
        [part_id(1, 1), part_id(1, 0)],
        [part_id(2, 1), part_id(3, 0), part_id(3, 1)],
    )


def test_a_context_does_not_reach_into_another_segment(store: Store) -> None:
    whole = told(store, "one", "two")
    store.save(ExchangePut(replace(whole.exchanges[1], segment_number=1)))
    sync, index = synchronised(store)
    survey = index.survey(parse_query("two"), [part_id(1, 1), part_id(2, 0)])
    sync.stop()
    assert around(survey, part_id(1, 1)) == ([part_id(1, 0)], [])
    assert around(survey, part_id(2, 0)) == ([], [part_id(2, 1)])

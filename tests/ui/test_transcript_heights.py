"""Arithmetic of a very long column: where items begin, and what the eye rests on."""

from hypothesis import given
from hypothesis import strategies as st

from ui.widgets.transcript.anchor import AtEnd, AtItem, AtPlace, Centred, anchor_at, top_for
from ui.widgets.transcript.heights import Heights

HEIGHTS = st.lists(st.integers(1, 900), max_size=60)


@given(HEIGHTS, st.lists(st.tuples(st.integers(0, 59), st.integers(1, 2000)), max_size=20))
def test_sums_stay_right_through_changes(
    heights: list[int], changes: list[tuple[int, int]]
) -> None:
    column = Heights(heights)
    for index, height in changes:
        if index < len(heights):
            column[index] = heights[index] = height
    assert column.total == sum(heights)
    assert [column.before(at) for at in range(len(heights) + 1)] == [
        sum(heights[:at]) for at in range(len(heights) + 1)
    ]


@given(HEIGHTS, HEIGHTS, st.integers(0, 60))
def test_items_can_be_added_and_dropped(first: list[int], more: list[int], kept: int) -> None:
    column = Heights(first)
    for height in more:
        column.append(height)
    column.truncate(kept)
    expected = [*first, *more][:kept]
    assert column.values == tuple(expected)
    assert column.before(len(expected)) == column.total == sum(expected)


@given(st.lists(st.integers(1, 900), min_size=1, max_size=60), st.integers(-50, 60_000))
def test_the_item_at_a_place_is_the_one_that_lies_there(heights: list[int], y: int) -> None:
    column = Heights(heights)
    index = column.at(y)
    inside = min(max(y, 0), column.total - 1)
    assert column.before(index) <= inside < column.before(index) + heights[index]


@given(st.lists(st.integers(20, 900), min_size=1, max_size=60), st.integers(0, 50_000))
def test_an_anchor_taken_where_the_view_is_leads_back_there(heights: list[int], top: int) -> None:
    column = Heights(heights)
    highest = max(0, column.total + 40 - 600)
    top = min(top, highest)
    found = anchor_at(top, column, 600, 20)
    assert abs(top_for(found, column, 600, 20) - top) <= 1


@given(st.lists(st.integers(20, 900), min_size=3, max_size=60), st.data())
def test_what_is_rested_on_does_not_move_when_others_change(
    heights: list[int], data: st.DataObject
) -> None:
    column = Heights(heights)
    index = data.draw(st.integers(1, len(heights) - 1))
    changed = data.draw(st.integers(0, index - 1))
    column.append(2000)
    anchor = AtItem(index, 5)
    before = column.before(index) - top_for(anchor, column, 600, 0)
    column[changed] = data.draw(st.integers(20, 5000))
    assert column.before(index) - top_for(anchor, column, 600, 0) == before


def test_a_short_item_stands_in_the_middle_and_a_tall_one_near_the_top() -> None:
    column = Heights([1000, 200, 1000, 900, 1000])
    assert top_for(Centred(1), column, 600, 0) == 1000 + 100 - 300
    assert 0 < column.before(3) - top_for(Centred(3), column, 600, 0) < 100


def test_the_end_is_the_end_and_a_place_stands_a_third_down() -> None:
    column = Heights([500, 500, 500])
    assert top_for(AtEnd(), column, 600, 10) == 1500 + 20 - 600
    assert top_for(AtPlace(1, 100), column, 600, 0) == 600 - 200

"""Heights and anchors of a very long column."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from ui.widgets.transcript.heights import AtEnd, AtOffset, Centered, Heights, top_for

HEIGHTS = st.lists(st.integers(1, 900), max_size=60)
CHANGES = st.lists(st.tuples(st.integers(0, 119), st.integers(1, 2000)), max_size=20)


@given(HEIGHTS, HEIGHTS, CHANGES)
def test_sums_stay_right(first: list[int], more: list[int], changes: list[tuple[int, int]]) -> None:
    column, heights = Heights(first), [*first, *more]
    column.extend(more)
    for index, height in changes:
        if index < len(heights):
            column[index] = heights[index] = height
            column.before(index // 2)
    assert [column[at] for at in range(len(column))] == heights
    sums = list(accumulate(heights, initial=0))
    assert [column.before(at) for at in range(len(heights) + 1)] == sums
    assert column.total == sums[-1]
    for at, (top, bottom) in enumerate(pairwise(sums)):
        assert column.at(top) == column.at(bottom - 1) == at
    assert (column.at(-50), column.at(10**6)) == (0, max(0, len(heights) - 1))


def test_anchors_are_at_the_end_in_the_middle_or_a_third_down() -> None:
    column = Heights([1000, 200, 1000, 900, 1000])
    assert top_for(AtEnd(), column, 600, 10) == 4100 + 20 - 600
    assert top_for(AtOffset(1, 100), column, 600, 0) == 1000 + 100 - 200
    assert top_for(Centered(1), column, 600, 0) == 1000 + 100 - 300
    assert 0 < column.before(3) - top_for(Centered(3), column, 600, 0) < 100, "too tall"

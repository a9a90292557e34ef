"""Sets of ids, however near or far apart: what they hold, and how they are put together."""

from collections.abc import Collection

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import PassageId
from app.index.id_set import IdSet

IDS = st.sets(st.integers(0, 60) | st.integers(0, 2**62), max_size=20)


@given(IDS, st.lists(st.integers(0, 2**62), max_size=30))
def test_ids_however_far_apart_are_told_from_others(known: set[int], asked: list[int]) -> None:
    asked += list(known)[:5]
    ids = IdSet(known)
    assert ids.holds(np.array(asked, np.int64)).tolist() == [each in known for each in asked]
    assert [each in ids for each in asked] == [each in known for each in asked]


@given(IDS, IDS)
def test_they_are_put_together_like_any_sets(one: set[int], other: set[int]) -> None:
    left, right = IdSet(one), IdSet(np.array(sorted(other) * 2, np.int64))
    assert (list(left), len(left)) == (sorted(one), len(one))
    assert list(left | right) == sorted(one | other)
    assert list(left & right) == sorted(one & other)
    assert list(left.without(right)) == sorted(one - other)


def test_what_is_no_number_is_not_in_it() -> None:
    ids: Collection[object] = IdSet([PassageId(7)])
    assert "7" not in ids
    assert np.int64(7) in ids

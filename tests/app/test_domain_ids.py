"""Uids are UUIDs of version 7: ordered by time, unlike each other."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import derived_uid, new_uid


@given(st.integers(0, 2**48 - 1))
def test_a_uid_is_a_uuid_of_version_7_with_its_time_in_front(at_ms: int) -> None:
    uid = uuid.UUID(new_uid(at_ms))
    assert (uid.version, uid.variant) == (7, uuid.RFC_4122)
    assert uid.int >> 80 == at_ms


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1))
def test_uids_sort_as_their_times_do(one_ms: int, other_ms: int) -> None:
    if one_ms < other_ms:
        assert new_uid(one_ms) < new_uid(other_ms)


def test_no_two_uids_are_alike() -> None:
    assert len({new_uid(5) for _ in range(1000)}) == 1000


def test_what_has_a_name_elsewhere_gets_the_same_uid_everywhere() -> None:
    once = derived_uid("chatgpt/a/1", 1_700_000_000_000)
    assert derived_uid("chatgpt/a/1", 1_700_000_000_000) == once
    assert derived_uid("chatgpt/a/2", 1_700_000_000_000) != once
    assert uuid.UUID(once).version == 7

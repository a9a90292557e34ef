"""Traits of messages, and the range of their context."""

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.conversations import Role
from app.domain.ids import part_id
from app.domain.passages import PassagePart
from app.domain.text import count_words
from app.index.message_traits import CONTEXT_WORDS, NEAR, Traits, context_range, message_traits
from tests.fakes.language import CASES
from tests.fakes.values import TEXTS


def of(text: str, role: Role = Role.USER) -> Traits:
    return message_traits(PassagePart(part_id(1, 0), role, text))


@pytest.mark.parametrize(("texts", "tells"), [(CASES["times"], True), (CASES["no_times"], False)])
def test_times_are_recognized_from_either_side(texts: tuple[str, ...], tells: bool) -> None:
    for text in texts:
        assert of(text).tells_time is of(text, Role.ASSISTANT).tells_time is tells, text
        assert not of(f"{text} {'word ' * 60}").tells_time


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Maria: I am here", "maria"), ("Ana Lee: yes", "ana lee"), ("O’Brien: yes", "o’brien"),
        ("note: this", "note"), ("Maria:", ""), ("Maria:x", ""), ("The Quick Brown Fox: no", ""),
        ("雷明轩：你好", "雷明轩"), ("李娜: 你好", "李娜"), ("12: x", ""), ("https://x.org: y", ""), ("", ""),
    ],
)  # fmt: skip
def test_what_a_colon_separates_is_a_label(text: str, label: str) -> None:
    assert of(text).label == label
    assert of(text).own_side
    assert not of(text, Role.ASSISTANT).own_side


@pytest.mark.parametrize(
    ("text", "asking", "words"),
    [
        ("Where are you?", 1.0, 3), ("I am here. Where are you?", 0.5, 6), ("I am here.", 0.0, 3),
        ("どこですか？", 1.0, 2), ("Where?! I see.", 0.0, 3), ("", 0.0, 0), ("?", 0.0, 0),
        ("don't stop", 0.0, 2), ("東京大学です", 0.0, 3), ("Grüße aus Köln", 0.0, 3),
        ("... -", 0.0, 0), ("rock 'n' roll", 0.0, 3), ("a''b", 0.0, 2), ("猫", 0.0, 1), ("a_b", 0.0, 2), ("word " * 5_000, 0.0, 1_200),
    ],
)  # fmt: skip
def test_words_and_the_share_of_questions_are_counted(text: str, asking: float, words: int) -> None:
    assert of(text).asking == pytest.approx(asking)
    assert of(text).words == words
    assert count_words(text[:6_000]) == words


TRAITS = st.builds(
    Traits, words=st.integers(0, 4095), asking=st.integers(0, 100).map(lambda share: share / 100),
    tells_time=st.booleans(), own_side=st.booleans(),
)  # fmt: skip


@given(st.lists(TRAITS, max_size=8))
def test_packed_traits_are_the_columns_of_a_table(rows: list[Traits]) -> None:
    table = Traits.table(np.array([each.packed() for each in rows], np.int64))
    for name in ("words", "asking", "tells_time", "own_side"):
        assert getattr(table, name).tolist() == [float(getattr(each, name)) for each in rows]


def unpacked(packed: int) -> Traits:
    """Return packed traits, without the label."""
    assert 0 <= packed < 2**63
    row = Traits.table(np.array([packed], np.int64))
    return Traits(
        int(row.words[0]), float(row.asking[0]), bool(row.tells_time[0]), bool(row.own_side[0])
    )  # fmt: skip


@given(TEXTS, st.sampled_from(Role))
@example("Maria: " * 5, Role.USER)
def test_any_text_has_traits_that_can_be_packed(text: str, role: Role) -> None:
    traits = of(text, role)
    again = unpacked(traits.packed())
    assert again.words == traits.words
    assert again.asking == pytest.approx(traits.asking, abs=0.005)
    assert 0 <= traits.asking <= 1


@pytest.mark.parametrize(
    "piece",
    ["a", "a ", "A'", "? ", "\n", "always ", "I would ", "1", "1/", "12:", "one ", "東", "Aa: ",
     "please ", "my ", ".!?", "last few ", "I've ", " "],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.thread_time()
    message_traits(PassagePart(part_id(1, 0), Role.USER, text))
    assert time.thread_time() - started < 0.5


@given(st.lists(st.integers(0, 200), min_size=1, max_size=12), st.integers(0, 11))
def test_a_context_is_as_wide_as_its_limits_allow(words: list[int], place: int) -> None:
    at = place % len(words)
    context = context_range(words, at)
    assert 0 <= context.start <= at < context.stop <= len(words)
    before, after = at - context.start, context.stop - 1 - at
    room = CONTEXT_WORDS - sum(words[each] for each in context)
    assert len(context) == 1 or room >= 0
    assert max(before, after) <= NEAR
    assert context.start == 0 or before == NEAR or words[context.start - 1] > room
    assert context.stop == len(words) or after == NEAR or words[context.stop] > room


@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [
        ([10] * 9, 4, range(1, 8)),
        ([50, 50, 50, 50, 50], 2, range(1, 4)),
        ([60, 60, 60, 60], 2, range(1, 3)),  # room for one: the one before
        ([10, 10, 200, 10, 10], 2, range(2, 3)),  # too long to have any
        ([10, 200, 10, 10], 2, range(2, 4)),  # a long neighbor is never cut
        ([5], 0, range(1)),
        ([50, 50, 50], 1, range(3)),  # exactly 150 words
        ([50, 50, 51], 1, range(2)),
        ([0] * 9, 0, range(4)),
    ],
)
def test_whole_neighbors_are_added_in_turn(words: list[int], at: int, expected: range) -> None:
    assert context_range(words, at) == expected

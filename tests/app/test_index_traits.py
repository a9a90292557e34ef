"""What a message is like: what it asks, tells and orders; who stands in its context."""

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.conversations import Role
from app.domain.ids import part_id
from app.domain.passages import Part
from app.index.traits import CONTEXT_WORDS, NEAR, Traits, context_of, count_words, traits_of
from tests.fakes.values import TEXTS


def of(text: str, role: Role = Role.USER) -> Traits:
    return traits_of(Part(part_id(1, 0), role, text))


@pytest.mark.parametrize(
    "text",
    [
        "We met yesterday.", "It was last Tuesday", "in 2019 she moved", "on the 3rd", "at 5 pm",
        "It took three weeks.", "2024-05-06", "06.05.2024", "A couple of days ago", "In March we",
        "recently", "next weekend", "since 1999", "the other day",
    ],
)  # fmt: skip
def test_a_message_that_tells_a_time_is_known(text: str) -> None:
    assert of(text).tells_time
    assert of(text, Role.ASSISTANT).tells_time


@pytest.mark.parametrize("text", ["We met there.", "room 2019b", "It is 5", "weekly", "agony", ""])
def test_other_numbers_and_words_are_no_time(text: str) -> None:
    assert not of(text).tells_time


@pytest.mark.parametrize(
    "text",
    [
        "Always use metric units.", "Fine. Never mention my boss.", "From now on be brief",
        "please always cite", "Whenever I ask for code, add tests.", "remember that I am vegan",
        "I'd like you to always answer in French", "When I ask about food, think of my allergy.",
        "I’d like you to never guess",
    ],
)  # fmt: skip
def test_a_standing_order_is_one_only_from_the_user(text: str) -> None:
    assert of(text).instructs
    assert not of(text, Role.ASSISTANT).instructs
    assert not of(f"Maria: {text}").instructs, "somebody in a talk between people"


@pytest.mark.parametrize("text", ["I always use metric units.", "She never called.", "Add tests."])
def test_what_merely_happens_always_is_no_order(text: str) -> None:
    assert not of(text).instructs


@pytest.mark.parametrize(
    "text",
    ["I prefer tea.", "I really love jazz", "my favourite colour", "My favorite book",
     "I've decided on blue", "I don't like crowds", "I don’t like crowds", "I'd rather walk"],
)  # fmt: skip
def test_a_preference_is_one_only_from_the_user(text: str) -> None:
    assert of(text).prefers
    assert not of(text, Role.ASSISTANT).prefers


@pytest.mark.parametrize("text", ["We prefer tea.", "She loves jazz", "I see", "an island"])
def test_what_others_like_is_no_preference(text: str) -> None:
    assert not of(text).prefers


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Maria: I am here", "maria"), ("Ana Lee: yes", "ana lee"), ("O’Brien: yes", "o’brien"),
        ("note: this", ""), ("Maria:", ""), ("Maria:x", ""), ("I said: Maria: no", ""), ("", ""),
        ("The Quick Brown: no", ""),
    ],
)  # fmt: skip
def test_a_name_before_the_words_is_the_speaker(text: str, speaker: str) -> None:
    assert of(text).speaker == speaker
    assert of(text).own_side is (not speaker)
    assert not of(text, Role.ASSISTANT).own_side


def test_the_speaker_s_name_is_none_of_the_words() -> None:
    assert of("Maria: where are you?") == Traits(3, asking=1.0, speaker="maria")


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        ("Where are you?", 1.0), ("I am here. Where are you?", 0.5), ("I am here.", 0.0),
        ("どこですか？", 1.0), ("Where?! I see.", 0.0), ("", 0.0), ("?", 0.0),
    ],
)  # fmt: skip
def test_asking_is_the_share_of_the_words_in_questions(text: str, asking: float) -> None:
    assert of(text).asking == pytest.approx(asking)


@pytest.mark.parametrize(
    ("text", "count"),
    [("don't stop", 2), ("東京大学です", 3), ("Grüße aus Köln", 3), ("", 0), ("... -", 0),
     ("猫", 1), ("a_b", 2)],
)  # fmt: skip
def test_words_are_counted_in_any_script(text: str, count: int) -> None:
    assert count_words(text) == count


TRAITS = st.builds(
    Traits,
    words=st.integers(0, 4095),
    asking=st.integers(0, 100).map(lambda share: share / 100),
    tells_time=st.booleans(),
    instructs=st.booleans(),
    prefers=st.booleans(),
    own_side=st.booleans(),
)


@given(TRAITS)
def test_traits_come_back_from_one_integer(traits: Traits) -> None:
    packed = traits.packed()
    assert Traits.unpacked(packed) == traits
    assert 0 <= packed < 2**63


@given(st.lists(TRAITS, max_size=8))
def test_a_table_of_traits_says_what_each_says(rows: list[Traits]) -> None:
    table = Traits.table(np.array([each.packed() for each in rows], np.int64))
    for name in ("words", "asking", "tells_time", "instructs", "prefers", "own_side"):
        assert getattr(table, name).tolist() == [float(getattr(each, name)) for each in rows]


@given(TEXTS, st.sampled_from(Role))
@example("Maria: " * 5, Role.USER)
def test_any_text_has_traits_that_can_be_packed(text: str, role: Role) -> None:
    traits = of(text, role)
    again = Traits.unpacked(traits.packed())
    assert again.words == traits.words
    assert again.asking == pytest.approx(traits.asking, abs=0.005)
    assert 0 <= traits.asking <= 1


@pytest.mark.parametrize(
    "piece",
    ["a", "a ", "A'", "? ", "\n", "always ", "I would ", "1", "1/", "12:", "one ", "東", "Aa: ",
     "please ", "my ", ".!?", "last few ", "I've ", " "],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_at_once(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.thread_time()
    traits_of(Part(part_id(1, 0), Role.USER, text))
    assert time.thread_time() - started < 0.5


# -- the context

ROWS = st.lists(st.integers(0, 200), min_size=1, max_size=12)


@given(ROWS, st.integers(0, 11))
def test_a_context_is_a_short_stretch_around_the_message(words: list[int], place: int) -> None:
    at = place % len(words)
    context = context_of(words, at)
    assert at in context
    assert 0 <= context.start < context.stop <= len(words)
    assert at - context.start <= NEAR
    assert context.stop - 1 - at <= NEAR
    assert len(context) == 1 or sum(words[each] for each in context) <= CONTEXT_WORDS


@given(ROWS, st.integers(0, 11))
def test_no_neighbour_is_left_out_that_there_is_room_for(words: list[int], place: int) -> None:
    at = place % len(words)
    context = context_of(words, at)
    room = CONTEXT_WORDS - sum(words[each] for each in context)
    if context.start > 0 and at - context.start < NEAR:
        assert words[context.start - 1] > room
    if context.stop < len(words) and context.stop - 1 - at < NEAR:
        assert words[context.stop] > room


@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [
        ([10] * 9, 4, range(1, 8)),
        ([50, 50, 50, 50, 50], 2, range(1, 4)),
        ([60, 60, 60, 60], 2, range(1, 3)),  # room for one: the one before
        ([10, 10, 200, 10, 10], 2, range(2, 3)),  # too long to have any
        ([10, 200, 10, 10], 2, range(2, 4)),  # a long neighbour is never cut
        ([5], 0, range(1)),
        ([50, 50, 50], 1, range(3)),  # 150 words are as many as there may be
        ([50, 50, 51], 1, range(2)),
        ([75, 75], 1, range(2)),
        ([0] * 9, 0, range(4)),
    ],
)
def test_whole_neighbours_are_taken_in_turn(words: list[int], at: int, expected: range) -> None:
    assert context_of(words, at) == expected

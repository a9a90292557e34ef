"""Text is made storable where it enters, and nothing invisible stays unsaid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.text import clean, one_line

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\ud800\udc00\udfff\x00\u202d\u202e\U0001f3f4\U000e0041\U000e007f\U000e0001"
        ),
    )
)


@given(ANY_TEXT)
def test_clean_text_can_be_stored(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert "\x00" not in cleaned


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cf"], exclude_characters="\x00")))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("a\x00b", "a\u2400b"),
        ("abc\u202etxt.exe", "abc[U+202E]txt.exe"),
        ("hi\U000e0068\U000e0069", "hi[hidden: hi]"),
        ("\U0001f3f4\U000e0068\U000e0069", "\U0001f3f4[hidden: hi]"),
        ("\U000e0001", "[hidden: ?]"),
    ],
)
def test_what_travels_unseen_is_shown(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Scotland
        "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "مرحبا", "ไทย",
    ],
)  # fmt: skip
def test_emoji_and_scripts_are_unharmed(text: str) -> None:
    assert clean(text) == text


@given(ANY_TEXT, st.integers(1, 80))
def test_a_line_is_one_line_and_never_too_long(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line == " ".join(line.split())


def test_a_long_line_is_cut_at_a_word() -> None:
    assert one_line("The quick brown fox, who jumps", 23) == "The quick brown fox…"
    assert one_line("a\n\n  b\tc", 60) == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"

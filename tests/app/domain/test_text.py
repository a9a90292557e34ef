"""Text operations (sanitizing, single lines, the word diff) and uids."""

import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import derived_uid, new_uid
from app.domain.text import DiffKind, DiffRun, clean, one_line, sentences, word_diff

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\ud800\udc00\udfff\x00\u202d\u202e\U0001f3f4\U000e0041\U000e007f\U000e0001"
        ),
    )
)


@given(ANY_TEXT)
def test_sanitized_text_can_be_stored_and_stays_the_same(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert "\x00" not in cleaned
    assert clean(cleaned) == cleaned


@given(st.text(st.characters(exclude_categories=["Cs", "Cf"], exclude_characters="\x00")))
def test_ordinary_text_is_not_changed(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "\U0001f600"), ("a\x00b", "a\u2400b"),
     ("abc\u202etxt.exe", "abc[U+202E]txt.exe"), ("hi\U000e0068\U000e0069", "hi[hidden: hi]"),
     ("\U0001f3f4\U000e0068\U000e0069", "\U0001f3f4[hidden: hi]"), ("\U000e0001", "[hidden: ?]")],
)  # fmt: skip
def test_invisible_characters_are_shown(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Scotland
        "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "مرحبا", "ไทย",
    ],
)  # fmt: skip
def test_emoji_and_scripts_are_not_changed(text: str) -> None:
    assert clean(text) == text


@given(ANY_TEXT, st.integers(1, 80))
def test_one_line_has_one_line_within_the_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line == " ".join(line.split())


def test_a_long_line_is_truncated_at_a_word() -> None:
    assert one_line("The quick brown fox, who jumps", 23) == "The quick brown fox…"
    assert one_line("a\n\n  b\tc", 60) == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"


def test_only_the_words_that_changed_are_marked() -> None:
    assert word_diff("The user drinks tea.", "The user drinks green tea!") == (
        DiffRun("The user drinks", DiffKind.KEPT), DiffRun(" green", DiffKind.ADDED),
        DiffRun(" tea", DiffKind.KEPT), DiffRun(".", DiffKind.REMOVED),
        DiffRun("!", DiffKind.ADDED),
    )  # fmt: skip


def test_long_texts_are_not_compared() -> None:
    before, after = "a " * 3_000, "b"
    assert word_diff(before, after) == (
        DiffRun(before, DiffKind.REMOVED),
        DiffRun(after, DiffKind.ADDED),
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_diff_contains_both_texts(before: str, after: str) -> None:
    found = word_diff(before, after)
    assert "".join(each.text for each in found if each.change is not DiffKind.ADDED) == before
    assert "".join(each.text for each in found if each.change is not DiffKind.REMOVED) == after


# -- uids
@given(st.integers(0, 2**48 - 2))
def test_a_uid_is_a_uuid_of_version_7_that_begins_with_its_time(at_ms: int) -> None:
    uid = uuid.UUID(derived_uid("chatgpt/a/1", at_ms))
    assert (uid.version, uid.variant) == (7, uuid.RFC_4122)
    assert uid.int >> 80 == at_ms
    assert str(uid) < derived_uid("chatgpt/a/0", at_ms + 1)


def test_new_uids_are_of_now_and_unique() -> None:
    before = derived_uid("", time.time_ns() // 1_000_000 - 1)
    made = {new_uid() for _ in range(1000)}
    assert len(made) == 1000
    assert before < min(made) <= max(made) < derived_uid("", time.time_ns() // 1_000_000 + 1)


def test_a_derived_uid_is_deterministic() -> None:
    once = derived_uid("chatgpt/a/1", 1_700_000_000_000)
    assert derived_uid("chatgpt/a/1", 1_700_000_000_000) == once
    assert derived_uid("chatgpt/a/2", 1_700_000_000_000) != once
    assert uuid.UUID(once).version == 7


@pytest.mark.parametrize(
    ("parts", "text"),
    [(("Nothing answers at x", "Is the server running?"), "Nothing answers at x. Is the server running?"),
     (("Wait\u2026", "Retry", ""), "Wait\u2026 Retry."), (("It failed.", " "), "It failed."),
     ((), "")],
)  # fmt: skip
def test_each_sentence_keeps_its_own_final_punctuation(parts: tuple[str, ...], text: str) -> None:
    assert sentences(*parts) == text

"""The search box's language is read as people type it, and refused in words."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.domain.passages import SearchQuery
from app.index.query import parse_query, sentence_query


def test_words_phrases_exclusions_and_filters_are_told_apart() -> None:
    query = parse_query(
        'flask login "session cookie" -draft -"not this" title:"my trip" tag:work model:gpt '
        "after:2024-05 before:2025-02-03 is:archived is:pinned",
        limit=7,
        zone=UTC,
    )
    assert query == SearchQuery(
        words="flask login session cookie",
        phrases=("session cookie",),
        excluded=("draft", "not this"),
        titles=("my trip",),
        tags=("work",),
        models=("gpt",),
        after=datetime(2024, 5, 1, tzinfo=UTC),
        before=datetime(2025, 2, 3, tzinfo=UTC),
        archived=True,
        pinned=True,
        limit=7,
    )


def test_filters_alone_make_a_list() -> None:
    query = parse_query("is:pinned tag:work")
    assert query.is_list
    assert parse_query("-draft").is_list
    assert not parse_query('"draft"').is_list


@pytest.mark.parametrize(
    ("text", "words", "phrases"),
    [
        ('"open to the end', "open to the end", ("open to the end",)),
        ("“smart quotes” „und deutsche“", "smart quotes und deutsche",
         ("smart quotes", "und deutsche")),
        ('say ""', "say", ()),
        ('say "!!"', "say !!", ()),
        ("std::vector at 12:30", "std::vector at 12:30", ()),
        ("http://localhost:8080", "http://localhost:8080", ()),
        ("--verbose a - b", "--verbose a b", ()),
        ("well-known e-mail", "well-known e-mail", ()),
        ("猫", "猫", ()),
        ("👍", "👍", ()),
        ("  spaced \t out ", "spaced out", ()),
        ('five"six seven"', "five six seven", ("six seven",)),
    ],
)  # fmt: skip
def test_a_query_means_what_it_looks_like(text: str, words: str, phrases: tuple[str, ...]) -> None:
    query = parse_query(text)
    assert (query.words, query.phrases) == (words, phrases)


def test_the_narrowest_of_several_dates_counts() -> None:
    query = parse_query("x1 after:2020 after:2022 before:2025 before:2024", zone=UTC)
    assert query.after == datetime(2022, 1, 1, tzinfo=UTC)
    assert query.before == datetime(2024, 1, 1, tzinfo=UTC)


def test_a_day_begins_when_it_begins_for_the_user() -> None:
    query = parse_query("after:2024-05-01", zone=timezone(timedelta(hours=2)))
    assert query.after == datetime(2024, 4, 30, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "too short"),
        ("a", "too short"),
        ("   ", "too short"),
        ("x" * 501, "501 characters"),
        ("??", "no word"),
        ('"" ""', "no word"),
        ("title:", "'title:' has no value"),
        ("title: trip", "'title:' has no value"),
        ('tag:""', "'tag:' has no value"),
        ("before:soon", "'before:soon' names no date"),
        ("after:2024-13", "'after:2024-13' names no date"),
        ("after:2023-02-29", "names no date"),
        ("before:2024-", "names no date"),
        ("after:0000", "names no date"),
        ("is:red", "no 'is:red'"),
        ("-tag:work", "'-tag:' cannot be excluded"),
    ],
)
def test_what_cannot_be_taken_is_said_with_what_to_do(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_query(text)
    assert said in refusal.value.title
    assert refusal.value.hint


@pytest.mark.parametrize("limit", [0, -1, 51])
def test_a_limit_outside_its_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 50"):
        parse_query("word", limit)


def test_the_longest_query_is_taken_and_a_megabyte_refused_at_once() -> None:
    assert parse_query("x" * 500).words
    started = time.thread_time()
    with pytest.raises(InvalidInput, match=r"999,999 characters"):
        parse_query("x " * 500_000)
    assert time.thread_time() - started < 0.1


def test_nul_and_lone_surrogates_do_not_get_through() -> None:
    query = parse_query("one\x00two \ud800three")
    assert "\x00" not in query.words
    query.words.encode()


def test_a_sentence_is_words_however_it_looks() -> None:
    query = sentence_query('What did title: mean, and -why "now"?', limit=3)
    assert query == SearchQuery(words='What did title: mean, and -why "now"?', limit=3)
    with pytest.raises(InvalidInput):
        sentence_query("...")


@given(
    st.text(alphabet=st.characters() | st.sampled_from(list('"-: titlebeforeis2024')), max_size=80)
)
def test_a_query_is_taken_or_refused_in_words(text: str) -> None:
    said = ""
    try:
        parse_query(text).words.encode()
    except InvalidInput as refusal:
        said = f"{refusal.title}{refusal.hint}"
        said.encode()
    assert not said or len(said) > 20

"""The search language: words, phrases, exclusions, filters and invalid queries."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.domain.passages import SearchQuery
from app.index.query import filter_text, filters_in, parse_query, sentence_query


def test_words_phrases_exclusions_and_filters_are_separated() -> None:
    query = parse_query(
        'flask login "session cookie" -draft -"not this" title:"my trip" tag:work model:gpt '
        "source:chatgpt after:2024-05 after:2020 before:2025-02-03 before:2026 is:archived is:pinned",
        limit=7,
        zone=UTC,
    )
    assert query == SearchQuery(
        words="flask login session cookie", phrases=("session cookie",),
        excluded=("draft", "not this"), titles=("my trip",), tags=("work",), models=("gpt",),
        sources=("chatgpt",),
        after=datetime(2024, 5, 1, tzinfo=UTC), before=datetime(2025, 2, 3, tzinfo=UTC),
        archived=True, pinned=True, limit=7,
    )  # fmt: skip
    zone = timezone(timedelta(hours=2))
    assert parse_query("after:2024-05-01", zone=zone).after == datetime(2024, 4, 30, 22, tzinfo=UTC)
    lists = [parse_query(text).is_list for text in ("is:pinned tag:work", "-draft", '"draft"')]
    assert lists == [True, True, False]


def test_valid_filters_are_found_where_they_are_typed() -> None:
    text = 'rye TAG:work "tag:no" -tag:no is:purple title:"my trip" after:soon before:2025 tag:'
    found = filters_in(text)
    assert [(each.key, each.value) for each in found] == [
        ("tag", "work"), ("title", "my trip"), ("before", "2025"),
    ]  # fmt: skip
    assert [text[each.start : each.end] for each in found] == [each.text for each in found]
    assert found[1].text == filter_text("title", ' my "trip"') == 'title:"my trip"'
    assert filter_text("tag", "work") == "tag:work"


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
        ("one\x00two", "one␀two", ()),
    ],
)  # fmt: skip
def test_words_and_phrases_are_as_typed(text: str, words: str, phrases: tuple[str, ...]) -> None:
    query = parse_query(text)
    assert (query.words, query.phrases) == (words, phrases)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"), ("a", "'a'"), ("   ", "''"), ("x" * 501, "501"), ("??", "'??'"),
        ('"" ""', '"" ""'), ("title:", "'title:'"), ("title: trip", "'title:'"),
        ('tag:""', "'tag:'"), ("before:soon", "'before:soon'"), ("after:2024-13", "'after:2024-13'"),
        ("after:2023-02-29", "'after:2023-02-29'"), ("before:2024-", "'before:2024-'"),
        ("after:0000", "'after:0000'"), ("is:red", "'is:red'"), ("-tag:work", "'-tag:'"),
    ],
)  # fmt: skip
def test_invalid_queries_are_quoted_with_a_hint(text: str, quoted: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_query(text)
    assert quoted in str(refusal.value)
    assert refusal.value.hint


@pytest.mark.parametrize("limit", [0, -1, 51])
def test_a_limit_outside_its_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 50"):
        parse_query("word", limit)


def test_the_longest_query_is_accepted_and_a_megabyte_refused_at_once() -> None:
    assert parse_query("x" * 500, 50).words
    started = time.thread_time()
    with pytest.raises(InvalidInput, match=r"999,999 characters"):
        parse_query("x " * 500_000)
    assert time.thread_time() - started < 0.1


def test_a_sentence_is_words_only() -> None:
    query = sentence_query('What did title: mean, and -why "now"?', limit=3)
    assert query == SearchQuery(words='What did title: mean, and -why "now"?', limit=3)
    with pytest.raises(InvalidInput):
        sentence_query("...")


@given(
    st.text(alphabet=st.characters() | st.sampled_from(list('"-: titlebeforeis2024')), max_size=80)
)
def test_any_query_is_parsed_or_refused_with_a_message(text: str) -> None:
    message = ""
    try:
        parse_query(text).words.encode()
    except InvalidInput as refusal:
        message = f"{refusal.title}{refusal.hint}"
    assert not message or len(message.encode()) > 20

"""Terms of texts and queries in any language, languages, dates, in linear time."""

import base64
import os
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.analyzer import (
    SLICE_CHARS,
    analyze,
    chunk_spans,
    chunk_terms,
    query_languages,
    query_words,
    slices,
    surface_words_of,
)
from app.language.languages import is_english, is_stop_word, language_of
from app.language.word_forms import MAX_TERM_CHARS
from tests.fakes.language import CASES
from tests.fakes.values import TEXTS


def terms(text: str, language: str = "english") -> set[str]:
    return set(analyze(text, language).terms.split())


def query_terms(text: str, *likely: str) -> list[str]:
    return [word.terms[0] for word in query_words(text, query_languages(text, likely))]


def meet(text: str, query: str, language: str = "english") -> bool:
    """Whether every word of the query, by any of its terms, is among those of the text."""
    known = terms(text, language)
    words = query_words(query, query_languages(query, (language,)))
    return bool(words) and all(known & set(word.terms) for word in words)


@pytest.mark.parametrize(("language", "text", "query"), CASES["word_forms"])
def test_a_word_is_found_in_its_other_forms(language: str, text: str, query: str) -> None:
    assert meet(text, query, language)


@pytest.mark.parametrize(("identifier", "queries"), CASES["identifiers"])
def test_an_identifier_is_found_whole_and_in_parts(identifier: str, queries: list[str]) -> None:
    for query in queries:
        assert meet(f"then {identifier} came", query), query


def test_a_query_for_an_identifier_does_not_ask_for_its_splinters() -> None:
    assert query_terms("v2") == ["v2"]
    (version,) = query_words("3.11.7", ("english",))
    assert version.parts == ()
    (name,) = query_words("getUserName", ("english",))
    assert [part.terms[0] for part in name.parts] == ["get", "user", "name"]
    (word,) = query_words("Häusern", query_languages("Häusern", ("english", "german")))
    assert {"häusern", "haus"} <= set(word.terms), "the stems of all likely languages"


def test_stop_words_are_left_out_of_a_query_unless_there_are_no_others() -> None:
    assert query_terms("What did she say about the garden?") == ["say", "garden"]
    assert query_terms("whats my new job, didnt I say pls") == ["new", "job", "say"]
    assert query_terms("Was ist die Versicherung?") == ["versicherung"]
    assert query_terms("Wohin möchten wir denn mal fahren?") == ["fahren"]
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]
    assert query_terms("что такое любовь") == ["такое", "любовь"]
    assert query_terms("什么血型？") == ["么血", "血型"]
    assert query_terms("무엇인가요? 직업") == ["엇인", "직업"]
    assert query_terms("什么") == ["什么"]


def test_a_stem_that_is_a_stop_word_is_not_searched() -> None:
    (sea,) = query_words("deniz", ("turkish",))
    assert "deniz" in sea.terms
    assert "de" not in sea.terms


def test_surface_words_are_unstemmed_in_order_and_single_characters_without_spaces() -> None:
    words = ["the", "running", "dogs", "of", "snake_case", "e", "mail"]
    assert surface_words_of("The running dogs of snake_case, e-mail!") == words
    assert surface_words_of("東京の猫") == ["東", "京", "の", "猫"]
    assert len(surface_words_of("लड़कियों को")) == 2, "combining marks belong to their words"
    (word,) = query_words("猫", ("english",))
    assert word.is_character


@pytest.mark.parametrize(("text", "language"), CASES["languages"])
def test_the_language_is_recognized_by_its_stop_words(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "expected"),
    [("What is the name of the dentist?", True), ("Wie heißt der neue Zahnarzt?", False),
     ("我昨天去了医院。", False), ("Где мои ключи?", False), ("print(x[0]); y = 3", None), ("ok 👍", None),
     ("", None)],
)  # fmt: skip
def test_english_is_told_from_other_languages_and_code(text: str, expected: bool | None) -> None:
    assert is_english(text) is expected


def test_a_stop_word_belongs_to_its_own_script() -> None:
    assert is_stop_word("und", "german")
    assert not is_stop_word("und", "english")
    assert is_stop_word("это", "english")
    assert is_stop_word("של", "english")
    assert is_stop_word("什么", "english")
    assert is_stop_word("ở", "vietnamese")
    assert not is_stop_word("東京", "english")


def test_long_words_are_cut_and_random_strings_and_encoded_files_are_one_word() -> None:
    assert 0 < max(map(len, terms("x" * 5000))) <= MAX_TERM_CHARS
    assert len(terms("aB1cD2eF3gH4iJ5kL6mN7oP8")) == 1
    encoded = base64.b64encode(random.Random(1).randbytes(100_000)).decode()
    found = terms(f'{{"name":"chart.png","data":"data:image/png;base64,{encoded}"}}')
    assert {"chart", "png", "image", "base64"} <= found
    assert len(found) < 20


def test_long_texts_go_in_slices_that_lose_nothing() -> None:
    text = "word " * 50_000 + "x" * 100_000
    pieces = list(slices(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= SLICE_CHARS
    assert analyze(text, "english").terms.count("word") == 50_000


@given(st.text(), st.sampled_from(["english", "german", "turkish", "arabic"]))
def test_analysis_is_total_and_yields_whole_terms(text: str, language: str) -> None:
    made = analyze(text, language)
    for term in (*made.terms.split(), *made.surface.split()):
        assert 0 < len(term) <= MAX_TERM_CHARS
        term.encode()  # no lone surrogate gets through
    query_words(text, query_languages(text))


@given(st.text(max_size=60))
def test_chunks_are_in_place_and_a_text_is_found_by_itself(text: str) -> None:
    last = 0
    found = terms(text)
    for start, end, chunk in chunk_spans(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == chunk
        assert set(chunk_terms(chunk, "english")) <= terms(chunk)
        last = end
    for word in query_words(text, ("english",)) if len(text) > 1 else ():
        assert found & set(word.terms) or word.is_character


HOSTILE = ["a", "aB3/", "a.", "'a", "東", "é", "a\u0301", "x-", "https://a/", "1,", "_", "👍", "#+"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    """Eight times the text may take thirty times as long, which nothing quadratic does."""

    def seconds(characters: int) -> float:
        text = unit * (characters // len(unit))
        started = time.thread_time()
        analyze(text, "english")
        return time.thread_time() - started

    seconds(20_000)
    assert seconds(800_000) < 30 * max(seconds(100_000), 0.001)


def test_the_language_of_a_tie_is_the_same_in_every_run() -> None:
    code = "from app.language.languages import language_of; print(language_of('seine what jejich'))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True, text=True, check=True,
        )
        for seed in range(4)
    ]  # fmt: skip
    assert len({ran.stdout for ran in runs}) == 1


@given(TEXTS, st.sampled_from(["english", "german"]))
def test_a_text_has_the_terms_of_its_chunks(text: str, language: str) -> None:
    expected = " ".join(
        term for _, _, chunk in chunk_spans(text) for term in chunk_terms(chunk, language)
    )
    assert analyze(text, language).terms == expected

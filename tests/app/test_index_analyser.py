"""Words become the same terms in a text and in a query, in any language, in linear time."""

import base64
import random
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.index.analyser import (
    SLICE_CHARS,
    analyse,
    chunk_spans,
    query_languages,
    slices,
    surface_of,
    terms_of,
    wanted_words,
)
from app.index.dates import date_terms, month_term
from app.index.languages import is_stop_word, language_of
from app.index.word_forms import MAX_TERM_CHARS


def terms(text: str, language: str = "english") -> set[str]:
    return set(analyse(text, language).terms.split())


def wanted(text: str, *likely: str) -> list[str]:
    return [word.terms[0] for word in wanted_words(text, query_languages(text, likely))]


def meet(text: str, query: str, language: str = "english") -> bool:
    """Whether every word of the query, by any of its terms, is among those of the text."""
    held = terms(text, language)
    words = wanted_words(query, query_languages(query, (language,)))
    return bool(words) and all(held & set(word.terms) for word in words)


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("english", "She was running home", "runs"),
        ("english", "Caroline's paintings", "caroline painted"),
        ("german", "Die Häuser am See", "Haus"),
        ("german", "die alte Straße", "STRASSE"),
        ("german", "Herr Müller", "Mueller"),
        ("german", "Herr Müller", "Muller"),
        ("french", "Ils parlent de l'amour", "amour"),
        ("french", "les chevaux", "cheval"),
        ("spanish", "la canción más bonita", "cancion"),
        ("russian", "Кошки спали на диване", "кошка диван"),
        ("russian", "Ёлка", "елка"),
        ("greek", "τα σπίτια", "σπίτι"),
        ("arabic", "المكتبات الكبيرة", "مكتبة"),
        ("hindi", "लड़कियों को", "लड़की"),
        ("turkish", "IŞIK yandı", "ışık"),
        ("turkish", "ışık yandı", "isik"),
        ("turkish", "İstanbul'da", "istanbul"),
        ("english", "日本語の東京大学", "東京"),
        ("english", "我喜欢学习中文", "学习"),
        ("english", "แมวอยู่บนเตียง", "แมว"),
        ("english", "학교에서 공부했다", "학교"),
        ("english", "ﬁne Ｆｕｌｌ width", "fine full"),
        ("english", "cafe\u0301", "café"),
    ],
)
def test_a_word_is_found_in_its_other_forms(language: str, text: str, query: str) -> None:
    assert meet(text, query, language)


@pytest.mark.parametrize(
    ("identifier", "queries"),
    [
        ("getUserName", ["getUserName", "getusername", "user", "username", "USER NAME"]),
        ("snake_case_name", ["snake_case_name", "snake", "case name"]),
        ("HTTPServer2", ["HTTPServer2", "http", "server"]),
        ("E1234", ["E1234", "e1234", "1234"]),
        ("3.11.7", ["3.11.7", "3.11"]),
        ("/usr/local/bin/python3.11", ["python3.11", "usr", "/usr/local/bin/python3.11", "python"]),
        ("https://example.com/a/index.html?x=1", ["example.com", "index.html", "example"]),
        ("john.doe@example.com", ["john.doe@example.com", "john.doe", "doe", "example.com"]),
        ("std::vector", ["std::vector", "vector"]),
        ("C++", ["C++", "c++"]),
        ("e-mail", ["email", "e-mail", "mail"]),
        ("U.S.A.", ["usa", "U.S.A."]),
        ("10,000", ["10000", "10,000"]),
        ("2023-05-08", ["2023-05-08", "2023-05", "2023"]),
        ("👩‍💻", ["💻"]),
        ("🇩🇪", ["🇩🇪"]),
    ],
)
def test_an_identifier_is_found_whole_and_in_parts(identifier: str, queries: list[str]) -> None:
    for query in queries:
        assert meet(f"then {identifier} came", query), query


def test_a_query_for_an_identifier_does_not_ask_for_its_splinters() -> None:
    assert wanted("v2") == ["v2"]
    (version,) = wanted_words("3.11.7", ("english",))
    assert version.parts == ()
    (name,) = wanted_words("getUserName", ("english",))
    assert [part.terms[0] for part in name.parts] == ["get", "user", "name"]


def test_small_words_are_left_out_of_a_query_unless_there_are_no_others() -> None:
    assert wanted("What did she say about the garden?") == ["say", "garden"]
    assert wanted("Was ist die Versicherung?") == ["versicherung"]
    assert wanted("to be or not to be") == ["to", "be", "or", "not"]
    assert wanted("что такое любовь") == ["такое", "любовь"]


def test_a_single_character_of_a_script_without_spaces_is_looked_up_as_it_stands() -> None:
    (word,) = wanted_words("猫", ("english",))
    assert word.is_character
    assert surface_of("東京の猫") == ["東", "京", "の", "猫"]


def test_a_query_in_no_known_language_takes_the_stems_of_the_likely_ones() -> None:
    (word,) = wanted_words("Häusern", query_languages("Häusern", ("english", "german")))
    assert {"häusern", "haus"} <= set(word.terms)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I would like to know what the best way is", "english"),
        ("Ich möchte wissen, was der beste Weg ist", "german"),
        ("Je voudrais savoir quelle est la meilleure façon", "french"),
        ("Quiero saber cuál es la mejor manera", "spanish"),
        ("Vorrei sapere qual è il modo migliore", "italian"),
        ("Eu gostaria de saber qual é a melhor maneira", "portuguese"),
        ("Ik wil graag weten wat de beste manier is", "dutch"),
        ("Jag vill veta vad som är bäst för mig", "swedish"),
        ("Haluan tietää, mikä on paras tapa ja miksi", "finnish"),
        ("Chcę wiedzieć, jaki jest najlepszy sposób", "polish"),
        ("En iyi yolun ne olduğunu bilmek istiyorum", "turkish"),
        ("Szeretném tudni, mi a legjobb módja ennek", "hungarian"),
        ("qwertz asdf", "english"),
        ("", "english"),
    ],
)
def test_the_language_is_told_by_its_small_words(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_stop_word_belongs_to_its_own_script() -> None:
    assert is_stop_word("und", "german")
    assert not is_stop_word("und", "english")
    assert is_stop_word("это", "english")
    assert not is_stop_word("東京", "english")


def test_a_phrase_keeps_words_as_they_stand_in_order() -> None:
    assert surface_of("The running dogs of snake_case, e-mail!") == [
        "the", "running", "dogs", "of", "snake_case", "e", "mail",
    ]  # fmt: skip


def test_a_month_is_found_by_its_name_in_other_languages() -> None:
    dated = date_terms(datetime(2023, 5, 8, tzinfo=UTC)).split()
    assert {month_term("may"), month_term("mai"), month_term("мая")} == {"month=5"}
    assert {"month=5", "2023", "2023-05", "2023-05-08", "8"} == set(dated)
    assert month_term("maybe") is None


def test_long_words_are_cut_and_random_strings_not_taken_apart() -> None:
    held = terms("x" * 5000)
    assert held
    assert max(map(len, held)) <= MAX_TERM_CHARS
    assert len(terms("aB1cD2eF3gH4iJ5kL6mN7oP8")) == 1


def test_an_encoded_file_is_one_word() -> None:
    encoded = base64.b64encode(random.Random(1).randbytes(100_000)).decode()
    held = terms(f'{{"name":"chart.png","data":"data:image/png;base64,{encoded}"}}')
    assert {"chart", "png", "image", "base64"} <= held
    assert len(held) < 20


def test_long_texts_go_in_slices_that_lose_nothing() -> None:
    text = "word " * 50_000 + "x" * 100_000
    pieces = list(slices(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= SLICE_CHARS
    assert analyse(text, "english").terms.count("word") == 50_000


@given(st.text(), st.sampled_from(["english", "german", "turkish", "arabic"]))
def test_analysis_is_total_and_yields_whole_terms(text: str, language: str) -> None:
    made = analyse(text, language)
    for term in (*made.terms.split(), *made.surface.split()):
        assert 0 < len(term) <= MAX_TERM_CHARS
        term.encode()  # no lone surrogate gets through
    wanted_words(text, query_languages(text))


@given(st.text(max_size=60))
def test_every_chunk_stands_where_it_is_said_to(text: str) -> None:
    last = 0
    for start, end, chunk in chunk_spans(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == chunk
        assert set(terms_of(chunk, "english")) <= terms(chunk)
        last = end


@given(st.text(min_size=2, max_size=40))
def test_a_text_is_found_by_itself(text: str) -> None:
    held = terms(text)
    for word in wanted_words(text, ("english",)):
        assert held & set(word.terms) or word.is_character


HOSTILE = ["a", "aB3/", "a.", "'a", "東", "é", "a\u0301", "x-", "https://a/", "1,", "_", "👍", "#+"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    """Eight times the text may take thirty times as long, which nothing quadratic does."""

    def seconds(characters: int) -> float:
        text = unit * (characters // len(unit))
        started = time.thread_time()
        analyse(text, "english")
        return time.thread_time() - started

    seconds(20_000)
    assert seconds(800_000) < 30 * max(seconds(100_000), 0.001)

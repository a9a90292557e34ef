"""Snippets: the excerpt, its marks, and Markdown removed."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.domain.passages import SearchQuery
from app.index.query import parse_query
from app.index.snippets import SNIPPET_CHARS, Snippet, snippet
from app.language.titles import strip_markdown

FILLER = "Nothing of note was said that day, only small talk. "


def cut(text: str, query: str | SearchQuery, limit: int = SNIPPET_CHARS) -> Snippet:
    return snippet(text, parse_query(query) if isinstance(query, str) else query, limit)


def marked(made: Snippet) -> list[str]:
    return [made.text[start:end] for start, end in made.marks]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("She paints while running", "painted runs", ["paints", "running"]),
        ("Die Häuser und die Krankenversicherung", "Haus Versicherung",
         ["Häuser", "Krankenversicherung"]),
        ("東京大学の学生は東京にいる。猫", "東京大学 猫", ["東京大学", "東京", "猫"]),
        ("แมวอยู่บนเตียง", "แมว", ["แมว"]),
        ("Кошки спали", "кошка", ["Кошки"]),
        ("المكتبات الكبيرة", "مكتبة", ["المكتبات"]),
        ("IŞIKLAR yandı", "ışık", ["IŞIKLAR"]),
        ("call getUserName() now", "username", ["getUserName"]),
        ("version 3.11.7 of python3", "3.11.7", ["3.11.7"]),
        ("cafe\u0301 noir", "café", ["cafe\u0301"]),
        ("good 👍🏽 work", "👍", ["👍"]),
        ("the transgenic mice", "transg", ["transgenic"]),
        ("to be or not to be", '"not to be"', ["to", "be", "not to be"]),
        ("what is this about", '"is this"', ["is this"]),
        ("ｆｕｌｌ width", "full", ["ｆｕｌｌ"]),
        ("nothing here", "absent", []),
        (FILLER * 10 + "\n\n- Use **Flask** with `SQLAlchemy`\n\n" + FILLER * 10, "sqlalchemy",
         ["SQLAlchemy"]),
    ],
)  # fmt: skip
def test_marks_are_the_words_that_match(text: str, query: str, expected: list[str]) -> None:
    made = cut(text, query)
    assert marked(made) == expected
    assert "**" not in made.text


def test_markdown_is_removed() -> None:
    text = (
        "## The **plan**\n\n> quoted\n\n- [x] buy `milk`\n* and ~~tea~~\n\n"
        "| a | b |\n|---|:-:|\n| one | two |\n\n```python\nx = a * b\n```\n---\n"
        "See [the docs](https://example.com/a_(b)) and ![a chart](chart.png), 2 * 3, __init__."
    )
    assert strip_markdown(text) == (
        "The plan quoted buy milk and tea a · b; one · two; x = a * b "
        "See the docs and a chart, 2 * 3, __init__."
    )


def test_characters_with_marks_flags_and_emoji_are_not_split() -> None:
    assert not cut("é" * 3 + "e\u0301" * 500, "absent").text.removesuffix("…").endswith("e")
    assert len(cut("🇩🇪" * 300, "absent").text.removesuffix("…")) % 2 == 0
    assert cut("👩\u200d💻" * 200, "absent").text.removesuffix("…").endswith("💻")
    assert cut("👍🏽" * 300, "absent").text.removesuffix("…").endswith("🏽")


def test_the_end_of_ten_megabytes_is_read_in_linear_time() -> None:
    text = "lorem ipsum dolor sit amet " * 400_000 + "here is the needle"
    started = time.thread_time()
    assert marked(cut(text, "needle dolor"))[-1] == "needle"
    assert time.thread_time() - started < 5


@given(
    st.text(
        alphabet=st.characters() | st.sampled_from(list("*`#| \n-[]()猫東👍é\u0301aab")),
        max_size=900,
    ),
    st.text(alphabet=st.characters() | st.sampled_from(list('"-ab 猫東')), min_size=2, max_size=30),
    st.integers(min_value=20, max_value=250),
)
def test_marks_are_inside_the_snippet_in_order_and_apart(text: str, typed: str, limit: int) -> None:
    try:
        query = parse_query(typed)
    except InvalidInput:
        query = SearchQuery(words="ab 猫 東")
    made = cut(text, query, limit)
    assert len(made.text) <= limit
    assert "\n" not in made.text
    last = -1
    for start, end in made.marks:
        assert last < start < end <= len(made.text)
        last = end

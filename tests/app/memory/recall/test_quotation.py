"""Quotation: the units of a text, their worth for a question, and excerpts with their structure."""

import pytest

from app.domain.recall import QuoteUnit
from app.index.query import sentence_query
from app.memory.recall.quotation import excerpt, quote_units

TEXT = """The harbour is old. Dr. Brandt lives there, e.g. in winter!

| Ferry | Price |
|---|---|
| north | 12 euros |
| south | 9 euros |

1. Buy a ticket.
- Board early. Sit left.

```sh
ferry --north
ferry --south
```
船は二隻あります。値段は十二ユーロです。"""
LINES = [
    "The harbour is old.", "Dr. Brandt lives there, e.g. in winter!", "| Ferry | Price |", "|---|---|",
    "| north | 12 euros |", "| south | 9 euros |", "1.", "Buy a ticket.", "- Board early.", "Sit left.",
    "```sh", "ferry --north", "ferry --south", "```", "船は二隻あります。", "値段は十二ユーロです。",
]  # fmt: skip


def units_for(text: str, question: str = "harbour") -> tuple[QuoteUnit, ...]:
    query = sentence_query(question)
    words = question.casefold().replace("?", "").split()
    (units,) = quote_units([text], query, dict.fromkeys(words, 1.0))
    return units


def test_a_text_is_divided_into_sentences_rows_and_lines() -> None:
    texts = [each.text for each in units_for(TEXT)]
    joined = [each for each in LINES if each != "1."]
    joined[joined.index("Buy a ticket.")] = "1. Buy a ticket."
    assert texts == joined


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("The harbour", "The harbour is old. …"),
     ("Dr. Brandt", "… Dr. Brandt lives there, e.g. in winter!\n…"),
     ("| south", "…\n| Ferry | Price |\n|---|---|\n…\n| south | 9 euros |\n…"),
     ("Sit left", "… Sit left.\n…"), ("```sh", "…\n```sh\nferry --north\n…\n```\n…"), ("ferry --south", "…\n```sh\n…\nferry --south\n```\n…"),
     ("値段", "…値段は十二ユーロです。")],
)  # fmt: skip
def test_an_excerpt_keeps_structure_and_marks_what_is_left_out(chosen: str, expected: str) -> None:
    units = units_for(TEXT)
    place = next(at for at, each in enumerate(units) if each.text.startswith(chosen))
    assert excerpt(units, [place]) == expected
    assert excerpt(units, range(len(units))) == TEXT.replace("\n\n", "\n")
    assert excerpt(units, []) == ""


def test_a_unit_is_worth_its_words_and_some_of_its_neighbors() -> None:
    text = "All was calm that day. Does the ferry cost much? It is twelve euros. We left late at night."
    calm, asked, answer, late = (each.worth for each in units_for(text, "ferry cost"))
    assert asked == max(calm, asked, answer, late)
    assert asked > answer > late > 0
    assert all(each.worth == 0 for each in units_for("Nothing of it. At all.", "ferry cost"))


@pytest.mark.parametrize(
    "block",
    [
        "- The wind was far too strong for it again.\n- And then there was the strike of the crew.",
        "| In which month the company gave which reason |\n|---|\n| The wind was too strong in May and in June |",
        "1. The wind was far too strong for it again.\n   And then there was the strike of the crew.",
    ],
)
def test_what_a_line_introduces_is_worth_nearly_as_much_as_the_line(block: str) -> None:
    lead, *listed, late = units_for(
        f"The **ferry stops for these reasons:**\n\n{block}\n\nWe left late on Monday in the rain.",
        "ferry stops",
    )
    assert late.worth < 0.3 * lead.worth
    assert [each for each in listed if 0 < each.worth < 0.8 * lead.worth] == []


def test_a_paragraph_is_introduced_by_its_first_sentence_only() -> None:
    text = "The ferry stops for a reason:\nThe wind was too strong for it. We left late on Monday in the rain."
    _, reason, late = units_for(text, "ferry stops")
    assert reason.worth > 2 * late.worth


def test_the_next_text_is_a_neighbor_and_a_long_one_is_read_around_the_words() -> None:
    query, weights = sentence_query("ferry cost"), {"ferry": 1.0, "cost": 1.0}
    _, (reply, *_) = quote_units(
        ["What does the ferry cost?", "Twelve euros, both ways, as of May."], query, weights
    )
    assert reply.worth > 0
    long = "Nothing happened today at all. " * 4_000
    (units,) = quote_units([f"{long}The ferry cost me twelve. {long}"], query, weights)
    assert max(units, key=lambda each: each.worth).text == "The ferry cost me twelve."
    assert sum(len(each.text) for each in units) < 20_000


@pytest.mark.parametrize("month", ["March", "März"])
def test_a_row_with_a_date_in_digits_is_worth_quoting_for_its_month(month: str) -> None:
    rows = [
        f"| 2026-{n:02}-14 | repair of the old harbour wall | {n}00 euros |" for n in range(1, 7)
    ]
    units = units_for("\n".join(["| Day | Work | Cost |", "| --- | --- | --- |", *rows]), month)
    assert max(units, key=lambda each: each.worth).text == rows[2]

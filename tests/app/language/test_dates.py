"""Dates that questions name in ten languages, and the terms near them."""

import time
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.analyzer import analyze
from app.language.date_phrases import asks_for_time, named_dates, tells_time
from app.language.date_terms import date_terms, month_term, near_dates, written_date_terms
from app.language.date_words import _vocabulary, may_tell_time
from tests.fakes.values import TEXTS

CASES = tomllib.loads((Path(__file__).parents[2] / "data/dates.toml").read_text(encoding="utf-8"))
TODAY = date(2024, 5, 15)  # a Wednesday


def named(text: str) -> str:
    """Return the dates that a text names, as the cases write them."""
    return ", ".join(
        f"month={each}" if isinstance(each, int) else " ".join(map(str, dict.fromkeys(each)))
        for each in named_dates(text, TODAY)
    )


@pytest.mark.parametrize(("text", "days"), CASES["dates"])
def test_a_question_names_dates_in_any_of_ten_languages(text: str, days: str) -> None:
    assert named(text) == days
    assert tells_time(text)


@pytest.mark.parametrize("text", CASES["no_dates"])
def test_other_words_numbers_and_times_to_come_are_no_dates(text: str) -> None:
    assert named(text) == ""


@pytest.mark.parametrize(
    "text", ["on 3 March", "am 3. März", "am 3.3.", "le 3 mars", "3月3日", "三月三日"]
)
def test_a_day_without_a_year_is_one_of_the_last_ten_years(text: str) -> None:
    assert named(text) == ", ".join(f"{year}-03-03" for year in range(2015, 2025))
    assert named(f"{text}, 2019") == named(f"2019: {text}") == "2019-03-03"


@pytest.mark.parametrize(
    ("text", "today", "days"),
    [("last Wednesday", TODAY, "2024-05-08"), ("on Wednesday", TODAY, "2024-05-15"),
     ("last month", date(2024, 1, 31), "2023-12-01 2023-12-31"),
     ("last week", date(2024, 1, 1), "2023-12-25 2023-12-31"),
     ("last May", TODAY, "2023-05-01 2023-05-31"),
     ("last winter", date(2024, 2, 1), "2022-12-01 2023-02-28"),
     ("last winter", date(2024, 3, 1), "2023-12-01 2024-02-29"),
     ("this winter", date(2024, 2, 1), "2023-12-01 2024-02-29"),
     ("this spring", TODAY, "2024-03-01 2024-05-31")],
)  # fmt: skip
def test_a_relative_date_depends_on_the_day_of_asking(text: str, today: date, days: str) -> None:
    found = [
        " ".join(map(str, dict.fromkeys(each)))
        for each in named_dates(text, today)
        if not isinstance(each, int)
    ]
    assert ", ".join(found) == days


@given(TEXTS)
def test_any_text_can_be_read(text: str) -> None:
    for each in named_dates(text, TODAY):
        assert each in range(1, 13) if isinstance(each, int) else each[0] <= each[1]


def test_a_long_text_is_read_at_once() -> None:
    for unit in ("1 ", "a last ", "in on ", "三", "2024年", "3 May ", "1/"):
        started = time.thread_time()
        list(named_dates(unit * 5_000, TODAY))
        assert time.thread_time() - started < 0.5, unit


def test_what_no_calendar_holds_is_no_date() -> None:
    for text in (
        "2024-13-45",
        "0000-00",
        "31.02.2024",
        "9999-12-31",
        "0001-01",
        "9999 years ago",
        "999999999 years ago",
        "45/45/2024",
    ):
        assert named(text) == "", text
        assert near_dates(text, TODAY) == {}


@pytest.mark.parametrize(
    ("is_told", "expected", "texts"),
    [
        (asks_for_time, True,
         ["When did it rain?", "Wann hat es geregnet?", "Quand a-t-il plu ?", "¿Cuándo llovió?",
          "Quando è piovuto?", "Quando choveu?", "Wanneer regende het?", "Когда шёл дождь?",
          "什么时候下雨的？", "いつ雨が降った？", "Wie lange war ich dort?", "多久了",
          "In welchem Jahr war das?"]),
        (asks_for_time, False,
         ["Where did it rain?", "Wo hat es geregnet?", "Où a-t-il plu ?", "哪里下雨？", "いつも雨だ"]),
        (tells_time, True,
         ["drei Wochen lang", "um 17:30", "gestern", "vor kurzem", "la semaine prochaine",
          "durante dos meses", "recentemente", "lunedì", "в пятницу", "两个小时", "周三", "来週", "月曜日",
          "3日"]),
    ],
    ids=["a question for a time", "another question", "a message with a time"],
)  # fmt: skip
def test_times_are_recognized_in_ten_languages(
    is_told: Callable[[str], bool], expected: bool, texts: list[str]
) -> None:
    assert [text for text in texts if is_told(text) != expected] == []


@given(st.lists(st.sampled_from([*_vocabulary()[0], "hello", "x", "'", ",", ".", "3"]), max_size=5))
def test_a_text_is_refused_at_once_only_if_its_symbols_tell_no_time(words: list[str]) -> None:
    text = " ".join(words).encode("ascii", "ignore").decode()
    assert may_tell_time(text) or not tells_time(f"{text} \N{LATIN SMALL LETTER E WITH ACUTE}")


# -- terms
def test_a_month_has_one_term_in_all_languages() -> None:
    terms_of_day = date_terms(datetime(2023, 5, 8, 12, tzinfo=UTC)).split()
    assert {month_term("may"), month_term("mai"), month_term("мая")} == {"month=5"}
    assert {"month=5", "2023", "2023-05", "2023-05-08", "8"} == set(terms_of_day)
    assert month_term("maybe") is None


@pytest.mark.parametrize(
    ("word", "terms"),
    [("2026-03-14", "month=3 2026-03 2026-03-14"),
     ("2026-03-14T09:30:00Z", "month=3 2026-03 2026-03-14"),
     ("14.03.2026", "month=3 2026-03 2026-03-14"),
     ("4/3/2026", "month=4 2026-04 2026-04-03 month=3 2026-03 2026-03-04"),
     ("2026-03", "month=3 2026-03"), ("2026-13-14", ""), ("3.11.7", ""),
     ("20.10.12", "month=10 2012-10 2012-10-20"), ("20.10.12.pdf", "month=10 2012-10 2012-10-20"),
     ("Strom_20.10.12.pdf", "month=10 2012-10 2012-10-20"), ("2026-03-14_Strom.pdf", "month=3 2026-03 2026-03-14"),
     ("24.03.26", "month=3 2026-03 2026-03-24"), ("20.13.12", ""),
     ("2024.1.3", ""), ("2024.01.03", "month=1 2024-01 2024-01-03"), ("192.168.1.14", ""),
     ("2026-03-14-draft", "")],
)  # fmt: skip
def test_a_date_in_digits_has_the_terms_of_its_month_and_day(word: str, terms: str) -> None:
    years = {each[:4] for each in terms.split() if each[0] == "2"}
    assert set(written_date_terms(word)) == {*terms.split(), *years}
    found = set(analyze(f"On ({word}),", "english").terms.split())
    assert set(terms.split()) <= found
    assert bool(terms) is any(each.startswith("month=") for each in found)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the system's zone cannot be set here")
def test_the_terms_of_a_message_are_those_of_the_local_day(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as system:
        system.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        terms = date_terms(datetime(2023, 5, 31, 20, tzinfo=UTC)).split()
        last = date_terms(datetime.max.replace(tzinfo=UTC)).split()
    time.tzset()
    assert terms == ["1", "month=6", "2023", "2023-06", "2023-06-01"]
    assert last[-1] == "9999-12-31", "which is in year 10,000 there"


def test_nearness_falls_by_the_day_and_lasts_for_the_weeks_after() -> None:
    near = near_dates("on 20 December 2023", TODAY)
    assert near["2023-12-20"] == 1.0
    assert near["2023-12-16"] == near["2023-12-24"] == pytest.approx(0.7)
    assert "2023-12-28" not in near, "it is near as its month is"
    assert (near["2023-12"], near["2024-01"]) == (0.4, 0.3)
    assert near_dates("on 30 December 2023", TODAY)["2024-01-03"] == pytest.approx(0.7)
    assert near_dates("in December", TODAY) == {"month=12": 1.0, "month=1": pytest.approx(0.3)}
    assert len(near_dates("12 May 2023 " * 10_000, TODAY)) < 100, "and a long text is read at once"

"""Which dates a question names, and what counts as near them."""

import pytest

from app.index.dates import near_dates


def whole(text: str) -> set[str]:
    """The dates that are named themselves."""
    return {term for term, near in near_dates(text).items() if near == 1.0}


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("What did Ana plant in July?", "month=7"),
        ("What did Ana plant in July 2023?", "2023-07"),
        ("the flood of 7 July, 2023", "2023-07-07"),
        ("on October 13, 2023", "2023-10-13"),
        ("on the 1st of March 2024", "2024-03-01"),
        ("am 7. Juli 2023", "2023-07-07"),
        ("el 8 de mayo de 2023", "2023-05-08"),
        ("early May", "month=5"),
        ("on 31 June 2023", "2023-07-01"),
    ],
)
def test_a_date_is_known_by_its_month(text: str, term: str) -> None:
    assert whole(text) == {term}


def test_a_year_holds_for_every_date_that_has_none() -> None:
    assert whole("between August 11 and August 15 2023") == {"2023-08-11", "2023-08-15"}


@pytest.mark.parametrize(
    "text", ["", "what may happen", "to march home", "in 2023", "at 7", "12 days"]
)
def test_other_words_and_numbers_are_no_dates(text: str) -> None:
    assert near_dates(text) == {}


def test_nearness_falls_by_the_day_and_stays_for_the_weeks_after() -> None:
    near = near_dates("on 20 December 2023")
    assert near["2023-12-20"] == 1.0
    assert near["2023-12-16"] == near["2023-12-24"] == pytest.approx(0.7)
    assert "2023-12-28" not in near, "it is near as its month is"
    assert (near["2023-12"], near["2024-01"]) == (0.4, 0.3)
    assert near_dates("on 30 December 2023")["2024-01-03"] == pytest.approx(0.7)


def test_after_a_month_comes_the_next() -> None:
    assert near_dates("in December 2023") == {"2023-12": 1.0, "2024-01": pytest.approx(0.3)}
    assert near_dates("in December") == {"month=12": 1.0, "month=1": pytest.approx(0.3)}


def test_a_long_text_is_read_at_once() -> None:
    assert len(near_dates("12 May 2023 " * 10_000)) < 100

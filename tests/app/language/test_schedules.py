# ruff: noqa: DTZ001 - local times
"""Schedules: phrases are read, echoed in words that are read again, and due across changes of the clock."""

import time
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import translation
from app.domain.errors import InvalidInput
from app.language.schedules import SYSTEM_ZONE, due_times, is_due_on, read_schedule, schedule_text

BERLIN = ZoneInfo("Europe/Berlin")
PHRASES = {
    "every weekday at 9": "0 9 * * 1-5",
    "Every day at 18:30.": "30 18 * * *",
    "daily": "0 9 * * *",
    "on the 1st at 8": "0 8 1 * *",
    "on the first of every month at 8am": "0 8 1 * *",
    "am Ersten um 8": "0 8 1 * *",
    "am ersten und 15. um 8": "0 8 1,15 * *",
    "jeden 15. und ersten um 8": "0 8 1,15 * *",
    "on the 1st and 15th of each month at 8:15": "15 8 1,15 * *",
    "monthly at 7am": "0 7 1 * *",
    "every Monday and Thursday at 6pm": "0 18 * * 1,4",
    "monday to friday at 7 a.m.": "0 7 * * 1-5",
    "Sat, Sun at noon": "0 12 * * 0,6",
    "every evening at 7": "0 19 * * *",
    "at 12 am": "0 0 * * *",
    "at 9 and 5 pm": "0 17,21 * * *",
    "on weekdays at 9 and 18": "0 9,18 * * 1-5",
    "on the first Monday of the month at 10": "0 10 * * 1#1",
    "on the last day of each month at 17:00": "0 17 L * *",
    "every 2 hours": "0 */2 * * *",
    "hourly on weekdays": "0 * * * 1-5",
    "every 15 minutes": "*/15 * * * *",
    "jeden Werktag um 9 Uhr": "0 9 * * 1-5",
    "täglich um 18.30 Uhr": "30 18 * * *",
    "um 8 am 1. und 15.": "0 8 1,15 * *",
    "am letzten Freitag des Monats um 15 Uhr": "0 15 * * 5L",
    "montags und donnerstags um 9": "0 9 * * 1,4",
    "Samstag bis Montag um 9": "0 9 * * 0,1,6",
    "alle 30 Minuten": "*/30 * * * *",
    "stündlich": "0 * * * *",
    "jeden Abend um 8": "0 20 * * *",
    "0 9 * * mon-fri": "0 9 * * 1-5",
    "5 4 * jan *": "5 4 * JAN *",
}
REFUSED = (
    "", "   ", "sometimes", "every 9 to 5", "next tuesday at 5", "every day at 25", "at 9:61",
    "every day at 9 and 18:30", "every 7 minutes", "on the 32nd at 9", "61 * * * *", "0 0 31 2 *",
    "on the 1st every monday at 9", "0 9-17", "* * * * * *", "every day at 9 unless it rains",
)  # fmt: skip


STEPS = ("*/1 * * * *", "*/7 * * * *", "0 */5 * * *", "0 */24 * * *")  # of no phrase


@pytest.mark.parametrize(("phrase", "cron"), [*PHRASES.items(), *zip(STEPS, STEPS, strict=True)])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_phrase_is_read_and_its_echo_is_read_the_same(
    phrase: str, cron: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "_chosen", [language])
    assert read_schedule(phrase) == cron
    assert read_schedule(schedule_text(cron)) == cron


@pytest.mark.parametrize("phrase", REFUSED)
def test_what_is_not_understood_is_refused(phrase: str) -> None:
    with pytest.raises(InvalidInput):
        read_schedule(phrase)


@given(st.text(st.sampled_from("every weekdayon1st9:30 ap.m.*/-,#LUhr"), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        cron = read_schedule(text)
    except InvalidInput:
        return
    assert next(due_times(cron, datetime(2026, 1, 1, tzinfo=UTC), BERLIN))


def _local(cron: str, after: datetime, count: int = 3) -> list[str]:
    times = islice(due_times(cron, after.replace(tzinfo=BERLIN), BERLIN), count)
    return [f"{each.astimezone(BERLIN):%d %H:%M %z}" for each in times]


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        # 29 March 2026, 02:00: forward to 03:00. 25 October 2026, 03:00: back to 02:00.
        ("30 2 * * *", datetime(2026, 3, 28, 3), ["29 03:00 +0200", "30 02:30 +0200", "31 02:30 +0200"]),
        ("0 9 * * *", datetime(2026, 3, 28, 9), ["29 09:00 +0200", "30 09:00 +0200", "31 09:00 +0200"]),
        ("0 * * * *", datetime(2026, 3, 29, 0, 30), ["29 01:00 +0100", "29 03:00 +0200", "29 04:00 +0200"]),
        ("0 2,3 * * *", datetime(2026, 3, 29, 1), ["29 03:00 +0200", "30 02:00 +0200", "30 03:00 +0200"]),
        ("30 2 * * *", datetime(2026, 10, 24, 3), ["25 02:30 +0200", "26 02:30 +0100", "27 02:30 +0100"]),
        ("45 2 * * *", datetime(2026, 10, 25, 2, 50, fold=1), ["26 02:45 +0100", "27 02:45 +0100", "28 02:45 +0100"]),
        ("0 * * * *", datetime(2026, 10, 25, 1, 30), ["25 02:00 +0200", "25 02:00 +0100", "25 03:00 +0100"]),
    ],
)  # fmt: skip
def test_changes_of_the_clock(cron: str, after: datetime, due: list[str]) -> None:
    assert _local(cron, after) == due


@given(
    st.sampled_from(sorted(set(PHRASES.values()))),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),
)
def test_due_times_rise_and_are_the_same_from_any_of_them(cron: str, after: datetime) -> None:
    first, *rest = islice(due_times(cron, after.replace(tzinfo=UTC), BERLIN), 5)
    assert after.replace(tzinfo=UTC) < first
    assert [first, *rest] == sorted({first, *rest})
    assert list(islice(due_times(cron, first, BERLIN), 4)) == rest


def test_days_on_which_an_expression_is_due() -> None:
    friday = date(2026, 11, 27)
    assert is_due_on("0 9 * * 1-5", friday)
    assert not is_due_on("0 9 * * 1-5", friday + timedelta(days=1))
    assert is_due_on("0 9 L * *", date(2026, 11, 30))
    assert not is_due_on("30 18 1 * *", friday)


def test_the_zone_of_the_system_knows_its_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        for cron, after in (
            ("30 2 * * *", datetime(2026, 3, 28)),
            ("0 * * * *", datetime(2026, 10, 25)),
        ):
            ours = islice(due_times(cron, after.replace(tzinfo=UTC), SYSTEM_ZONE), 30)
            theirs = islice(due_times(cron, after.replace(tzinfo=UTC), BERLIN), 30)
            assert list(ours) == list(theirs)
    finally:
        monkeypatch.undo()
        time.tzset()

"""What a worker's numbers are in words, on its card and in a command's answer."""

from dataclasses import replace
from datetime import datetime

import pytest

from app.domain.workers import Ledger, WorkerName, WorkerState, WorkerStatus
from app.workers.wording import (
    activity_words,
    duration_words,
    estimate_words,
    percent_words,
    size_words,
    worker_words,
)

WORKING = WorkerStatus(
    WorkerName.EMBEDDING_PIPELINE, enabled=True, state=WorkerState.RUNNING, done=3, total=1200
)


def test_a_worker_says_what_it_does_how_fast_and_what_that_costs() -> None:
    status = replace(
        WORKING,
        completed=2,
        failed=1,
        skipped=4,
        waiting_retry=5,
        set_aside=6,
        rate_per_minute=70.0,
        remaining_s=120.0,
        next_attempt_at=datetime.fromisoformat("2026-03-01T12:30:00").astimezone(),
        session=Ledger(10, 0.5),
        all_time=Ledger(1000, 1.5),
        current_item="Tea",
        last_error="It was late",
    )
    words = worker_words(status)
    assert (words.title, words.state) == ("Embeddings", "working, 2 min left")
    assert words.counts.split(" \N{MIDDLE DOT} ") == [
        "3 of 1,200", "2 now", "1 failed", "4 skipped", "5 to be tried again 12:30", "6 set aside",
        "70 a minute", "1,000 tokens, $1.50", "of that now 10 tokens, $0.50",
    ]  # fmt: skip
    assert (words.current, words.problem) == ("Tea", "It was late")


def test_what_it_waits_for_is_said_before_the_last_error() -> None:
    status = replace(
        WORKING, state=WorkerState.BLOCKED, blocked_by="No key", last_error="It was late"
    )
    assert worker_words(status).state == "waiting"
    assert worker_words(status).problem == "No key"


@pytest.mark.parametrize(
    ("state", "enabled", "words"),
    [
        (WorkerState.STOPPED, False, "off"),
        (WorkerState.IDLE, False, "off"),
        (WorkerState.RUNNING, False, "stopping"),
        (WorkerState.STOPPED, True, "starting"),
        (WorkerState.IDLE, True, "idle"),
    ],
)
def test_a_switch_counts_before_the_thread_behind_it_has_followed(
    state: WorkerState, enabled: bool, words: str
) -> None:
    assert worker_words(replace(WORKING, state=state, enabled=enabled)).state == words


def test_an_unknown_price_is_never_nothing() -> None:
    status = replace(WORKING, all_time=Ledger(5, None))
    assert "5 tokens, cost unknown" in worker_words(status).counts
    assert estimate_words(3, None) == "about 3 minutes, at a price that is unknown"
    assert estimate_words(0.1, 0.0) == "a minute or less, at no cost"
    assert estimate_words(300, 0.001) == "about 5 hours, for about $0.01"


@pytest.mark.parametrize(
    ("state", "enabled", "words"),
    [
        (WorkerState.RUNNING, True, "Workers: 1,197 left"),
        (WorkerState.BLOCKED, True, "Workers wait"),
        (WorkerState.IDLE, True, "Workers idle"),
        (WorkerState.STOPPED, False, "Workers off"),
    ],
)
def test_all_workers_together_are_said_in_a_few_words(
    state: WorkerState, enabled: bool, words: str
) -> None:
    assert activity_words([replace(WORKING, state=state, enabled=enabled)]) == words


def test_numbers_are_said_as_people_say_them() -> None:
    assert [percent_words(each) for each in (0, 0.001, 0.5, 0.999, 1)] == [
        "0 %", "1 %", "50 %", "99 %", "100 %",
    ]  # fmt: skip
    assert [duration_words(each) for each in (5, 600, 7200)] == ["5 s", "10 min", "2.0 h"]
    assert [size_words(each) for each in (2048, 5 << 20, 3 << 30)] == ["2 KB", "5.0 MB", "3.00 GB"]

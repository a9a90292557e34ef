"""What a worker's numbers are in words, on its card and in a command's answer."""

from dataclasses import replace
from datetime import datetime

import pytest

from app.domain.workers import FailedItem, Ledger, WorkerName, WorkerState, WorkerStatus
from app.workers.wording import (
    activity_words,
    duration_words,
    estimate_words,
    failed_item_words,
    most_words,
    percent_words,
    size_words,
    wait_words,
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
        next_retry_at=status_at("12:30:00"),
        session=Ledger(10, 0.5),
        all_time=Ledger(1000, 1.5),
        current_item="Tea",
        last_error="It was late",
    )
    words = worker_words(status)
    assert (words.title, words.state) == ("Embeddings", "working")
    assert [line.split(" \N{MIDDLE DOT} ") for line in words.lines] == [
        ["3 of 1,200", "70 a minute", "2 min left"],
        ["This session: 2 done", "1 failed", "4 skipped"],
        ["Spent this session: 10 tokens, $0.50", "in all: 1,000 tokens, $1.50"],
        ["5 wait for another try, the next at 12:30:00", "6 set aside"],
        ["Now: Tea"],
        ["Last error: It was late"],
    ]


def test_a_worker_that_has_done_nothing_says_so_in_full() -> None:
    words = worker_words(replace(WORKING, state=WorkerState.IDLE, done=0, total=0))
    assert words.lines == (
        "0 of 0", "This session: 0 done \N{MIDDLE DOT} 0 failed \N{MIDDLE DOT} 0 skipped",
        "No tokens used, nothing spent",
    )  # fmt: skip


def test_a_worker_that_still_finds_out_what_there_is_counts_nothing() -> None:
    words = worker_words(replace(WORKING, done=0, total=0, current_item="listing the manual"))
    assert words.counts == ""
    assert "Now: listing the manual" in words.lines


def test_what_failed_is_told_with_its_next_try_and_its_error() -> None:
    at = status_at("12:30:05")
    waiting = FailedItem(7, "Tea", "turn 3", 1, at, "It timed out.")
    assert failed_item_words(waiting) == (
        "Tea, turn 3",
        "1 try, next try 12:30:05",
        "It timed out.",
    )
    aside = FailedItem(7, "", "", 7, None, "It timed out.")
    assert failed_item_words(aside)[:2] == ("item 7", "7 tries, set aside")


def test_what_it_waits_for_is_said_before_the_last_error() -> None:
    status = replace(
        WORKING, state=WorkerState.BLOCKED, blocked_by="No key", last_error="It was late"
    )
    words = worker_words(status)
    assert words.state == "waiting"
    assert words.lines[-2:] == ("Waits: No key", "Last error: It was late")
    again = replace(status, last_error="No key", next_attempt_at=status_at("12:31:00"))
    assert worker_words(again).lines[-1] == "Waits: No key", "nothing is said twice"
    assert worker_words(again).state == "waiting, looks again at 12:31:00"


def status_at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-01T{clock}").astimezone()


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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (WorkerName.EXCHANGE_SUMMARIZER, "2 wait: the conversation is open"),
        (WorkerName.CONVERSATION_SUMMARIZER, "2 wait: open in the window"),
        (WorkerName.EMBEDDING_PIPELINE, ""),
    ],
)
def test_a_worker_that_idles_says_why_some_are_not_done(name: WorkerName, words: str) -> None:
    status = replace(WORKING, name=name, state=WorkerState.IDLE, done=54, total=58, set_aside=2)
    assert worker_words(status).counts.partition(" \N{MIDDLE DOT} ")[2] == words
    assert worker_words(replace(status, waiting_retry=2)).counts == "54 of 58"
    assert worker_words(replace(status, state=WorkerState.RUNNING)).counts == "54 of 58"


def test_a_worker_that_runs_is_never_said_to_have_nothing_left() -> None:
    assert activity_words([replace(WORKING, done=3, total=5, set_aside=1)]) == "Workers: 1 left"
    assert activity_words([replace(WORKING, done=5, total=5)]) == "Workers: at work"
    assert activity_words([replace(WORKING, done=4, total=5, set_aside=1)]) == "Workers: at work"


@pytest.mark.parametrize(
    ("usd", "words"), [(0.0, "$0.00"), (0.25, "$0.25"), (0.001, "under $0.01")]
)
def test_what_interrupted_requests_may_have_cost_is_never_nothing(usd: float, words: str) -> None:
    assert most_words(usd) == words


def test_a_card_tells_apart_what_was_interrupted() -> None:
    status = replace(WORKING, all_time=Ledger(90, 1.5, 0.25))
    assert "in all: 90 tokens, $1.50 ($0.25 of it interrupted" in worker_words(status).spent


def test_all_that_wait_for_the_same_thing_are_named_in_one_sentence() -> None:
    assert wait_words(["the indexer"], "No key.") == "The indexer waits: No key."
    both = wait_words(["the indexer", "the reader", "the extractor"], "No key.")
    assert both == "The indexer, the reader and the extractor wait: No key."


def test_an_unknown_price_is_never_nothing() -> None:
    status = replace(WORKING, all_time=Ledger(5, None))
    assert "5 tokens, cost unknown" in worker_words(status).spent
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

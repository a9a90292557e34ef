"""Worker statuses and numbers as text."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from app.domain.translation import (
    format_at_most,
    format_count,
    format_duration,
    format_estimate,
    format_percent,
    format_size,
)
from app.domain.workers import FailedItem, UsageTotals, WorkerName, WorkerState, WorkerStatus
from app.storage.tables.spending import Spent
from app.workers.status_text import (
    activity_text,
    blocked_text,
    failed_item_text,
    format_spent,
    waiting_text,
    worker_text,
)

WORKING = WorkerStatus(
    WorkerName.EMBEDDING_PIPELINE, enabled=True, state=WorkerState.RUNNING, done=3, total=1200
)
DOT = " \N{MIDDLE DOT} "


def local(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-01T{clock}").astimezone()


def test_all_lines_of_a_working_worker() -> None:
    status = replace(
        WORKING, completed=2, failed=1, skipped=4, waiting_retry=5, abandoned=6,
        rate_per_minute=70.0, remaining_s=120.0, next_retry_at=local("12:30:00"),
        session=UsageTotals(10, 0.5), all_time=UsageTotals(1000, 1.5, 0.25), current_item="Tea",
        last_error="It was late",
    )  # fmt: skip
    text = worker_text(status)
    assert (text.title, text.state) == ("Search by meaning", "working")
    assert [line.split(DOT) for line in text.lines] == [
        ["3 of 1,200", "70 a minute", "2 min left"],
        ["This session: 2 done", "1 failed", "4 skipped"],
        ["Spent this session: 10 tokens, $0.50",
         "in all: 1,000 tokens, $1.50 ($0.25 of it interrupted, estimated)"],
        ["5 waiting for another try, the next at 12:30:00", "6 set aside"],
        ["Now: Tea"],
        ["Last error: It was late"],
    ]  # fmt: skip


def test_lines_that_depend_on_the_status() -> None:
    uncounted = worker_text(replace(WORKING, done=0, total=0, current_item="listing the manual"))
    assert (uncounted.counts, "Now: listing the manual" in uncounted.lines) == ("", True)
    unknown = worker_text(replace(WORKING, all_time=UsageTotals(5, None)))
    assert "5 tokens, cost unknown" in unknown.spent
    status = replace(
        WORKING, state=WorkerState.BLOCKED, blocked_by="No key", last_error="It was late"
    )
    assert worker_text(status).lines[-2:] == ("Waiting: No key", "Last error: It was late")
    again = worker_text(replace(status, last_error="No key", next_attempt_at=local("12:31:00")))
    assert (again.lines[-1], again.state) == ("Waiting: No key", "waiting, next try at 12:31:00")


def test_failed_items() -> None:
    item = FailedItem(7, "Tea", "turn 3", 1, local("12:30:05"), "It timed out.")
    assert failed_item_text(item) == (
        "Tea, turn 3", "1 try, next try at 12:30:05", "It timed out.",
    )  # fmt: skip
    abandoned = FailedItem(7, "", "", 7, None, "It timed out.")
    assert failed_item_text(abandoned)[:2] == ("item 7", "7 tries, set aside")


@pytest.mark.parametrize(
    ("state", "enabled", "text"),
    [(WorkerState.STOPPED, False, "off"), (WorkerState.IDLE, False, "off"),
     (WorkerState.RUNNING, False, "stopping"), (WorkerState.STOPPED, True, "starting"),
     (WorkerState.IDLE, True, "idle"), (WorkerState.BLOCKED, True, "waiting")],
)  # fmt: skip
def test_states(state: WorkerState, enabled: bool, text: str) -> None:
    assert worker_text(replace(WORKING, state=state, enabled=enabled)).state == text


@pytest.mark.parametrize(
    ("name", "text"),
    [(WorkerName.EXCHANGE_SUMMARIZER, "2 waiting: the conversation is open or is being read"),
     (WorkerName.CONVERSATION_SUMMARIZER, "2 waiting: the conversation is open or is being read"),
     (WorkerName.EMBEDDING_PIPELINE, "")],
)  # fmt: skip
def test_why_an_idle_worker_has_not_done_everything(name: WorkerName, text: str) -> None:
    status = replace(WORKING, name=name, state=WorkerState.IDLE, done=54, total=58, abandoned=2)
    assert worker_text(status).counts.partition(DOT)[2] == text
    assert worker_text(replace(status, waiting_retry=2)).counts == "54 of 58"
    assert worker_text(replace(status, state=WorkerState.RUNNING)).counts == "54 of 58"
    assert worker_text(replace(status, enabled=False)).counts == f"54 of 58{DOT}2 waiting"
    stopping = replace(status, enabled=False, state=WorkerState.RUNNING)
    assert worker_text(stopping).counts == "54 of 58"


@pytest.mark.parametrize(
    ("changes", "text"),
    [({}, "Background: 1,197 left"),
     ({"done": 3, "total": 5, "abandoned": 1}, "Background: 1 left"),
     ({"done": 4, "total": 5, "abandoned": 1}, "Background: working"),
     ({"state": WorkerState.BLOCKED}, "Background waiting"),
     ({"state": WorkerState.IDLE}, "Background idle"),
     ({"state": WorkerState.STOPPED, "enabled": False}, "Background off")],
)  # fmt: skip
def test_the_activity_of_all_workers(changes: dict[str, object], text: str) -> None:
    assert activity_text([replace(WORKING, **changes)]) == text  # type: ignore[arg-type]


def test_workers_that_wait() -> None:
    names = [WorkerName.EXCHANGE_SUMMARIZER, WorkerName.KNOWLEDGE_EXTRACTOR]
    assert blocked_text(names[:1], "No key.") == "The turn summarizer is waiting: No key."
    assert blocked_text(names, "No key.") == (
        "The turn summarizer and the knowledge extractor are waiting: No key."
    )
    assert waiting_text(WorkerName.MAN_INDEXER, 1) == "1 manual page not indexed"
    assert waiting_text(names[0], 2_000) == "2,000 turns without a summary"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lambda: [format_percent(each) for each in (0, 0.001, 0.5, 0.999, 1)],
         ["0%", "1%", "50%", "99%", "100%"]),
        (lambda: [format_duration(each) for each in (5, 600, 7200)], ["5 s", "10 min", "2.0 h"]),
        (lambda: [format_size(each) for each in (2048, 5 << 20, 3 << 30)],
         ["2 KB", "5.0 MB", "3.00 GB"]),
        (lambda: [format_at_most(each) for each in (0.0, 0.25, 0.001)],
         ["$0.00", "$0.25", "under $0.01"]),
        (lambda: [format_count(each, "turn") for each in (1, 2_000)], ["1 turn", "2,000 turns"]),
        (lambda: [format_estimate(*each) for each in ((3, None), (0.1, 0.0), (300, 0.001))],
         ["about 3 minutes, at an unknown price", "a minute or less, at no cost",
          "about 5 hours, for about $0.01"]),
    ],
)  # fmt: skip
def test_formatting(text: Callable[[], list[str]], expected: list[str]) -> None:
    assert text() == expected


def test_less_than_a_cent_is_not_nothing() -> None:
    assert [format_spent(Spent(1, 9, usd)) for usd in (0.0, 0.004, 0.02)] == [
        "$0.00", "under $0.01", "$0.02",
    ]  # fmt: skip

"""The dashboard of background work: the order of its cards, and what they leave out."""

import pytest

from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from ui.views.memory.dashboard import Dashboard

BUSY, WAITING, IDLE, OFF = (
    WorkerName.KNOWLEDGE_EXTRACTOR, WorkerName.EMBEDDING_PIPELINE, WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.CONVERSATION_SUMMARIZER,
)  # fmt: skip
STATUSES = (
    WorkerStatus(OFF, False, WorkerState.IDLE),
    WorkerStatus(IDLE, True, WorkerState.IDLE),
    WorkerStatus(WAITING, True, WorkerState.BLOCKED, blocked_by="a key"),
    WorkerStatus(BUSY, True, WorkerState.RUNNING, completed=2),
)


@pytest.fixture
def dashboard() -> Dashboard:
    made = Dashboard()
    for status in STATUSES:
        made.show_status(status)
    made.resize(400, 900)
    made.show()
    return made


def test_what_works_stands_above_what_waits_is_idle_or_off(dashboard: Dashboard) -> None:
    names = sorted((BUSY, WAITING, IDLE, OFF), key=lambda each: dashboard.card(each).y())
    assert names == [BUSY, WAITING, IDLE, OFF]


def test_a_card_counts_only_what_happened(dashboard: Dashboard) -> None:
    assert dashboard.card(BUSY).session.isVisibleTo(dashboard)
    assert not dashboard.card(IDLE).counts.isVisibleTo(dashboard)
    assert not dashboard.card(IDLE).session.isVisibleTo(dashboard)
    assert not dashboard.card(IDLE).spent.isVisibleTo(dashboard)

"""The dashboard of background work: the order of its cards, and what they leave out."""

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.domain import translation
from app.domain.workers import UsageTotals, WorkerName, WorkerState, WorkerStatus
from app.memory.search.coverage import Overview
from app.storage.tables.spending import Spent
from app.workers.status_text import ESTIMATED
from ui.views.memory.dashboard import Dashboard, Totals

LONG_WORD = "one_word_without_any_place_to_break_it"
BUSY, WAITING, IDLE, OFF = (
    WorkerName.KNOWLEDGE_EXTRACTOR, WorkerName.EMBEDDING_PIPELINE, WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.CONVERSATION_SUMMARIZER,
)  # fmt: skip
STATUSES = (
    WorkerStatus(OFF, False, WorkerState.IDLE), WorkerStatus(IDLE, True, WorkerState.IDLE),
    WorkerStatus(WAITING, True, WorkerState.BLOCKED, blocked_by="a key"),
    WorkerStatus(BUSY, True, WorkerState.RUNNING, completed=2),
)  # fmt: skip


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


def test_settings_are_named_by_their_labels(dashboard: Dashboard) -> None:
    reason = "Raise spend_cap_daily_usd in Settings."
    dashboard.show_status(WorkerStatus(WAITING, True, WorkerState.BLOCKED, blocked_by=reason))
    dashboard.show_warnings([reason])
    shown = [each.text() for each in dashboard.findChildren(QLabel) if "Raise" in each.text()]
    assert len(shown) == 2
    assert all("Daily spend limit" in each and "spend_cap" not in each for each in shown)


def test_a_card_counts_only_what_happened(dashboard: Dashboard) -> None:
    assert dashboard.card(BUSY).session.isVisibleTo(dashboard)
    assert not dashboard.card(IDLE).counts.isVisibleTo(dashboard)
    assert not dashboard.card(IDLE).session.isVisibleTo(dashboard)
    assert not dashboard.card(IDLE).spent.isVisibleTo(dashboard)


@pytest.mark.parametrize("language", ["en", "de"])
def test_cards_with_failures_fit_the_narrowest_dashboard(
    qtbot: QtBot, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "_chosen", [language])
    view = Dashboard()
    for name in WorkerName:
        view.show_status(
            WorkerStatus(
                name, enabled=True, state=WorkerState.BLOCKED, done=1_234_567, total=2_345_678,
                waiting_retry=12, abandoned=34, all_time=UsageTotals(123_456_789, 12_345.67),
                current_item=LONG_WORD * 3,
                blocked_by="https://a-host.with.a.long.name.example.com/v1/chat answers nothing",
            )
        )  # fmt: skip
    view.show_warnings([LONG_WORD * 3])
    view.resize(320, 900)
    view.show()
    qtbot.waitUntil(lambda: view.viewport().width() > 0)
    for name in WorkerName:
        card = view.card(name)
        assert card.failures.isVisible()
        assert card.minimumSizeHint().width() <= view.viewport().width()
    body = view.widget()
    qtbot.waitUntil(lambda: body.width() <= view.viewport().width())


def test_estimated_costs_are_shown_below_what_was_spent() -> None:
    view = Dashboard()
    for estimated_usd, shown in ((0.25, ["$0.25", "$0.25"]), (0.0, [])):
        spent = Spent(3, 90, 1.5, 0, 1, estimated_usd)
        view.show_totals(Totals(Overview(0, {}, 1.0, 4096, spent, spent)))
        names = [each.accessibleName() for each in view.findChildren(QLabel) if not each.isHidden()]
        amounts = [each for each in names if ESTIMATED in each]
        assert amounts == [f"of it {ESTIMATED}: {each}" for each in shown]

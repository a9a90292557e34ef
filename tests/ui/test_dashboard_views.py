"""The dashboard without the program behind it: nothing of it is cut, whatever workers say."""

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.domain.workers import Ledger, WorkerName, WorkerState, WorkerStatus
from app.storage.spending import Spent
from app.workers.wording import ESTIMATED
from ui.views.dashboard import Dashboard, Totals
from ui.widgets.plain_label import breakable


def test_cards_with_failures_fit_the_narrowest_dashboard(qtbot: QtBot) -> None:
    dashboard = Dashboard()
    qtbot.addWidget(dashboard)
    for name in WorkerName:
        dashboard.show_status(
            WorkerStatus(
                name, enabled=True, state=WorkerState.BLOCKED, done=1_234_567, total=2_345_678,
                waiting_retry=12, set_aside=34, all_time=Ledger(123_456_789, 12_345.67),
                current_item="one_word_without_any_place_to_break_it" * 3,
                blocked_by="https://a-host.with.a.long.name.example.com/v1/chat answers nothing",
            )
        )  # fmt: skip
    dashboard.show_warnings(["one_word_without_any_place_to_break_it" * 3])
    dashboard.resize(dashboard.minimumWidth(), 900)
    dashboard.show()
    qtbot.waitUntil(lambda: dashboard.viewport().width() > 0)
    for name in WorkerName:
        card = dashboard.card(name)
        assert card.failures.isVisible()
        assert card.minimumSizeHint().width() <= dashboard.viewport().width()
    body = dashboard.widget()
    assert body is not None
    assert body.width() <= dashboard.viewport().width()


def test_what_interrupted_requests_may_have_cost_stands_below_what_was_spent(qtbot: QtBot) -> None:
    dashboard = Dashboard()
    qtbot.addWidget(dashboard)
    for estimated_usd, shown in ((0.25, ["$0.25", "$0.25"]), (0.0, [])):
        spent = Spent(3, 90, 1.5, 0, 1, estimated_usd)
        dashboard.show_totals(Totals({}, 1.0, None, "", 4096, spent, spent))
        names = [each for each in dashboard.findChildren(QLabel) if not each.isHidden()]
        amounts = [each.accessibleName() for each in names if ESTIMATED in each.accessibleName()]
        assert amounts == [f"of it {ESTIMATED}: {each}" for each in shown]


def test_only_words_of_which_no_line_has_room_are_broken() -> None:
    words = "http://127.0.0.1:8000/v1 waits"
    assert breakable(words) == words
    long = "one_word_without_any_place_to_break_it"
    assert breakable(long).replace("\u200b", "") == long
    assert breakable(long) != long

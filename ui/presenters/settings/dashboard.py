"""The worker dashboard and the status bar: statuses, totals, and switching workers."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QTimer

from app.domain.translation import tr
from app.domain.workers import FailedItem, WorkerName, WorkerStatus
from app.memory.search.coverage import OverviewService
from app.memory.search.spaces import SpaceService
from app.workers.board import WorkerBoard
from app.workers.status_text import activity_text, format_spent
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.presenters.settings.background import Regeneration, offer
from ui.views.main_window import MainWindow
from ui.views.memory.dashboard import Dashboard, FailuresDialog, Totals
from ui.widgets.banner import Banner

_TOTALS_EVERY_MS = 2000
_CARDS_EVERY_MS = 100  # nobody reads faster than ten times a second


class DashboardPresenter(Presenter):
    """Hosts the workers on the bridge's pool and shows what they do."""

    _workers: WorkerBoard
    _read_totals: Callable[[], Totals]
    _facts: Regeneration
    _dashboard: Dashboard
    _status_bar: MainWindow
    _messages: Banner

    def _set_up(self) -> None:
        self.setParent(self._dashboard)  # its timers end with the view
        self._statuses: dict[WorkerName, WorkerStatus] = {}
        self._outdated: set[WorkerName] = set()
        self._failures: FailuresDialog | None = None
        self._cards_due = QTimer(self, singleShot=True, interval=_CARDS_EVERY_MS)
        self._cards_due.timeout.connect(self._show_cards)
        self._totals = Refresh(self, self._bridge, "totals", _TOTALS_EVERY_MS, self._show_totals)
        bridge, workers, dashboard = self._bridge, self._workers, self._dashboard
        dashboard.switched.connect(
            lambda name, on: bridge.save(lambda: workers.set_enabled(name, on))
        )
        dashboard.run_requested.connect(lambda name: bridge.save(lambda: workers.run_now(name)))
        dashboard.failures_requested.connect(self._on_failures_requested)
        dashboard.regeneration_requested.connect(self._on_regeneration_requested)
        dashboard.shown.connect(self._totals.run)
        bridge.worker_changed.connect(self._on_worker_changed)
        bridge.changed.connect(self._totals.request)
        bridge.day_began.connect(self._totals.request)
        workers.subscribe(bridge.post_status)

    def start(self) -> None:
        """Show the current statuses and start the workers."""
        for status in self._workers.statuses():
            self._on_worker_changed(status)
        self._show_cards()
        self._bridge.start("workers", self._start())

    async def _start(self) -> None:
        await self._bridge.run(lambda: self._workers.start(self._bridge.host_worker))
        await self._bridge.run(self._workers.refresh)  # what it returns is old by now
        self._totals.run()

    # -- failures and regeneration

    def _on_failures_requested(self, name: WorkerName) -> None:
        if self._failures is not None:
            self._failures.close()
        self._failures = dialog = FailuresDialog(name, self._dashboard.window())
        dialog.retry_requested.connect(
            lambda name, item_ids: self._bridge.save(
                lambda: self._workers.retry_failed(name, item_ids),
                lambda _: self._show_failures(name),
            )
        )
        dialog.finished.connect(self._on_failures_finished)
        self._show_failures(name)
        dialog.open()

    def _on_failures_finished(self) -> None:
        self._failures = None

    def _show_failures(self, name: WorkerName) -> None:
        def show(items: Sequence[FailedItem]) -> None:
            if self._failures is not None and self._failures.worker is name:
                self._failures.show_items(items)

        self._bridge.load("failures", lambda: self._workers.failures(name), show)

    def _on_regeneration_requested(self) -> None:
        question = tr("Extract again the facts that other models found?")
        offer(
            self._bridge,
            self._facts,
            self._dashboard.window(),
            (tr("Extract facts again"), question, tr("Extract again")),
            lambda text: self._messages.show_message(text, brief=False),
        )

    # -- showing

    def _on_worker_changed(self, status: WorkerStatus) -> None:
        self._statuses[status.name] = status
        self._outdated.add(status.name)
        if not self._cards_due.isActive():
            self._cards_due.start()

    def _show_cards(self) -> None:
        for name in sorted(self._outdated, key=list(self._statuses).index):
            self._dashboard.show_status(self._statuses[name])
            if self._failures is not None and self._failures.worker is name:
                self._show_failures(name)
        self._outdated.clear()
        statuses = tuple(self._statuses.values())
        self._status_bar.worker_status.setText(activity_text(statuses))

    async def _show_totals(self) -> None:
        if self._dashboard.isVisible():  # the counts of a stopped worker do not update themselves
            await self._bridge.run(self._workers.refresh)
        totals = await self._bridge.run(self._read_totals)
        self._dashboard.show_totals(totals)
        self._dashboard.show_warnings(self._workers.warnings())
        spent = totals.memory.spent_today
        text = tr("Spent today: {format_spent}").format(format_spent=format_spent(spent))
        has_cost = bool(spent.known_usd or spent.unknown)
        self._status_bar.spend_status.show_text(text if has_cost else "")


def read_totals(
    overview: OverviewService,
    spaces: SpaceService,
    needs_consent: Callable[[], bool],
    proposals: Callable[[], int],
) -> Totals:
    """Return what memory holds and what was spent. Blocking."""
    read = overview.read()
    embedder = ""
    if read.embedded is not None:
        name = read.embedded.space
        embedder = next((row.model for row in spaces.read().rows if row.name == name), name)
    return Totals(read, embedder, needs_consent(), proposals())

"""The worker dashboard and the status bar: statuses, totals, and switching workers."""

from collections.abc import Callable, Sequence
from typing import Protocol

from PySide6.QtCore import QObject, QTimer

from app.domain.changes import ChangeSet
from app.domain.formatting import format_percent
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.overview import OverviewService
from app.memory.spaces import SpaceService
from app.workers.board import WorkerBoard
from app.workers.status_text import activity_text, format_spent
from ui.bridge import Bridge
from ui.presenters.settings.regeneration import Regeneration, offer
from ui.views.settings.dashboard import Dashboard, Totals
from ui.views.settings.failures_dialog import FailuresDialog
from ui.widgets.plain_label import PlainLabel

_TOTALS_EVERY_MS = 2000
_CARDS_EVERY_MS = 100  # nobody reads faster than ten times a second


class StatusBar(Protocol):
    """The labels of the status bar."""

    worker_status: PlainLabel
    spend_status: PlainLabel
    search_status: PlainLabel


class DashboardPresenter(QObject):
    """Hosts the workers on the bridge's pool and shows what they do.

    `notify` shows a message in the window.
    """

    def __init__(
        self,
        workers: WorkerBoard,
        read_totals: Callable[[], Totals],
        facts: Regeneration,
        bridge: Bridge,
        dashboard: Dashboard,
        status_bar: StatusBar,
        notify: Callable[[str], None],
    ) -> None:
        super().__init__(dashboard)
        self._workers = workers
        self._read_totals = read_totals
        self._facts = facts
        self._bridge = bridge
        self._dashboard = dashboard
        self._status_bar = status_bar
        self._notify = notify
        self._statuses: dict[WorkerName, WorkerStatus] = {}
        self._outdated: set[WorkerName] = set()
        self._failures: FailuresDialog | None = None
        self._cards_due = QTimer(self, singleShot=True, interval=_CARDS_EVERY_MS)
        self._cards_due.timeout.connect(self._show_cards)
        self._totals_due = QTimer(self, singleShot=True, interval=_TOTALS_EVERY_MS)
        self._totals_due.timeout.connect(self._on_totals_due)
        dashboard.switched.connect(
            lambda name, on: self._write(lambda: workers.set_enabled(name, on))
        )
        dashboard.run_requested.connect(lambda name: self._write(lambda: workers.run_now(name)))
        dashboard.failures_requested.connect(self._on_failures_requested)
        dashboard.regeneration_requested.connect(self._on_regeneration_requested)
        dashboard.shown.connect(self._on_totals_due)
        bridge.worker_changed.connect(self._on_worker_changed)
        bridge.changed.connect(self._on_changed)
        workers.subscribe(bridge.post_status)

    def start(self) -> None:
        """Show the current statuses and start the workers."""
        for status in self._workers.statuses():
            self._on_worker_changed(status)
        self._show_cards()
        self._bridge.start("workers", self._start())

    async def _start(self) -> None:
        await self._bridge.run(lambda: self._workers.start(self._bridge.host_worker))
        for status in await self._bridge.run(self._workers.refresh):
            self._on_worker_changed(status)
        self._on_totals_due()

    def _write(self, write: Callable[[], None]) -> None:
        self._bridge.submit(self._bridge.write(write))

    # -- failures and regeneration

    def _on_failures_requested(self, name: WorkerName) -> None:
        if self._failures is not None:
            self._failures.close()
        self._failures = dialog = FailuresDialog(name, self._dashboard.window())
        dialog.retry_requested.connect(self._on_retry_requested)
        dialog.finished.connect(self._on_failures_finished)
        self._bridge.start("failures", self._show_failures(name))
        dialog.open()

    def _on_retry_requested(self, name: WorkerName, item_ids: Sequence[int] | None) -> None:
        self._bridge.submit(self._retry(name, item_ids))

    async def _retry(self, name: WorkerName, item_ids: Sequence[int] | None) -> None:
        await self._bridge.write(lambda: self._workers.retry_set_aside(name, item_ids))
        await self._show_failures(name)

    def _on_failures_finished(self) -> None:
        self._failures = None

    async def _show_failures(self, name: WorkerName) -> None:
        items = await self._bridge.run(lambda: self._workers.failures(name))
        if self._failures is not None and self._failures.worker is name:
            self._failures.show_items(items)

    def _on_regeneration_requested(self) -> None:
        offered = offer(
            self._facts,
            self._bridge,
            self._dashboard.window(),
            "Extract facts again",
            "Extract again the facts that other models found?",
            "Extract again",
            self._notify,
        )
        self._bridge.start("regenerate facts", offered)

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
                self._bridge.start("failures", self._show_failures(name))
        self._outdated.clear()
        statuses = tuple(self._statuses.values())
        self._status_bar.worker_status.setText(activity_text(statuses))

    def _on_changed(self, _changed: ChangeSet) -> None:
        if not self._totals_due.isActive():
            self._totals_due.start()

    def _on_totals_due(self) -> None:
        if self._bridge.is_running("totals"):
            self._totals_due.start()  # restarting slow queries again and again would show nothing
        else:
            self._bridge.start("totals", self._show_totals())

    async def _show_totals(self) -> None:
        if self._dashboard.isVisible():  # the counts of a stopped worker do not update themselves
            for status in await self._bridge.run(self._workers.refresh):
                self._on_worker_changed(status)
        totals = await self._bridge.run(self._read_totals)
        self._dashboard.show_totals(totals)
        self._dashboard.show_warnings(self._workers.warnings())
        self._status_bar.spend_status.setText(
            f"Spent today: {format_spent(totals.memory.spent_today)}"
        )
        share = totals.memory.searchable_share
        text = f"{format_percent(share)} of your history is searchable" if share < 1 else ""
        self._status_bar.search_status.setText(text)
        self._status_bar.search_status.setVisible(bool(text))


def read_totals(
    overview: OverviewService, spaces: SpaceService, needs_consent: Callable[[], bool]
) -> Totals:
    """Return what memory holds and what was spent. Blocking."""
    read = overview.read()
    embedder = ""
    if read.embedded is not None:
        name = read.embedded.space
        embedder = next((row.model for row in spaces.read().rows if row.name == name), name)
    return Totals(read, embedder, needs_consent())

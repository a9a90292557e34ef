"""The worker dashboard and the status bar: what the workers say, and switching them."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer

from app.bootstrap import Services
from app.domain.events import Changed
from app.domain.workers import WorkerName, WorkerStatus
from app.workers.wording import activity_words, spent_words
from ui.bridge import Bridge
from ui.views.dashboard import Totals
from ui.views.failures_dialog import FailuresDialog
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView

_TOTALS_EVERY_MS = 2000
_CARDS_EVERY_MS = 100  # ten times a second is as often as anybody reads


class WorkersController(QObject):
    """Hosts the workers on the bridge's pool and shows what they do; they give way to the user."""

    def __init__(self, services: Services, bridge: Bridge, window: MainWindow) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._statuses: dict[WorkerName, WorkerStatus] = {}
        self._stale: set[WorkerName] = set()
        self._failures: FailuresDialog | None = None
        self._cards_due = QTimer(self, singleShot=True, interval=_CARDS_EVERY_MS)
        self._cards_due.timeout.connect(self._on_cards_due)
        self._totals_due = QTimer(self, singleShot=True, interval=_TOTALS_EVERY_MS)
        self._totals_due.timeout.connect(self._on_totals_due)
        window.dashboard.switched.connect(self._on_dashboard_switched)
        window.dashboard.run_requested.connect(self._on_dashboard_run_requested)
        window.dashboard.failures_requested.connect(self._on_dashboard_failures_requested)
        window.dock.visibilityChanged.connect(self._on_dock_visibility_changed)
        bridge.worker_changed.connect(self._on_worker_changed)
        bridge.changed.connect(self._on_changed)
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        transcript.visible_changed.connect(self._on_window_used)
        window.chat.composer.box.textChanged.connect(self._on_window_used)
        window.sidebar.box.textChanged.connect(self._on_window_used)
        courtesy = services.workers.courtesy
        courtesy.answer()
        courtesy.ask_window = bridge.on_gui(courtesy.answer)
        self._unsubscribe = services.workers.subscribe(bridge.take_status)

    def start(self) -> None:
        """Show what is there and set the workers going."""
        for status in self._services.workers.statuses():
            self._on_worker_changed(status)
        self._on_cards_due()
        self._bridge.start("workers", self._start())

    async def _start(self) -> None:
        workers = self._services.workers
        for status in await self._bridge.run(workers.refresh):
            self._on_worker_changed(status)
        await self._bridge.run(lambda: workers.start(self._bridge.host_worker))
        self._on_totals_due()

    def _on_window_used(self, *_what: object) -> None:
        self._services.workers.courtesy.serve()

    def _on_dashboard_switched(self, name: WorkerName, on: bool) -> None:
        self._bridge.carry_out(self._switch(name, on))

    async def _switch(self, name: WorkerName, on: bool) -> None:
        await self._bridge.write(lambda: self._services.workers.set_enabled(name, on))

    def _on_dashboard_run_requested(self, name: WorkerName) -> None:
        self._bridge.carry_out(self._run_now(name))

    async def _run_now(self, name: WorkerName) -> None:
        await self._bridge.write(lambda: self._services.workers.run_now(name))

    def _on_failures_retry_requested(self, name: WorkerName, items: Sequence[int] | None) -> None:
        self._bridge.carry_out(self._retry(name, items))

    async def _retry(self, name: WorkerName, items: Sequence[int] | None) -> None:
        await self._bridge.write(lambda: self._services.workers.retry_set_aside(name, items))
        await self._show_failures(name)

    def _on_dashboard_failures_requested(self, name: WorkerName) -> None:
        if self._failures is not None:
            self._failures.close()
        self._failures = dialog = FailuresDialog(name, self._window)
        dialog.retry_requested.connect(self._on_failures_retry_requested)
        dialog.finished.connect(self._on_failures_finished)
        self._bridge.start("failures", self._show_failures(name))
        dialog.open()

    def _on_failures_finished(self) -> None:
        self._failures = None

    async def _show_failures(self, name: WorkerName) -> None:
        items = await self._bridge.run(lambda: self._services.workers.failures(name))
        if self._failures is not None and self._failures.worker is name:
            self._failures.show_items(items)

    def _on_worker_changed(self, status: WorkerStatus) -> None:
        self._statuses[status.name] = status
        self._stale.add(status.name)
        if not self._cards_due.isActive():
            self._cards_due.start()

    def _on_cards_due(self) -> None:
        for name in sorted(self._stale, key=list(self._statuses).index):
            self._window.dashboard.show_status(self._statuses[name])
            if self._failures is not None and self._failures.worker is name:
                self._bridge.start("failures", self._show_failures(name))
        self._stale.clear()
        self._window.worker_status.setText(activity_words(tuple(self._statuses.values())))

    def _on_changed(self, _changed: Changed) -> None:
        if not self._totals_due.isActive():
            self._totals_due.start()

    def _on_dock_visibility_changed(self, visible: bool) -> None:
        if visible:
            self._on_totals_due()

    def _on_totals_due(self) -> None:
        self._bridge.start("totals", self._show_totals())

    async def _show_totals(self) -> None:
        if (
            self._window.dock.isVisible()
        ):  # the numbers of a worker that is off are as old as the last question
            for status in await self._bridge.run(self._services.workers.refresh):
                self._on_worker_changed(status)
        totals, warnings = await self._bridge.run(self._read_totals)
        waits = await self._bridge.run(self._services.background.waits_for_consent)
        self._window.dashboard.allow.setVisible(waits)
        self._window.dashboard.show_totals(totals)
        self._window.dashboard.show_warnings(warnings)
        self._window.spend_status.setText(f"Spent today: {spent_words(totals.spent_today)}")
        share = totals.searchable_share
        words = f"{share:.0%} of your history searchable" if share < 1 else ""
        self._window.search_status.setText(words)
        self._window.search_status.setVisible(bool(words))

    def _read_totals(self) -> tuple[Totals, tuple[str, ...]]:
        overview = self._services.overview.read()
        embedded = overview.embedded
        totals = Totals(
            passages=overview.passages,
            searchable_share=overview.searchable_share,
            meaning_share=None if embedded is None else embedded.share,
            embedder="" if embedded is None else self._answering_words(embedded.space),
            database_bytes=overview.database_bytes,
            spent_today=overview.spent_today,
            spent_month=overview.spent_month,
        )
        return totals, tuple(self._services.workers.warnings())

    def _answering_words(self, space_name: str) -> str:
        """Return which embedder made the vectors of a space, in words."""
        rows = self._services.spaces.read().rows
        return next((row.model for row in rows if row.name == space_name), space_name)

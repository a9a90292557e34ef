"""The card of one worker: its status as text, a switch, and buttons."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QFrame, QWidget

from app.domain.translation import tr
from app.domain.workers import WORKERS, WorkerName, WorkerState, WorkerStatus
from app.workers.status_text import worker_text
from ui.widgets.controls import button, column_in, progress_bar, row_of, stack_if_narrow
from ui.widgets.plain_label import breakable, plain_label

if TYPE_CHECKING:
    from ui.views.memory.dashboard import Dashboard

_EDGE_PX = 12


class WorkerCard(QFrame):
    """State, progress, counts, spending, retry queue, current item and errors of one worker.

    What is clicked is reported by the signals of `dashboard`.
    """

    def __init__(self, name: WorkerName, parent: QWidget, dashboard: "Dashboard") -> None:
        super().__init__(parent)
        title = tr(WORKERS[name].title)
        self._name = name
        self.setProperty("panel", "card")
        self.setAccessibleName(title)
        self.switch = QCheckBox(title, self)
        self.switch.clicked.connect(lambda on: dashboard.switched.emit(name, on))
        self.state = plain_label(self, "small", selectable=False)
        self.bar = progress_bar(self, tr("{title}: progress").format(title=title))
        tones = ("", "small", "small", "small", "small", "warning", "error")
        self._lines = [plain_label(self, tone, selectable=False) for tone in tones]
        self.counts, self.session, self.spent, self.retries, *_ = self._lines
        self.run_now, self.failures, self.regenerate = (
            button(self, text, slot, kind="quiet", tip=tip, name=f"{title}: {action}")
            for text, slot, tip, action in (
                (
                    tr("Run now"), lambda: dashboard.run_requested.emit(name),
                    tr("Look for work now, and retry what waits"), tr("run now"),
                ),
                (
                    tr("Failures\u2026"), lambda: dashboard.failures_requested.emit(name),
                    tr("What failed, why, and when it is retried"), "failures",
                ),
                (
                    tr("Extract again\u2026"), dashboard.regeneration_requested,
                    tr("Extract facts again that other models found; shows the price and asks first"),
                    tr("extract again"),
                ),
            )
        )  # fmt: skip
        self.regenerate.setVisible(name is WorkerName.KNOWLEDGE_EXTRACTOR)
        self._arrange()

    def show_status(self, status: WorkerStatus) -> None:
        """Show a status."""
        text = worker_text(status)
        self.switch.setChecked(status.enabled)
        self.state.setText(text.state)
        self.bar.setVisible(bool(status.total))
        self.bar.setRange(0, max(1, status.total))
        self.bar.setValue(status.done)
        contents = (
            text.counts, text.session, text.spent, text.retries, text.current, text.blocked,
            text.error,
        )  # fmt: skip
        for line, content in zip(self._lines, contents, strict=True):
            line.show_text(breakable(content))
        self.failures.setVisible(bool(status.abandoned or status.waiting_retry))
        self.run_now.setVisible(status.enabled)
        self.run_now.setEnabled(status.state is not WorkerState.RUNNING)

    def fit(self, width_px: int) -> None:
        """Put the state below the title where a card of a width has no room beside it."""
        stack_if_narrow(self._head, width_px - 2 * _EDGE_PX)
        is_row = self._head.direction() is QBoxLayout.Direction.LeftToRight
        side = Qt.AlignmentFlag.AlignRight if is_row else Qt.AlignmentFlag.AlignLeft
        self.state.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def _arrange(self) -> None:
        beside, below = self.failures, self.regenerate
        if self._name is WorkerName.KNOWLEDGE_EXTRACTOR:
            beside, below = below, beside
        self._head = row_of(self.switch, (self.state, 1))
        foot = row_of(self.run_now, 8, beside, None)  # three are wider than the narrowest card
        parts = (self.bar, *self._lines)
        column = column_in(
            self, self._head, *parts, foot, margins=(_EDGE_PX, 10, _EDGE_PX, 8), spacing=4
        )
        column.addWidget(below, alignment=Qt.AlignmentFlag.AlignLeft)

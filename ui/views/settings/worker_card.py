"""The card of one worker: its status as text, a switch, and buttons."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.workers import WORKERS, WorkerName, WorkerState, WorkerStatus
from app.workers.status_text import worker_text
from ui.widgets.plain_label import breakable, plain_label


class WorkerCard(QFrame):
    """State, progress, counts, spending, retry queue, current item and errors of one worker.

    Signals: as of `Dashboard`; `regeneration_requested` from the card of facts only.
    """

    switched = Signal(object, bool)
    run_requested = Signal(object)
    failures_requested = Signal(object)
    regeneration_requested = Signal()

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = WORKERS[name].title
        self._name = name
        self.setProperty("panel", "card")
        self.setAccessibleName(title)
        self.switch = QCheckBox(title, self)
        self.switch.clicked.connect(lambda on: self.switched.emit(name, on))
        self.state = plain_label(self, "small", selectable=False)
        self.state.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(f"{title}: progress")
        self.counts = plain_label(self, "", selectable=False)
        self.session, self.spent = (
            plain_label(self, "small", selectable=False),
            plain_label(self, "small", selectable=False),
        )
        self.retries, self.current = (
            plain_label(self, "small", selectable=False),
            plain_label(self, "small", selectable=False),
        )
        self.blocked, self.error = (
            plain_label(self, "warning", selectable=False),
            plain_label(self, "error", selectable=False),
        )
        self.run_now = self._button("Run now", "Look for work now, and retry what waits")
        self.run_now.setAccessibleName(f"{title}: run now")
        self.failures = self._button("Failures\u2026", "What failed, why, and when it is retried")
        self.failures.setAccessibleName(f"{title}: failures")
        self.run_now.clicked.connect(lambda: self.run_requested.emit(name))
        self.failures.clicked.connect(lambda: self.failures_requested.emit(name))
        self.regenerate = self._button(
            "Extract again\u2026",
            "Extract facts again that other models found; shows the price and asks first",
        )
        self.regenerate.setAccessibleName(f"{title}: extract again")
        self.regenerate.clicked.connect(self.regeneration_requested)
        self.regenerate.setVisible(name is WorkerName.KNOWLEDGE_EXTRACTOR)
        self._arrange()

    def show_status(self, status: WorkerStatus) -> None:
        """Show a status."""
        text = worker_text(status)
        self.switch.setChecked(status.enabled)
        self.state.setText(text.state)
        self.bar.setRange(0, max(1, status.total))
        self.bar.setValue(status.done)
        for line, content in (
            (self.counts, text.counts),
            (self.session, text.session),
            (self.spent, text.spent),
            (self.retries, text.retries),
            (self.current, text.current),
            (self.blocked, text.blocked),
            (self.error, text.error),
        ):
            line.setText(breakable(content))
            line.setVisible(bool(content))
        self.failures.setVisible(bool(status.abandoned or status.waiting_retry))
        self.run_now.setVisible(status.enabled)
        self.run_now.setEnabled(status.state is not WorkerState.RUNNING)

    def _button(self, text: str, tip: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("kind", "quiet")
        button.setToolTip(tip)
        return button

    def _arrange(self) -> None:
        head, foot = QHBoxLayout(), QHBoxLayout()
        head.addWidget(self.switch)
        head.addWidget(self.state, 1)
        foot.setContentsMargins(0, 0, 0, 0)
        beside, below = self.failures, self.regenerate
        if self._name is WorkerName.KNOWLEDGE_EXTRACTOR:
            beside, below = below, beside
        for button in (self.run_now, beside):  # three are wider than the narrowest card
            foot.addWidget(button)
        foot.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 8)
        column.setSpacing(4)
        column.addLayout(head)
        lines = (self.counts, self.session, self.spent, self.retries, self.current)
        for part in (self.bar, *lines, self.blocked, self.error):
            column.addWidget(part)
        column.addLayout(foot)
        column.addWidget(below, alignment=Qt.AlignmentFlag.AlignLeft)

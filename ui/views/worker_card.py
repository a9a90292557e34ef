"""One worker on the dashboard: what it says of itself, on and off, run now, and what it failed at."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.workers.wording import CALLED, worker_words
from ui.widgets.plain_label import PlainLabel, breakable


class WorkerCard(QFrame):
    """One worker: state, progress, counts, spend, retry queue, current item, errors.

    Signals:
        switched: (WorkerName, bool). run_requested: The WorkerName that should look for work now.
        failures_requested: The WorkerName whose retry queue is to be shown.
        redo_requested: What others learned should be learned again; from the card of facts alone.
    """

    switched = Signal(object, bool)
    run_requested = Signal(object)
    failures_requested = Signal(object)
    redo_requested = Signal()

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = CALLED[name].title
        self._name = name
        self.setProperty("panel", "card")
        self.setAccessibleName(title)
        self.switch = QCheckBox(title, self)
        self.switch.clicked.connect(self._on_switch_clicked)
        self.state = self._line("small")
        self.state.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(f"{title}: progress")
        self.counts = self._line("")
        self.session, self.spent = self._line("small"), self._line("small")
        self.retries, self.current = self._line("small"), self._line("small")
        self.blocked, self.error = self._line("warning"), self._line("error")
        self.run_now = self._button("Run now", "Look for work at once, and try again what waits")
        self.run_now.setAccessibleName(f"{title}: run now")
        self.failures = self._button(
            "Failures\u2026", "What failed, why, and when it is tried again"
        )
        self.failures.setAccessibleName(f"{title}: failures")
        self.run_now.clicked.connect(self._on_run_clicked)
        self.failures.clicked.connect(self._on_failures_clicked)
        self.redo = self._button(
            "Learn again\u2026", "Read again what others read for facts; asks first, with the price"
        )
        self.redo.setAccessibleName(f"{title}: learn again")
        self.redo.clicked.connect(self.redo_requested)
        self.redo.setVisible(name is WorkerName.KNOWLEDGE_EXTRACTOR)
        self._arrange()

    def show_status(self, status: WorkerStatus) -> None:
        """Show a status; numbers are shown as they are, nothing is made up between two."""
        words = worker_words(status)
        self.switch.setChecked(status.enabled)
        self.state.setText(words.state)
        self.bar.setRange(0, max(1, status.total))
        self.bar.setValue(status.done)
        for line, said in (
            (self.counts, words.counts),
            (self.session, words.session),
            (self.spent, words.spent),
            (self.retries, words.retries),
            (self.current, words.current),
            (self.blocked, words.blocked),
            (self.error, words.error),
        ):
            line.setText(breakable(said))
            line.setVisible(bool(said))
        self.failures.setVisible(bool(status.set_aside or status.waiting_retry))
        self.run_now.setVisible(status.enabled)
        self.run_now.setEnabled(status.state is not WorkerState.RUNNING)

    def _line(self, tone: str) -> QLabel:
        line = PlainLabel(self, wordWrap=True)
        line.setProperty("tone", tone)
        return line

    def _button(self, words: str, tip: str) -> QPushButton:
        button = QPushButton(words, self)
        button.setProperty("kind", "quiet")
        button.setToolTip(tip)
        return button

    def _arrange(self) -> None:
        head, foot = QHBoxLayout(), QHBoxLayout()
        head.addWidget(self.switch)
        head.addWidget(self.state, 1)
        foot.setContentsMargins(0, 0, 0, 0)
        may_redo = self._name is WorkerName.KNOWLEDGE_EXTRACTOR
        beside, below = (self.redo, self.failures) if may_redo else (self.failures, self.redo)
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

    def _on_run_clicked(self) -> None:
        self.run_requested.emit(self._name)

    def _on_failures_clicked(self) -> None:
        self.failures_requested.emit(self._name)

    def _on_switch_clicked(self, on: bool) -> None:
        self.switched.emit(self._name, on)

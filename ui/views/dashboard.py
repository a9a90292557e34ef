"""The worker dashboard: a card for each worker, and what memory holds in all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.domain.passages import PassageKind
from app.domain.workers import WorkerName, WorkerStatus
from app.storage.spending import Spent
from app.workers.wording import (
    KIND_TITLES,
    WORKER_TITLES,
    percent_words,
    size_words,
    spent_words,
    worker_words,
)

_LEAST_PX = 300


@dataclass(frozen=True, slots=True)
class Totals:
    """What memory holds: passages by kind, the shares (0-1) that are found, bytes, what was spent.

    `meaning_share` is of what should be embedded, None while nothing is found by its meaning;
    `embedder` says in words whose vectors those are.
    """

    passages: Mapping[PassageKind, int]
    searchable_share: float
    meaning_share: float | None
    embedder: str
    database_bytes: int
    spent_today: Spent
    spent_month: Spent


class Dashboard(QScrollArea):
    """Cards of workers above the totals.

    Signals:
        switched: (WorkerName, bool): a worker should be on or off.
        retry_requested: The WorkerName whose set-aside items should be tried again.
        allow_requested: The user wants to be asked whether history may be sent to a model.
    """

    switched = Signal(object, bool)
    retry_requested = Signal(object)
    allow_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setMinimumWidth(_LEAST_PX)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Workers")
        body = QWidget(self)
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(12, 12, 12, 12)
        self._column.setSpacing(10)
        self._warnings = QLabel(body, wordWrap=True)
        self._warnings.hide()
        self._warnings.setProperty("tone", "warning")
        self._column.addWidget(self._warnings)
        self.allow = QPushButton("Allow\u2026", body)
        self.allow.setAccessibleName("Allow the model for background work to read your history")
        self.allow.clicked.connect(self.allow_requested)
        self.allow.hide()
        self._column.addWidget(self.allow, alignment=Qt.AlignmentFlag.AlignLeft)
        self._cards: dict[WorkerName, WorkerCard] = {}
        self._totals = _TotalsCard(body)
        self._column.addWidget(self._totals)
        self._column.addStretch(1)
        self.setWidget(body)

    def show_status(self, status: WorkerStatus) -> None:
        """Show a worker's newest status, on a card of its own."""
        card = self._cards.get(status.name)
        if card is None:
            card = WorkerCard(status.name, self.widget())
            card.switched.connect(self.switched)
            card.retry_requested.connect(self.retry_requested)
            self._cards[status.name] = card
            self._column.insertWidget(len(self._cards) + 1, card)
        card.show_status(status)

    def show_totals(self, totals: Totals) -> None:
        """Show what memory holds."""
        self._totals.show_totals(totals)

    def show_warnings(self, warnings: Sequence[str]) -> None:
        """Show what wants the user's attention, in plain words."""
        self._warnings.setText("\n".join(warnings))
        self._warnings.setVisible(bool(warnings))

    def card(self, name: WorkerName) -> "WorkerCard":
        """Return a worker's card."""
        return self._cards[name]


class WorkerCard(QFrame):
    """One worker: state, progress, counts, current item, on and off.

    Signals:
        switched: (WorkerName, bool). retry_requested: WorkerName.
    """

    switched = Signal(object, bool)
    retry_requested = Signal(object)

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self.setProperty("panel", "card")
        self.setAccessibleName(WORKER_TITLES[name])
        self.switch = QCheckBox(WORKER_TITLES[name], self)
        self.switch.clicked.connect(self._on_switch_clicked)
        self.state = QLabel(self)
        self.state.setProperty("tone", "small")
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(f"{WORKER_TITLES[name]}: progress")
        self.counts = QLabel(self, wordWrap=True)
        self.counts.setProperty("tone", "small")
        self.current = QLabel(self, wordWrap=True)
        self.current.setProperty("tone", "small")
        self.error = QLabel(self, wordWrap=True)
        self.error.hide()
        self.error.setProperty("tone", "error")
        self.retry = QPushButton("Try again", self)
        self.retry.setToolTip("Try again at once what was set aside after failing too often")
        self.retry.clicked.connect(self._on_retry_clicked)
        self.retry.hide()
        head = QHBoxLayout()
        head.addWidget(self.switch, 1)
        head.addWidget(self.state)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.addLayout(head)
        for part in (self.bar, self.counts, self.current, self.error):
            column.addWidget(part)
        column.addWidget(self.retry, alignment=Qt.AlignmentFlag.AlignLeft)

    def show_status(self, status: WorkerStatus) -> None:
        """Show a status; numbers are shown as they are, nothing is made up between two."""
        words = worker_words(status)
        self.switch.setChecked(status.enabled)
        self.state.setText(words.state)
        self.bar.setRange(0, max(1, status.total))
        self.bar.setValue(status.done if status.total else 1)
        self.counts.setText(words.counts)
        self.current.setText(words.current)
        self.current.setVisible(bool(words.current))
        self.error.setText(words.problem)
        self.error.setVisible(bool(words.problem))
        self.retry.setVisible(bool(status.set_aside))

    def _on_retry_clicked(self) -> None:
        self.retry_requested.emit(self._name)

    def _on_switch_clicked(self, on: bool) -> None:
        self.switched.emit(self._name, on)


class _TotalsCard(QFrame):
    """What memory holds in all."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName("Memory in all")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 10, 12, 10)
        self._grid.setColumnStretch(0, 1)

    def show_totals(self, totals: Totals) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, (name, value) in enumerate(_total_rows(totals)):
            label, number = QLabel(name, self, wordWrap=True), QLabel(value, self)
            label.setProperty("tone", "muted")
            number.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(label, row, 0)
            self._grid.addWidget(number, row, 1, Qt.AlignmentFlag.AlignRight)


def _total_rows(totals: Totals) -> list[tuple[str, str]]:
    rows = [(KIND_TITLES[kind], f"{count:,}") for kind, count in totals.passages.items()]
    rows.append(("Found by words", percent_words(totals.searchable_share)))
    if totals.meaning_share is None:
        rows.append(("Found by meaning", "not now"))
    else:
        name = f"Found by meaning ({totals.embedder})"
        rows.append((name, percent_words(totals.meaning_share)))
    rows.append(("Database", size_words(totals.database_bytes)))
    rows.append(("Spent today", spent_words(totals.spent_today)))
    rows.append(("Spent this month", spent_words(totals.spent_month)))
    return rows

"""The worker dashboard: a card for each worker, and what memory holds in all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.domain.passages import PassageKind
from app.domain.workers import WorkerName, WorkerStatus
from app.storage.spending import Spent
from app.workers.wording import (
    ESTIMATED,
    KIND_TITLES,
    most_words,
    percent_words,
    size_words,
    spent_words,
)
from ui.views.worker_card import WorkerCard
from ui.widgets.plain_label import PlainLabel, breakable

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
        run_requested: The WorkerName that should look for work now.
        failures_requested: The WorkerName whose retry queue is to be shown.
        allow_requested: The user wants to be asked whether history may be sent to a model.
        redo_requested: What others learned should be learned again.
    """

    switched = Signal(object, bool)
    run_requested = Signal(object)
    failures_requested = Signal(object)
    allow_requested = Signal()
    redo_requested = Signal()

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
        self._warnings = PlainLabel(body, wordWrap=True)
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
            card.run_requested.connect(self.run_requested)
            card.failures_requested.connect(self.failures_requested)
            card.redo_requested.connect(self.redo_requested)
            self._cards[status.name] = card
            self._column.insertWidget(len(self._cards) + 1, card)
        card.show_status(status)

    def show_totals(self, totals: Totals) -> None:
        """Show what memory holds."""
        self._totals.show_totals(totals)

    def show_warnings(self, warnings: Sequence[str]) -> None:
        """Show what wants the user's attention, in plain words."""
        self._warnings.setText(breakable("\n".join(warnings)))
        self._warnings.setVisible(bool(warnings))

    def card(self, name: WorkerName) -> WorkerCard:
        """Return a worker's card."""
        return self._cards[name]


class _TotalsCard(QFrame):
    """What memory holds in all."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName("Memory in all")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 10, 12, 10)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(0, 1)
        self._rows: list[tuple[QLabel, QLabel]] = []

    def show_totals(self, totals: Totals) -> None:
        rows = _total_rows(totals)
        while len(self._rows) < len(rows):
            self._add_row()
        for place, cells in enumerate(self._rows):
            for cell in cells:
                cell.setVisible(place < len(rows))
        for (label, number), (name, value) in zip(self._rows, rows, strict=False):
            label.setText(name)
            number.setText(value)
            number.setAccessibleName(f"{name}: {value}")

    def _add_row(self) -> None:
        label, number = PlainLabel(self, wordWrap=True), PlainLabel(self)
        label.setProperty("tone", "muted")
        self._grid.addWidget(label, len(self._rows), 0)
        self._grid.addWidget(number, len(self._rows), 1, Qt.AlignmentFlag.AlignRight)
        self._rows.append((label, number))


def _total_rows(totals: Totals) -> list[tuple[str, str]]:
    rows = [(title, f"{totals.passages.get(kind, 0):,}") for kind, title in KIND_TITLES.items()]
    rows.append(("Found by words", percent_words(totals.searchable_share)))
    if totals.meaning_share is None:
        rows.append(("Found by meaning", "not now"))
    else:
        name = f"Found by meaning ({totals.embedder})"
        rows.append((name, percent_words(totals.meaning_share)))
    rows.append(("Database", size_words(totals.database_bytes)))
    for name, spent in (("today", totals.spent_today), ("this month", totals.spent_month)):
        rows.append((f"Spent {name}", spent_words(spent)))
        if spent.estimated_usd:
            rows.append((f"of it {ESTIMATED}", most_words(spent.estimated_usd)))
    return rows

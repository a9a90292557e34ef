"""The worker dashboard: a card for each worker, and totals of memory and spending."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QWidget

from app.domain.formatting import format_at_most, format_percent, format_size
from app.domain.passages import KIND_TITLES
from app.domain.translation import format_number, tr, trn
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.memory.overview import Overview
from app.workers.status_text import ESTIMATED, format_spent
from ui.views.memory.worker_card import WorkerCard
from ui.widgets.controls import button, column_in
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import PlainLabel, breakable, plain_label

_EDGE_PX = 12
_ABOVE_CARDS = 3  # warnings and two buttons
_ORDER = (WorkerState.RUNNING, WorkerState.BLOCKED)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of memory and spending; `embedder` describes the embedder of the vectors.

    With `needs_consent` the chosen background model waits until the user allows it to read the
    history. `proposals` for the profile and core memory wait for the user.
    """

    memory: Overview
    embedder: str = ""
    needs_consent: bool = False
    proposals: int = 0


class Dashboard(ReportsShown, QScrollArea):
    """Cards of workers above the totals.

    Signals:
        switched: (WorkerName, bool): a worker is to be switched on or off.
        run_requested: The WorkerName that is to look for work now.
        failures_requested: The WorkerName whose retry queue is to be shown.
        allow_requested: The user wants to decide whether a model may read the history.
        review_requested: The user wants to decide about proposals.
        regeneration_requested: Facts that other models found are to be extracted again.
    """

    switched = Signal(object, bool)
    run_requested = Signal(object)
    failures_requested = Signal(object)
    allow_requested = Signal()
    review_requested = Signal()
    regeneration_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Activity"))
        self._body = body = QWidget(self)
        self._warnings = PlainLabel(body, wordWrap=True, tone="warning")
        self._warnings.hide()
        name = tr("Allow the model for background work to read your history")
        self.allow = button(body, tr("Allow\u2026"), self.allow_requested, name=name)
        self.allow.hide()
        self.review = button(body, "", self.review_requested)
        self.review.hide()
        self._column = column_in(body, self._warnings, margins=(_EDGE_PX,) * 4)
        for each in (self.allow, self.review):
            self._column.addWidget(each, alignment=Qt.AlignmentFlag.AlignLeft)
        self._cards: dict[WorkerName, WorkerCard] = {}
        self._ranks: dict[WorkerName, int] = {}
        self._totals = _TotalsCard(body)
        self._column.addWidget(self._totals)
        self._column.addStretch(1)
        self.setWidget(body)

    def show_status(self, status: WorkerStatus) -> None:
        """Show a worker's newest status on its card."""
        card = self._cards.get(status.name)
        if card is None:
            card = WorkerCard(status.name, self._body, self)
            self._cards[status.name] = card
            self._column.insertWidget(_ABOVE_CARDS, card)
        card.show_status(status)
        card.fit(self._card_px)
        self._ranks[status.name] = _rank(status)
        if not self.underMouse():  # nothing moves away from under a click
            self._sort_cards()

    def _sort_cards(self) -> None:
        """Put workers at work above waiting ones, those above idle ones, and what is off last."""
        for place, name in enumerate(sorted(self._cards, key=self._ranks.__getitem__)):
            if self._column.indexOf(card := self._cards[name]) != place + _ABOVE_CARDS:
                self._column.insertWidget(place + _ABOVE_CARDS, card)

    def show_totals(self, totals: Totals) -> None:
        """Show the totals, and the button to allow a model while one waits for it."""
        self._totals.show_totals(totals)
        self.allow.setVisible(totals.needs_consent)
        self.review.setText(
            tr("Review {proposals} for memory…").format(
                proposals=trn("{count} proposal", "{count} proposals", totals.proposals)
            )
        )
        self.review.setVisible(bool(totals.proposals))

    def show_warnings(self, warnings: Sequence[str]) -> None:
        """Show what needs the user's attention."""
        self._warnings.setText(breakable("\n".join(warnings)))
        self._warnings.setVisible(bool(warnings))

    @property
    def _card_px(self) -> int:
        return self.viewport().width() - 2 * _EDGE_PX

    def card(self, name: WorkerName) -> WorkerCard:
        """Return a worker's card."""
        return self._cards[name]

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the cards into the new width."""
        super().resizeEvent(event)
        for card in self._cards.values():
            card.fit(self._card_px)


def _rank(status: WorkerStatus) -> int:
    """Return the place of a worker's state, 0 for the uppermost."""
    if status.state in _ORDER:
        return _ORDER.index(status.state)
    return len(_ORDER) + (not status.enabled)


class _TotalsCard(QFrame):
    """The totals."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName(tr("Totals"))
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
        label, number = plain_label(self, "muted", selectable=False), PlainLabel(self)
        self._grid.addWidget(label, len(self._rows), 0)
        self._grid.addWidget(number, len(self._rows), 1, Qt.AlignmentFlag.AlignRight)
        self._rows.append((label, number))


def _total_rows(totals: Totals) -> list[tuple[str, str]]:
    memory = totals.memory
    rows = [
        (title, format_number(memory.passages.get(kind, 0))) for kind, title in KIND_TITLES.items()
    ]
    rows.append((tr("Found by exact words"), format_percent(memory.searchable_share)))
    if memory.embedded is None:
        rows.append((tr("Found by meaning"), tr("not available")))
    else:
        name = tr("Found by meaning ({embedder})").format(embedder=totals.embedder)
        rows.append((name, format_percent(memory.embedded.share)))
    rows.append((tr("Database"), format_size(memory.database_bytes)))
    if memory.deletions_owed:
        waiting = tr("Forgotten, bytes go within an hour")
        rows.append((waiting, format_number(memory.deletions_owed)))
    for name, spent in (
        (tr("Spent today"), memory.spent_today),
        (tr("Spent this month"), memory.spent_month),
    ):
        rows.append((name, format_spent(spent)))
        if spent.estimated_usd:
            rows.append(
                (
                    tr("of it {estimated}").format(estimated=tr(ESTIMATED)),
                    format_at_most(spent.estimated_usd),
                )
            )
    return rows

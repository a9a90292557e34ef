"""The worker dashboard: a card for each worker, its retry queue, and totals of memory and spending."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QFrame,
    QGridLayout,
    QLabel,
    QScrollArea,
    QWidget,
)

from app.domain.passages import KIND_TITLES
from app.domain.translation import (
    format_at_most,
    format_number,
    format_percent,
    format_size,
    tr,
    trn,
)
from app.domain.workers import WORKERS, FailedItem, WorkerName, WorkerState, WorkerStatus
from app.memory.search.coverage import Overview
from app.workers.status_text import ESTIMATED, failed_item_text, format_spent, worker_text
from ui.models.labels import with_setting_labels
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    progress_bar,
    row_of,
    stack_if_narrow,
)
from ui.widgets.dialog import Dialog
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import PlainLabel, breakable, plain_label
from ui.widgets.record_table import RecordTable

_EDGE_PX = 12
_ABOVE_CARDS = 3  # warnings and two buttons
_ORDER = (WorkerState.RUNNING, WorkerState.BLOCKED)
_FAILURE_COLUMNS = (tr("What"), tr("Tries"), tr("Error"))


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
            line.show_text(breakable(with_setting_labels(content)))
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
        self._warnings.setText(breakable(with_setting_labels("\n".join(warnings))))
        self._warnings.setVisible(bool(warnings))

    @property
    def _card_px(self) -> int:
        return self.viewport().width() - 2 * _EDGE_PX

    def card(self, name: WorkerName) -> WorkerCard:
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


class FailuresDialog(Dialog):
    """Lists the failed items of a worker.

    Attributes:
        worker: The worker's name.

    Signals:
        retry_requested: (WorkerName, the ids of the selected items, None for all): retry now.
    """

    retry_requested = Signal(object, object)

    def __init__(self, name: WorkerName, parent: QWidget | None = None) -> None:
        title = tr("{title}: failures").format(title=tr(WORKERS[name].title))
        super().__init__(title, (760, 380), parent, tone="")
        self.worker = name
        self.table = RecordTable(self, title, _FAILURE_COLUMNS, narrow=(1,), several=True)
        buttons, (self.retry_all, self.retry) = closing_buttons(self, tr("Retry all"), tr("Retry"))
        self.table.changed.connect(lambda: self.retry.setEnabled(bool(self.table.selected)))
        self.retry.clicked.connect(
            lambda: self.retry_requested.emit(name, [each.item_id for each in self.table.selected])
        )
        self.retry_all.clicked.connect(lambda: self.retry_requested.emit(name, None))
        column_in(self, self.status, (self.table, 1), buttons)
        self.show_items(())

    def show_items(self, items: Sequence[FailedItem]) -> None:
        """Show the queue in its order; the selection stays."""
        self.table.show_records(items, failed_item_text, lambda each: each.item_id)
        self.status.setText(
            tr(
                "Failed items are retried automatically after longer and longer waits. Items that failed "
                "too often are set aside until you retry them."
            )
            if items
            else tr("Nothing has failed.")
        )
        self.retry_all.setEnabled(bool(items))

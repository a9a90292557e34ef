"""The dialog of routines: each with its switch, next and last run, and the history of the selected one."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt, Signal, SignalInstance
from PySide6.QtWidgets import QSplitter, QTreeWidgetItem, QWidget

from app.chat.routines import RoutineState, outcome_text, run_text
from app.domain.formatting import format_moment
from app.domain.routines import RoutineRun
from app.domain.translation import tr, trn
from app.language.schedules import schedule_text
from ui.widgets.controls import button, closing_buttons, column_in, row_of
from ui.widgets.dialog import Dialog
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Routine"), tr("Schedule"), tr("Next run"), tr("Last run"))
_RUN_COLUMNS = (tr("Due"), tr("Ended"), tr("Result"))
_ON, _OFF = Qt.CheckState.Checked, Qt.CheckState.Unchecked


class RoutinesDialog(Dialog):
    """Lists routines by name; the box of each switches it.

    Signals:
        selected: The uid of the routine whose history is to be shown.
        switched: A uid, and whether it is on from now on.
        add_requested: A new routine.
        edit_requested, run_requested, removal_requested: A `Routine`.
        turn_requested: The `RoutineRun` whose answer is to be shown.
    """

    selected = Signal(str)
    switched = Signal(str, bool)
    add_requested = Signal()
    edit_requested = Signal(object)
    run_requested = Signal(object)
    removal_requested = Signal(object)
    turn_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Routines"), (860, 540), parent)
        self.add = button(self, tr("New routine\u2026"), self.add_requested)
        self.edit, self.run, self.remove = (
            button(self, text, partial(self._emit, signal))
            for text, signal in (
                (tr("Edit\u2026"), self.edit_requested),
                (tr("Run now"), self.run_requested),
                (tr("Remove\u2026"), self.removal_requested),
            )
        )
        self.table = RecordTable(self, tr("Routines"), _COLUMNS, narrow=(2,), selects_first=True)
        self.runs = RecordTable(
            self, tr("History"), _RUN_COLUMNS, narrow=(0, 1), selects_first=True
        )
        buttons, (self.open_turn,) = closing_buttons(self, tr("Show the answer"))
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.setChildrenCollapsible(False)
        split.addWidget(self.table)
        split.addWidget(self.runs)
        changes = row_of(self.add, self.edit, self.run, self.remove, None)
        column_in(self, self.status, changes, (split, 1), buttons)
        self.run.clicked.connect(self.table.setFocus)  # before the button is disabled
        self.table.changed.connect(self._on_selected)
        self.table.opened.connect(lambda state: self.edit_requested.emit(state.routine))
        self.table.itemChanged.connect(self._on_item_changed)
        self.runs.changed.connect(self._on_run_selected)
        self.runs.opened.connect(self._on_open_turn)
        self.open_turn.clicked.connect(self._on_open_turn)
        self.show_routines(())

    @property
    def current(self) -> RoutineState | None:
        """The selected routine."""
        state: RoutineState | None = self.table.current
        return state

    def show_routines(self, states: Sequence[RoutineState], select: str = "") -> None:
        """Show routines; the selection stays unless the uid of another one is given."""
        rows = self.table.show_records(states, _texts, lambda each: each.routine.uid, select=select)
        with QSignalBlocker(self.table):
            for row, state in zip(rows, states, strict=True):
                row.setCheckState(0, _OFF if state.next_at is None else _ON)
        self.status.setText(_summary(states))
        for each in (self.edit, self.run, self.remove, self.open_turn, self.table, self.runs):
            each.setVisible(bool(states))

    def show_runs(self, uid: str, runs: Sequence[RoutineRun]) -> None:
        """Show the runs of the selected routine, the latest first; another selected one stays so."""
        if self.current is None or self.current.routine.uid != uid:
            return
        is_latest = self.runs.currentIndex().row() == 0
        select = runs[0].due_at if runs and is_latest else None
        self.runs.show_records(runs, _run_texts, lambda run: run.due_at, select=select)

    def _emit(self, signal: SignalInstance, *_: object) -> None:
        if self.current is not None:
            signal.emit(self.current.routine)

    def _on_selected(self) -> None:
        state = self.current
        for each in (self.edit, self.remove):
            each.setEnabled(state is not None)
        self.run.setEnabled(state is not None and not state.is_running)
        if state is None:
            self.runs.show_records((), _run_texts)
        else:
            self.selected.emit(state.routine.uid)

    def _on_run_selected(self) -> None:
        run = self.runs.current
        self.open_turn.setEnabled(run is not None and run.exchange_id is not None)

    def _on_open_turn(self) -> None:
        if self.open_turn.isEnabled():
            self.turn_requested.emit(self.runs.current)

    def _on_item_changed(self, row: QTreeWidgetItem, column: int) -> None:
        if column == 0:
            uid = self.table.record_of(row).routine.uid
            self.switched.emit(uid, row.checkState(0) == _ON)


def _texts(state: RoutineState) -> Sequence[str]:
    routine = state.routine
    last = tr("Never") if state.last is None else run_text(state.last)
    return (
        routine.name,
        schedule_text(routine.cron),
        tr("Off") if state.next_at is None else format_moment(state.next_at),
        tr("Running\u2026") if state.is_running else last,
    )


def _run_texts(run: RoutineRun) -> Sequence[str]:
    ended = "" if run.finished_at is None else format_moment(run.finished_at)
    return format_moment(run.due_at), ended, outcome_text(run)


def _summary(states: Sequence[RoutineState]) -> str:
    if not states:
        return tr(
            "There are no routines yet. A routine asks a model the same thing on a schedule, such as "
            "every weekday at 9, while Commonplace is open."
        )
    notices = [each.notice for each in states if each.notice]
    return "\n".join(notices) or trn("{count} routine", "{count} routines", len(states))

"""The dialog of routines: each with its switch, next and last run, and the history of the selected one."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtWidgets import QDialog, QSplitter, QTreeWidgetItem, QWidget

from app.chat.routines import RoutineState, outcome_text, run_text
from app.domain.errors import KnownError
from app.domain.formatting import format_moment
from app.domain.routines import RoutineRun
from app.domain.translation import tr, trn
from app.language.schedules import schedule_text
from ui.widgets.controls import button, closing_buttons, column_in, row_of, table_view
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label

_COLUMNS = (tr("Routine"), tr("Schedule"), tr("Next run"), tr("Last run"))
_RUN_COLUMNS = (tr("Due"), tr("Ended"), tr("Result"))
_VALUE = Qt.ItemDataRole.UserRole + 1
_ON, _OFF = Qt.CheckState.Checked, Qt.CheckState.Unchecked


class RoutinesDialog(QDialog):
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
        super().__init__(parent)
        self.setWindowTitle(tr("Routines"))
        resize_on_screen(self, 860, 540)
        self.status = plain_label(self, "muted", selectable=False)
        self.add = button(self, tr("New routine\u2026"), self.add_requested)
        self.edit = button(self, tr("Edit\u2026"))
        self.run = button(self, tr("Run now"))
        self.remove = button(self, tr("Remove\u2026"))
        self.table = table_view(self, tr("Routines"), _COLUMNS, narrow=(2,))
        self.runs = table_view(self, tr("History"), _RUN_COLUMNS, narrow=(0, 1))
        buttons, (self.open_turn,) = closing_buttons(self, tr("Show the answer"))
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.setChildrenCollapsible(False)
        split.addWidget(self.table)
        split.addWidget(self.runs)
        changes = row_of(self.add, self.edit, self.run, self.remove, None)
        column_in(self, self.status, changes, (split, 1), buttons)
        self._states: dict[str, RoutineState] = {}
        self._is_showing = False
        self._connect()
        self.show_routines(())

    @property
    def current(self) -> RoutineState | None:
        """The selected routine."""
        row = self.table.currentItem()
        return None if row is None else self._states.get(row.data(0, _VALUE))

    def show_routines(self, states: Sequence[RoutineState], select: str = "") -> None:
        """Show routines; the selection stays unless the uid of another one is given."""
        before = self.current
        wanted = select or (before.routine.uid if before else "")
        self._is_showing = True
        self._states = {each.routine.uid: each for each in states}
        self.table.clear()
        for each in states:
            row = _row(each)
            self.table.addTopLevelItem(row)
            if each.routine.uid == wanted:
                self.table.setCurrentItem(row)
        if self.current is None and (first := self.table.topLevelItem(0)) is not None:
            self.table.setCurrentItem(first)
        self._is_showing = False
        self.status.setText(_summary(states))
        self._on_selected()

    def show_runs(self, uid: str, runs: Sequence[RoutineRun]) -> None:
        """Show the runs of the selected routine, the latest first; another selected one stays so."""
        if self.current is None or self.current.routine.uid != uid:
            return
        before = None if self.runs.currentIndex().row() == 0 else self._run()
        self.runs.clear()
        for run in runs:
            row = _run_row(run)
            self.runs.addTopLevelItem(row)
            if before is not None and before.due_at == run.due_at:
                self.runs.setCurrentItem(row)
        first = self.runs.topLevelItem(0)
        if self.runs.currentItem() is None and first is not None:
            self.runs.setCurrentItem(first)
        self._on_run_selected()

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self.status.setText(error.display_text)

    def _connect(self) -> None:
        self.table.itemSelectionChanged.connect(self._on_selected)
        self.table.itemActivated.connect(lambda *_: self._emit(self.edit_requested))
        self.table.itemChanged.connect(self._on_item_changed)
        self.edit.clicked.connect(lambda: self._emit(self.edit_requested))
        self.run.clicked.connect(lambda: self._emit(self.run_requested))
        self.remove.clicked.connect(lambda: self._emit(self.removal_requested))
        self.runs.itemSelectionChanged.connect(self._on_run_selected)
        self.runs.itemActivated.connect(lambda *_: self._on_open_turn())
        self.open_turn.clicked.connect(self._on_open_turn)

    def _emit(self, signal: SignalInstance) -> None:
        if self.current is not None:
            signal.emit(self.current.routine)

    def _run(self) -> RoutineRun | None:
        row = self.runs.currentItem()
        return None if row is None else row.data(0, _VALUE)

    def _on_selected(self) -> None:
        if self._is_showing:
            return
        state = self.current
        for each in (self.edit, self.remove):
            each.setEnabled(state is not None)
        self.run.setEnabled(state is not None and not state.is_running)
        if state is None:
            self.runs.clear()
            self._on_run_selected()
        else:
            self.selected.emit(state.routine.uid)

    def _on_run_selected(self) -> None:
        run = self._run()
        self.open_turn.setEnabled(run is not None and run.exchange_id is not None)

    def _on_open_turn(self) -> None:
        if self.open_turn.isEnabled():
            self.turn_requested.emit(self._run())

    def _on_item_changed(self, row: QTreeWidgetItem, column: int) -> None:
        if not self._is_showing and column == 0:
            self.switched.emit(row.data(0, _VALUE), row.checkState(0) == _ON)


def _row(state: RoutineState) -> QTreeWidgetItem:
    routine = state.routine
    last = tr("Never") if state.last is None else run_text(state.last)
    row = _texts(
        routine.name,
        schedule_text(routine.cron),
        tr("Off") if state.next_at is None else format_moment(state.next_at),
        tr("Running\u2026") if state.is_running else last,
    )
    row.setData(0, _VALUE, routine.uid)
    row.setCheckState(0, _OFF if state.next_at is None else _ON)
    return row


def _run_row(run: RoutineRun) -> QTreeWidgetItem:
    ended = "" if run.finished_at is None else format_moment(run.finished_at)
    row = _texts(format_moment(run.due_at), ended, outcome_text(run))
    row.setData(0, _VALUE, run)
    return row


def _texts(*texts: str) -> QTreeWidgetItem:
    row = QTreeWidgetItem(list(texts))
    for column, text in enumerate(texts):
        row.setToolTip(column, escape(text))
    return row


def _summary(states: Sequence[RoutineState]) -> str:
    if not states:
        return tr(
            "There are no routines yet. A routine asks a model the same thing on a schedule, such as "
            "every weekday at 9, while Commonplace is open."
        )
    notices = [each.notice for each in states if each.notice]
    return "\n".join(notices) or trn("{count} routine", "{count} routines", len(states))

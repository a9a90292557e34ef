"""Routines: the dialog that lists them with the history of the selected one, and the editor of one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QLineEdit, QSplitter, QTreeWidgetItem, QWidget

from app.chat.routines import RoutineState, outcome_text, outcome_word
from app.domain.records.named import MAX_NAME_CHARS
from app.domain.records.routines import MAX_CAP_USD, Routine, RoutineRun
from app.domain.translation import format_moment, tr, trn
from app.language.schedules import schedule_text
from ui.widgets.choice_box import AmountBox, ChoiceBox
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    combo_box,
    form_of,
    labels_of,
    line_edit,
    row_of,
    saving_buttons,
    scroll_area,
    text_edit,
)
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Routine"), tr("Schedule"), tr("Next run"), tr("Last run"))
_RUN_COLUMNS = (tr("Due"), tr("Ended"), tr("Result"))
_ON, _OFF = Qt.CheckState.Checked, Qt.CheckState.Unchecked
_PAUSE_MS = 300
_PROMPT_PX = 84
_TOOLS_TEXT = tr(
    "It may use the tools of its preset, but none that write to memory or ask you, since nobody is asked "
    "while it runs."
)


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
        self.table = RecordTable(self, tr("Routines"), _COLUMNS, narrow=(2, 3), selects_first=True)
        self.runs = RecordTable(
            self, tr("History"), _RUN_COLUMNS, narrow=(0, 1), selects_first=True
        )
        buttons, (self.open_turn,) = closing_buttons(self, tr("Show the answer"))
        split = QSplitter(Qt.Orientation.Vertical, self, childrenCollapsible=False)
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
    if state.is_running:
        last = tr("Running\u2026")
    elif state.last is None:
        last = tr("Never")
    else:
        last = f"{format_moment(state.last.ended_at)}: {outcome_word(state.last)}"
    return (
        routine.name,
        schedule_text(routine.cron),
        tr("Off") if state.next_at is None else format_moment(state.next_at),
        last,
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


class RoutineForm(Dialog):
    """The fields of a routine. It can be saved once the schedule of these fields has been shown in words.

    Signals:
        edited: The routine of the fields, after a pause; its `cron` is what was typed.
        save_requested: That routine.
    """

    edited = Signal(object)
    save_requested = Signal(object)

    def __init__(
        self,
        routine: Routine,
        presets: Mapping[str, str],
        projects: Mapping[str, str],
        parent: QWidget | None = None,
    ) -> None:
        """Show a routine; its presets and projects are names by uid."""
        title = tr("Edit a routine") if routine.uid else tr("New routine")
        super().__init__(title, (680, 560), parent, tone="error")
        self._routine = routine
        self._pause = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._pause.timeout.connect(lambda: self.edited.emit(self.routine))
        self.name = QLineEdit(routine.name, self, maxLength=MAX_NAME_CHARS)
        self.prompt = text_edit(self, tr("Prompt"), _PROMPT_PX)
        self.prompt.setPlainText(routine.prompt)
        cron = schedule_text(routine.cron) if routine.cron else ""
        self.schedule = line_edit(
            self, tr("such as: every weekday at 9"), text=cron, name=tr("Schedule")
        )
        self.echo = plain_label(self, "muted")
        self.model = ChoiceBox(tr("Model"), self)
        self.model.setInsertPolicy(ChoiceBox.InsertPolicy.NoInsert)
        self.model.setLineEdit(line_edit(self, tr("The preset's model"), name=tr("Model")))
        self.model.setEditText(routine.model or "")
        self.preset = combo_box(self, tr("Preset"), _entries(tr("Default preset"), presets))
        self.project = combo_box(self, tr("Project"), _entries(tr("No project"), projects))
        for box, value in ((self.preset, routine.preset), (self.project, routine.project)):
            box.setCurrentIndex(max(0, box.findData(value or "")))
        self.cap = AmountBox(self, decimals=2, maximum=MAX_CAP_USD, prefix="$")
        self.cap.setSpecialValueText(tr("No limit of its own"))
        self.cap.setValue(routine.cap_usd or 0)
        self.private = QCheckBox(tr("Keep its answers out of search and memory"), self)
        self.private.setChecked(routine.is_private)
        self.plan, self.tools = plain_label(self, "muted"), plain_label(self, "small", _TOOLS_TEXT)
        self.status.hide()
        buttons, self.save = saving_buttons(self, lambda: self.save_requested.emit(self.routine))
        content = QWidget(self)
        self._lay_out(content)
        area = scroll_area(self, content, framed=False)
        area.setAccessibleName(tr("Routine"))
        column_in(self, (area, 1), self.status, buttons)
        self._connect()
        self._on_edited()

    @property
    def routine(self) -> Routine:
        return replace(
            self._routine,
            name=self.name.text(),
            prompt=self.prompt.toPlainText(),
            cron=self.schedule.text(),
            model=self.model.currentText().strip() or None,
            preset=self.preset.currentData() or None,
            project=self.project.currentData() or None,
            cap_usd=round(self.cap.value(), 2) or None,
            is_private=self.private.isChecked(),
        )

    def show_schedule(self, text: str, *, is_valid: bool) -> None:
        """Show the schedule in words with its next times, or why it cannot be read."""
        self.echo.setText(text)
        self.save.setEnabled(is_valid and not self._pause.isActive())

    def show_models(self, models: Sequence[str]) -> None:
        """Offer models in the list of the model field."""
        text = self.model.currentText()
        self.model.show_choices({model: model for model in models}, "")
        self.model.setEditText(text)

    def _connect(self) -> None:
        for changed in (
            self.name.textEdited, self.prompt.textChanged, self.schedule.textEdited,
            self.model.currentTextChanged, self.preset.activated, self.project.activated,
            self.cap.valueChanged, self.private.toggled,
        ):  # fmt: skip
            changed.connect(self._on_edited)

    def _on_edited(self, *_: object) -> None:
        self.save.setEnabled(False)
        self.status.hide()
        self._pause.start()

    def _lay_out(self, content: QWidget) -> None:
        when = (
            (tr("Name"), self.name), (tr("Prompt"), self.prompt), (tr("Schedule"), self.schedule),
        )  # fmt: skip
        how = (
            (tr("Model"), self.model), (tr("Preset"), self.preset), (tr("Project"), self.project),
            (tr("Limit per month"), self.cap),
        )  # fmt: skip
        forms = [form_of(content, *rows) for rows in (when, how)]
        labels = [each for form in forms for each in labels_of(form)]
        for label in labels:
            label.setMinimumWidth(max(each.sizeHint().width() for each in labels))
        # Outside the forms, which give a label that wraps more height than it needs.
        column_in(
            content, forms[0], self.echo, forms[1], self.private, self.plan, self.tools, None,
            margins=(0, 0, 8, 0),
        )  # fmt: skip


def _entries(none: str, names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(none, ""), *((name, uid) for uid, name in names.items())]

"""The editor of one routine: its prompt and schedule, what answers it, and what it would send and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from app.domain.presets import MAX_NAME_CHARS
from app.domain.routines import MAX_CAP_USD, Routine
from app.domain.translation import tr
from app.language.schedules import schedule_text
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.controls import (
    column_in,
    combo_box,
    form_of,
    labels_of,
    line_edit,
    saving_buttons,
    scroll_area,
    text_edit,
)
from ui.widgets.dialog import Dialog
from ui.widgets.number_box import AmountBox
from ui.widgets.plain_label import plain_label

_PAUSE_MS = 300
_PROMPT_PX = 84
_TOOLS_TEXT = tr(
    "It may use the tools of its preset, but none that write to memory or ask you, since nobody is asked "
    "while it runs."
)


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
        """The routine of the fields."""
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

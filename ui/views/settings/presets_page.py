"""The presets page of the settings: a list of presets, and the fields of the selected one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal, SignalInstance
from PySide6.QtGui import QHideEvent, QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.domain.records.named import MAX_NAME_CHARS
from app.domain.records.presets import (
    BUILT_IN_PRESET,
    MAX_OUTPUT_TOKENS,
    MAX_TEMPERATURE,
    Effort,
    ModelOptions,
    Preset,
)
from app.domain.translation import tr
from ui.widgets.choice_box import AmountBox, ChoiceBox, NumberBox
from ui.widgets.controls import (
    button,
    column_in,
    combo_box,
    filled,
    form_of,
    line_edit,
    row_of,
    scroll_area,
)
from ui.widgets.plain_label import PlainLabel, plain_label

_PAUSE_MS = 500
_PROMPT_LINES = 8
_SPIN_MARGIN_PX = 6
_FIELD_CHARS = 24
_STEP, _TOKEN_STEP = 0.1, 256
_UNSET = -_STEP  # the value of the temperature box that stands for the model's default
_MODEL_DEFAULT = tr("Model's default")
_CONVERSATION_MODEL = tr("The conversation's model")
_EFFORTS = {
    Effort.NONE: tr("None"),
    Effort.MINIMAL: tr("Minimal"),
    Effort.LOW: tr("Low"),
    Effort.MEDIUM: tr("Medium"),
    Effort.HIGH: tr("High"),
    Effort.XHIGH: tr("Extra high"),
    Effort.MAX: tr("Maximum"),
}
_LIST_PX = 200
_GAP_PX = 8


class PresetForm(QWidget):
    """The fields of a preset.

    Signals:
        edited: The preset as it was changed, after a pause or `flush`.
        model_changed: PROVIDER:MODEL, "" for the conversation's; also when a preset is shown.
    """

    edited = Signal(object)
    model_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preset = BUILT_IN_PRESET
        self._is_showing = False
        self.tools: dict[str, QCheckBox] = {}
        self._pause = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._pause.timeout.connect(self._report)
        self.name = QLineEdit(self, maxLength=MAX_NAME_CHARS)
        self.name.textEdited.connect(self._on_edited)
        self.prompt = QPlainTextEdit(self, tabChangesFocus=True)
        self.prompt.setMinimumHeight(self.prompt.fontMetrics().lineSpacing() * _PROMPT_LINES)
        self.prompt.textChanged.connect(self._on_edited)
        self.model = ChoiceBox(tr("Model"), self)
        self.model.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        line = line_edit(self, _CONVERSATION_MODEL)
        self.model.setLineEdit(line)
        line.editingFinished.connect(self._on_edited)
        self.model.chosen.connect(self._on_edited)
        self.temperature = AmountBox(self, decimals=2, singleStep=_STEP)
        self.temperature.setRange(_UNSET, MAX_TEMPERATURE)
        self.temperature.valueChanged.connect(self._on_edited)
        efforts = ((_MODEL_DEFAULT, None), *((label, each) for each, label in _EFFORTS.items()))
        self.effort = combo_box(self, "", efforts, on_activated=self._on_edited)
        self.max_output = NumberBox(self, maximum=MAX_OUTPUT_TOKENS, singleStep=_TOKEN_STEP)
        self.max_output.setGroupSeparatorShown(True)
        self.max_output.setSuffix(" " + tr("tokens"))
        self.max_output.valueChanged.connect(self._on_edited)
        for box in (self.temperature, self.max_output):
            box.setSpecialValueText(_MODEL_DEFAULT)
        for field in (self.temperature, self.effort, self.max_output):
            field.ensurePolished()
            usual = field.fontMetrics().averageCharWidth() * _FIELD_CHARS
            field.setMaximumWidth(max(usual, field.sizeHint().width() + 2 * _SPIN_MARGIN_PX))
        self.note = plain_label(self, "small", selectable=False)
        self.all_tools = QCheckBox(tr("All tools"), self)
        self.all_tools.clicked.connect(self._on_all_tools_clicked)
        self._tools = QVBoxLayout()
        self.error = plain_label(self, "error")
        self.error.hide()
        self._lay_out()

    def show_preset(self, preset: Preset) -> None:
        """Show a preset; what is being typed in the same preset stays."""
        if preset.uid == self._preset.uid and self._pause.isActive():
            return
        self._preset = preset
        self._is_showing = True
        if self.name.text() != preset.name:
            self.name.setText(preset.name)
        self.name.setReadOnly(preset.is_built_in)
        if self.prompt.toPlainText() != preset.system_prompt:
            self.prompt.setPlainText(preset.system_prompt)
        self.model.setEditText(preset.model or "")
        temperature = preset.temperature
        self.temperature.setValue(_UNSET if temperature is None else temperature)
        self.effort.setCurrentIndex(self.effort.findData(preset.reasoning_effort))
        self.max_output.setValue(preset.max_output_tokens or 0)
        self._show_tools()
        self._is_showing = False
        self.model_changed.emit(preset.model or "")

    def show_models(self, models: Sequence[str]) -> None:
        """Offer models in the list of the model field."""
        text, self._is_showing = self.model.currentText(), True
        self.model.show_choices({model: model for model in models}, "")
        self.model.setEditText(text)
        self._is_showing = False

    def show_options(self, model: str, options: ModelOptions | None) -> None:
        """Disable the options that a model lacks, and say so."""
        has = options or ModelOptions()
        self.temperature.setEnabled(has.has_temperature)
        self.effort.setEnabled(bool(has.efforts))
        self.max_output.setEnabled(has.has_max_output)
        rows = self.effort.model()
        assert isinstance(rows, QStandardItemModel)
        for number, effort in enumerate(_EFFORTS, 1):
            rows.item(number).setEnabled(effort in has.efforts)
        missing = [
            name
            for name, is_there in (
                (tr("temperature"), has.has_temperature),
                (tr("reasoning effort"), bool(has.efforts)),
                (tr("maximum output"), has.has_max_output),
            )
            if not is_there
        ]
        if options is None:
            self.note.setText(tr("What the conversation's model lacks is not sent."))
        else:
            self.note.setText(
                tr("{model} lacks: {options}.").format(model=model, options=", ".join(missing))
                if missing
                else ""
            )
        self.note.setVisible(bool(self.note.text()))

    def show_tools(self, tools: Mapping[str, str]) -> None:
        """Offer tools by their names, with descriptions; what is chosen stays while they are the same."""
        if self.tools.keys() == tools.keys():
            return
        for name in self.tools.keys() - tools.keys():
            self.tools.pop(name).deleteLater()
        for name, description in tools.items():
            if name in self.tools:
                continue
            box = self.tools[name] = QCheckBox(name, self)
            box.setToolTip(description)
            box.setAccessibleDescription(description)
            box.clicked.connect(self._on_edited)
            self._tools.addWidget(box)
        self._show_tools()

    def show_instructions(self, text: str) -> None:
        """Show the instructions that apply where a preset has none."""
        self.prompt.setPlaceholderText(tr("If empty:\n\n{text}").format(text=text) if text else "")

    def focus_name(self) -> None:
        """Focus the name, so that it can be replaced."""
        self.name.setFocus()
        self.name.selectAll()

    def flush(self) -> None:
        """Report a change now, if one is due."""
        if self._pause.isActive():
            self._pause.stop()
            self._report()

    def _report(self) -> None:
        changed = self._changed()
        if changed != self._preset:
            if changed.model != self._preset.model:
                self.model_changed.emit(changed.model or "")
            self._preset = changed
            self.edited.emit(changed)

    def _changed(self) -> Preset:
        """Return the preset as the fields show it; options that are disabled stay as they are."""
        temperature = self.temperature.value()
        chosen = {name for name, box in self.tools.items() if box.isChecked()}
        absent = set(self._preset.tools or ()) - self.tools.keys()  # of a server that is off
        return replace(
            self._preset,
            name=self.name.text(),
            system_prompt=self.prompt.toPlainText(),
            model=self.model.currentText().strip() or None,
            temperature=None if temperature < 0 else round(temperature, 2),
            reasoning_effort=self.effort.currentData(),
            max_output_tokens=self.max_output.value() or None,
            tools=None if self.all_tools.isChecked() else tuple(sorted(chosen | absent)),
        )

    def _show_tools(self) -> None:
        allowed = self._preset.tools
        self.all_tools.setChecked(allowed is None)
        for name, box in self.tools.items():
            box.setChecked(allowed is None or name in allowed)
            box.setEnabled(allowed is not None)

    def _on_all_tools_clicked(self, checked: bool) -> None:
        for box in self.tools.values():
            box.setEnabled(not checked)
            box.setChecked(box.isChecked() or checked)
        self._on_edited()

    def _on_edited(self, *_: object) -> None:
        if not self._is_showing:
            self._pause.start()

    def _lay_out(self) -> None:
        form = form_of(
            self, (tr("Name"), self.name), (tr("Instructions"), self.prompt), (tr("Model"), self.model),
            (tr("Temperature"), self.temperature), (tr("Reasoning effort"), self.effort),
            (tr("Maximum output"), self.max_output),
        )  # fmt: skip
        form.addRow("", self.note)
        form.addRow(PlainLabel(tr("Tools allowed"), self), self.all_tools)
        form.addRow("", self._tools)
        column_in(self, form, self.error, None, margins=(0, 0, 0, 0))

    # Qt overrides

    def hideEvent(self, event: QHideEvent) -> None:
        """Report a change before the form is left."""
        self.flush()
        super().hideEvent(event)


class PresetsPage(QWidget):
    """Presets to select, change, add, copy and remove; a change is reported after a pause.

    Signals:
        add_requested: Add a preset. copy_requested, removal_requested, default_requested: Its uid.

    Attributes:
        form: The fields of the selected preset, with signals of its own.
    """

    add_requested = Signal()
    copy_requested = Signal(str)
    removal_requested = Signal(str)
    default_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._presets: dict[str, Preset] = {}
        self._default = ""
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Presets"))
        self.list.setFixedWidth(_LIST_PX)
        self.list.currentItemChanged.connect(self._on_current_item_changed)
        self.add = button(self, tr("Add"), self.add_requested)
        self.copy, self.make_default, self.remove = (
            button(self, text, partial(self._emit, signal), kind=kind)
            for text, signal, kind in (
                (tr("Duplicate"), self.copy_requested, ""),
                (tr("Use for new conversations"), self.default_requested, ""),
                (tr("Remove\u2026"), self.removal_requested, "danger"),
            )
        )
        self.form = PresetForm(self)
        self._lay_out()

    @property
    def selected(self) -> str:
        """The uid of the selected preset, "" before there is one."""
        item = self.list.currentItem()
        return str(item.data(Qt.ItemDataRole.UserRole)) if item is not None else ""

    def show_presets(
        self, presets: Sequence[Preset], default: str, instructions: str, select: str = ""
    ) -> None:
        """Show the presets; `default` is the uid of the one of new conversations.

        `instructions` apply where a preset has none. `select` selects another one; what is being typed in the form stays.
        """
        wanted = select or self.selected
        self._presets = {preset.uid: preset for preset in presets}
        self._default = default
        self.list.blockSignals(True)
        self.list.clear()
        for preset in presets:
            is_default = preset.uid == default
            name = tr("{name} (default)").format(name=preset.name) if is_default else preset.name
            item = QListWidgetItem(name, self.list)
            item.setData(Qt.ItemDataRole.UserRole, preset.uid)
            if preset.uid == wanted:
                self.list.setCurrentItem(item)
        if self.list.currentItem() is None:
            self.list.setCurrentRow(0)
        self.list.blockSignals(False)
        self.form.show_instructions(instructions)
        self._show_selected()
        if select:
            self.form.focus_name()

    def _emit(self, signal: SignalInstance, *_: object) -> None:
        self.form.flush()
        signal.emit(self.selected)

    def _on_current_item_changed(self) -> None:
        self.form.flush()
        self.form.error.show_text("")
        self._show_selected()

    def _show_selected(self) -> None:
        if (preset := self._presets.get(self.selected)) is None:
            return
        self.form.show_preset(preset)
        self.make_default.setEnabled(preset.uid != self._default)
        self.remove.setEnabled(preset != BUILT_IN_PRESET)
        self.remove.setText(tr("Restore\u2026") if preset.is_built_in else tr("Remove\u2026"))
        for pressed in (self.copy, self.make_default, self.remove):
            pressed.setAccessibleDescription(preset.name)

    def _lay_out(self) -> None:
        about = PlainLabel(
            tr(
                "A preset is what a conversation is answered with. Choose one beside the model, or with "
                "/preset. Changes apply to the next message."
            ),
            self,
            wordWrap=True,
            tone="small",
        )
        pressed = (self.add, self.copy, self.make_default, self.remove)
        side = filled(QVBoxLayout(), (self.list, 1), *pressed, spacing=_GAP_PX)
        area = scroll_area(self, self.form, framed=False)
        area.setAccessibleName(tr("Preset"))
        row = row_of(side, (area, 1))
        row.setSpacing(16)
        column_in(self, about, row, margins=(16, 8, 16, 16)).setStretchFactor(row, 1)

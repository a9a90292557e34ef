"""The editor of one setting; its control depends on the type in the table of settings."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QSlider,
    QSpinBox,
    QWidget,
)

from app.domain.errors import InvalidSetting
from app.domain.settings_schema import Setting, SettingValue
from app.domain.translation import LANGUAGES, format_percent, tr
from ui.widgets.choice_box import AmountBox, NumberBox, Slider
from ui.widgets.controls import column_in, combo_box, tool_button
from ui.widgets.plain_label import PlainLabel

_TYPING_PAUSE_MS = 500
_GAP_PX = 14  # between a label and its slider, which have no edge between them
_SLIDER_STEPS = 100
_TOKEN_STEP = 50
_MOST = 100_000
_SPIN_CHARS = 16


class SettingEditor(QWidget):
    """Label, control, help and error of one setting.

    Input is checked while it is typed; a value out of range shows an error with the range. Numbers
    that cannot be empty have a spin box.

    Signals:
        tried: (key, value) at once, while a slider or a spin box changes.
        edited: (key, value) when a valid value was entered or the slider was released.
        reset_requested: The key to reset to its default.
    """

    tried = Signal(str, object)
    edited = Signal(str, object)
    reset_requested = Signal(str)

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setting = setting
        self._help = PlainLabel(tr(setting.help), self, wordWrap=True, tone="small")
        self.error = PlainLabel(self, wordWrap=True, tone="error")
        self.error.hide()
        self._pause = QTimer(self, singleShot=True, interval=_TYPING_PAUSE_MS)
        self._pause.timeout.connect(self._on_pause_timeout)
        self.control = self._make_control()
        self.control.setAccessibleName(tr(setting.label))
        is_plain = setting.kind is bool or bool(setting.choices)  # what is allowed is seen
        allowed = "" if is_plain else f"{setting.allowed[:1].upper()}{setting.allowed[1:]}."
        self.control.setToolTip(allowed)
        self.control.setAccessibleDescription(" ".join(filter(None, (tr(setting.help), allowed))))
        self.control.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        default = tr("Reset to the default: {value}").format(
            value=setting.format_value(setting.default) or tr("none")
        )
        reset = self.reset_requested.emit
        self._reset = tool_button(self, tr("Reset"), lambda: reset(setting.key), tip=default)
        self._reset.setProperty("kind", "action")
        policy = self._reset.sizePolicy()
        # The control keeps its width, also while it is dragged.
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._lay_out()

    def show_value(self, value: SettingValue, *, is_default: bool, ruled_by: str | None) -> None:
        """Show a value; `ruled_by`, an environment variable that overrides it, locks the control.

        Text that is being typed stays; it is reported after a pause.
        """
        if not self._pause.isActive():
            self.error.hide()
            self._put(value)
        self._reset.setVisible(not is_default and ruled_by is None)
        self.control.setEnabled(ruled_by is None)
        if ruled_by is not None:
            self._help.setText(
                tr("Set by the environment variable {ruled_by}.").format(ruled_by=ruled_by)
            )

    def _make_control(self) -> QWidget:
        setting = self.setting
        if setting.kind is bool:
            box = QCheckBox(tr(setting.label), self)
            box.clicked.connect(self._report)
            return box
        if setting.choices:
            choices = ((_choice_text(choice), None) for choice in setting.choices)
            return combo_box(self, "", choices, on_activated=self._on_combo_activated)
        if setting.kind is float and setting.maximum == 1:
            slider = Slider(Qt.Orientation.Horizontal, self)
            slider.setRange(0, _SLIDER_STEPS)
            slider.valueChanged.connect(self._on_slider_moved)
            slider.sliderReleased.connect(lambda: self._pause.start(0))
            return slider
        if setting.kind in (int, float) and not setting.optional:
            return self._make_spin_box()
        line = QLineEdit(self)
        line.textEdited.connect(self._on_typed)
        line.editingFinished.connect(self._on_pause_timeout)
        return line

    def _make_spin_box(self) -> QSpinBox | QDoubleSpinBox:
        setting = self.setting
        low, high = setting.minimum or 0, setting.maximum or _MOST
        box: QSpinBox | QDoubleSpinBox
        if setting.kind is int:
            whole = box = NumberBox(self)
            whole.setRange(int(low), int(high))
            whole.setSingleStep(_TOKEN_STEP if setting.unit == "tokens" else 1)
            whole.valueChanged.connect(self._on_stepped)
        else:
            real = box = AmountBox(self)
            real.setDecimals(0)
            real.setRange(low, high)
            real.valueChanged.connect(self._on_stepped)
        box.setAccelerated(True)
        box.setFixedWidth(box.fontMetrics().averageCharWidth() * _SPIN_CHARS)
        box.setGroupSeparatorShown(True)
        return box

    def _lay_out(self) -> None:
        self._number = PlainLabel(self)
        row, field = QHBoxLayout(), QWidget(self)  # a widget: so all controls are aligned
        row.setSpacing(_GAP_PX)
        inside = QHBoxLayout(field)
        inside.setContentsMargins(0, 0, 0, 0)
        if not isinstance(self.control, QCheckBox):
            label = PlainLabel(tr(self.setting.label), self, wordWrap=True)
            label.setBuddy(self.control)
            row.addWidget(label, 2)
        inside.addWidget(self.control, 0 if isinstance(self.control, QAbstractSpinBox) else 1)
        if isinstance(self.control, QSlider):
            inside.addWidget(self._number)
        elif self.setting.unit:
            inside.addWidget(PlainLabel(tr(self.setting.unit), self))
        if isinstance(self.control, QAbstractSpinBox):
            inside.addStretch(1)
        inside.addWidget(self._reset)
        row.addWidget(field, 3)
        column_in(self, row, self._help, self.error, margins=(0, 4, 0, 8), spacing=3)

    def _put(self, value: SettingValue) -> None:
        control = self.control
        control.blockSignals(True)
        text = "" if value is None else self.setting.format_value(value)
        if isinstance(control, QCheckBox):
            control.setChecked(bool(value))
        elif isinstance(control, QComboBox):
            control.setCurrentIndex(self.setting.choices.index(str(value)))
        elif isinstance(control, QSlider):
            control.setValue(round(float(value or 0) * _SLIDER_STEPS))
            self._number.setText(format_percent(float(value or 0)))
        elif isinstance(control, QSpinBox):
            control.setValue(int(value or 0))
        elif isinstance(control, QDoubleSpinBox):
            control.setValue(float(value or 0))
        elif isinstance(control, QLineEdit) and control.text() != text:
            control.setText(text)
        control.blockSignals(False)

    def _report(self, value: object) -> None:
        self.error.show_text("")
        self.tried.emit(self.setting.key, value)
        self.edited.emit(self.setting.key, value)

    def _on_combo_activated(self, number: int) -> None:
        self._report(self.setting.choices[number])

    def _on_slider_moved(self, step: int) -> None:
        self._number.setText(format_percent(step / _SLIDER_STEPS))
        self.tried.emit(self.setting.key, step / _SLIDER_STEPS)
        self._pause.start(100)

    def _on_stepped(self, value: float) -> None:
        self.tried.emit(self.setting.key, self.setting.kind(value))
        self._pause.start(_TYPING_PAUSE_MS)

    def _on_typed(self) -> None:
        self._pause.start(_TYPING_PAUSE_MS)

    def _on_pause_timeout(self) -> None:
        if not self._pause.isActive() and isinstance(self.control, QLineEdit):
            if not self.control.isModified():
                return
            self.control.setModified(False)
        self._pause.stop()
        if isinstance(self.control, QSlider) and self.control.isSliderDown():
            return  # it is saved when released
        try:
            value = self.setting.parse(self._typed())
        except InvalidSetting as error:
            label = f"\u201c{tr(self.setting.label)}\u201d"
            self.error.show_text(error.display_text.replace(self.setting.key, label))
        else:
            self._report(value)

    def _typed(self) -> str:
        control = self.control
        if isinstance(control, QSlider):
            return str(control.value() / _SLIDER_STEPS)
        if isinstance(control, QSpinBox | QDoubleSpinBox):
            return str(control.value())
        assert isinstance(control, QLineEdit)
        return control.text()


def _choice_text(choice: str) -> str:
    """Return what a choice is called; languages have their own names."""
    return LANGUAGES.get(choice) or tr(choice.capitalize())

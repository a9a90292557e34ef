"""The presets page of the settings: a list of presets, and a form with the selected one."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.domain.presets import BUILT_IN_PRESET, ModelOptions, Preset
from app.domain.translation import tr
from ui.views.settings.preset_form import PresetForm
from ui.widgets.controls import button, scroll_area
from ui.widgets.plain_label import PlainLabel

_LIST_PX = 200
_GAP_PX = 8


class PresetsPage(QWidget):
    """Presets to select, change, add, copy and remove; a change is reported after a pause.

    Signals:
        edited: The selected preset as it was changed.
        add_requested: Add a preset. copy_requested, removal_requested, default_requested: Its uid.
        model_shown: PROVIDER:MODEL of the shown preset, "" for the conversation's.

    Attributes:
        form: The fields of the selected preset.
    """

    edited = Signal(object)
    add_requested = Signal()
    copy_requested = Signal(str)
    removal_requested = Signal(str)
    default_requested = Signal(str)
    model_shown = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._presets: dict[str, Preset] = {}
        self._default = ""
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Presets"))
        self.list.setFixedWidth(_LIST_PX)
        self.list.currentItemChanged.connect(self._on_current_item_changed)
        self.add = button(self, tr("Add"))
        self.copy = button(self, tr("Duplicate"))
        self.make_default = button(self, tr("Use for new conversations"))
        self.remove = button(self, tr("Remove\u2026"))
        self.remove.setProperty("kind", "danger")
        self.add.clicked.connect(self.add_requested)
        for pressed, signal in (
            (self.copy, self.copy_requested),
            (self.make_default, self.default_requested),
            (self.remove, self.removal_requested),
        ):
            pressed.clicked.connect(lambda _=False, signal=signal: self._emit(signal))
        self.form = PresetForm(self)
        self.form.edited.connect(self.edited)
        self.form.model_changed.connect(self.model_shown)
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

    def show_models(self, models: Sequence[str]) -> None:
        """Offer models (PROVIDER:MODEL) for the preset."""
        self.form.show_models(models)

    def show_options(self, model: str, options: ModelOptions | None) -> None:
        """Disable what a model lacks; None for the conversation's model, which is not known."""
        self.form.show_options(model, options)

    def show_tools(self, tools: Mapping[str, str]) -> None:
        """Offer tools by their names, with descriptions."""
        self.form.show_tools(tools)

    def show_error(self, text: str) -> None:
        """Show why a change was refused; "" hides it."""
        self.form.show_error(text)

    def _emit(self, signal: Signal) -> None:
        self.form.flush()
        signal.emit(self.selected)  # type: ignore[attr-defined]

    def _on_current_item_changed(self) -> None:
        self.form.flush()
        self.form.show_error("")
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
        side = QVBoxLayout()
        side.setSpacing(_GAP_PX)
        side.addWidget(self.list, 1)
        for pressed in (self.add, self.copy, self.make_default, self.remove):
            side.addWidget(pressed)
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addLayout(side)
        area = scroll_area(self, self.form, framed=False)
        area.setAccessibleName(tr("Preset"))
        row.addWidget(area, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 16, 16)
        column.addWidget(about)
        column.addLayout(row, 1)

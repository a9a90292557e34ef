"""The presets page of the settings: a list of presets, and a form with the selected one."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.domain.presets import BUILT_IN_PRESET, Preset
from app.domain.translation import tr
from ui.views.settings.preset_form import PresetForm
from ui.widgets.controls import button, column_in, filled, row_of, scroll_area
from ui.widgets.plain_label import PlainLabel

_LIST_PX = 200
_GAP_PX = 8


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

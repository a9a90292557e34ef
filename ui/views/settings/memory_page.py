"""The memory page of the settings: all recall settings beside a preview of their effect."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.domain.settings_schema import SETTINGS, SettingPage
from app.domain.translation import tr
from ui.views.settings.recall_preview import PreviewPane
from ui.widgets.controls import button, column_in, filled, scroll_area
from ui.widgets.setting_editor import SettingEditor

_SETTINGS_PX, _PREVIEW_PX = 400, 460
_LEAST_PX = 260
_BESIDE_PX = 640  # if narrower, the preview is below the settings


class MemoryPage(QWidget):
    """Editors of the recall settings, and the preview.

    Signals:
        tried: (key, value) while a slider moves. undo_requested: Go back to the values of the
            moment the page was opened. defaults_requested: Reset all to their defaults.

    Attributes:
        editors: One for each key. preview: The pane beside them.
    """

    tried = Signal(str, object)
    undo_requested = Signal()
    defaults_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editors = [
            SettingEditor(setting, self)
            for setting in SETTINGS.values()
            if setting.page is SettingPage.RECALL
        ]
        self.preview = PreviewPane(self)
        back = tr("Go back to the values from when the settings were opened")
        self._undo = button(self, tr("Undo changes"), self.undo_requested, tip=back)
        self._defaults = button(self, tr("Reset to defaults"), self.defaults_requested)
        for editor in self.editors:
            editor.tried.connect(self.tried)
        self._split = QSplitter(Qt.Orientation.Horizontal, self)
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self._settings_side())
        self._split.addWidget(self.preview)
        self._split.setMinimumWidth(_LEAST_PX)  # else it never becomes narrow enough
        self._split.setSizes([_SETTINGS_PX, _PREVIEW_PX])
        self._split.setStretchFactor(1, 1)
        column_in(self, self._split, margins=(0, 0, 0, 0))
        self.show_state(is_changed=False, is_default=True)

    def show_state(self, *, is_changed: bool, is_default: bool) -> None:
        """Enable what there is to undo or to reset."""
        self._undo.setEnabled(is_changed)
        self._defaults.setEnabled(not is_default)

    def _settings_side(self) -> QWidget:
        body = QWidget(self)
        filled(QVBoxLayout(body), *self.editors, None, margins=(16, 8, 12, 8))
        self._body, self._area = body, scroll_area(self, body, framed=False)
        area = self._area
        area.setMinimumHeight(_LEAST_PX)
        area.setAccessibleName(tr("Settings"))
        side = QWidget(self)
        buttons = filled(QHBoxLayout(), self._undo, self._defaults, None, margins=(16, 4, 12, 8))
        filled(QVBoxLayout(side), (area, 1), buttons, margins=(0, 0, 0, 0))
        return side

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the preview below the settings if there is no room beside them, and cut no setting."""
        super().resizeEvent(event)
        bar = self._area.verticalScrollBar().sizeHint().width()
        settings_px = self._body.minimumSizeHint().width() + bar
        self._area.setMinimumWidth(settings_px)
        both_px = settings_px + self._split.handleWidth() + self.preview.minimumSizeHint().width()
        is_wide = event.size().width() >= max(_BESIDE_PX, both_px)
        wanted = Qt.Orientation.Horizontal if is_wide else Qt.Orientation.Vertical
        if self._split.orientation() != wanted:
            self._split.setOrientation(wanted)

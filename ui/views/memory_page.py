"""The memory page of the settings: every key of recall, beside it what it would do to a question."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.domain.settings_schema import SETTINGS, SettingPage
from ui.theme import Theme
from ui.views.preview_pane import PreviewPane
from ui.widgets.setting_editor import SettingEditor

_SETTINGS_PX, _PREVIEW_PX = 400, 460
_LEAST_PX = 260
_BESIDE_PX = 640  # narrower than that the preview stands below


class MemoryPage(QWidget):
    """Editors of recall's settings and the preview.

    Signals:
        tried: (key, value) while a slider is moved. undo_requested: Have every value as it was when
            the page was opened. defaults_requested: Have every default apply again.

    Attributes:
        editors: One for each key. preview: The pane beside them, with signals of its own.
    """

    tried = Signal(str, object)
    undo_requested = Signal()
    defaults_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editors = [
            SettingEditor(setting, self, steps=True)
            for setting in SETTINGS.values()
            if setting.page is SettingPage.RECALL and setting.has_effect
        ]
        self.preview = PreviewPane(Theme(), self)
        self._undo = _button(self, "Undo changes")
        self._undo.setToolTip("Back to the values as they were when this page was opened")
        self._defaults = _button(self, "Reset to defaults")
        self._undo.clicked.connect(self.undo_requested)
        self._defaults.clicked.connect(self.defaults_requested)
        for editor in self.editors:
            editor.tried.connect(self.tried)
        self._split = QSplitter(Qt.Orientation.Horizontal, self)
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self._settings_side())
        self._split.addWidget(self.preview)
        self._split.setMinimumWidth(_LEAST_PX)  # else it would never be found too narrow
        self._split.setSizes([_SETTINGS_PX, _PREVIEW_PX])
        self._split.setStretchFactor(1, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._split)
        self.show_state(is_changed=False, is_default=True)

    def show_state(self, *, is_changed: bool, is_default: bool) -> None:
        """Say whether there is anything to undo or to reset."""
        self._undo.setEnabled(is_changed)
        self._defaults.setEnabled(not is_default)

    def _settings_side(self) -> QWidget:
        body = QWidget(self)
        rows = QVBoxLayout(body)
        rows.setContentsMargins(16, 8, 12, 8)
        for editor in self.editors:
            rows.addWidget(editor)
        rows.addStretch(1)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(body)
        area.setMinimumHeight(_LEAST_PX)
        side = QWidget(self)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(16, 4, 12, 8)
        buttons.addWidget(self._undo)
        buttons.addWidget(self._defaults)
        buttons.addStretch(1)
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(area, 1)
        column.addLayout(buttons)
        return side

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the preview below the settings where there is no room beside them."""
        super().resizeEvent(event)
        is_wide = event.size().width() >= _BESIDE_PX
        wanted = Qt.Orientation.Horizontal if is_wide else Qt.Orientation.Vertical
        if self._split.orientation() != wanted:
            self._split.setOrientation(wanted)


def _button(parent: QWidget, words: str) -> QPushButton:
    button = QPushButton(words, parent)
    button.setAutoDefault(False)
    return button

"""Fields for numbers, which the wheel changes only while they have the focus: else it scrolls the page."""

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSlider, QSpinBox

_MARGIN_PX = 6


class _LeavesWheel:
    def __init__(self, *parent: Any, **properties: Any) -> None:
        super().__init__(*parent, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # type: ignore[attr-defined]
        if isinstance(self, QSpinBox | QDoubleSpinBox):
            self.lineEdit().setTextMargins(_MARGIN_PX, 0, 0, 0)

    # Qt overrides

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Change the value only with the focus."""
        if self.hasFocus():  # type: ignore[attr-defined]
            super().wheelEvent(event)  # type: ignore[misc]
        else:
            event.ignore()


class NumberBox(_LeavesWheel, QSpinBox):
    """A spin box for a whole number."""


class AmountBox(_LeavesWheel, QDoubleSpinBox):
    """A spin box for a number with decimals."""


class Slider(_LeavesWheel, QSlider):
    """A slider."""

"""Windows and pages on the screen: sizes that fit it, and a signal when a page appears."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

_FRAME_PX = (16, 48)  # at most: window borders and the title bar


class ReportsShown:
    """Part of a widget that reports when it appears; a base class before the widget's own.

    Signals:
        shown: It became visible; what it shows may be outdated.
    """

    shown = Signal()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        """Report it."""
        super().showEvent(event)  # type: ignore[misc]
        self.shown.emit()  # type: ignore[call-overload]


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Resize a window, but to no more than its parent's screen has room for."""
    parent = window.parentWidget()
    free = (parent.window() if parent is not None else window).screen().availableSize()
    window.resize(
        min(width_px, free.width() - _FRAME_PX[0]), min(height_px, free.height() - _FRAME_PX[1])
    )


def move_to_right(window: QWidget, parent: QWidget) -> None:
    """Move a window to the right end of its parent's screen, where the platform lets it."""
    free = parent.screen().availableGeometry()
    window.move(free.x() + free.width() - window.width() - _FRAME_PX[0], max(free.y(), parent.y()))

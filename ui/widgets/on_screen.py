"""Window sizes that fit the screen."""

from PySide6.QtWidgets import QWidget

_FRAME_PX = (16, 48)  # at most: window borders and the title bar


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Resize a window, but to no more than its parent's screen has room for."""
    parent = window.parentWidget()
    free = (parent.window() if parent is not None else window).screen().availableSize()
    window.resize(
        min(width_px, free.width() - _FRAME_PX[0]), min(height_px, free.height() - _FRAME_PX[1])
    )

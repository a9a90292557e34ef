"""Windows that are no larger than the screen they appear on."""

from PySide6.QtWidgets import QWidget

_FRAME_PX = (16, 48)  # what a desktop draws around a window, at most: edges, and the title's bar


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Give a window this size, or as much of it as the screen of its parent has room for."""
    parent = window.parentWidget()
    free = (parent.window() if parent is not None else window).screen().availableSize()
    window.resize(
        min(width_px, free.width() - _FRAME_PX[0]), min(height_px, free.height() - _FRAME_PX[1])
    )

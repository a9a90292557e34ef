"""Box layouts filled in one call."""

from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

Part = QWidget | QLayout | tuple[QWidget, int] | int | None


def filled(
    layout: QBoxLayout,
    *parts: Part,
    margins: tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> QBoxLayout:
    """Return a layout after adding parts: widgets, layouts, (widget, stretch), pixels of space.

    None is a stretch. `margins` (left, top, right, bottom) and `spacing` are in pixels.
    """
    if margins is not None:
        layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if part is None:
            layout.addStretch(1)
        elif isinstance(part, int):
            layout.addSpacing(part)
        elif isinstance(part, QLayout):
            layout.addLayout(part)
        elif isinstance(part, tuple):
            layout.addWidget(*part)
        else:
            layout.addWidget(part)
    return layout


def row_of(*parts: Part) -> QBoxLayout:
    """Return a row of parts."""
    return filled(QHBoxLayout(), *parts)


def column_in(
    parent: QWidget,
    *parts: Part,
    margins: tuple[int, int, int, int] = (16, 16, 16, 12),
    spacing: int = 10,
) -> QBoxLayout:
    """Lay parts out below each other in a widget; by default with the margins of a dialog."""
    return filled(QVBoxLayout(parent), *parts, margins=margins, spacing=spacing)

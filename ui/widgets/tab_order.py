"""Tab order of a window, where it differs from the order of creation."""

from collections.abc import Iterable
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def tab_through(stops: Iterable[QWidget]) -> None:
    """Make Tab go from each of these widgets of one window to the next."""
    for one, following in pairwise(stops):
        QWidget.setTabOrder(one, following)


def stops_in(container: QWidget) -> list[QWidget]:
    """Return what Tab can reach inside, visible or not, in the order of creation."""
    return [each for each in container.findChildren(QWidget) if _is_stop(each)]


def stop_before(widget: QWidget) -> QWidget:
    """Return where Shift+Tab would go if everything in the window were visible."""
    before = widget
    while (before := before.previousInFocusChain() or widget) is not widget:
        if _is_stop(before):
            break
    return before


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)

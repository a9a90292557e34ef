"""The order in which Tab goes through a window, where it is not the order in which it was made."""

from collections.abc import Iterable
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def tab_through(stops: Iterable[QWidget]) -> None:
    """Have Tab go from each of these to the next; all are in one window."""
    for one, following in pairwise(stops):
        QWidget.setTabOrder(one, following)


def stops_in(container: QWidget) -> list[QWidget]:
    """Return what Tab can reach inside, shown or not, in the order in which it was made."""
    return [each for each in container.findChildren(QWidget) if _is_stop(each)]


def stop_before(widget: QWidget) -> QWidget:
    """Return what Shift+Tab would go to, were all of the window on screen."""
    before = widget
    while (before := before.previousInFocusChain() or widget) is not widget:
        if _is_stop(before):
            break
    return before


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)

"""Windows and pages on the screen: sizes that fit it, a signal when a page appears, Tab order, screen readers."""

from collections.abc import Iterable
from itertools import pairwise

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

_FRAME_PX = (16, 48)  # at most: window borders and the title bar
_MAX_CHARS = 500


class ReportsShown:
    """Part of a widget that reports when it appears; a base class before the widget's own.

    Signals:
        shown: It became visible; what it shows may be outdated.
    """

    shown = Signal()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
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


def announce(source: QWidget, text: str) -> None:
    """Have a screen reader say a text when it has finished what it says; "" says nothing."""
    if text:
        from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent

        from app.domain.text import one_line

        QAccessible.updateAccessibility(
            QAccessibleAnnouncementEvent(source, one_line(text, _MAX_CHARS))
        )


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

"""Where Tab goes in a transcript: through turns that exist, in reading order, and out again."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from ui.widgets.transcript.frames import MessageFrame
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.virtual import VirtualColumn


class FocusWalk:
    """Moves the focus among the messages of one view.

    Widgets of a virtual column come and go, so Qt's own chain of focus cannot know their order.
    None of them takes part in it; the view hands every Tab to this class.
    """

    def __init__(self, view: VirtualColumn) -> None:
        self._view = view

    def step(self, step: int) -> bool:
        """Go to the next (1) or last (-1) stop: message, link, button; beyond the ends, leave."""
        if self._move(step, lambda _stop: True):
            return True
        if step < 0 and not self._view.hasFocus():
            self._view.setFocus(Qt.FocusReason.BacktabFocusReason)
            return True
        return self._leave(step)

    def to_message(self, step: int) -> None:
        """Go to the next or last message."""
        self._move(step, lambda stop: isinstance(stop, MessageFrame))

    def moved(self, before: QWidget | None, now: QWidget | None) -> TurnWidget | None:
        """Let messages that lost or got the focus show it; return the turn that has it, if any."""
        for widget in (before, now):
            if widget is not None and self._view.isAncestorOf(widget):
                frame = enclosing(widget, MessageFrame)
                if isinstance(frame, MessageFrame):
                    frame.update_actions()
        is_inside = now is not None and self._view.isAncestorOf(now)
        turn = enclosing(now, TurnWidget) if is_inside else None
        return turn if isinstance(turn, TurnWidget) else None

    def _stops(self) -> list[QWidget]:
        """Return what Tab stops at, in reading order, in the turns that exist now."""
        return [
            stop
            for widget in self._view.items_in_order()
            if isinstance(widget, TurnWidget)
            for stop in widget.focus_stops()
        ]

    def _move(self, step: int, wanted: Callable[[QWidget], bool]) -> bool:
        """Focus the next stop that is `wanted`, and show it; return False beyond the ends."""
        stops = self._stops()
        focused = self._view.window().focusWidget()
        if focused in stops:
            at = stops.index(focused)
            ahead = stops[at + 1 :] if step > 0 else stops[:at][::-1]
        else:
            ahead = [stop for stop in stops if not stop.visibleRegion().isEmpty()]
            ahead = ahead if step > 0 else []
        stop = next(filter(wanted, ahead), None)
        if stop is None:
            return False
        is_forward = step > 0
        reason = Qt.FocusReason.TabFocusReason if is_forward else Qt.FocusReason.BacktabFocusReason
        stop.setFocus(reason)
        self._view.show_widget(stop)
        return True

    def _leave(self, step: int) -> bool:
        """Hand the focus to what stands after, or before, the view."""
        widget = self._after(self._view, step)
        while widget is not None and widget is not self._view:
            if self._takes_focus(widget):
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                return True
            widget = self._after(widget, step)
        return False

    @staticmethod
    def _after(widget: QWidget, step: int) -> QWidget | None:
        return widget.nextInFocusChain() if step > 0 else widget.previousInFocusChain()

    def _takes_focus(self, widget: QWidget) -> bool:
        takes_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
        is_there = widget.isVisible() and widget.isEnabled()
        is_outside = not self._view.isAncestorOf(widget)
        return takes_tab and is_there and is_outside and widget.window() is self._view.window()


def enclosing(widget: QWidget | None, kind: type[QWidget]) -> QWidget | None:
    """Return the widget or its nearest ancestor of `kind`, if there is one."""
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parentWidget()
    return widget

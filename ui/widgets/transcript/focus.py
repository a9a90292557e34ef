"""Keyboard focus and selection across the texts of a transcript."""

from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from ui.widgets.transcript.context import TurnEvents
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.message_frame import MessageFrame
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.virtual_column import VirtualColumn

_ARROWS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right)
_W = TypeVar("_W", bound=QWidget)


def move_to_message(view: VirtualColumn, step: int) -> bool:
    """Focus the next (1) or previous (-1) message; first scroll through one that is cut off.

    Return False if there is none. The widgets of a virtual column come and go, so Qt's own focus
    chain cannot know their order.
    """
    turns = [each for each in view.items_in_order() if isinstance(each, TurnWidget)]
    frames = [frame for turn in turns for frame in turn.frames()]
    focused = enclosing(view.window().focusWidget(), MessageFrame)
    if focused in frames:
        if hidden_px := _hidden_px(view, focused, step):
            view.scroll_by(hidden_px)
            return True
        at = frames.index(focused) + step
        ahead = frames[at : at + 1] if at >= 0 else []
    else:
        ahead = [each for each in frames if not each.visibleRegion().isEmpty()][::step]
    return bool(ahead) and _focus(view, ahead[0], step)


def move_in_turn(view: VirtualColumn, step: int) -> bool:
    """Focus the next (1) or previous (-1) link text or button of the turn that has the focus."""
    focused = view.window().focusWidget()
    turn = enclosing(focused, TurnWidget)
    if turn is None or focused is None:
        return False
    stops = turn.focus_stops()
    at = stops.index(focused) + step if focused in stops else -1
    return 0 <= at < len(stops) and _focus(view, stops[at], step)


def _hidden_px(view: VirtualColumn, frame: MessageFrame, step: int) -> int:
    """Return how far to scroll to see more of a message in a direction; 0 if its end is visible."""
    height, page = view.viewport().height(), view.viewport().height() - 2 * view.padding
    top = frame.mapTo(view.viewport(), QPoint(0, 0)).y()
    if step > 0:
        return max(0, min(top + frame.height() - height, page))
    return min(0, max(top, -page))


def _focus(view: VirtualColumn, stop: QWidget, step: int) -> bool:
    reason = Qt.FocusReason
    stop.setFocus(reason.TabFocusReason if step > 0 else reason.BacktabFocusReason)
    view.show_widget(stop)
    return True


class ButtonArrows(QObject):
    """Passes the arrow keys of the button that has the focus to the view.

    QAbstractButton would move the focus by Qt's chain, which leaves the conversation.
    """

    def follow(self, before: QWidget | None, now: QWidget | None) -> None:
        """Watch another widget, now that it has the focus."""
        if before is not None:
            before.removeEventFilter(self)
        if isinstance(now, QAbstractButton):
            now.installEventFilter(self)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Pass an arrow key on."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            view = self.parent()
            if event.key() in _ARROWS and isinstance(view, VirtualColumn):
                view.keyPressEvent(event)
                return True
        return super().eventFilter(watched, event)


class SelectionGuard(QObject):
    """Keeps a view to one selection at a time, and scrolls while a selection is dragged."""

    def __init__(self, view: VirtualColumn, events: TurnEvents) -> None:
        super().__init__(view)
        self._view = view
        events.dragged_to.connect(self._on_dragged_to)
        events.selected.connect(self._on_selected)

    def _on_dragged_to(self, at: QPoint) -> None:
        view, step_px = self._view, 2 * self._view.padding
        y, height = view.viewport().mapFromGlobal(at).y(), view.viewport().height()
        if y < 0:
            view.scroll_by(max(y, -step_px))
        elif y > height:
            view.scroll_by(min(y - height, step_px))

    def _on_selected(self, selected: object) -> None:
        for view in self._view.viewport().findChildren(DocumentView):
            if view is not selected:
                view.clear_selection()


def enclosing(widget: QWidget | None, kind: type[_W]) -> _W | None:
    """Return the widget or its nearest ancestor of `kind`, if there is one."""
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parentWidget()
    return widget

"""Keyboard focus and selection across the texts of a transcript."""

from typing import TypeVar

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtWidgets import QWidget

from ui.widgets.transcript.context import TurnEvents
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.virtual_column import VirtualColumn

_W = TypeVar("_W", bound=QWidget)


def move_focus(view: VirtualColumn, step: int, kind: type[QWidget] = QWidget) -> bool:
    """Focus and show the next (1) or previous (-1) stop of a kind; return False if there is none.

    The widgets of a virtual column come and go, so Qt's own focus chain cannot know their order.
    """
    turns = (each for each in view.items_in_order() if isinstance(each, TurnWidget))
    stops = [stop for turn in turns for stop in turn.focus_stops()]
    focused = view.window().focusWidget()
    if focused in stops:
        at = stops.index(focused)
        ahead = stops[at + 1 :] if step > 0 else stops[:at][::-1]
    else:
        ahead = [stop for stop in stops if step > 0 and not stop.visibleRegion().isEmpty()]
    stop = next((stop for stop in ahead if isinstance(stop, kind)), None)
    if stop is None:
        return False
    reason = Qt.FocusReason
    stop.setFocus(reason.TabFocusReason if step > 0 else reason.BacktabFocusReason)
    view.show_widget(stop)
    return True


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

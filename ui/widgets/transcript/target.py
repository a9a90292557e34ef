"""The target of scrolling: a point inside a turn that is reached once the turn is rendered."""

from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QPoint

from app.domain.ids import MessageId
from ui.widgets.transcript.context import StepQueue
from ui.widgets.transcript.find import SearchMarks
from ui.widgets.transcript.heights import AtOffset, Centered
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.virtual_column import VirtualColumn

_DRAWING_S = 0.03  # before the first paint; with the layout, the window may not stall for 0.1 s
Locate = Callable[[TurnWidget], int | None]


class ScrollTarget:
    """Scrolls a view to a point in a turn, and again for another width, until the user scrolls."""

    def __init__(
        self, view: VirtualColumn, steps: StepQueue, widget_of: Callable[[int], TurnWidget | None]
    ) -> None:
        self._view, self._steps, self._widget_of = view, steps, widget_of
        self._locate: Locate | None = None
        self._index = self._width = 0  # of the turn; what `locate` was last called for
        self._anchor: AtOffset | None = None  # where that led to
        steps.emptied.connect(self.follow)

    def drop(self) -> None:
        self._locate = None

    def scroll_to(self, index: int, locate: Locate | None) -> None:
        """Center a turn; once it is rendered, show the `y` in its widget that `locate` returns, if any."""
        self._index, self._locate, self._width, self._anchor = index, locate, 0, None
        self._view.scroll_to_anchor(Centered(index))

    def draw(self) -> None:
        """Render what is on screen before it is painted, and scroll to the place in the turn.

        The turn comes first, then the others from the end on.
        """
        first, last = self._view.visible_items
        until = perf_counter() + _DRAWING_S
        shown = sorted(range(first, last + 1), key=lambda at: (at != self._index, -at))
        for widget in map(self._widget_of, shown):
            for text in [] if widget is None else reversed(widget.texts()):
                text.draw_now(until - perf_counter())
        self._view.update_layout()
        self.follow(is_drawn=True)

    def follow(self, *, is_drawn: bool = False) -> None:
        """Scroll to the target once it is rendered, as if it `is_drawn`, and again for another width.

        It is dropped when the user scrolls.
        """
        if (locate := self._locate) is None:
            return
        view, widget = self._view, self._widget_of(self._index)
        is_rendered = is_drawn or (self._steps.is_idle and not view.awaits_layout)
        if view.anchor not in (Centered(self._index), self._anchor):
            self._locate = None
        elif widget is not None and widget.content is not None and is_rendered:
            if self._width == (width := view.item_width()):
                return
            self._width = width if self._steps.is_idle else 0
            if (y := locate(widget)) is not None:
                self._anchor = AtOffset(self._index, y)
                view.scroll_to_anchor(self._anchor)


def y_of_message(
    view: VirtualColumn,
    widget: TurnWidget,
    message_id: MessageId | None,
    search: SearchMarks | None,
) -> int | None:
    """Return the `y` of the passage that was searched for, else that centers a message.

    The top of a tall one; None if it is visible, or there is no message.
    """
    if message_id is None or (text := widget.text_of(message_id)) is None:
        return None
    height = view.viewport().height()
    found = search.y_in(widget, text) if search is not None else None
    if found is not None:
        shown_at = widget.mapTo(view.viewport(), QPoint(0, found)).y()
        is_visible = 0 <= shown_at <= height - 3 * view.padding
        return None if is_visible and isinstance(view.anchor, Centered) else found
    top = text.mapTo(widget, QPoint(0, 0)).y()
    shown_at = widget.mapTo(view.viewport(), QPoint(0, top)).y()
    is_visible = shown_at >= 0 and shown_at + min(text.height(), height // 2) <= height
    if is_visible and isinstance(view.anchor, Centered):
        return None
    third = height // 3  # where an `AtOffset` is
    return min(top + text.height() // 2 - height // 2, top) + third

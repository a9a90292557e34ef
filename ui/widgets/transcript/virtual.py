"""A column of very many items of which only those near the screen exist.

Heights are guessed first and corrected when an item is laid out; what the eye rests on (an
`Anchor`) stays where it is while that happens.
"""

from collections.abc import Callable, Iterable

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from ui.widgets.transcript.anchor import Anchor, AtEnd, AtItem, AtPlace, anchor_at, top_for
from ui.widgets.transcript.heights import Heights

_MAX_ROUNDS = 60
_MOST_ITEMS = 40
_PREFETCH_SHARE = 1.0
_BREATH_MS = 8  # between two items: else two of them and a repaint come without a pause, 76 ms


class VirtualColumn(QAbstractScrollArea):
    """Base of a scroll area over `count` items; subclasses make the items.

    An item is a widget with `height_for(width)`. It must be cheap to ask again.

    Signals:
        visible_changed: Index of the first and last item on screen.
    """

    visible_changed = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.heights = Heights()
        self._items: dict[int, QWidget] = {}
        self._anchor: Anchor = AtEnd()
        self._arranging = False
        self._top = 0
        self._visible = (0, -1)
        self._padding = 0
        self._column_width = 720
        self._laid_out = 0
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self.arrange)
        self._prefetch = QTimer(self)
        self._prefetch.setSingleShot(True)
        self._prefetch.setInterval(_BREATH_MS)
        self._prefetch.timeout.connect(self._on_prefetch)

    # what subclasses say

    def make_item(self, index: int) -> QWidget:
        """Return a new widget for the item."""
        raise NotImplementedError

    def may_drop(self, index: int) -> bool:
        """Return whether the item's widget may be deleted now."""
        widget = self._items[index]
        focused = self.window().focusWidget()
        return focused is None or not (focused is widget or widget.isAncestorOf(focused))

    # items

    @property
    def items_laid_out(self) -> int:
        """How many items were ever made: what showing cost."""
        return self._laid_out

    @property
    def anchor(self) -> Anchor:
        """What the view rests on."""
        return self._anchor

    @property
    def padding(self) -> int:
        """The room around the items, in pixels."""
        return self._padding

    @property
    def visible_items(self) -> tuple[int, int]:
        """Index of the first and last item on screen; (0, -1) without items."""
        return self._visible

    @property
    def is_arranged(self) -> bool:
        """Whether everything is in its place, on screen and just beyond."""
        return not self._soon.isActive() and not self._prefetch.isActive()

    def item(self, index: int) -> QWidget | None:
        """Return the item's widget, if it exists now."""
        return self._items.get(index)

    def items_in_order(self) -> list[QWidget]:
        """Return the widgets that exist now, top to bottom."""
        return [self._items[index] for index in sorted(self._items)]

    def set_metrics(self, column_width: int, padding: int) -> None:
        """Set the greatest width of the column and the room above and below it, in pixels."""
        self._column_width, self._padding = column_width, padding

    def reset(self, heights: Iterable[int], anchor: Anchor) -> None:
        """Start over with guessed heights."""
        self.drop_items(list(self._items))
        self.heights = Heights(heights)
        self._anchor = anchor
        self.arrange()

    def append_item(self, height: int) -> None:
        """Add an item at the end."""
        self.heights.append(height)
        self.arrange_soon()

    def grow_above(self, index: int, change: Callable[[], None]) -> None:
        """Have an item that exists grow by `change` at its top; who reads in it is not moved."""
        before = self._height_of(index)
        change()
        grown, anchor = self._height_of(index) - before, self._anchor
        if isinstance(anchor, AtItem) and anchor.index == index:
            self._anchor = AtItem(index, max(0, anchor.offset + grown))
        elif isinstance(anchor, AtPlace) and anchor.index == index:
            self._anchor = AtPlace(index, max(0, anchor.y + grown))
        self.arrange_soon()

    def truncate_items(self, count: int) -> None:
        """Drop all items but the first `count`."""
        self.drop_items([index for index in self._items if index >= count])
        self.heights.truncate(count)
        if not isinstance(self._anchor, AtEnd) and self._anchor.index >= count:
            self._anchor = AtEnd()
        self.arrange()

    def drop_items(self, indexes: Iterable[int]) -> None:
        """Delete widgets; they are made again when they are needed."""
        for index in indexes:
            widget = self._items.pop(index)
            widget.hide()
            widget.deleteLater()

    # where the view is

    def rest_on(self, anchor: Anchor) -> None:
        """Move the view so that it rests on `anchor`, and stays there until the user scrolls."""
        self._anchor = anchor
        self.arrange()

    def scroll_by(self, pixels: int) -> None:
        """Scroll as the user would."""
        self.verticalScrollBar().setValue(self._top + pixels)

    def show_widget(self, widget: QWidget, y: int | None = None) -> None:
        """Scroll as little as needed to show a widget, or the place `y` pixels below its top."""
        at = widget.mapTo(self.viewport(), QPoint(0, y or 0)).y()
        height = self._padding if y is not None else min(widget.height(), self.viewport().height())
        if at < 0:
            self.scroll_by(at - self._padding)
        elif at + height > self.viewport().height():
            self.scroll_by(at + height - self.viewport().height() + self._padding)

    # laying out

    def arrange_soon(self) -> None:
        """Arrange once this event is over, however often it is asked for."""
        self._soon.start()

    def arrange(self) -> None:
        """Lay out what is on screen, correct the heights, and put everything in its place."""
        self._soon.stop()
        if self._arranging:
            return
        self._arranging = True
        try:
            self._settle()
            self._place()
        finally:
            self._arranging = False
        self._prefetch.start()

    def _settle(self) -> None:
        """Measure what is on screen until nothing moves any more."""
        for _round in range(_MAX_ROUNDS):
            self._top = top_for(self._anchor, self.heights, self.viewport().height(), self._padding)
            first, last = self._range(self._top, self._top + self.viewport().height())
            self._visible = (first, last)
            measured = [self._measure(index) for index in range(first, last + 1)]
            if not any(measured):
                return

    def _range(self, top: int, bottom: int) -> tuple[int, int]:
        if not len(self.heights):
            return 0, -1
        return self.heights.at(top - self._padding), self.heights.at(bottom - self._padding)

    def _measure(self, index: int) -> bool:
        """Make the item if need be, and correct its height; return whether it was wrong."""
        height = self._height_of(index)
        if height == self.heights[index]:
            return False
        self.heights[index] = height
        return True

    def _height_of(self, index: int) -> int:
        return int(self._realised(index).height_for(self.item_width()))  # type: ignore[attr-defined]

    def _realised(self, index: int) -> QWidget:
        widget = self._items.get(index)
        if widget is None:
            widget = self._items[index] = self.make_item(index)
            widget.setParent(self.viewport())
            self._laid_out += 1
        return widget

    def item_width(self) -> int:
        """Return the width items are laid out for, in pixels."""
        return max(80, min(self._column_width, self.viewport().width() - 2 * (self._padding // 2)))

    def _place(self) -> None:
        height, width = self.viewport().height(), self.item_width()
        left = (self.viewport().width() - width) // 2
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, self.heights.total + 2 * self._padding - height))
        bar.setPageStep(height)
        bar.setSingleStep(max(1, self._padding))
        bar.setValue(self._top)
        self._drop_far_items()
        for index, widget in self._items.items():
            y = self._padding + self.heights.before(index) - self._top
            is_near = y < 2 * height and y + self.heights[index] > -height
            if is_near:
                widget.setGeometry(left, y, width, self.heights[index])
            widget.setVisible(is_near)
        self.visible_changed.emit(*self._visible)

    def _drop_far_items(self) -> None:
        if len(self._items) <= _MOST_ITEMS:
            return
        middle = sum(self._visible) // 2
        far = sorted(self._items, key=lambda index: abs(index - middle), reverse=True)
        extra = [index for index in far[: len(far) - _MOST_ITEMS] if self.may_drop(index)]
        first, last = self._visible
        self.drop_items(index for index in extra if not first <= index <= last)

    def _on_prefetch(self) -> None:
        """Lay out one item just beyond the screen, if one is missing there."""
        margin = round(self.viewport().height() * _PREFETCH_SHARE)
        first, last = self._range(self._top - margin, self._top + self.viewport().height() + margin)
        wanted = [
            *range(self._visible[1] + 1, last + 1),
            *range(self._visible[0] - 1, first - 1, -1),
        ]
        for index in wanted:
            if index not in self._items:
                self._measure(index)
                self.arrange()
                return

    # Qt overrides

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Follow the scroll bar, when it was the user who moved it."""
        if self._arranging:
            return
        self._top = self.verticalScrollBar().value()
        self._anchor = anchor_at(self._top, self.heights, self.viewport().height(), self._padding)
        self.arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out again; what was at the top stays there."""
        super().resizeEvent(event)
        self.arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll by keyboard."""
        page = self.viewport().height() - 2 * self._padding
        steps = {
            Qt.Key.Key_Up: -2 * self._padding,
            Qt.Key.Key_Down: 2 * self._padding,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
        }
        if event.key() in steps:
            self.scroll_by(steps[Qt.Key(event.key())])
        elif event.key() == Qt.Key.Key_Home:
            self.rest_on(AtItem(0, -self._padding) if len(self.heights) else AtEnd())
        elif event.key() == Qt.Key.Key_End:
            self.rest_on(AtEnd())
        else:
            super().keyPressEvent(event)

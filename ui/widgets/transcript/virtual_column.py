"""Virtual column: a scroll area over very many items, with widgets only for those near the screen.

Heights are estimated first and corrected when an item is laid out. The scroll position is an
`Anchor`, so corrections above the visible part do not move it.
"""

from collections.abc import Callable, Iterable

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from ui.widgets.transcript.heights import (
    Anchor,
    AtEnd,
    AtItem,
    AtOffset,
    Heights,
    anchor_at,
    top_for,
)

_MAX_ROUNDS = 60
_MAX_WIDGETS = 40
_PREFETCH_SHARE = 1.0
_PREFETCH_PAUSE_MS = 8  # without it two items and a repaint follow each other at once: 76 ms


class VirtualColumn(QAbstractScrollArea):
    """Base class; subclasses create the items.

    An item is a widget with `height_for(width)`, which is cheap when nothing has changed.

    Attributes:
        heights: The height of every item, estimated or measured.
        anchor: The scroll position.
        padding, column_width: The space around the items and their maximum width, in pixels.
        visible_items: Indexes of the first and last item on screen; (0, -1) without items.
        items_laid_out: How many item widgets were created so far.

    Signals:
        visible_changed: Index of the first and last item on screen.
    """

    visible_changed = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, horizontalScrollBarPolicy=Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.heights = Heights()
        self.anchor: Anchor = AtEnd()
        self.padding = 0
        self.visible_items = (0, -1)
        self.items_laid_out = 0
        self._items: dict[int, QWidget] = {}
        self.column_width = 720
        self._top = 0
        self._y_in_window = 0
        self._in_layout = False
        self._layout_timer = QTimer(self, singleShot=True, interval=0)
        self._layout_timer.timeout.connect(self.update_layout)
        self._prefetch_timer = QTimer(self, singleShot=True, interval=_PREFETCH_PAUSE_MS)
        self._prefetch_timer.timeout.connect(self._on_prefetch_timeout)

    # for subclasses

    def make_item(self, index: int) -> QWidget:
        """Return a new widget for the item."""
        raise NotImplementedError

    def may_drop(self, index: int) -> bool:
        """Return whether the item's widget may be deleted now: not while it has the focus."""
        widget, focused = self._items[index], self.window().focusWidget()
        return focused is None or not (focused is widget or widget.isAncestorOf(focused))

    # items

    @property
    def awaits_layout(self) -> bool:
        """Whether the items on screen are to be laid out."""
        return self._layout_timer.isActive()

    @property
    def is_layout_done(self) -> bool:
        """Whether all items on screen and just beyond it are laid out."""
        return not self.awaits_layout and not self._prefetch_timer.isActive()

    def items_in_order(self) -> list[QWidget]:
        """Return the widgets that exist now, top to bottom."""
        return [self._items[index] for index in sorted(self._items)]

    def reset(self, heights: Iterable[int], anchor: Anchor) -> None:
        """Replace all items by items of estimated heights."""
        self.drop_items(list(self._items))
        self.heights = Heights(heights)
        self.scroll_to_anchor(anchor)

    def append_items(self, heights: Iterable[int]) -> None:
        """Add items of estimated heights at the end."""
        self.heights.extend(heights)
        self.schedule_layout()

    def grow_item_top(self, index: int, change: Callable[[], None]) -> None:
        """Run `change`, which grows an existing item at its top, without moving what is visible."""
        before = self._height_of(index)
        change()
        grown, anchor = self._height_of(index) - before, self.anchor
        if isinstance(anchor, AtItem) and anchor.index == index:
            self.anchor = AtItem(index, max(0, anchor.offset + grown))
        elif isinstance(anchor, AtOffset) and anchor.index == index:
            self.anchor = AtOffset(index, max(0, anchor.y + grown))
        self.schedule_layout()

    def drop_items(self, indexes: Iterable[int]) -> None:
        """Delete widgets; they are created again when they are needed."""
        for index in indexes:
            widget = self._items.pop(index)
            widget.hide()
            widget.deleteLater()

    # scrolling

    def scroll_to_anchor(self, anchor: Anchor) -> None:
        """Scroll to `anchor` and stay there until the user scrolls."""
        self.anchor = anchor
        self.update_layout()

    def scroll_by(self, pixels: int) -> None:
        self.verticalScrollBar().setValue(self._top + pixels)

    def show_widget(self, widget: QWidget, y: int | None = None) -> None:
        """Scroll as little as needed to show a widget, or the point `y` pixels below its top."""
        view_height = self.viewport().height()
        top = widget.mapTo(self.viewport(), QPoint(0, y or 0)).y()
        bottom = top + (self.padding if y is not None else min(widget.height(), view_height))
        if top < 0:
            self.scroll_by(top - self.padding)
        elif bottom > view_height:
            self.scroll_by(bottom - view_height + self.padding)

    # layout

    def schedule_layout(self) -> None:
        """Lay out once after the current event, however often this is called."""
        self._layout_timer.start()

    def update_layout(self) -> None:
        """Create and measure the visible items, and place them."""
        if self._in_layout:  # a scroll bar that has appeared changes the width
            self.schedule_layout()
            return
        self._layout_timer.stop()
        self._in_layout = True
        try:
            self._measure_visible()
            self._place()
        finally:
            self._in_layout = False
        self._prefetch_timer.start()

    def item_width(self) -> int:
        """Return the width items are laid out for, in pixels."""
        return max(80, min(self.column_width, self.viewport().width() - 2 * (self.padding // 2)))

    def _measure_visible(self) -> None:
        """Measure the visible items until the set of visible items no longer changes."""
        for _round in range(_MAX_ROUNDS):
            view_height = self.viewport().height()
            self._top = top_for(self.anchor, self.heights, view_height, self.padding)
            self.visible_items = first, last = self._range(self._top, self._top + view_height)
            changed = [index for index in range(first, last + 1) if self._measure(index)]
            if not changed:
                return

    def _range(self, top: int, bottom: int) -> tuple[int, int]:
        if not len(self.heights):
            return 0, -1
        return self.heights.at(top - self.padding), self.heights.at(bottom - self.padding)

    def _measure(self, index: int) -> bool:
        """Create the item if needed and correct its height; return whether it was wrong."""
        height = self._height_of(index)
        if height == self.heights[index]:
            return False
        self.heights[index] = height
        return True

    def _height_of(self, index: int) -> int:
        widget = self._items.get(index)
        if widget is None:
            widget = self._items[index] = self.make_item(index)
            widget.setParent(self.viewport())
            self.items_laid_out += 1
        return int(widget.height_for(self.item_width()))  # type: ignore[attr-defined]

    def _place(self) -> None:
        height, width = self.viewport().height(), self.item_width()
        middle = (self.width() - width) // 2  # whether there is a scroll bar or not
        left = min(middle, self.viewport().width() - self.padding // 2 - width)
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, self.heights.total + 2 * self.padding - height))
        bar.setPageStep(height)
        bar.setSingleStep(max(1, self.padding))
        bar.setValue(self._top)
        self._drop_far_items()
        for index, widget in self._items.items():
            y = self.padding + self.heights.before(index) - self._top
            is_near = y < 2 * height and y + self.heights[index] > -height
            if is_near:
                widget.setGeometry(left, y, width, self.heights[index])
            widget.setVisible(is_near)
        self.visible_changed.emit(*self.visible_items)

    def _drop_far_items(self) -> None:
        first, last = self.visible_items
        middle = (first + last) // 2
        by_distance = sorted(self._items, key=lambda index: abs(index - middle))
        far = [each for each in by_distance[_MAX_WIDGETS:] if not first <= each <= last]
        self.drop_items([each for each in far if self.may_drop(each)])

    def _on_prefetch_timeout(self) -> None:
        """Lay out one item just beyond the screen, if one is missing there."""
        height = self.viewport().height()
        margin = round(height * _PREFETCH_SHARE)
        first, last = self._range(self._top - margin, self._top + height + margin)
        above, below = self.visible_items[0] - 1, self.visible_items[1] + 1
        for index in (*range(below, last + 1), *range(above, first - 1, -1)):
            if index not in self._items:
                self._measure(index)
                self.update_layout()
                return

    # Qt overrides

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Follow the scroll bar when the user moves it."""
        if self._in_layout:
            return
        self._top = self.verticalScrollBar().value()
        height = self.viewport().height()
        self.scroll_to_anchor(anchor_at(self._top, self.heights, height, self.padding))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out again; what is read stays where it is also if a row above comes or goes."""
        super().resizeEvent(event)
        was_at, self._y_in_window = self._y_in_window, self.mapTo(self.window(), QPoint()).y()
        moved = self._y_in_window - was_at
        ends_where_it_did = event.oldSize().height() == self.viewport().height() + moved
        if isinstance(self.anchor, AtItem) and ends_where_it_did:
            self.anchor = AtItem(self.anchor.index, self.anchor.offset + moved)
        self.update_layout()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, line = Qt.Key(event.key()), 2 * self.padding
        page = self.viewport().height() - line
        steps = {
            Qt.Key.Key_Up: -line,
            Qt.Key.Key_Down: line,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
        }
        if key in steps:
            self.scroll_by(steps[key])
        elif key == Qt.Key.Key_Home and len(self.heights):
            self.scroll_to_anchor(AtItem(0, -self.padding))
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.scroll_to_anchor(AtEnd())
        else:
            super().keyPressEvent(event)

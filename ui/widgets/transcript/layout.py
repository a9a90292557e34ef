"""Layout of a turn's parts: columns, wrapping rows and panels whose height follows from their width.

Qt's own layouts settle over several passes of the event loop. A transcript must know a turn's
height at once, so that what is above the visible part can change without moving it.
"""

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import Theme
from ui.widgets.plain_label import PlainLabel

_ANY_WIDTH = 1 << 24


class Root(QWidget):
    """The outermost part, such as a turn.

    Signals:
        changed: The height of a part inside may have changed.
    """

    changed = Signal()


def remeasure(part: QWidget | None) -> None:
    """Report to the root around a part that its height may have changed."""
    while part is not None and not isinstance(part, Root):
        part = part.parentWidget()
    if part is not None:
        part.changed.emit()


class Label(PlainLabel):
    """Text that wraps; `tone` is one of the style sheet's."""

    def __init__(self, text: str, tone: str) -> None:
        super().__init__(text, tone=tone, wordWrap=True)

    def height_for(self, width: int) -> int:
        """Return the height of the wrapped text."""
        self.ensurePolished()
        return max(self.heightForWidth(width), self.fontMetrics().height())


class Column(QWidget):
    """Parts, widgets with a `height_for(width)`, one below the other."""

    def __init__(self, parent: QWidget | None = None, *, gap: int = 0) -> None:
        super().__init__(parent)
        self._gap = gap
        self._parts: list[tuple[QWidget, int]] = []  # with the space above
        self.padding_x = self.padding_top = self.padding_bottom = 0

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, part: QWidget, *, above: int | None = None) -> None:
        """Add a part, `above` pixels (by default the column's gap) below the last one."""
        self._parts.append((part, self._gap if above is None else above))
        part.setParent(self)
        part.show()
        remeasure(self)

    def replace(self, old: QWidget, new: QWidget) -> None:
        """Put `new` in the place of `old`, which is deleted."""
        at = next(number for number, (part, _) in enumerate(self._parts) if part is old)
        self.add(new, above=self._parts[at][1])
        self._parts.insert(at, self._parts.pop())
        self.remove(old)

    def remove(self, part: QWidget) -> None:
        self._parts = [entry for entry in self._parts if entry[0] is not part]
        _keep_focus(part)
        part.hide()
        part.setParent(None)
        part.deleteLater()
        remeasure(self)

    def clear(self) -> None:
        """Remove all parts and delete them."""
        for part, _ in list(self._parts):
            self.remove(part)

    def height_for(self, width: int) -> int:
        """Place the parts inside the padding and return the height."""
        y, inner = self.padding_top, max(1, width - 2 * self.padding_x)
        for part, gap in self._parts:
            if part.isHidden():
                continue
            y += gap if y > self.padding_top else 0
            height = part.height_for(inner)  # type: ignore[attr-defined]
            part.setGeometry(QRect(self.padding_x, y, inner, height))
            y += height
        return y + self.padding_bottom


def _keep_focus(part: QWidget) -> None:
    """Pass the focus from a part that goes to what it is in; Qt would pass it on and scroll there."""
    focused, heir = part.window().focusWidget(), part.parentWidget()
    if focused is None or not (focused is part or part.isAncestorOf(focused)):
        return
    while heir is not None and heir.focusPolicy() is Qt.FocusPolicy.NoFocus:
        heir = heir.parentWidget()
    if heir is not None:
        heir.setFocus(Qt.FocusReason.OtherFocusReason)


class FlowRow(QWidget):
    """Small widgets side by side, wrapping to further lines; much lower ones begin a line."""

    def __init__(self, parent: QWidget | None = None, *, gap: int = 6) -> None:
        super().__init__(parent)
        self._gap = gap
        self.members: list[QWidget] = []

    def add(self, member: QWidget) -> None:
        member.setParent(self)
        member.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        member.show()
        self.members.append(member)
        remeasure(self)

    def natural_width(self) -> int:
        """Return the width of all members in one line."""
        widths = (
            sum(_size(each, _ANY_WIDTH)[0] + self._gap for each in line) - self._gap
            for line in self._lines(_ANY_WIDTH)
        )
        return max(widths, default=0)

    def height_for(self, width: int) -> int:
        """Place the members line by line and return the height."""
        y = 0
        for line in self._lines(width):
            x, line_height = 0, max(_size(each, width)[1] for each in line)
            for member in line:
                member_width, height = _size(member, width)
                top = y + (line_height - height) // 2
                member.setGeometry(x, top, member_width, height)
                x += member_width + self._gap
            y += line_height + self._gap
        return max(0, y - self._gap)

    def _lines(self, width: int) -> list[list[QWidget]]:
        lines: list[list[QWidget]] = []
        x = height = 0
        for member in self.members:
            if member.isHidden():
                continue
            needed, own = _size(member, width)
            if not lines or x + needed > width or own * 2 < height:
                lines.append([])
                x = height = 0
            lines[-1].append(member)
            x, height = x + needed + self._gap, max(height, own)
        return lines


def _size(widget: QWidget, most: int) -> tuple[int, int]:
    """Return the size of a widget in a line of a width; only labels are higher where that is narrow."""
    widget.ensurePolished()
    if isinstance(widget, Label):
        width = min(widget.fontMetrics().horizontalAdvance(widget.text()) + 1, most)
        return width, widget.height_for(width)
    hint = widget.sizeHint()
    return min(hint.width(), most), hint.height()


class Panel(Column):
    """A column with padding and a rounded background."""

    def __init__(self, theme: Theme, background: str) -> None:
        super().__init__(gap=round(theme.em(0.45)))
        self._background = QColor(background)
        self._corner = theme.em(0.7)
        self.padding_x = round(theme.em(0.95))
        self.padding_top = self.padding_bottom = round(theme.em(0.7))

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(self._background)
        painter.setPen(Qt.PenStyle.NoPen)
        area = self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(area, self._corner, self._corner)

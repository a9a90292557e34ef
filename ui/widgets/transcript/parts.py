"""How parts of a turn stand: stacked, in rows that wrap, in a bubble. Heights follow from widths.

Qt's own layouts settle over several passes of the event loop; a transcript must know a turn's
height at once, so that what is above the eye can change without moving it. Hence these few.
"""

from typing import Protocol

from PySide6.QtCore import QRect, Qt, Signal, SignalInstance
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from ui.theme import Theme


class Part(Protocol):
    """A widget whose height follows from its width. `changed` says that it may be another now."""

    @property
    def changed(self) -> SignalInstance:
        """Emitted when the height may have changed."""
        ...

    def height_for(self, width: int) -> int:
        """Arrange the content for `width` and return the height it takes, in pixels."""
        ...

    def setGeometry(self, rect: QRect, /) -> None: ...  # noqa: D102

    def isHidden(self) -> bool: ...  # noqa: D102


class Label(QLabel):
    """Words that wrap. `tone` is one of the style sheet's."""

    changed = Signal()

    def __init__(self, text: str, tone: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setProperty("tone", tone)
        self.setText(text)

    def height_for(self, width: int) -> int:
        """Return the height of the wrapped words."""
        self.ensurePolished()
        return max(self.heightForWidth(width), self.fontMetrics().height())

    def show_text(self, text: str) -> None:
        """Replace the words."""
        if text != self.text():
            self.setText(text)
            self.changed.emit()


def small_label(text: str, tone: str) -> QLabel:
    """Return a label of one line, never taken for rich text."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setProperty("tone", tone)
    label.setText(text)
    return label


class Column(QWidget):
    """Parts one below the other.

    Signals:
        changed: A part was added or its height may have changed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None, *, gap: int = 0) -> None:
        super().__init__(parent)
        self._gap = gap
        self._parts: list[tuple[Part, int, int]] = []

    def add(self, part: Part, *, above: int | None = None, inset: int = 0) -> None:
        """Add a part, `above` pixels below the last one, moved in by `inset` at the left."""
        self._parts.append((part, self._gap if above is None else above, inset))
        part.changed.connect(self.changed)
        if isinstance(part, QWidget):
            part.setParent(self)
            part.show()
        self.changed.emit()

    def replace(self, old: Part, new: Part) -> None:
        """Put `new` where `old` stands; `old` is deleted."""
        at = next(number for number, entry in enumerate(self._parts) if entry[0] is old)
        _, gap, inset = self._parts[at]
        self.add(new)
        self._parts.pop()
        self._parts.insert(at, (new, gap, inset))
        self.remove(old)

    def remove(self, part: Part) -> None:
        """Remove a part and delete it."""
        self._parts = [entry for entry in self._parts if entry[0] is not part]
        part.changed.disconnect(self.changed)
        if isinstance(part, QWidget):
            part.hide()
            part.setParent(None)
            part.deleteLater()
        self.changed.emit()

    def clear(self) -> None:
        """Remove all parts and delete them."""
        for part, _, _ in list(self._parts):
            self.remove(part)

    def height_for(self, width: int) -> int:
        """Place the parts and return the height they take together."""
        y, is_first = 0, True
        for part, gap, inset in self._parts:
            if part.isHidden():
                continue
            y += 0 if is_first else gap
            height = part.height_for(max(1, width - inset))
            part.setGeometry(QRect(inset, y, max(1, width - inset), height))
            y += height
            is_first = False
        return y


class FlowRow(QWidget):
    """Small widgets side by side, wrapping to further lines; right-aligned if asked."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None, *, gap: int = 6, right: bool = False) -> None:
        super().__init__(parent)
        self._gap, self._right = gap, right
        self._members: list[QWidget] = []

    @property
    def members(self) -> tuple[QWidget, ...]:
        """The widgets, first to last."""
        return tuple(self._members)

    def add(self, member: QWidget) -> None:
        """Add a widget at the end."""
        member.setParent(self)
        member.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        member.show()
        self._members.append(member)
        self.changed.emit()

    def natural_width(self) -> int:
        """Return the width all members take in one line."""
        widths = [self._size(each)[0] for each in self._members if not each.isHidden()]
        return sum(widths) + self._gap * max(0, len(widths) - 1)

    def height_for(self, width: int) -> int:
        """Place the members line by line and return the height of all lines."""
        y, lines = 0, self._lines(width)
        for line in lines:
            x = width - self._line_width(line) if self._right else 0
            tallest = max(self._size(each)[1] for each in line)
            for member in line:
                member_width, member_height = self._size(member)
                top = y + (tallest - member_height) // 2
                member.setGeometry(x, top, min(member_width, width), member_height)
                x += member_width + self._gap
            y += tallest + self._gap
        return max(0, y - self._gap)

    def _lines(self, width: int) -> list[list[QWidget]]:
        lines: list[list[QWidget]] = []
        for member in self._members:
            if member.isHidden():
                continue
            if lines and self._line_width([*lines[-1], member]) <= width:
                lines[-1].append(member)
            else:
                lines.append([member])
        return lines

    def _line_width(self, line: list[QWidget]) -> int:
        return sum(self._size(each)[0] for each in line) + self._gap * (len(line) - 1)

    @staticmethod
    def _size(member: QWidget) -> tuple[int, int]:
        member.ensurePolished()
        hint = member.sizeHint()
        return hint.width(), hint.height()


class Panel(Column):
    """A column on a rounded ground of its own."""

    def __init__(
        self, theme: Theme, ground: str, parent: QWidget | None = None, *, border: str = ""
    ) -> None:
        super().__init__(parent, gap=round(theme.em(0.45)))
        self._ground, self._border = QColor(ground), border
        self._corner = theme.em(0.7)
        self.padding_x, self.padding_top = round(theme.em(0.95)), round(theme.em(0.7))
        self.padding_bottom = self.padding_top

    def height_for(self, width: int) -> int:
        """Place the parts inside the padding."""
        y, inner = self.padding_top, max(1, width - 2 * self.padding_x)
        for number, (part, gap, inset) in enumerate(self._parts):
            if part.isHidden():
                continue
            y += gap if number else 0
            height = part.height_for(inner - inset)
            part.setGeometry(QRect(self.padding_x + inset, y, inner - inset, height))
            y += height
        return y + self.padding_bottom

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the ground."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(self._ground)
        painter.setPen(QPen(QColor(self._border), 1) if self._border else Qt.PenStyle.NoPen)
        area = self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(area, self._corner, self._corner)

"""The tour: a card beside one part of the window after another, with a frame around that part."""

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.domain.translation import tr
from ui.widgets.controls import button, filled, row_of
from ui.widgets.on_screen import announce
from ui.widgets.plain_label import plain_label

_WIDTH_PX, _GAP_PX, _FRAME_PX = 320, 12, 3


class TourCard(QFrame):
    """Shows one stop at a time, inside a window; Esc skips the rest.

    Signals:
        next_requested: Show the next stop. skip_requested: End the tour.
    """

    next_requested = Signal()
    skip_requested = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setProperty("panel", "card")
        self.setAccessibleName(tr("Tour"))
        self._window = window
        self._target: QWidget | None = None
        self._settled = QTimer(self, singleShot=True, interval=0)
        self._settled.timeout.connect(self._place)
        self._frame = QFrame(window)
        self._frame.setProperty("panel", "frame")
        self._frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._title = plain_label(self, "heading", selectable=False)
        self._text = plain_label(self, selectable=False)
        self._count = plain_label(self, "small", selectable=False)
        self._skip = button(self, tr("Skip the tour"), self.skip_requested, kind="quiet")
        self.next = button(self, tr("Next"), self.next_requested, kind="primary")
        buttons = row_of((self._count, 1), self._skip, self.next)
        filled(QVBoxLayout(self), self._title, self._text, buttons, margins=(14, 12, 10, 10))
        self.setFixedWidth(_WIDTH_PX)
        window.installEventFilter(self)
        self.hide()
        self._frame.hide()

    def show_stop(self, target: QWidget, title: str, text: str, number: int, count: int) -> None:
        """Show stop `number`, from 1, of `count`, about a part of the window."""
        for each in self._parts():
            each.removeEventFilter(self)
        self._target = target
        for each in self._parts():
            each.installEventFilter(self)
        self._title.setText(title)
        self._text.setText(text)
        self._count.setText(tr("{number} of {count}").format(number=number, count=count))
        self.next.setText(tr("Done") if number == count else tr("Next"))
        self._skip.setVisible(number < count)
        self.show()
        self._frame.show()
        self._place()
        self._settled.start()
        self.next.setFocus()
        announce(self, f"{title}. {text}")

    def end(self) -> None:
        """Remove the card and the frame."""
        for each in (self, self._frame):
            each.hide()
            each.deleteLater()

    def _parts(self) -> Iterator[QWidget]:
        """Yield the part shown and what it is in, whose moves move it."""
        part = self._target
        while part is not None and part is not self._window:
            yield part
            part = part.parentWidget()

    def _place(self) -> None:
        """Stand beside the part: right, left, above or below it, where there is room."""
        if self._target is None:
            return
        window = self._window
        room = window.rect().adjusted(_GAP_PX, _GAP_PX, -_GAP_PX, -_GAP_PX)
        part = QRect(self._target.mapTo(window, QPoint(0, 0)), self._target.size())
        self._frame.setGeometry(part.adjusted(-_FRAME_PX, -_FRAME_PX, _FRAME_PX, _FRAME_PX))
        self.setFixedHeight(self.heightForWidth(_WIDTH_PX))
        own = QRect(QPoint(0, 0), self.size())
        level = min(max(part.top(), room.top()), room.bottom() - own.height())
        along = min(max(part.left(), room.left()), room.right() - own.width())
        places = (
            QPoint(part.right() + _GAP_PX, level),
            QPoint(part.left() - own.width() - _GAP_PX, level),
            QPoint(along, part.top() - own.height() - _GAP_PX),
            QPoint(along, part.bottom() + _GAP_PX),
        )
        fitting = (each for each in places if room.contains(own.translated(each)))
        self.move(next(fitting, room.center() - own.center()))
        self._frame.raise_()
        self.raise_()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the part and the window once their layout has settled."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self.isVisible():
            self._settled.start()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Skip the rest on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.skip_requested.emit()
        else:
            super().keyPressEvent(event)

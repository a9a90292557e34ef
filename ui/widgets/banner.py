"""Messages in the window: the banner above the conversation, a note with an action, an offer in the status bar."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from app.domain.translation import tr
from ui.widgets.controls import button, filled, tool_button
from ui.widgets.on_screen import announce
from ui.widgets.plain_label import PlainLabel

_TOAST_MS = 8000


class Banner(QFrame):
    """A message with an optional action; hidden until there is one. A brief one stays under the mouse.

    Signals:
        dismissed: It was closed by the user or by its timer.
    """

    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "info")
        self._text = PlainLabel(self)
        self._text.setWordWrap(True)
        self._action = button(self, "", self._on_action_clicked, kind="quiet")
        close = tool_button(self, "", self._on_close_clicked, icon="x", name=tr("Dismiss"))
        filled(QHBoxLayout(self), (self._text, 1), self._action, close, margins=(12, 6, 8, 6))
        self._timer = QTimer(self, singleShot=True, interval=_TOAST_MS)
        self._timer.timeout.connect(self._on_timer_timeout)
        self._act: Callable[[], object] | None = None
        self._closed: Callable[[], object] | None = None
        self._stays = False
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def shows(self, text: str) -> bool:
        """Whether this is the message that is there."""
        return not self.isHidden() and self.text == text

    def show_message(
        self,
        text: str,
        action: str = "",
        act: Callable[[], object] | None = None,
        *,
        brief: bool,
        closed: Callable[[], object] | None = None,
    ) -> None:
        """Show a message; a `brief` one closes itself after 8 s, such as the offer to undo.

        `closed` is called if the user closes it without the action.
        """
        self._show_panel("info")
        self._text.setText(text)
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self._act, self._closed = act, closed
        self._stays = closed is not None or (brief and act is not None)
        self.show()
        announce(self, text)
        if brief:
            self._timer.start()
        else:
            self._timer.stop()

    def show_error(self, error: BaseException) -> None:
        """Show what went wrong and what to do next, until it is dismissed."""
        from app.domain.text import sentences
        from ui.errors import error_text

        title, hint = error_text(error)
        self.show_message(sentences(title, hint), brief=False)
        self._show_panel("error")

    def leave(self) -> None:
        """Hide a message about what was open, as another conversation opens; an offer stays."""
        if not self._stays and not self.isHidden():
            self.dismiss()

    def dismiss(self) -> None:
        self._timer.stop()
        self.hide()
        self.dismissed.emit()

    def _show_panel(self, panel: str) -> None:
        if panel != self.property("panel"):
            self.setProperty("panel", panel)
            self.style().unpolish(self)
            self.style().polish(self)

    def _on_timer_timeout(self) -> None:
        if self.underMouse():
            self._timer.start()
        else:
            self.dismiss()

    def _on_close_clicked(self) -> None:
        closed, self._closed = self._closed, None
        self.dismiss()
        if closed is not None:
            closed()

    def _on_action_clicked(self) -> None:
        act, self._act = self._act, None
        self.dismiss()
        if act is not None:
            act()


class NoteCard(QFrame):
    """A note that stays until it is replaced; hidden while there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self._text = PlainLabel("", self, tone="small", wordWrap=True)
        self.action = button(self, "", self._on_clicked, kind="quiet")
        self._act: Callable[[], object] = lambda: None
        filled(QHBoxLayout(self), (self._text, 1), self.action, margins=(10, 2, 4, 2))
        self.hide()

    @property
    def text(self) -> str:
        return "" if self.isHidden() else self._text.text()

    def show_note(
        self, text: str, action: str = "", act: Callable[[], object] | None = None
    ) -> None:
        """Show a note and its action, and announce it; "" hides it."""
        is_new = bool(text) and text != self.text
        self._text.setText(text)
        self.action.setText(action)
        self.action.setVisible(bool(action))
        self._act = act or (lambda: None)
        self.setVisible(bool(text))
        if is_new:
            announce(self, text)

    def _on_clicked(self) -> None:
        self._act()


class _Offered(NamedTuple):
    text: str
    show: Callable[[], object]
    dismiss: Callable[[], object]


class Offer(QWidget):
    """Offers in the status bar, in few words, each until it is opened or closed; they cover and move nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.open = button(self, "", self._open, kind="quiet")
        self.open.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        close = tool_button(self, "", self._close, icon="x", name=tr("Dismiss"))
        self.stops = (self.open, close)
        for each in self.stops:
            each.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus where it is
        self._row = QHBoxLayout(self)
        filled(self._row, (self.open, 1), close, None, margins=(7, 0, 0, 0), spacing=2)
        policy = self.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the status bar keeps its height
        self.setSizePolicy(policy)
        self._waiting: deque[_Offered] = deque()  # the first is shown
        self.hide()

    def make(self, text: str, show: Callable[[], object], dismiss: Callable[[], object]) -> bool:
        """Offer what `show` explains, after the offers before; return True: it has its place."""
        self._waiting.append(_Offered(text, show, dismiss))
        if len(self._waiting) == 1:
            self._show_first()
        return True

    def withdraw(self, text: str) -> None:
        """Take an offer back that does not stand any more."""
        is_shown = bool(self._waiting) and self._waiting[0].text == text
        self._waiting = deque(each for each in self._waiting if each.text != text)
        if is_shown:
            self._show_next()

    def _show_first(self) -> None:
        from ui.rendering.inline import tooltip_text

        text = self._waiting[0].text
        self.open.setAccessibleName(text)
        self.open.setToolTip(tooltip_text(text))
        self.open.setMaximumWidth(self.open.fontMetrics().horizontalAdvance(text) + 2)
        self.show()
        self._row.activate()
        self._elide()
        announce(self, text)

    def _elide(self) -> None:
        text, mode = self.open.accessibleName(), Qt.TextElideMode.ElideRight
        text = self.open.fontMetrics().elidedText(text, mode, self.open.width())
        self.open.setText(text.replace("&", "&&"))

    def _open(self) -> None:
        self._take_first().show()

    def _close(self) -> None:
        self._take_first().dismiss()

    def _take_first(self) -> "_Offered":
        first = self._waiting.popleft()
        self._show_next()
        return first

    def _show_next(self) -> None:
        self.hide()
        if self._waiting:
            self._show_first()

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cut the text to the new width."""
        super().resizeEvent(event)
        self._elide()

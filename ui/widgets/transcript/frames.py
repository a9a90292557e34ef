"""A message as one thing on screen: what it says, and the line of actions under it."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QEnterEvent,
    QFocusEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QGroupBox, QMenu, QWidget

from app.domain.conversations import Attachment, Image, Message
from ui.rendering.parser import PLAIN
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.message_text import MessageText, put_on_clipboard
from ui.widgets.transcript.meta import Action, MetaRow
from ui.widgets.transcript.panels import file_chips
from ui.widgets.transcript.parts import Panel
from ui.widgets.transcript.values import text_blocks

_BUBBLE_SHARE = 0.86


class MessageFrame(QGroupBox):
    """A message that can take the focus; its actions show under the mouse or with the focus.

    It is a group to screen readers, named by who speaks. Subclasses place the content.

    Signals:
        changed: The height may have changed.
    """

    changed = Signal()

    def __init__(self, look: Look, name: str, actions: Sequence[Action], *, right: bool) -> None:
        super().__init__()
        self._look = look
        self._keeps_actions = False
        self.setProperty("plain", "true")
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.meta = MetaRow(look, actions, right=right)
        self.meta.setParent(self)
        self.meta.changed.connect(self.changed)

    def keep_actions(self, kept: bool) -> None:
        """Show the actions always, as the last answer does."""
        self._keeps_actions = kept
        self.meta.keep_actions(kept)
        self.update_actions()

    def update_actions(self) -> None:
        """Show the actions if the mouse or the focus is here."""
        focused = self.window().focusWidget() if self.window() is not None else None
        has_focus = focused is not None and (focused is self or self.isAncestorOf(focused))
        self.meta.show_actions(self._keeps_actions or self.underMouse() or has_focus)

    def height_for(self, width: int) -> int:
        """Place the content for `width` and return the height."""
        raise NotImplementedError

    def text_views(self) -> list[DocumentView]:
        """Return the views of its words, those inside open folds too."""
        return self.findChildren(DocumentView)

    def open_menu(self, at: QPoint) -> None:
        """Show the context menu: what is selected, what is pointed at, and the actions."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for view in self.text_views():
            if selected := view.selected_text():
                menu.addAction("Copy selection", partial(put_on_clipboard, selected))
            target = view.anchorAt(view.viewport().mapFromGlobal(at))
            if target and not target.startswith("#"):
                menu.addAction("Copy link address", partial(put_on_clipboard, target))
        if menu.actions():
            menu.addSeparator()
        self.meta.fill_menu(menu)
        menu.popup(at)

    # Qt overrides

    def enterEvent(self, event: QEnterEvent) -> None:
        """Show the actions."""
        super().enterEvent(event)
        self.update_actions()

    def leaveEvent(self, event: QEvent) -> None:
        """Hide the actions, unless the focus keeps them."""
        super().leaveEvent(event)
        self.update_actions()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Keep the focus, which a group box would hand on to its first child."""
        QWidget.focusInEvent(self, event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the ring away."""
        QWidget.focusOutEvent(self, event)
        self.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Show the actions as a menu: right click, or the Menu key."""
        self.open_menu(event.globalPos())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the focus ring, nothing else."""
        if not self.hasFocus():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._look.theme.colours.accent), 2))
        corner = self._look.theme.em(0.6)
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), corner, corner)


class UserFrame(MessageFrame):
    """What a person said: a bubble at the right, as wide as its words."""

    def __init__(self, look: Look, message: Message, name: str, actions: Sequence[Action]) -> None:
        super().__init__(look, name, actions, right=True)
        self.message = message
        self._bubble = Panel(look.theme, look.theme.colours.accent_soft)
        self._bubble.setParent(self)
        self._bubble.padding_bottom -= look.px(0.25)  # the last line has room below it already
        self._bubble.changed.connect(self.changed)
        self.texts = [MessageText(look, text, PLAIN) for text in text_blocks(message)]
        for text in self.texts:
            text.menu_requested.connect(self.open_menu)
            self._bubble.add(text)
        files = [each for each in message.blocks if isinstance(each, Image | Attachment)]
        self._chips = file_chips(look, files) if files else None
        if self._chips is not None:
            self._bubble.add(self._chips)

    def height_for(self, width: int) -> int:
        """Place bubble and actions."""
        margin = self._look.px(0.3)
        inner = width - 2 * margin
        widest = round(inner * _BUBBLE_SHARE)
        self._bubble.height_for(widest)
        bubble = min(widest, self._natural_width() + 2 * self._bubble.padding_x)
        height = self._bubble.height_for(bubble)
        self._bubble.setGeometry(QRect(margin + inner - bubble, margin, bubble, height))
        meta = self.meta.height_for(inner)
        self.meta.setGeometry(margin, margin + height + self._look.px(0.15), inner, meta)
        return margin + height + self._look.px(0.15) + meta + margin

    def _natural_width(self) -> int:
        widths = [text.natural_width() for text in self.texts]
        if self._chips is not None:
            widths.append(self._chips.natural_width())
        return max(widths, default=self._look.px(4))

"""Frames of messages: a message's content with its footer, and the user's message as a bubble."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGroupBox, QMenu, QWidget

from app.domain.attachments import files_of
from app.domain.conversations import FORGOTTEN, Forgotten, Message, Text
from app.domain.translation import format_moment, tr
from ui.rendering.parser import PLAIN
from ui.rendering.plain_text import plain_selection
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.layout import Panel
from ui.widgets.transcript.message_footer import Action, MessageFooter
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.panels import file_row
from ui.widgets.transcript.wide_areas import copy_text

_BUBBLE_SHARE = 0.86
_SPOKEN_CHARS = 4_000


class MessageFrame(QGroupBox):
    """A message that can take the focus; its actions show under the mouse or with the focus.

    Screen readers see a group, named by its author. Subclasses place the content.

    Attributes:
        texts: The message's texts in order, without folded ones.
    """

    def __init__(
        self,
        context: RenderContext,
        index: int,
        name: str,
        actions: Sequence[Action],
        *,
        right: bool,
    ) -> None:
        super().__init__()
        self._context = context
        self.texts: list[MessageText] = []
        self.setProperty("plain", "true")
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        switch = partial(context.events.branch_requested.emit, index)
        self.footer = MessageFooter(context, actions, switch, right=right)
        self.footer.setParent(self)

    def plain_text(self) -> str:
        """Return the text as it is drawn, to its first thousands of characters."""
        documents = [each.builder.document for each in self.texts]
        return "\n".join(
            plain_selection(each, 0, min(each.characterCount(), _SPOKEN_CHARS))
            for each in documents
        )

    def update_actions(self) -> None:
        """Show the actions if the mouse or the focus is here."""
        focused = self.window().focusWidget()
        has_focus = focused is not None and (focused is self or self.isAncestorOf(focused))
        shown = self.footer.always_shows_actions or self.underMouse() or has_focus
        self.footer.show_actions(shown)
        for text in self.texts:
            text.show_all_buttons(self.underMouse() or has_focus)

    def open_menu(self, at: QPoint) -> None:
        """Show the context menu: the selection, the link under the mouse, and the actions."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for view in self.findChildren(DocumentView):  # in open folds too
            if selected := view.selected_text():
                menu.addAction(tr("Copy selection"), partial(copy_text, selected))
                if not self._context.is_read_only:
                    quote = partial(self._context.events.quote_requested.emit, selected)
                    menu.addAction(tr("Quote selection"), quote)
            target = view.anchorAt(view.viewport().mapFromGlobal(at))
            if target and not target.startswith(("#", "attachment:")):
                menu.addAction(tr("Copy link address"), partial(copy_text, target))
        if menu.actions():
            menu.addSeparator()
        self.footer.fill_menu(menu)
        menu.popup(at)

    # Qt overrides

    def event(self, event: QEvent) -> bool:
        """Show and hide the actions as the mouse comes and goes."""
        handled = super().event(event)
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self.update_actions()
        return handled

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Keep the focus, which a group box would pass to its first child; a screen reader reads the text."""
        self.setAccessibleDescription(self.plain_text())
        QWidget.focusInEvent(self, event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Show the context menu on a right click or the Menu key."""
        self.open_menu(event.globalPos())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the focus ring, and nothing else of a group box."""
        if not self.hasFocus():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._context.theme.colors.accent), 2))
        corner = self._context.theme.em(0.6)
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), corner, corner)


class UserFrame(MessageFrame):
    """A user's message: a bubble at the right, as wide as its text."""

    def __init__(
        self, context: RenderContext, index: int, message: Message, actions: Sequence[Action]
    ) -> None:
        name = tr("You, {created_at}").format(created_at=format_moment(message.created_at))
        super().__init__(context, index, name, actions, right=True)
        self.message = message
        self._bubble = Panel(context.theme, context.theme.colors.accent_soft)
        self._bubble.setParent(self)
        self._bubble.padding_bottom -= context.px(0.4)  # the last line has space below it already
        for block in message.blocks:
            if isinstance(block, Text) and block.text:
                self.texts.append(MessageText(context, block.text, PLAIN))
                self._bubble.add(self.texts[-1])
            elif isinstance(block, Forgotten):
                self.texts.append(MessageText(context, FORGOTTEN, PLAIN))
                self._bubble.add(self.texts[-1])
        files = files_of(message.blocks)
        self._chips = file_row(context, files) if files else None
        if self._chips is not None:
            self._bubble.add(self._chips)
            self._bubble.padding_bottom += context.px(0.4)

    def height_for(self, width: int) -> int:
        """Place bubble and footer."""
        margin, gap = self.footer.margin, self._context.px(0.15)
        inner = width - 2 * margin
        max_bubble = round(inner * _BUBBLE_SHARE)
        self._bubble.height_for(max_bubble)
        widths = [text.natural_width() for text in self.texts]
        widths += [self._chips.natural_width()] if self._chips is not None else []
        natural = max(widths, default=self._context.px(4)) + 2 * self._bubble.padding_x
        bubble = min(max_bubble, natural)
        height = self._bubble.height_for(bubble)
        self._bubble.setGeometry(QRect(margin + inner - bubble, margin, bubble, height))
        footer = self.footer.height_for(inner)
        self.footer.setGeometry(0, margin + height + gap, width, footer)
        return margin + height + gap + footer + margin

"""What a command has answered: a card over the composer, kept nowhere and sent to no model."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.text import one_line
from ui.theme import Theme
from ui.widgets.plain_label import PlainLabel
from ui.widgets.transcript.look import Look, TurnEvents
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.steps import Steps

_HIGHEST_SHARE = 0.45
_LEAST_PX = 90
_TITLE_CHARS = 90
_SAID_CHARS = 200


class CommandPanel(QFrame):
    """The command above what came of it, with a way to put both away; hidden until then.

    Signals:
        dismissed: The user has put it away.
        link_activated: A link's target and the words it stands behind.
        link_hovered: The target under the mouse, "" when there is none.
    """

    dismissed = Signal()
    link_activated = Signal(str, str)
    link_hovered = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName("Answer of a command")
        self._steps = Steps(self)
        self._events = TurnEvents(self)
        self._events.link_activated.connect(self.link_activated)
        self._events.link_hovered.connect(self.link_hovered)
        self._look = Look(theme, self._steps, self._events)
        self._markdown = ""
        self.title = PlainLabel(self)
        self.title.setProperty("tone", "small")
        note = PlainLabel("not stored, not sent", self)
        note.setProperty("tone", "small")
        close = QToolButton(self)
        close.setText("\N{MULTIPLICATION X}")
        close.setAccessibleName("Close")
        close.setToolTip("Close (Esc)")
        close.clicked.connect(self.dismiss)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(note)
        head.addWidget(close)
        self.problem = PlainLabel(self, wordWrap=True)
        self.problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem.setProperty("tone", "error")
        self._body = _Body()
        self._scroll = QScrollArea(self)
        self._scroll.setWidget(self._body)
        self._body.setAutoFillBackground(False)  # it is a card's, not a window's
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._scroll.setAccessibleName("Answer")
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(14, 6, 8, 10)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self.problem)
        column.addWidget(self._scroll)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def markdown(self) -> str:
        """What is shown, as it was written; "" for an error or nothing."""
        return self._markdown

    def show_output(self, command: str, markdown: str) -> None:
        """Show what came of a command."""
        self._show(command, markdown)
        self.problem.hide()
        self._say(markdown)

    def show_error(self, command: str, title: str, hint: str) -> None:
        """Show why nothing came of a command, and what to do next."""
        self._show(command, "")
        words = f"{title}. {hint}".strip()
        self.problem.setText(words.replace("`", ""))  # written for Markdown, which this is not
        self.problem.show()
        self._say(self.problem.text())

    def set_theme(self, theme: Theme) -> None:
        """Draw what is shown in another look."""
        self._look = Look(theme, self._steps, self._events)
        if self._markdown:
            self._draw()

    def dismiss(self) -> None:
        """Go away."""
        if not self.isHidden():
            self.hide()
            self.dismissed.emit()

    def _show(self, command: str, markdown: str) -> None:
        self._markdown = markdown
        self.title.setText(one_line(command, _TITLE_CHARS))
        self._scroll.setVisible(bool(markdown))
        self.show()
        self._draw()

    def _draw(self) -> None:
        text = MessageText(self._look, self._markdown, parent=self._body)
        text.changed.connect(self._lay_out)
        self._body.take(text)
        self._scroll.verticalScrollBar().setValue(0)
        self._lay_out()

    def _lay_out(self) -> None:
        """Give the answer its height, up to a share of the window's; beyond, it scrolls."""
        margins = self._column.contentsMargins()
        bar = self._scroll.verticalScrollBar().sizeHint().width()
        width = max(1, self.width() - margins.left() - margins.right() - bar)
        height = self._body.height_for(width)
        around = self.parentWidget()
        most = round(around.height() * _HIGHEST_SHARE) if around is not None else height
        self._scroll.setFixedHeight(min(height, max(most, _LEAST_PX)))

    def _say(self, words: str) -> None:
        event = QAccessibleAnnouncementEvent(self, one_line(words, _SAID_CHARS))
        QAccessible.updateAccessibility(event)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the words out for the new width."""
        super().resizeEvent(event)
        self._lay_out()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go away on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()
            return
        super().keyPressEvent(event)


class _Body(QWidget):
    """Holds one text at its full height."""

    def __init__(self) -> None:
        super().__init__()
        self._text: MessageText | None = None

    def take(self, text: MessageText) -> None:
        """Show a text in place of the one before."""
        if self._text is not None:
            self._text.hide()
            self._text.deleteLater()
        self._text = text
        text.show()

    def height_for(self, width: int) -> int:
        """Place the text; return its height."""
        if self._text is None:
            return 0
        height = self._text.height_for(width)
        self._text.setGeometry(0, 0, width, height)
        self.resize(width, height)
        return height

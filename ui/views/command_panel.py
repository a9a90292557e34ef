"""The output of a slash command: a card above the composer; not stored, and not sent."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from app.domain.errors import KnownError
from app.domain.text import one_line
from app.domain.translation import tr
from ui.theme import current_theme
from ui.widgets.controls import column_in, row_of, tool_button
from ui.widgets.on_screen import announce
from ui.widgets.plain_label import PlainLabel, plain_label
from ui.widgets.transcript.context import RenderContext, StepQueue, TurnEvents
from ui.widgets.transcript.layout import Root
from ui.widgets.transcript.message_text import MessageText

_HIGHEST_SHARE = 0.45
_LEAST_PX = 90
_TITLE_CHARS = 90


class CommandPanel(QFrame):
    """A command and its output, with a close button; hidden until the first command.

    Signals:
        dismissed: It was closed.

    Attributes:
        events: What the user does in the output, such as clicking a link.
        markdown: What is shown; "" for an error or nothing.
    """

    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        self.markdown = ""
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName(tr("Output of a command"))
        self._steps = StepQueue(self)
        self.events = TurnEvents(self)
        self.title = PlainLabel(self, tone="small")
        note = PlainLabel(tr("not stored, not sent"), self, tone="small")
        self.copy = tool_button(self, tr("Copy"), self._copy, name=tr("Copy the output"))
        close = tool_button(
            self, "", self.dismiss, icon="x", tip=tr("Close (Esc)"), name=tr("Close")
        )
        self.problem = plain_label(self, "error")
        self._body = _Body()
        self._body.changed.connect(self._lay_out)
        self._scroll = QScrollArea(self)
        self._scroll.setWidget(self._body)
        self._body.setAutoFillBackground(False)  # it shows the card's background
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._scroll.setAccessibleName(tr("Output"))
        head = row_of((self.title, 1), note, self.copy, close)
        parts = (head, self.problem, self._scroll)
        self._column = column_in(self, *parts, margins=(14, 6, 8, 10), spacing=4)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_output(self, command: str, markdown: str) -> None:
        self._show(command, markdown)
        self.problem.hide()
        announce(self, markdown)

    def show_error(self, command: str, error: KnownError) -> None:
        """Show why a command failed, and what to do next."""
        self._show(command, "")
        self.problem.setText(error.display_text.replace("`", ""))  # the label shows plain text
        self.problem.show()
        announce(self, self.problem.text())

    def dismiss(self) -> None:
        if not self.isHidden():
            self.hide()
            self.dismissed.emit()

    def _show(self, command: str, markdown: str) -> None:
        self.markdown = markdown
        self.title.setText(one_line(command, _TITLE_CHARS))
        self._scroll.setVisible(bool(markdown))
        self.copy.setVisible(bool(markdown))
        self.show()
        self._draw()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.markdown)

    def _draw(self) -> None:
        context = RenderContext(current_theme(), self._steps, self.events)
        text = MessageText(context, self.markdown, parent=self._body)
        self._body.take(text)
        self._scroll.verticalScrollBar().setValue(0)
        self._lay_out()

    def _lay_out(self) -> None:
        """Give the output its height, up to a share of the window's; beyond that, it scrolls."""
        margins = self._column.contentsMargins()
        bar = self._scroll.verticalScrollBar().sizeHint().width()
        width = max(1, self.width() - margins.left() - margins.right() - bar)
        height = self._body.height_for(width)
        around = self.parentWidget()
        most = round(around.height() * _HIGHEST_SHARE) if around is not None else height
        self._scroll.setFixedHeight(min(height, max(most, _LEAST_PX)))

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        """Draw the output in another theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange and self.markdown:
            self._draw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the output out for the new width."""
        super().resizeEvent(event)
        self._lay_out()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()
            return
        super().keyPressEvent(event)


class _Body(Root):
    """Holds one text at its full height."""

    def __init__(self) -> None:
        super().__init__()
        self._text: MessageText | None = None

    def take(self, text: MessageText) -> None:
        """Show a text in place of the previous one."""
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

"""The words of one message: drawn in steps, page by page, or while they stream."""

from functools import partial
from time import perf_counter

from PySide6.QtCore import QPoint, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from ui.rendering.composer import Composer
from ui.rendering.decorations import code_head
from ui.rendering.formats import formats_of
from ui.rendering.parser import MARKDOWN, Dialect
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.words import number

_COPIED_FOR_MS = 1400
_STREAMING_PAGES = 8
_STEPS_AT_END = 4
_FIRST_S = 0.016


def put_on_clipboard(text: str) -> None:
    """Copy `text`."""
    QGuiApplication.clipboard().setText(text)


class MessageText(QWidget):
    """One text, with a Copy button on each code block and "Show more" under a very long one.

    Signals:
        changed: The height may have changed.
        scroll_wanted: Something in this text, so many pixels below its top, wants to be seen.
        menu_requested: Where the context menu was asked for, global coordinates.
    """

    changed = Signal()
    scroll_wanted = Signal(int)
    menu_requested = Signal(QPoint)

    def __init__(
        self,
        look: Look,
        text: str,
        dialect: Dialect = MARKDOWN,
        parent: QWidget | None = None,
        *,
        streams: bool = False,
    ) -> None:
        super().__init__(parent)
        self._look = look
        pages = _STREAMING_PAGES if streams else 1
        self.composer = Composer(look.theme, dialect, look.resolver, pages=pages)
        self.view = DocumentView(self.composer, look.theme, self)
        self._copy_buttons: list[QToolButton] = []
        self._more: QPushButton | None = None
        self._is_streaming = streams
        self._placed_for = -1
        self._connect_view()
        self.composer.feed(text)
        if streams:
            self.append("")
        else:
            self.composer.end()
            self.draw_first()

    def draw_first(self) -> None:
        """Draw what 16 ms allow now, most texts whole, and the rest in steps of their own."""
        until = perf_counter() + _FIRST_S
        while self.composer.step():
            if perf_counter() >= until:
                self._look.steps.add(self._draw_next)
                return

    def append(self, text: str) -> None:
        """Take more of a streaming text and draw it."""
        self.composer.feed(text)
        if not self.composer.refresh():
            self._look.steps.add(self._catch_up)
        self._note_change()

    def _catch_up(self) -> bool:
        """Draw on where a large piece of the stream left something."""
        is_behind = self._is_streaming and not self.composer.refresh()
        self._note_change()
        return is_behind

    def finish(self) -> None:
        """The stream has ended: close what was open, and colour what is left."""
        self._is_streaming = False
        self.composer.end()
        for _step in range(_STEPS_AT_END):
            if not self.composer.step():
                break
        self._note_change()
        self._look.steps.add(self._draw_next)

    def draw_all(self) -> None:
        """Draw everything the pages allow at once; a search needs all words."""
        self.composer.finish()
        self._note_change()

    def show_more(self) -> bool:
        """Allow one more page; return whether there was one."""
        if not self.composer.has_more:
            return False
        self.composer.pages += 1
        self._look.steps.add(self._draw_next)
        return True

    def natural_width(self) -> int:
        """Return the width the words would take in one line, as laid out last."""
        more = self._more.sizeHint().width() if self._more is not None else 0
        return max(self.view.natural_width(), more)

    def height_for(self, width: int) -> int:
        """Place words and buttons; return the height they take."""
        height = self.view.height_for(width)
        self.view.setGeometry(0, 0, width, height)
        self._place_copy_buttons(width)
        if self.composer.has_more and not self._is_streaming:
            button = self._more_button()
            hint = button.sizeHint()
            top = height + self._look.px(0.6)
            button.setGeometry(0, top, min(width, hint.width()), hint.height())
            return top + hint.height()
        if self._more is not None:
            self._more.hide()
        return height

    def _connect_view(self) -> None:
        events, view = self._look.events, self.view
        view.link_activated.connect(self._on_link)
        view.link_hovered.connect(events.link_hovered)
        view.dragged_to.connect(events.dragged_to)
        view.menu_requested.connect(self.menu_requested)
        view.selectionChanged.connect(self._on_selection_changed)

    def _on_selection_changed(self) -> None:
        if self.view.textCursor().hasSelection():
            self._look.events.selected.emit(self.view)

    def _on_link(self, target: str, label: str) -> None:
        if not target.startswith("#"):
            self._look.events.link_activated.emit(target, label)
        elif target[1:].isdigit() and (y := self.view.y_of_footnote(int(target[1:]))) is not None:
            self.scroll_wanted.emit(y)

    def _draw_next(self) -> bool:
        wants_more = self.composer.step()
        self._note_change()
        if not wants_more:
            self._look.events.words_drawn.emit(self)
        return wants_more

    def _note_change(self) -> None:
        self.changed.emit()

    def _more_button(self) -> QPushButton:
        if self._more is None:
            self._more = QPushButton(self)
            self._more.setProperty("kind", "quiet")
            self._more.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            self._more.clicked.connect(self.show_more)
        left = number(self.composer.hidden_chars)
        self._more.setText(f"Show more ({left} characters left)")
        self._more.show()
        return self._more

    # the Copy buttons of code

    def _place_copy_buttons(self, width: int) -> None:
        """Put a button into the head of each code block that has moved or is new."""
        document, formats = self.composer.document, formats_of(self._look.theme)
        blocks = self.composer.code_blocks
        while len(self._copy_buttons) > len(blocks):
            self._copy_buttons.pop().deleteLater()
        start = max(0, len(self._copy_buttons) - 1) if width == self._placed_for else 0
        for index in range(start, len(blocks)):
            if index == len(self._copy_buttons):
                self._copy_buttons.append(self._make_copy_button(index, blocks[index].language))
            first = document.findBlockByNumber(blocks[index].first_block)
            self._place(self._copy_buttons[index], code_head(document, formats, first))
        self._placed_for = width

    def _make_copy_button(self, index: int, language: str) -> QToolButton:
        button = QToolButton(self.view)
        button.setText("Copy")
        button.setProperty("kind", "action")
        button.setAccessibleName(f"Copy {language or 'code'}")
        button.setToolTip("Copy this code")
        button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(partial(self._on_copy_clicked, index))
        button.show()
        return button

    def _place(self, button: QToolButton, head: QRectF) -> None:
        hint = button.sizeHint()
        left = head.right() - hint.width() - self._look.theme.em(0.3)
        top = head.center().y() - hint.height() / 2 + self._look.theme.em(0.12)
        button.setGeometry(round(left), round(top), hint.width(), hint.height())

    def _on_copy_clicked(self, index: int) -> None:
        put_on_clipboard(self.composer.code_blocks[index].source)
        flash_text(self._copy_buttons[index], "Copied")


def flash_text(button: QToolButton, text: str) -> None:
    """Show another text on a button for a moment."""
    before = button.text()
    if before == text:
        return
    button.setText(text)
    QTimer.singleShot(_COPIED_FOR_MS, button, partial(button.setText, before))

"""The text of one message: rendered in steps, page by page, or while it streams."""

from functools import partial
from time import perf_counter

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from ui.rendering.decorations import code_head
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.formats import formats_of
from ui.rendering.parser import MARKDOWN, Dialect
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.layout import remeasure

_COPIED_FOR_MS = 1400
_STREAMING_PAGES = 8
_STEPS_AT_END = 4
_FIRST_S = 0.016


def copy_text(text: str) -> None:
    """Copy `text` to the clipboard."""
    QGuiApplication.clipboard().setText(text)


class MessageText(QWidget):
    """One text, with a Copy button on each code block and "Show more" under a very long text."""

    def __init__(
        self,
        context: RenderContext,
        text: str,
        dialect: Dialect = MARKDOWN,
        parent: QWidget | None = None,
        *,
        streams: bool = False,
    ) -> None:
        super().__init__(parent)
        self._context = context
        pages = _STREAMING_PAGES if streams else 1
        self.builder = DocumentBuilder(context.theme, dialect, context.resolver, pages=pages)
        self.view = DocumentView(self.builder.document, context, self)
        self.view.fold_requested.connect(self.toggle_fold)
        self._copy_buttons: list[QToolButton] = []
        self._buttons_width = -1  # the width the Copy buttons were placed for
        self._more: QPushButton | None = None
        self._is_streaming = streams
        if streams:
            self.append(text)
        else:
            self.builder.feed(text)
            self.builder.end()
            self._draw_first()

    def append(self, text: str) -> None:
        """Add to a streaming text and render it."""
        self.builder.feed(text)
        if not self.builder.refresh():
            self._context.steps.add(self._catch_up)
        remeasure(self)

    def finish(self) -> None:
        """End a streaming text: close what is open, and highlight remaining code."""
        self._is_streaming = False
        self.builder.end()
        for _step in range(_STEPS_AT_END):
            if not self.builder.step():
                break
        remeasure(self)
        self._context.steps.add(self._draw_next)

    def show_more(self) -> None:
        """Allow one more page, if there is one."""
        if self.builder.has_more:
            self.builder.pages += 1
            self._context.steps.add(self._draw_next)

    def toggle_fold(self, key: str) -> None:
        """Open a fold of the text, or close it."""
        self.builder.writer.toggle_fold(key)
        self._buttons_width = -1
        remeasure(self)

    def reveal(self, position: int) -> None:
        """Open the folds that hide the character at a position of the document."""
        number = self.builder.document.findBlock(position).blockNumber()
        for key in self.builder.writer.closed_around(number):
            self.toggle_fold(key)

    def natural_width(self) -> int:
        """Return the width without wrapping, as laid out last."""
        more = self._more.sizeHint().width() if self._more is not None else 0
        return max(self.view.natural_width(), more)

    def height_for(self, width: int) -> int:
        """Place text and buttons; return the height."""
        height = self.view.height_for(width)
        self.view.setGeometry(0, 0, width, height)
        self._place_copy_buttons(width)
        has_more = self.builder.has_more and not self._is_streaming
        if has_more:
            button = self._more_button()
            hint, top = button.sizeHint(), height + self._context.px(0.6)
            button.setGeometry(0, top, min(width, hint.width()), hint.height())
            height = top + hint.height()
        if self._more is not None:
            self._more.setVisible(has_more)
        return height

    def _draw_first(self) -> None:
        """Render for at most 16 ms, which suffices for most texts; the rest in steps."""
        until = perf_counter() + _FIRST_S
        while self.builder.step():
            if perf_counter() >= until:
                self._context.steps.add(self._draw_next)
                return
        self.view.describe()

    def _catch_up(self) -> bool:
        """Continue rendering a large piece of a stream."""
        is_behind = self._is_streaming and not self.builder.refresh()
        remeasure(self)
        return is_behind

    def _draw_next(self) -> bool:
        is_behind = self.builder.step()
        remeasure(self)
        if not is_behind:
            self.view.describe()
            self._context.events.text_drawn.emit(self)
        return is_behind

    def _more_button(self) -> QPushButton:
        if self._more is None:
            self._more = QPushButton(self)
            self._more.setProperty("kind", "quiet")
            self._more.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            self._more.clicked.connect(self.show_more)
        self._more.setText(f"Show more ({self.builder.hidden_chars:,} characters left)")
        return self._more

    # Copy buttons of code blocks

    def _place_copy_buttons(self, width: int) -> None:
        """Place a button in the head of each code block that is new or may have moved."""
        blocks = self.builder.writer.code_blocks
        while len(self._copy_buttons) > len(blocks):
            self._copy_buttons.pop().deleteLater()
        start = max(0, len(self._copy_buttons) - 1) if width == self._buttons_width else 0
        for index in range(start, len(blocks)):
            if index == len(self._copy_buttons):
                self._copy_buttons.append(self._make_copy_button(index, blocks[index].language))
            self._place_copy_button(self._copy_buttons[index], blocks[index].first_block)
        self._buttons_width = width

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

    def _place_copy_button(self, button: QToolButton, first_block: int) -> None:
        document, theme = self.builder.document, self._context.theme
        block = document.findBlockByNumber(first_block)
        button.setVisible(block.isVisible())
        head, hint = code_head(document, formats_of(theme), block), button.sizeHint()
        left = head.right() - hint.width() - theme.em(0.3)
        top = head.center().y() - hint.height() / 2 + theme.em(0.12)
        button.setGeometry(round(left), round(top), hint.width(), hint.height())

    def _on_copy_clicked(self, index: int) -> None:
        button = self._copy_buttons[index]
        copy_text(self.builder.writer.code_blocks[index].source)
        self._label_copy_button(index, button, "Copied")
        back = partial(self._label_copy_button, index, button, "Copy")
        QTimer.singleShot(_COPIED_FOR_MS, button, back)

    def _label_copy_button(self, index: int, button: QToolButton, label: str) -> None:
        button.setText(label)
        if index < len(blocks := self.builder.writer.code_blocks):
            self._place_copy_button(button, blocks[index].first_block)

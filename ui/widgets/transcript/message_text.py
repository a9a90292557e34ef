"""The text of one message: rendered in steps, page by page, or while it streams."""

from time import perf_counter

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.domain.translation import format_number, tr
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.parser import MARKDOWN, Dialect
from ui.widgets.controls import PushButton
from ui.widgets.on_screen import announce
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.document_view import DocumentView
from ui.widgets.transcript.layout import remeasure
from ui.widgets.transcript.wide_areas import CodeControls

_STREAMING_PAGES = 8
_STEPS_AT_END = 4
_FIRST_S = 0.016


class MessageText(QWidget):
    """One text, with buttons on each code block and "Show more" under a very long text."""

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
        self.builder = DocumentBuilder(
            context.theme, dialect, context.resolver, pages=pages, collapses=not streams
        )
        self.view = DocumentView(self.builder.document, context, self)
        self.view.fold_requested.connect(self.toggle_fold)
        self._code = CodeControls(self, self.view, context.theme)
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
        writer = self.builder.writer
        writer.toggle_fold(key)
        self.code_changed()
        if (fold := writer.folds.get(key)) is not None:
            is_open = fold.opens != (key in writer.toggled)
            announce(self.view, tr("Opened") if is_open else tr("Folded"))

    def show_all_buttons(self, shows_all: bool) -> None:
        """Show the buttons of code without a language too."""
        self._code.show_all(shows_all)

    def code_changed(self) -> None:
        """Lay out again."""
        self._code.invalidate()
        self.view.invalidate()
        remeasure(self)

    def reveal(self, position: int) -> None:
        """Open the folds that hide the character at a position of the document."""
        number = self.builder.document.findBlock(position).blockNumber()
        for key in self.builder.writer.closed_around(number):
            self.toggle_fold(key)
        self.view.reveal(position)

    def natural_width(self) -> int:
        """Return the width without wrapping, as laid out last."""
        more = self._more.sizeHint().width() if self._more is not None else 0
        return max(self.view.natural_width(), more)

    def height_for(self, width: int) -> int:
        """Place text and buttons; return the height."""
        height = self.view.height_for(width)
        self.view.setGeometry(0, 0, width, height)
        self._code.place(width)
        has_more = self.builder.has_more and not self._is_streaming
        if has_more:
            button = self._more_button()
            hint, top = button.sizeHint(), height + self._context.px(0.6)
            button.setGeometry(0, top, min(width, hint.width()), hint.height())
            height = top + hint.height()
        if self._more is not None:
            self._more.setVisible(has_more)
        return height

    def draw_now(self, limit_s: float) -> None:
        """Render what is missing at once, for at most a time; the rest goes on in steps."""
        until = perf_counter() + limit_s
        while perf_counter() < until and self._draw_next():
            pass

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
            self._more = PushButton(self)
            self._more.setProperty("kind", "quiet")
            self._more.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            self._more.clicked.connect(self.show_more)
        self._more.setText(
            tr("Show more ({hidden_chars} characters left)").format(
                hidden_chars=format_number(self.builder.hidden_chars)
            )
        )
        return self._more

"""What is shown folded: reasoning, tool calls with their results, system prompts."""

import json
from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from app.domain.conversations import ToolCall, ToolResult
from app.domain.text import one_line
from ui.rendering.parser import MARKDOWN, PLAIN, Dialect
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.parts import Column, Label
from ui.widgets.transcript.words import duration, size

_ARGUMENTS_IN_TITLE = 90


class Fold(QWidget):
    """A line that opens to show more; what is inside is made when it first opens.

    Signals:
        changed: It was opened or closed, or its content has changed.
        toggled: Open or closed, by the user.
    """

    changed = Signal()
    toggled = Signal(bool)

    def __init__(
        self, look: Look, title: str, make_body: Callable[[], Column], *, is_open: bool = False
    ) -> None:
        super().__init__()
        self._look, self._make_body = look, make_body
        self._body: Column | None = None
        self._title = title
        self._head = QToolButton(self)
        self._head.setProperty("kind", "action")
        self._head.setCheckable(True)
        self._head.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._head.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._head.setCursor(Qt.CursorShape.PointingHandCursor)
        self._head.clicked.connect(self._on_clicked)
        self._set_open(is_open)

    @property
    def is_open(self) -> bool:
        """Whether its content shows."""
        return self._head.isChecked()

    @property
    def title(self) -> str:
        """The words on its line."""
        return self._title

    @property
    def body(self) -> Column | None:
        """What is inside, once it was opened."""
        return self._body

    def show_title(self, title: str) -> None:
        """Replace the words on its line."""
        self._title = title
        self._label()
        self.changed.emit()

    def height_for(self, width: int) -> int:
        """Place the line and, if open, what is below it."""
        self._head.ensurePolished()
        hint = self._head.sizeHint()
        self._head.setGeometry(0, 0, min(hint.width(), width), hint.height())
        if not self.is_open or self._body is None:
            return hint.height()
        inset, gap = self._look.px(1.1), self._look.px(0.3)
        height = self._body.height_for(max(1, width - inset))
        self._body.setGeometry(inset, hint.height() + gap, max(1, width - inset), height)
        return hint.height() + gap + height + gap

    def _on_clicked(self) -> None:
        self._set_open(self._head.isChecked())
        self.toggled.emit(self.is_open)
        self.changed.emit()

    def _set_open(self, is_open: bool) -> None:
        self._head.setChecked(is_open)
        if is_open and self._body is None:
            self._body = self._make_body()
            self._body.setParent(self)
            self._body.changed.connect(self.changed)
        if self._body is not None:
            self._body.setVisible(is_open)
        self._label()

    def _label(self) -> None:
        words = self._title.replace("&", "&&")
        self._head.setText(f"{'▾' if self.is_open else '▸'}  {words}")
        state = "open" if self.is_open else "folded"
        self._head.setAccessibleName(f"{self._title}, {state}")

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint a thin line beside what is open."""
        if not self.is_open:
            return
        painter = QPainter(self)
        painter.setPen(QPen(QColor(self._look.theme.colours.border), 2))
        x = self._look.px(0.45)
        painter.drawLine(x, self._head.height() + 2, x, self.height() - 4)


def text_fold(look: Look, title: str, text: str, dialect: Dialect = MARKDOWN) -> Fold:
    """Return a fold that holds one text."""

    def body() -> Column:
        column = Column()
        column.add(MessageText(look, text, dialect))
        return column

    return Fold(look, title, body)


def tool_fold(look: Look, call: ToolCall | None, result: ToolResult | None) -> Fold:
    """Return a fold for a tool call and its result; either may be missing."""

    def body() -> Column:
        column = Column(gap=look.px(0.3))
        if call is not None:
            column.add(Label("Arguments", "small"))
            column.add(MessageText(look, _fenced(call.arguments, "json"), PLAIN))
        if result is not None:
            column.add(Label("Error" if result.is_error else "Result", "small"))
            column.add(MessageText(look, _fenced(result.text, ""), PLAIN))
        return column

    return Fold(look, tool_title(call, result), body)


def tool_title(
    call: ToolCall | None, result: ToolResult | None, *, is_awaited: bool = False
) -> str:
    """Return a tool's line: name, arguments cut short, duration, size, or how it failed."""
    name = call.name if call is not None else result.name if result is not None else "tool"
    arguments = one_line(_told(call.arguments), _ARGUMENTS_IN_TITLE) if call is not None else ""
    parts = [f"{name}({arguments})" if arguments else name]
    if result is None:
        parts.append("running …" if is_awaited else "no result")
    else:
        if result.duration_ms is not None:
            parts.append(duration(result.duration_ms))
        parts.append("failed" if result.is_error else size(len(result.text.encode())))
    return "  ·  ".join(parts)


def _told(arguments: str) -> str:
    """Return arguments as people write them; what is no JSON object as it is."""
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(given, dict):
        return arguments
    return ", ".join(
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items()
    )


def _fenced(text: str, language: str) -> str:
    """Return `text` as a code block that nothing in it can end."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{language}\n{text}\n{ticks}"

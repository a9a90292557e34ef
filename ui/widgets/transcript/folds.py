"""Folded content: reasoning, tool calls with their results, system prompts."""

import json
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.domain.conversations import ToolCall, ToolResult
from app.domain.text import one_line
from app.domain.translation import format_milliseconds, format_size, tr
from ui.icons import Ink, set_icon
from ui.rendering.parser import MARKDOWN, PLAIN, Dialect
from ui.widgets.controls import action_button
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.layout import Column, Label, remeasure
from ui.widgets.transcript.message_text import MessageText

_MAX_ARGUMENTS_CHARS = 90


class Fold(QWidget):
    """A title that opens to show content, which is created when it is first opened."""

    def __init__(
        self, context: RenderContext, title: str, make_body: Callable[[Column], None]
    ) -> None:
        super().__init__()
        self._context, self._make_body = context, make_body
        self.body: Column | None = None
        self._button = action_button(self, "", "")
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._button.setCheckable(True)
        self._button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._button.clicked.connect(self._on_clicked)
        self.show_title(title)

    def show_title(self, title: str) -> None:
        self.title, is_open = title, self._button.isChecked()
        self._button.setText(title.replace("&", "&&"))
        set_icon(self._button, "chevron-down" if is_open else "chevron-right", Ink.PlaceholderText)
        self._button.setAccessibleName(f"{title}, {'open' if is_open else 'folded'}")
        remeasure(self)

    def height_for(self, width: int) -> int:
        """Place the title and, if open, the content."""
        self._button.ensurePolished()
        hint = self._button.sizeHint()
        self._button.setGeometry(0, 0, min(hint.width(), width), hint.height())
        if not self._button.isChecked() or self.body is None:
            return hint.height()
        indent, gap = self._context.px(1.1), self._context.px(0.3)
        inner = max(1, width - indent)
        height = self.body.height_for(inner)
        self.body.setGeometry(indent, hint.height() + gap, inner, height)
        return hint.height() + gap + height + gap

    def _on_clicked(self, is_open: bool) -> None:
        if self.body is None:
            self.body = Column(self, gap=self._context.px(0.3))
            self._make_body(self.body)
        self.body.setVisible(is_open)
        self.show_title(self.title)

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint a thin line beside open content."""
        if not self._button.isChecked():
            return
        painter = QPainter(self)
        painter.setPen(QPen(QColor(self._context.theme.colors.border), 2))
        x = self._context.px(0.45)
        painter.drawLine(x, self._button.height() + 2, x, self.height() - 4)


def text_fold(context: RenderContext, title: str, text: str, dialect: Dialect = MARKDOWN) -> Fold:
    return Fold(context, title, lambda body: body.add(MessageText(context, text, dialect)))


def tool_fold(context: RenderContext, call: ToolCall | None, result: ToolResult | None) -> Fold:
    """Return a fold for a tool call and its result; either may be missing."""

    def fill(body: Column) -> None:
        if call is not None:
            body.add(Label(tr("Arguments"), "small"))
            body.add(MessageText(context, _fenced(call.arguments, "json"), PLAIN))
        if result is not None:
            body.add(Label(tr("Error") if result.is_error else tr("Result"), "small"))
            body.add(MessageText(context, _fenced(result.text, ""), PLAIN))

    return Fold(context, tool_title(call, result), fill)


def tool_title(
    call: ToolCall | None, result: ToolResult | None, *, is_running: bool = False
) -> str:
    """Return a tool call's title: name, shortened arguments, then duration and size or failure."""
    name = call.name if call is not None else result.name if result is not None else "tool"
    arguments = one_line(_readable(call.arguments), _MAX_ARGUMENTS_CHARS) if call else ""
    parts = [f"{name}({arguments})" if arguments else name]
    if result is None:
        parts.append(tr("running…") if is_running else tr("no result"))
    else:
        if result.duration_ms is not None:
            parts.append(format_milliseconds(result.duration_ms))
        parts.append("failed" if result.is_error else format_size(len(result.text.encode())))
    return "  ·  ".join(parts)


def _readable(arguments: str) -> str:
    """Return a JSON object as "name: value, ..."; other text unchanged."""
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(values, dict):
        return arguments
    return ", ".join(
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()
    )


def _fenced(text: str, language: str) -> str:
    """Return `text` as a code block whose fence is longer than any run of backticks in it."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{language}\n{text}\n{ticks}"

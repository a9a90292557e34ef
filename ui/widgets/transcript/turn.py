"""Turn widget: question and answer of one turn, or a placeholder until its content is loaded."""

from collections.abc import Iterable, Sequence
from datetime import date

from PySide6.QtCore import QEasingCurve, QRect, Qt, QVariantAnimation
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.domain.conversations import Block, ExchangeStatus, Message, Role, Text
from app.domain.ids import MessageId
from app.domain.translation import format_turn, tr
from ui.rendering.parser import PLAIN
from ui.widgets.transcript.answer import AnswerFrame
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.folds import text_fold
from ui.widgets.transcript.layout import Column, Root, remeasure
from ui.widgets.transcript.message_footer import answer_actions, footer_text, question_actions
from ui.widgets.transcript.message_frame import MessageFrame, UserFrame
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.panels import NEW_SEGMENT_TEXT, Divider
from ui.widgets.transcript.values import (
    Footer,
    Sources,
    TurnContent,
    TurnHeader,
    WrittenLine,
    answer_text,
)

HIGHLIGHT_MS = 2000
SUMMARY_NOTE = tr("Older messages are sent as a summary")
_FADE_FROM = 0.7


class TurnWidget(Root):
    """Shows a turn; its height is kept until something in it changes.

    Attributes:
        content: What is shown; None while it is loaded.
        answer: The answer's frame, once there is one.
    """

    def __init__(
        self,
        context: RenderContext,
        index: int,
        header: TurnHeader,
        dividers: Iterable[str | date],
        estimated_height: int,
    ) -> None:
        super().__init__()
        self.index = index
        self.content: TurnContent | None = None
        self._drawn: list[tuple[bool, Block]] | None = None
        self.answer: AnswerFrame | None = None
        self._context = context
        self._estimated_height = estimated_height
        self._measured: tuple[int, int] | None = None  # width and height
        self._sources = Sources()
        self._written: tuple[WrittenLine, ...] = ()
        self._is_last = False
        self._highlight_waits = False  # until the content is there
        self._summary = ""
        self._above, self._below = Column(self), Column(self)
        self._column = Column(self, gap=context.px(0.35))
        self.changed.connect(self._on_changed)
        for about in dividers:
            self._column.add(Divider(context, about))
        self._fade = QVariantAnimation(self, duration=HIGHLIGHT_MS, startValue=1.0, endValue=0.0)
        self._fade.setKeyValueAt(_FADE_FROM, 1.0)
        self._fade.setEasingCurve(QEasingCurve.Type.OutQuad)
        self._fade.valueChanged.connect(self.update)
        self.setAccessibleName(format_turn(header.turn_number).capitalize())

    @property
    def is_highlighted(self) -> bool:
        """Whether it is still marked as jumped to."""
        return self._highlight_waits or self._fade.state() is QVariantAnimation.State.Running

    def texts(self) -> list[MessageText]:
        """Return the texts of question and answer in order, without folded ones."""
        return [text for frame in self.frames() for text in frame.texts]

    def frames(self) -> list[MessageFrame]:
        """Return the message frames, top to bottom."""
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        return self._column.findChildren(MessageFrame, options=direct)

    def text_of(self, message_id: MessageId) -> MessageText | None:
        """Return where a message's text is rendered; None for a message without text."""
        if self.content is None:
            return None
        before, texts = 0, self.texts()
        for message in self.content.messages:
            blocks = message.blocks
            count = sum(isinstance(each, Text) and bool(each.text.strip()) for each in blocks)
            if message.id == message_id:
                return texts[before] if count and before < len(texts) else None
            before += count
        return None

    def show_content(self, content: TurnContent) -> None:
        """Show a turn's messages; an unchanged text is not rendered again."""
        self.content = content
        if self._drawn != (drawn := _rendered(content)):
            self._rebuild(content)
            self._drawn = drawn
        self._show_end(content)
        self._show_branches(content)
        if self._highlight_waits:
            self.highlight()

    def show_sources(self, sources: Sources) -> None:
        """Show what recall contributed to the answer."""
        self._sources = sources
        if self.answer is not None:
            self.answer.show_sources(sources)

    def show_written(self, lines: tuple[WrittenLine, ...]) -> None:
        self._written = lines
        if self.answer is not None:
            self.answer.show_written(lines)

    def show_summary_note(self, summary: str) -> None:
        """Say above the turn that older messages are sent as this summary; "" says nothing."""
        if summary != self._summary:
            self._summary = summary
            self._above.clear()
            if summary:
                self._above.add(text_fold(self._context, SUMMARY_NOTE, summary, PLAIN))

    def show_as_last(self, is_last: bool, *, ends_segment: bool = False) -> None:
        """Keep the actions of the last turn visible; say below it that a new segment begins."""
        ends_segment = is_last and ends_segment
        if is_last != self._is_last:
            self._is_last = is_last
            if self.content is not None and self.content.status is not ExchangeStatus.RUNNING:
                self._show_end(self.content)  # whether the reply can be continued has changed
        if ends_segment == self._below.is_empty:
            if ends_segment:
                self._below.add(Divider(self._context, NEW_SEGMENT_TEXT))
            else:
                self._below.clear()

    def highlight(self) -> None:
        """Mark the turn for two seconds, counted from when its content is shown."""
        self._highlight_waits = self.content is None
        self._fade.stop()
        if not self._highlight_waits:
            self._fade.start()
        self.update()

    def height_for(self, width: int) -> int:
        """Return the height at `width`; lay out what has changed."""
        if self._measured is not None and self._measured[0] == width:
            return self._measured[1]
        if self.content is None:
            return self._estimated_height
        margin, y = self._context.px(0.7), self._context.px(0.55)
        for column in (self._above, self._column, self._below):
            height = column.height_for(width - 2 * margin)
            column.setGeometry(margin, y, width - 2 * margin, height)
            y += height
        self._measured = (width, y + self._context.px(0.55))
        return self._measured[1]

    def focus_stops(self) -> list[QWidget]:
        """Return what Tab stops at, in reading order."""
        stops = [each for each in self.findChildren(QWidget) if _is_focus_stop(each)]
        return sorted(stops, key=self._reading_order)

    def _reading_order(self, widget: QWidget) -> tuple[int, int, int]:
        depth, parent = 0, widget.parentWidget()
        while parent is not None and parent is not self:
            depth, parent = depth + 1, parent.parentWidget()
        at = widget.mapTo(self, widget.rect().topLeft())
        return (at.y(), depth if isinstance(widget, MessageFrame) else 100 + at.x(), depth)

    def _on_changed(self) -> None:
        self._measured = None

    # content

    def _rebuild(self, content: TurnContent) -> None:
        for frame in self.frames():
            self._column.remove(frame)
        self.answer = None
        answer: list[Message] = []
        for message in content.messages:
            if message.role is Role.SYSTEM:
                self._column.add(text_fold(self._context, tr("System prompt"), message.text))
            elif message.opens_turn:
                actions = question_actions(self._context, self.index, message)
                self._column.add(UserFrame(self._context, self.index, message, actions))
            else:
                answer.append(message)
        if answer or content.status is not ExchangeStatus.COMPLETED:
            self._add_answer(content).show_messages(answer)
        self.changed.emit()

    def _add_answer(self, content: TurnContent) -> AnswerFrame:
        replies = _answers(content.messages)
        actions = answer_actions(
            self._context, self.index, self._answer_text, self._answer_ids,
            can_forget=not replies or not all(each.is_forgotten for each in replies),
        )  # fmt: skip
        self.answer = AnswerFrame(self._context, self.index, content.footer.model, actions)
        self.answer.show_sources(self._sources)
        self.answer.show_written(self._written)
        self._column.add(self.answer, above=self._context.px(0.1))
        return self.answer

    def _answer_ids(self) -> tuple[MessageId, ...]:
        """Return the answer's messages; results of tools are deleted with the call of each."""
        return tuple(each.id for each in _answers(self.content.messages if self.content else ()))

    def _answer_text(self) -> str:
        return answer_text(self.content.messages) if self.content is not None else ""

    def _show_end(self, content: TurnContent) -> None:
        if self.answer is not None:
            is_running = content.status is ExchangeStatus.RUNNING
            can_go_on = self._is_last and not self._context.is_read_only
            self.answer.show_end(content.status, content.problem, can_go_on=can_go_on)
            footer = Footer() if is_running else content.footer
            self.answer.footer.show_figures(footer_text(footer))
            self._update_actions()

    def _update_actions(self) -> None:
        if self.answer is not None and self.content is not None:
            is_running = self.content.status is ExchangeStatus.RUNNING
            self.answer.footer.always_shows_actions = self._is_last and not is_running
            self.answer.update_actions()
            remeasure(self.answer)

    def _show_branches(self, content: TurnContent) -> None:
        rest = list(content.branches)
        for frame in self.frames():
            if isinstance(frame, UserFrame):
                own = [each for each in rest if each.message_id == frame.message.id]
                frame.footer.show_branches(own)
                rest = [each for each in rest if each not in own]
        if self.answer is not None:
            self.answer.footer.show_branches(rest)

    # while it streams

    def begin_reply(self) -> AnswerFrame:
        """Create an empty answer that waits for text, in place of the present one."""
        assert self.content is not None
        if self.answer is not None:
            self._column.remove(self.answer)
        answer = self._add_answer(self.content)
        answer.begin()
        return answer

    def finish_reply(self, blocks: Sequence[Block]) -> None:
        """End the reply, whose blocks are drawn by now."""
        if self.answer is not None:
            self.answer.finish()
        self._drawn = [*(self._drawn or ()), *((False, each) for each in blocks)]

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the highlight, or a placeholder for content that is not loaded yet."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.is_highlighted:
            self._paint_highlight(painter)
        if self.content is None:
            self._paint_placeholder(painter)

    def _paint_highlight(self, painter: QPainter) -> None:
        """Paint a background, and a bar at its edge that also shows where a tall turn begins."""
        colors = self._context.theme.colors
        is_full = self._highlight_waits or self._context.theme.reduced_motion
        strength = 1.0 if is_full else float(self._fade.currentValue())
        background, bar = QColor(colors.highlight), QColor(colors.accent)
        background.setAlphaF(0.7 * strength)
        bar.setAlphaF(strength)
        corner = self._context.px(0.6)
        painter.setBrush(background)
        painter.drawRoundedRect(self.rect(), corner, corner)
        painter.setBrush(bar)
        edge = QRect(0, corner, max(3, self._context.px(0.22)), self.height() - 2 * corner)
        painter.drawRoundedRect(edge, 1.5, 1.5)

    def _paint_placeholder(self, painter: QPainter) -> None:
        painter.setBrush(QColor(self._context.theme.colors.border))
        bar, step, margin = self._context.px(0.55), self._context.px(1.9), self._context.px(1.0)
        top, number = self._context.px(1.2), 0
        while top + bar < min(self.height() - margin, 12 * step):
            width = round((self.width() - 2 * margin) * (0.94, 0.88, 0.97, 0.61)[number % 4])
            painter.drawRoundedRect(margin, top, width, bar, bar / 2, bar / 2)
            top, number = top + step, number + 1


def _is_focus_stop(widget: QWidget) -> bool:
    if not widget.isVisible() or not widget.isEnabled():
        return False
    if widget.focusPolicy() is Qt.FocusPolicy.NoFocus:
        return False
    has_links = getattr(widget, "has_links", None)
    return has_links is None or bool(has_links())


def _answers(messages: Iterable[Message]) -> list[Message]:
    return [each for each in messages if each.role is Role.ASSISTANT]


def _rendered(content: TurnContent) -> list[tuple[bool, Block]]:
    """Return what determines how a turn's messages look, which excludes ids and boundaries."""
    return [
        (message.role is Role.USER, block)
        for message in content.messages
        for block in message.blocks
    ]

"""One turn on screen: what was asked and what was answered, or a guess of it until that is known."""

from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QEasingCurve, QRect, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.domain.conversations import Block, ExchangeStatus, Message, Role
from ui.rendering.parser import PLAIN
from ui.widgets.transcript.answer import AnswerFrame
from ui.widgets.transcript.folds import Fold, text_fold
from ui.widgets.transcript.frames import MessageFrame, UserFrame
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.message_text import MessageText, put_on_clipboard
from ui.widgets.transcript.meta import Action
from ui.widgets.transcript.panels import CLEAN_SLATE, Divider
from ui.widgets.transcript.parts import Column
from ui.widgets.transcript.values import Footer, Sources, TurnContent, TurnHead, answer_text
from ui.widgets.transcript.words import model_words, moment

HIGHLIGHT_MS = 2000
STAND_IN = "Older messages are sent as a summary"
_FADE_FROM = 0.7


class TurnWidget(QWidget):
    """Shows a turn at a width it is given; keeps its height until something in it changes.

    Signals:
        changed: The height may have changed.
        scroll_wanted: A widget inside, and how far below its top something wants to be seen.
    """

    changed = Signal()
    scroll_wanted = Signal(object, int)

    def __init__(
        self, look: Look, index: int, head: TurnHead, dividers: Iterable[str], guessed_height: int
    ) -> None:
        super().__init__()
        self.index = index
        self.head = head
        self._look = look
        self._guessed_height = guessed_height
        self._measured: tuple[int, int] | None = None
        self._content: TurnContent | None = None
        self._answer: AnswerFrame | None = None
        self._sources = Sources()
        self._is_last = False
        self._is_marked = False  # jumped to before its words are there
        self._slate: Divider | None = None
        self._stand_in: Fold | None = None
        self._summary = ""
        self._column = Column(self, gap=look.px(0.35))
        for words in dividers:
            self._column.add(Divider(look, words))
        self._column.changed.connect(self._on_changed)
        self._fade = QVariantAnimation(self)
        self._fade.setDuration(HIGHLIGHT_MS)
        self._fade.setStartValue(1.0)
        self._fade.setKeyValueAt(_FADE_FROM, 1.0)
        self._fade.setEndValue(0.0)
        self._fade.setEasingCurve(QEasingCurve.Type.OutQuad)
        self._fade.valueChanged.connect(self.update)
        self.setAccessibleName(f"Turn {head.turn_number}")

    @property
    def content(self) -> TurnContent | None:
        """What is shown; None while it is awaited."""
        return self._content

    @property
    def is_highlighted(self) -> bool:
        """Whether it is still marked as jumped to."""
        return self._is_marked or self._fade.state() is QVariantAnimation.State.Running

    @property
    def answer(self) -> AnswerFrame | None:
        """The answer's frame, once there is one."""
        return self._answer

    def texts(self) -> list[MessageText]:
        """Return the words of question and answer, in order; folded ones are left out."""
        return [text for frame in self.frames() for text in getattr(frame, "texts", ())]

    def frames(self) -> list[MessageFrame]:
        """Return the messages on screen, top to bottom."""
        return self._column.findChildren(
            MessageFrame, options=Qt.FindChildOption.FindDirectChildrenOnly
        )

    def show_content(self, content: TurnContent) -> None:
        """Show a turn's messages; words already shown are not drawn again."""
        before, self._content = self._content, content
        if before is None or _drawn(before) != _drawn(content):
            self._rebuild(content)
        self._show_end(content)
        self._show_branches(content)
        if self._is_marked:
            self.highlight()

    def show_sources(self, sources: Sources) -> None:
        """Show what memory contributed to the answer."""
        self._sources = sources
        if self._answer is not None:
            self._answer.show_sources(sources)

    def set_last(self, is_last: bool) -> None:
        """Say whether this is the last turn, whose actions stay in sight."""
        if is_last != self._is_last:
            self._is_last = is_last
            self._keep_actions()

    def show_slate(self, shown: bool) -> None:
        """Say below the turn that a clean slate begins, or no longer."""
        if shown == (self._slate is not None):
            return
        if self._slate is not None:
            self._slate.hide()
            self._slate.deleteLater()
            self._slate = None
        else:
            self._slate = Divider(self._look, CLEAN_SLATE)
            self._slate.setParent(self)
            self._slate.show()
        self._on_changed()

    def show_stand_in(self, summary: str) -> None:
        """Say above the turn that older messages are sent as this summary; "" says nothing."""
        if summary == self._summary:
            return
        self._summary = summary
        if self._stand_in is not None:
            self._stand_in.hide()
            self._stand_in.deleteLater()
            self._stand_in = None
        if summary:
            self._stand_in = text_fold(self._look, STAND_IN, summary, PLAIN)
            self._stand_in.setParent(self)
            self._stand_in.changed.connect(self._on_changed)
            self._stand_in.show()
        self._on_changed()

    def _keep_actions(self) -> None:
        if self._answer is not None and self._content is not None:
            is_running = self._content.status is ExchangeStatus.RUNNING
            self._answer.keep_actions(self._is_last and not is_running)

    def highlight(self) -> None:
        """Mark the turn for two seconds, counted from when its words are there."""
        self._is_marked = self._content is None
        self._fade.stop()
        if not self._is_marked:
            self._fade.start()
        self.update()

    def height_for(self, width: int) -> int:
        """Return the height at `width`; only what has changed is laid out."""
        if self._measured is not None and self._measured[0] == width:
            return self._measured[1]
        if self._content is None:
            return self._guessed_height
        margin, above, below = self._margins()
        inner = width - 2 * margin
        if self._stand_in is not None:
            line = self._stand_in.height_for(inner)
            self._stand_in.setGeometry(margin, above, inner, line)
            above += line
        height = self._column.height_for(inner)
        self._column.setGeometry(QRect(margin, above, inner, height))
        if self._slate is not None:
            line = self._slate.height_for(inner)
            self._slate.setGeometry(margin, above + height, inner, line)
            height += line
        self._measured = (width, height + above + below)
        return self._measured[1]

    def focus_stops(self) -> list[QWidget]:
        """Return what Tab stops at, in reading order."""
        stops = [each for each in self.findChildren(QWidget) if self._is_stop(each)]
        return sorted(stops, key=self._reading_order)

    def _margins(self) -> tuple[int, int, int]:
        return self._look.px(0.7), self._look.px(0.55), self._look.px(0.55)

    def _is_stop(self, widget: QWidget) -> bool:
        if not widget.isVisible() or not widget.isEnabled():
            return False
        if widget.focusPolicy() is Qt.FocusPolicy.NoFocus:
            return False
        has_links = getattr(widget, "has_links", None)
        return has_links is None or bool(has_links())

    def _reading_order(self, widget: QWidget) -> tuple[int, int, int]:
        depth, parent = 0, widget.parentWidget()
        while parent is not None and parent is not self:
            depth, parent = depth + 1, parent.parentWidget()
        at = widget.mapTo(self, widget.rect().topLeft())
        return (at.y(), depth if isinstance(widget, MessageFrame) else 100 + at.x(), depth)

    def _on_changed(self) -> None:
        self._measured = None
        self.changed.emit()

    # building

    def _rebuild(self, content: TurnContent) -> None:
        for frame in self.frames():
            self._column.remove(frame)
        self._answer = None
        answer: list[Message] = []
        for message in content.messages:
            if message.role is Role.SYSTEM:
                self._column.add(text_fold(self._look, "System prompt", message.text))
            elif message.opens_turn:
                self._column.add(self._user_frame(message))
            else:
                answer.append(message)
        if answer or content.status is not ExchangeStatus.COMPLETED:
            self._add_answer(content)
            if self._answer is not None:
                self._answer.show_messages(answer)
        self._on_changed()

    def _add_answer(self, content: TurnContent) -> None:
        events = self._look.events
        actions = [
            Action("Copy", "Copy the answer as Markdown", self._copy_answer),
            Action(
                "Regenerate",
                "Answer again; this answer stays as a branch",
                lambda: events.regenerate_requested.emit(self.index),
            ),
            Action(
                "Fork from here",
                "Begin a new conversation with everything up to here",
                lambda: events.fork_requested.emit(self.index),
            ),
            self._link_action(),
            Action(
                "Inspect",
                "Show what was recalled for this answer, and exactly what was sent",
                lambda: events.inspect_requested.emit(self.index),
            ),
            *self._search_actions(),
        ]
        model = content.footer.model
        name = f"Answer, {model_words(model)}" if model else "Answer"
        answer = AnswerFrame(self._look, name, actions)
        answer.retry_clicked.connect(lambda: events.retry_requested.emit(self.index))
        answer.continue_clicked.connect(lambda: events.continue_requested.emit(self.index))
        answer.scroll_wanted.connect(self.scroll_wanted)
        answer.meta.branch_requested.connect(self._on_branch_requested)
        answer.source_clicked.connect(lambda number: events.source_clicked.emit(self.index, number))
        answer.show_sources(self._sources)
        self._answer = answer
        self._column.add(answer, above=self._look.px(0.1))

    def _user_frame(self, message: Message) -> UserFrame:
        events = self._look.events
        actions = [
            Action("Copy", "Copy the message", partial(put_on_clipboard, message.text)),
            Action(
                "Edit",
                "Change the message; what follows stays as a branch",
                lambda: events.edit_requested.emit(self.index, message.id),
            ),
            self._link_action(),
            *self._search_actions(),
        ]
        name = f"You, {moment(message.created_at)}"
        frame = UserFrame(self._look, message, name, actions)
        frame.meta.branch_requested.connect(self._on_branch_requested)
        return frame

    def _link_action(self) -> Action:
        events = self._look.events
        return Action(
            "Copy link",
            "Copy a link to this turn",
            lambda: events.link_requested.emit(self.index),
        )

    def _search_actions(self) -> tuple[Action, ...]:
        events = self._look.events
        return (
            Action(
                "Is this found by search?",
                "Say whether words and meaning find this turn, and if not, why",
                lambda: events.coverage_requested.emit(self.index),
                only_in_menu=True,
            ),
            Action(
                "Why wasn't this recalled?\N{HORIZONTAL ELLIPSIS}",
                "Ask a question, and see this turn's rank and what kept it back",
                lambda: events.why_requested.emit(self.index),
                only_in_menu=True,
            ),
        )

    def _copy_answer(self) -> None:
        if self._content is not None:
            put_on_clipboard(answer_text(self._content.messages))

    def _on_branch_requested(self, message_id: object, position: int) -> None:
        self._look.events.branch_requested.emit(self.index, message_id, position)

    def _show_end(self, content: TurnContent) -> None:
        if self._answer is None:
            return
        self._answer.show_end(content.status, content.problem)
        is_running = content.status is ExchangeStatus.RUNNING
        self._answer.show_footer(Footer() if is_running else content.footer)
        self._keep_actions()

    def _show_branches(self, content: TurnContent) -> None:
        users = {frame.message.id: frame for frame in self.frames() if isinstance(frame, UserFrame)}
        for frame in users.values():
            frame.meta.show_branches(
                [b for b in content.branches if b.message_id == frame.message.id]
            )
        if self._answer is not None:
            others = [each for each in content.branches if each.message_id not in users]
            self._answer.meta.show_branches(others)

    # while it streams

    def begin_reply(self) -> AnswerFrame:
        """Make an empty answer that waits for words, in place of any there was."""
        assert self._content is not None
        if self._answer is not None:
            self._column.remove(self._answer)
        self._add_answer(self._content)
        assert self._answer is not None
        self._answer.begin()
        self._on_changed()
        return self._answer

    def finish_reply(self, content: TurnContent) -> None:
        """Take the finished turn, whose words are drawn already."""
        self._content = content
        if self._answer is not None:
            self._answer.finish()
        self._show_end(content)

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the highlight, or lines that stand for words not known yet."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.is_highlighted:
            self._paint_highlight(painter)
        if self._content is None:
            self._paint_placeholder(painter)

    def _paint_highlight(self, painter: QPainter) -> None:
        """Paint a tinted ground, and a bar at its edge that also says where a tall turn begins."""
        colours = self._look.theme.colours
        strength = 1.0 if self._is_marked else float(self._fade.currentValue())
        ground, bar = QColor(colours.highlight), QColor(colours.accent)
        ground.setAlphaF(0.7 * strength)
        bar.setAlphaF(strength)
        corner = self._look.px(0.6)
        painter.setBrush(ground)
        painter.drawRoundedRect(self.rect(), corner, corner)
        painter.setBrush(bar)
        edge = QRect(0, corner, max(3, self._look.px(0.22)), self.height() - 2 * corner)
        painter.drawRoundedRect(edge, 1.5, 1.5)

    def _paint_placeholder(self, painter: QPainter) -> None:
        painter.setBrush(QColor(self._look.theme.colours.border))
        bar, step, margin = self._look.px(0.55), self._look.px(1.9), self._look.px(1.0)
        top, number = self._look.px(1.2), 0
        while top + bar < min(self.height() - margin, 12 * step):
            width = round((self.width() - 2 * margin) * (0.94, 0.88, 0.97, 0.61)[number % 4])
            painter.drawRoundedRect(margin, top, width, bar, bar / 2, bar / 2)
            top, number = top + step, number + 1


def _drawn(content: TurnContent) -> list[tuple[bool, Block]]:
    """Return what decides how a turn's messages look; ids and the cutting into messages do not."""
    return [
        (message.role is Role.USER, block)
        for message in content.messages
        for block in message.blocks
    ]

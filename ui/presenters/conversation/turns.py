"""Turns of a conversation as the transcript shows them, from stored records, and the replies that run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from time import perf_counter

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.library import ConversationView, Library
from app.chat.reply import Reply
from app.domain.chat import RecallCompleted, Retrying, TextWasThinking, add_piece
from app.domain.conversations import (
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.text import translate_lines
from app.domain.translation import format_number, tr
from app.storage.tables.exchanges import Exchanges
from ui.widgets.transcript.values import Branch, Footer, TurnContent, TurnHeader

Position = tuple[int, int]  # turn, pixels below its top
_SHOWN_AROUND = 4  # turns on either side of the one that is opened
_REPAINT_MS = 33
_PAUSE, _MAX_PAUSE_MS = 1.5, 400
Part = Text | Thinking | TextWasThinking | ToolCall | ToolResult


def headers_of(
    path: Sequence[Exchange], lengths: Mapping[MessageId, int]
) -> tuple[TurnHeader, ...]:
    """Return the headers of turns; `lengths` are in characters, by message."""
    return tuple(
        TurnHeader(
            turn_number=exchange.turn_number,
            started_at=exchange.started_at,
            question_chars=lengths.get(exchange.message_ids[0], 0),
            answer_chars=sum(lengths.get(each, 0) for each in exchange.message_ids[1:]),
            segment_number=exchange.segment_number,
        )
        for exchange in path
    )


def content_of(
    exchange: Exchange, messages: Sequence[Message], siblings: Sequence[ExchangeId]
) -> TurnContent:
    """Return a turn's content; `siblings` are the exchanges at its place, itself included."""
    branches: tuple[Branch, ...] = ()
    if len(siblings) > 1 and messages:
        position = siblings.index(exchange.id) + 1
        branches = (Branch(messages[0].id, position, len(siblings)),)
    return TurnContent(
        messages=tuple(messages),
        status=exchange.status,
        footer=Footer(exchange.model, exchange.usage),
        problem=exchange.problem,
        branches=branches,
    )


def changed_turns(shown: Sequence[Exchange], stored: Sequence[Exchange]) -> list[int] | None:
    """Return the turns of a path that must be drawn again; None if another branch is stored."""
    if [each.id for each in stored[: len(shown)]] != [each.id for each in shown]:
        return None
    return [
        turn
        for turn, (was, now) in enumerate(zip(shown, stored, strict=False))
        if (was.status, was.message_ids) != (now.status, now.message_ids)
    ]


@dataclass(frozen=True, slots=True)
class ConversationReader:
    """Reads a conversation for the transcript; its methods block."""

    library: Library
    exchanges: Exchanges

    def read(
        self, conversation_id: ConversationId, exchange_id: ExchangeId | None = None
    ) -> tuple[ConversationView, tuple[TurnHeader, ...]]:
        """Return a conversation on the path through an exchange, by default the current one."""
        view = self.library.open(conversation_id, exchange_id)
        return view, headers_of(view.path, self.exchanges.text_lengths(conversation_id))

    def read_to_show(
        self,
        conversation_id: ConversationId,
        exchange_id: ExchangeId | None,
        position: Position | None,
        *,
        scrolls: bool,
    ) -> tuple[ConversationView, tuple[TurnHeader, ...], dict[int, TurnContent]]:
        """Return a conversation with the content of the turns that are on screen first."""
        view, headers = self.read(conversation_id, exchange_id)
        last = len(view.path) - 1
        middle = last if position is None else min(position[0], last)
        if scrolls and exchange_id is not None:
            middle = next(turn for turn, each in enumerate(view.path) if each.id == exchange_id)
        shown = [
            (turn, view.path[turn])
            for turn in range(max(0, middle - _SHOWN_AROUND), min(last, middle + _SHOWN_AROUND) + 1)
            if view.path[turn].status is not ExchangeStatus.RUNNING
        ]
        messages = self.library.messages([exchange for _, exchange in shown])
        contents = {
            turn: content_of(exchange, messages[exchange.id], view.siblings[turn])
            for turn, exchange in shown
        }
        return view, headers, contents


@dataclass(slots=True)
class _AwaitedRetry:
    """A retry at a time of `perf_counter`, and the seconds left that were reported last."""

    reason: str
    at_s: float
    shown_s: int | None = None


class RunningReplies(QObject):
    """Turns the events of the exchange thread into signals of the GUI thread.

    Signals:
        grew: (Reply, its next part: a piece of `Text` or `Thinking`, a `ToolCall` or `ToolResult`,
            or `TextWasThinking`).
        status_changed: (Reply, text for the status line), such as a retry or a failed recall.
        running_changed: The ids of the conversations in which a reply runs.
        ended: (Reply, the `Exchange` as stored, or the exception that kept it from being stored).
    """

    grew = Signal(object, object)
    status_changed = Signal(object, str)
    running_changed = Signal(object)
    ended = Signal(object, object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._running: dict[ConversationId, Reply] = {}
        self._parts: dict[ConversationId, list[Block]] = {}
        self._retries: dict[ConversationId, _AwaitedRetry] = {}
        self._drain = QTimer(self, interval=_REPAINT_MS)
        self._drain.timeout.connect(self._on_drain_timeout)

    def add(self, reply: Reply) -> None:
        """Follow a reply to its end."""
        conversation_id = reply.plan.conversation.id
        self._running[conversation_id] = reply
        self._parts[conversation_id] = []
        self._drain.start()
        self.running_changed.emit(frozenset(self._running))

    def of(self, conversation_id: ConversationId) -> Reply | None:
        return self._running.get(conversation_id)

    def so_far(self, reply: Reply) -> Iterable[Block]:
        return tuple(self._parts.get(reply.plan.conversation.id, ()))

    def _on_drain_timeout(self) -> None:
        """Emit what has arrived; then pause for at least 1.5 times as long as rendering it took."""
        began = perf_counter()
        for conversation_id, reply in tuple(self._running.items()):
            is_over = reply.done.done()
            for part in self._new_parts(reply):
                self._retries.pop(conversation_id, None)
                add_piece(self._parts[conversation_id], part)
                self.grew.emit(reply, part)
            self._count_down(reply)
            if is_over:
                self._retries.pop(conversation_id, None)
                del self._running[conversation_id], self._parts[conversation_id]
                self.running_changed.emit(frozenset(self._running))
                self.ended.emit(reply, reply.done.exception() or reply.done.result())
        if not self._running:
            self._drain.stop()
        took_ms = (perf_counter() - began) * 1000
        self._drain.setInterval(min(_MAX_PAUSE_MS, max(_REPAINT_MS, round(_PAUSE * took_ms))))

    def _count_down(self, reply: Reply) -> None:
        """Report a retry that is waited for, once for each second that is left."""
        retry = self._retries.get(reply.plan.conversation.id)
        if retry is None or (left_s := max(0, ceil(retry.at_s - perf_counter()))) == retry.shown_s:
            return
        retry.shown_s = left_s
        text = (
            tr("{reason}. Trying again in {wait_s} s")
            if left_s
            else tr("{reason}. Trying again\u2026")
        )
        status = text.format(reason=retry.reason, wait_s=format_number(left_s))
        self.status_changed.emit(reply, status)

    def _new_parts(self, reply: Reply) -> list[Part]:
        """Return the parts since the last time, adjacent ones of one kind joined."""
        parts: list[Part] = []
        for event in reply.drain():
            if isinstance(event, Retrying):
                retry = _AwaitedRetry(event.reason, perf_counter() + event.wait_s)
                self._retries[reply.plan.conversation.id] = retry
            elif isinstance(event, RecallCompleted):
                if event.notice:
                    self.status_changed.emit(reply, translate_lines(event.notice))
            elif isinstance(event, Part):
                last = parts[-1] if parts else None
                if isinstance(event, Text | Thinking) and isinstance(last, type(event)):
                    parts[-1] = type(event)(last.text + event.text)
                else:
                    parts.append(event)
        return parts

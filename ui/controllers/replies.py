"""Replies under way, whichever conversation is open: drained 30 times a second, and only then."""

from collections.abc import Iterable

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.reply import Reply
from app.domain.chat import (
    MemoryRecalled,
    ReplyEvent,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolAnswered,
    ToolCallReady,
)
from app.domain.conversations import Text, Thinking, ToolCall, ToolResult
from app.domain.ids import ConversationId
from ui.bridge import Bridge

_REPAINT_MS = 33
Part = Text | Thinking | ToolCall | ToolResult


class RunningReplies(QObject):
    """Turns what the exchange thread pushes into signals of the GUI thread.

    Signals:
        grew: (Reply, more of it: a piece of `Text` or `Thinking`, a whole `ToolCall` or `ToolResult`).
        told: (Reply, words for the status line): a retry under way, what recall could not do.
        ended: (Reply, the `Exchange` as stored, or the exception that kept it from being stored).
    """

    grew = Signal(object, object)
    told = Signal(object, str)
    ended = Signal(object, object)

    def __init__(self, bridge: Bridge, parent: QObject) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._running: dict[ConversationId, Reply] = {}
        self._parts: dict[ConversationId, list[Part]] = {}
        self._drain = QTimer(self, interval=_REPAINT_MS)
        self._drain.timeout.connect(self._on_drain_timeout)

    def add(self, reply: Reply) -> None:
        """Follow a reply to its end."""
        conversation_id = reply.plan.conversation.id
        self._running[conversation_id] = reply
        self._parts[conversation_id] = []
        self._drain.start()

    def of(self, conversation_id: ConversationId) -> Reply | None:
        """Return the reply under way in a conversation."""
        return self._running.get(conversation_id)

    def so_far(self, reply: Reply) -> Iterable[Part]:
        """Return what has come of a reply, in order."""
        return tuple(self._parts.get(reply.plan.conversation.id, ()))

    def _on_drain_timeout(self) -> None:
        for conversation_id, reply in tuple(self._running.items()):
            is_over = reply.done.done()
            for part in self._new_parts(reply):
                self._parts[conversation_id].append(part)
                self.grew.emit(reply, part)
            if is_over:
                del self._running[conversation_id], self._parts[conversation_id]
                self.ended.emit(reply, reply.done.exception() or reply.done.result())
        if not self._running:
            self._drain.stop()

    def _new_parts(self, reply: Reply) -> list[Part]:
        """Return what came since the last time, neighbours of one kind joined."""
        parts: list[Part] = []
        for event in reply.drain():
            if isinstance(event, Retrying):
                self.told.emit(reply, f"{event.reason}. Trying again in {event.wait_s:.0f} s")
            elif isinstance(event, MemoryRecalled):
                if event.notice:
                    self.told.emit(reply, event.notice)
            elif (part := _part(event)) is not None:
                last = parts[-1] if parts else None
                if isinstance(part, Text | Thinking) and type(last) is type(part):
                    parts[-1] = type(part)(last.text + part.text)
                else:
                    parts.append(part)
        return parts


def _part(event: ReplyEvent) -> Part | None:
    """Return what an event adds to the transcript, None for what it does not show."""
    match event:
        case TextDelta(text=text):
            return Text(text)
        case ThinkingDelta(text=text):
            return Thinking(text)
        case ToolCallReady(call_id=call_id, name=name, arguments=arguments):
            return ToolCall(call_id, name, arguments)
        case ToolAnswered(result=result):
            return result
        case _:
            return None

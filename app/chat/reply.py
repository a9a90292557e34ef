"""Handle of a running exchange: its events, its outcome, and how to stop it."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from app.chat.planner import ExchangePlan
from app.domain.chat import ReplyEvent
from app.domain.conversations import Exchange
from app.domain.recall import StoredPrompt


class Reply:
    """An exchange under way, for a screen or a command. Thread-safe.

    Attributes:
        plan: What was stored before it started.
        done: Resolves to the exchange as stored at its end, whatever the outcome. While storing
            fails it stays pending; it fails only when the program closes before that.
        prompt: The prompt that was sent, once it is known; None for Recall.
        is_abandoned: Set when the program closes: failed commits are not retried any more.
    """

    def __init__(self, plan: ExchangePlan) -> None:
        self.plan = plan
        self.done: Future[Exchange] = Future()
        self.prompt: StoredPrompt | None = None
        self.is_abandoned = False
        self._events: deque[ReplyEvent] = deque()
        self._changed = threading.Condition()
        self._stop: Callable[[], object] = lambda: None
        self._is_stop_requested = False

    def drain(self) -> list[ReplyEvent]:
        """Return the events since the last call, in order, without blocking."""
        events: list[ReplyEvent] = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def wait(self, timeout_s: float) -> None:
        """Wait for an event or the end. Blocking."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self.done.done(), timeout_s)

    def stop(self) -> None:
        """Request the end; the text so far is kept and marked interrupted. Idempotent."""
        if not self._is_stop_requested:
            self._is_stop_requested = True
            self._stop()

    # -- called on the exchange thread

    def push(self, event: ReplyEvent) -> None:
        """Add an event."""
        self._events.append(event)
        with self._changed:
            self._changed.notify_all()

    def finish(self, outcome: Exchange | BaseException) -> None:
        """Resolve `done`."""
        if isinstance(outcome, BaseException):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)
        with self._changed:
            self._changed.notify_all()

    def on_stop(self, stop: Callable[[], object]) -> None:
        """Set what stops the exchange; called at once if a stop was requested before."""
        self._stop = stop
        if self._is_stop_requested:
            stop()

"""An exchange under way, as a screen or a command sees it. What runs it is `app.chat.running`."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from app.chat.plans import Plan
from app.domain.chat import ReplyEvent
from app.domain.conversations import Exchange
from app.domain.ids import PassageId
from app.domain.recalls import KeptPrompt


class Reply:
    """An exchange under way; thread-safe.

    Attributes:
        plan: What was stored before it started.
        replaced: Passages that an earlier run of the same exchange left; the end replaces them.
        done: Resolves to the exchange as it was stored at the end, whatever the end was. While the
            disk refuses it waits; it fails only when the program leaves before that is mended.
        prompt: What it is asked with, once that is settled; None for Recall.
        is_abandoned: Set when the program leaves: then nothing is waited for any more.
    """

    def __init__(self, plan: Plan, replaced: tuple[PassageId, ...] = ()) -> None:
        self.plan = plan
        self.replaced = replaced
        self.done: Future[Exchange] = Future()
        self._events: deque[ReplyEvent] = deque()
        self._news = threading.Condition()
        self._stopping: Callable[[], None] = lambda: None
        self._stop_wanted = False
        self.prompt: KeptPrompt | None = None
        self.is_abandoned = False

    def drain(self) -> list[ReplyEvent]:
        """Return what has come since the last call, in order, without waiting."""
        events: list[ReplyEvent] = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to drain, or the end."""
        with self._news:
            self._news.wait_for(lambda: self._events or self.done.done(), timeout_s)

    def stop(self) -> None:
        """Ask for the end; what has arrived is kept, marked interrupted. Safe to call again."""
        if not self._stop_wanted:
            self._stop_wanted = True
            self._stopping()

    def push(self, event: ReplyEvent) -> None:
        """Hand an event to the screen (the exchange thread calls it)."""
        self._events.append(event)
        with self._news:
            self._news.notify_all()

    def finish(self, outcome: Exchange | BaseException) -> None:
        """Resolve `done` (the exchange thread calls it)."""
        if isinstance(outcome, BaseException):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)
        with self._news:
            self._news.notify_all()

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Say how to stop it; called at once if that was asked for already."""
        self._stopping = stop
        if self._stop_wanted:
            stop()
